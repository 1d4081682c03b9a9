// Plays the steps of a redistribution on what every device holds, element by element and partial
// value by partial value.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "lowering/redistribute/steps.hpp"
#include "tests/placement/elements.hpp"

namespace stratagem::lowering {

/// Values are cut into this many parts: a multiple of all value counts in the tests.
constexpr std::int64_t value_parts = 24;

/// What a device's masks really hold. A number that appears twice was summed twice.
using Memory = std::map<placement::Mask, placement::Seen>;

inline void demand(bool held, const std::string& promise) {
  if (!held) throw std::logic_error("not so: " + promise);
}

inline std::int64_t size_of(const placement::Mask& mask) {
  std::int64_t size = 1;
  for (const placement::Range& range : mask.ranges) size *= range.end - range.begin;
  return size;
}

inline placement::Mask with_value(placement::Mask mask, placement::ValuePart value) {
  mask.value = value;
  return mask;
}

/// The same elements with all of their value.
inline placement::Seen all_values(const placement::Mask& mask) {
  return seen_by(with_value(mask, {}), value_parts);
}

/// Everything in both, and an element twice where both have it.
inline placement::Seen added(const placement::Seen& a, const placement::Seen& b) {
  placement::Seen sum;
  std::ranges::merge(a, b, std::back_inserter(sum));
  return sum;
}

/// Do the masks, whatever their values, fill a box without overlapping?
inline bool tile(const std::vector<placement::Mask>& masks, const placement::Mask& box) {
  std::int64_t size = 0;
  for (std::size_t i = 0; i < masks.size(); ++i) {
    size += size_of(masks[i]);
    if (!placement::contains(all_values(box), all_values(masks[i]))) return false;
    for (std::size_t j = 0; j < i; ++j) {
      if (overlap(with_value(masks[i], {}), with_value(masks[j], {}))) return false;
    }
  }
  return size == size_of(box);
}

class PlayedSteps {
 public:
  explicit PlayedSteps(const std::vector<Piece>& producers) {
    for (const Piece& piece : producers)
      memory_[piece.device][piece.mask] = seen_by(piece.mask, value_parts);
  }

  void run(const Redistribution& redistribution) {
    for (const Step& step : redistribution.steps) {
      demand(!step.groups.empty(), "a step does something");
      auto next = memory_;  // groups work in parallel
      std::set<int> busy;
      for (const std::vector<Share>& group : step.groups) {
        play(step.kind, group, next);
        for (const Share& share : group) {
          const bool alone = busy.insert(share.device).second;
          demand(alone || step.kind < StepKind::all_reduce || step.kind > StepKind::all_to_all,
                 "one group for each device");
        }
      }
      memory_ = std::move(next);
    }
  }

  [[nodiscard]] const placement::Seen& at(int device, const placement::Mask& mask) const {
    const auto memory = memory_.find(device);
    demand(memory != memory_.end() && memory->second.contains(mask),
           "device " + std::to_string(device) + " has what it reads");
    return memory->second.at(mask);
  }

 private:
  void play(StepKind kind, const std::vector<Share>& group, std::map<int, Memory>& next) {
    placement::Seen all;
    std::vector<placement::Mask> read;
    for (const Share& share : group) {
      for (const placement::Mask& mask : share.reads) {
        all = added(all, at(share.device, mask));
        read.push_back(mask);
      }
    }
    if (kind == StepKind::select) {
      demand(group.size() == 1 && read.size() <= 1, "a select reads one mask or none");
      if (!read.empty())
        demand(placement::contains(all_values(read[0]), all_values(group[0].holds)),
               "a select is a part");
    } else {
      demand(!read.empty(), "a step reads something");
    }
    for (const Share& share : group) {
      check_masks(kind, group, share, read);
      next[share.device][share.holds] = restricted(all, share.holds);
    }
  }

  static placement::Seen restricted(const placement::Seen& all, const placement::Mask& mask) {
    const placement::Seen here = all_values(mask);
    placement::Seen result;
    std::ranges::copy_if(all, std::back_inserter(result), [&](std::int64_t element) {
      return std::ranges::binary_search(here, element);
    });
    return result;
  }

  static void check_masks(StepKind kind, const std::vector<Share>& group, const Share& share,
                          const std::vector<placement::Mask>& read) {
    const auto equal_elements = [&](const placement::Mask& mask) {
      return mask.ranges == read[0].ranges;
    };
    const auto value = [](const placement::Mask& mask) { return mask.value; };
    const auto equal_values = [&](const placement::Mask& mask) {
      return value(mask) == value(share.holds);
    };
    if (kind == StepKind::select) return;
    const bool local = !communicates(kind);
    demand(local == (group.size() == 1), "local steps and only those are for one device");
    if (kind == StepKind::sum || kind == StepKind::all_reduce || kind == StepKind::reduce_scatter)
      demand(std::ranges::all_of(read, equal_elements), "sums are of equal elements");
    if (kind == StepKind::sum || kind == StepKind::all_reduce)
      demand(equal_elements(share.holds), "a sum has the elements of its terms");
    if (kind == StepKind::concatenate || kind == StepKind::all_gather) {
      demand(std::ranges::all_of(read, equal_values), "one value is put together");
      demand(tile(read, share.holds), "parts fill what is put together");
    }
    if (kind == StepKind::send || kind == StepKind::broadcast) {
      const bool root = &share == &group[0];
      demand(share.reads.size() == (root ? 1 : 0) && read[0] == share.holds, "a mask is passed on");
      demand((kind == StepKind::send) == (group.size() == 2), "a send has one destination");
    } else if (!local) {
      demand(share.reads.size() == 1, "every rank has one part");
    }
  }

  std::map<int, Memory> memory_;
};

/// What every consumer wants is there: full values once, partial values so that those of equal
/// elements have the right sum, equal masks the same.
inline void demand_delivery(const PlayedSteps& played, const std::vector<Piece>& consumers) {
  using Group = std::pair<std::vector<placement::Range>, std::int64_t>;
  std::map<Group, std::map<std::int64_t, placement::Seen>> sums;  // by elements and count; by index
  for (const Piece& consumer : consumers) {
    const placement::Mask& mask = consumer.mask;
    const placement::Seen& held = played.at(consumer.device, mask);
    const auto [known, fresh] =
        sums[{mask.ranges, mask.value.count}].try_emplace(mask.value.index, held);
    demand(fresh || known->second == held, "replicas are equal");
  }
  for (const auto& [group, values] : sums) {
    demand(static_cast<std::int64_t>(values.size()) == group.second, "a test wants all values");
    placement::Seen sum;
    for (const auto& [index, held] : values) sum = added(sum, held);
    demand(sum == all_values({group.first, {}}), "every element and partial value comes once");
  }
}

/// Elements that a step moves, counted from what its devices have before and after it.
inline double moved(const Step& step) {
  double total = 0;
  for (const std::vector<Share>& group : step.groups) {
    const auto n = static_cast<double>(group.size());
    const Share& last = group.back();
    const auto held = static_cast<double>(size_of(last.holds));
    switch (step.kind) {
      case StepKind::send:
      case StepKind::broadcast:
        total += (n - 1) * held;  // every destination receives what it then holds
        break;
      case StepKind::all_reduce:
        total += 2 * (n - 1) * held / n;  // a reduce-scatter, an all-gather
        break;
      case StepKind::reduce_scatter:
        total += (n - 1) * held;  // a term from every other rank
        break;
      case StepKind::all_gather:
      case StepKind::all_to_all: {
        const placement::Seen before = all_values(last.reads[0]);
        const placement::Seen now =
            all_values(last.holds);  // what was not there before is received
        total += held - static_cast<double>(placement::common(before, now).size()) / value_parts;
        break;
      }
      default:
        break;
    }
  }
  return total;
}

}  // namespace stratagem::lowering
