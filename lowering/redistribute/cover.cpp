// Covers each consumer's mask: takes parts on its device, sends the rest, assembles all.
#include "lowering/redistribute/cover.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "base/input_error.hpp"
#include "lowering/redistribute/assemble.hpp"
#include "lowering/redistribute/region.hpp"

namespace stratagem::lowering {

using placement::Mask;

namespace {

/// The part of a producer's mask that goes to a consumer.
struct Taken {
  std::size_t producer = 0;
  std::size_t consumer = 0;
  Mask mask;
  bool zero = false;  ///< another consumer takes the value
};

class Covering {
 public:
  Covering(const std::vector<Piece>& producers, const std::vector<Piece>& consumers)
      : producers_(producers), consumers_(consumers) {
    std::vector<Mask> masks;
    for (const auto* pieces : {&producers, &consumers}) {
      for (const Piece& piece : *pieces) masks.push_back(piece.mask);
    }
    unit_ = common_unit(masks);
    const auto count = [](const Piece& piece) { return piece.mask.value.count; };
    for (const Piece& producer : producers) {
      regions_.push_back(region_of(producer.mask, unit_));
      values_may_split_ = values_may_split_ && count(producer) == count(producers.front());
    }
  }

  /// What every consumer takes, in the order of consumers.
  std::vector<Taken> run() {
    for (std::size_t consumer = 0; consumer < consumers_.size(); ++consumer) take(consumer);
    return std::move(taken_);
  }

 private:
  void take(std::size_t consumer) {
    const Piece& wanted = consumers_[consumer];
    const Region all = region_of(wanted.mask, unit_);
    std::vector<Region> missing{all};
    for (const std::size_t producer : candidates(wanted)) {
      if (const auto part = usable(producer, all)) take_part(producer, consumer, *part, missing);
      if (missing.empty()) return;
    }
    throw InputError("", "",
                     "what device " + std::to_string(wanted.device) + " reads of a tensor, " +
                         to_text(all, unit_) + ", to be produced by " + producer_names() +
                         " in parts that make it up",
                     "no producer for " + to_text(missing.front(), unit_));
  }

  /// Takes what is missing of a part: all at once, or in pieces where others gave some of it. Of
  /// elements for which others gave some of its values it takes nothing.
  void take_part(std::size_t producer, std::size_t consumer, const Region& part,
                 std::vector<Region>& missing) {
    std::vector<Region> pieces;
    std::vector<Region> still;
    std::int64_t size = 0;
    for (Region& region : missing) {
      const auto piece = common_part(region, part);
      if (!piece || piece->back() != part.back()) {
        still.push_back(std::move(region));
        continue;
      }
      size += size_of(*piece);
      pieces.push_back(*piece);
      std::ranges::move(without(std::move(region), *piece), std::back_inserter(still));
    }
    if (size == size_of(part)) pieces = {part};
    for (const Region& piece : pieces) note(producer, consumer, piece);
    missing = std::move(still);
  }

  /// Producers of something that is wanted, in the order in which they are asked.
  std::vector<std::size_t> candidates(const Piece& wanted) {
    const Region region = region_of(wanted.mask, unit_);
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < producers_.size(); ++i) {
      if (common_part(regions_[i], region)) order.push_back(i);
    }
    std::ranges::stable_sort(order, {}, [&](std::size_t i) {
      const Piece& piece = producers_[i];
      const bool remote = piece.device != wanted.device;
      return std::tuple(piece.mask.value.count, remote, remote ? sent_[piece.device] : 0);
    });
    return order;
  }

  /// What a producer can give. Its value is summed into the wanted one, or the wanted one is a part
  /// of it; values are never cut across.
  [[nodiscard]] std::optional<Region> usable(std::size_t producer, const Region& wanted) const {
    const placement::Range value = regions_[producer].back();
    const bool summed = inside(value, wanted.back());
    const bool split = values_may_split_ && inside(wanted.back(), value);
    if (!summed && !split) return std::nullopt;
    return common_part(regions_[producer], wanted);
  }

  void note(std::size_t producer, std::size_t consumer, const Region& part) {
    const Piece& from = producers_[producer];
    const Piece& to = consumers_[consumer];
    const placement::Range value = regions_[producer].back();
    const bool zero = part.back().begin != value.begin;
    Mask mask{{part.begin(), part.end() - 1},
              part.back() == value ? from.mask.value : to.mask.value};
    if (from.device != to.device && !zero) sent_[from.device] += size_of(mask.ranges);
    taken_.push_back({producer, consumer, std::move(mask), zero});
  }

  [[nodiscard]] std::string producer_names() const {
    std::set<int> devices;
    for (const Piece& producer : producers_) devices.insert(producer.device);
    if (devices.empty()) return "no device";
    std::string names = devices.size() == 1 ? "device" : "devices";
    for (const int device : devices) {
      names += (device == *devices.begin() ? " " : ", ") + std::to_string(device);
    }
    return names;
  }

  const std::vector<Piece>& producers_;
  const std::vector<Piece>& consumers_;
  std::int64_t unit_ = 1;
  bool values_may_split_ = true;  ///< nobody produces a part of what another one produces
  std::vector<Region> regions_;   ///< of the producers
  std::map<int, std::int64_t> sent_;
  std::vector<Taken> taken_;
};

void add(std::vector<Step>& steps, StepKind kind, std::vector<std::vector<Share>> groups) {
  if (!groups.empty()) steps.push_back({kind, std::move(groups)});
}

/// Groups of a source and the devices that take the same part of it, in the order of consumers.
std::vector<std::vector<Share>> transfers(const std::vector<Taken>& taken,
                                          const std::vector<Piece>& producers,
                                          const std::vector<Piece>& consumers) {
  std::vector<std::vector<Share>> groups;
  std::map<Piece, std::size_t> known;  // by source and part
  for (const Taken& part : taken) {
    const int source = producers[part.producer].device;
    const int destination = consumers[part.consumer].device;
    if (source == destination || part.zero) continue;
    const auto [group, fresh] = known.try_emplace({source, part.mask}, groups.size());
    if (fresh) groups.push_back({{source, {part.mask}, part.mask}});
    std::vector<Share>& ranks = groups[group->second];
    if (std::ranges::find(ranks, destination, &Share::device) == ranks.end())
      ranks.push_back({destination, {}, part.mask});
  }
  return groups;
}

/// What makes the consumers' masks of the parts that they took.
std::vector<Step> assemblies(const std::vector<Taken>& taken, const std::vector<Piece>& consumers) {
  std::vector<std::vector<Mask>> parts(consumers.size());
  for (const Taken& part : taken) parts[part.consumer].push_back(part.mask);
  std::vector<Assembly> all;
  for (std::size_t i = 0; i < consumers.size(); ++i)
    all.push_back(assemble(consumers[i].device, parts[i], consumers[i].mask));
  return steps_of(all);
}

}  // namespace

std::vector<Step> cover(const std::vector<Piece>& producers, const std::vector<Piece>& consumers) {
  const std::vector<Taken> taken = Covering(producers, consumers).run();
  std::vector<Share> selects;
  for (const Taken& part : taken) {
    const Piece& from = producers[part.producer];
    if (part.zero) {
      selects.push_back({consumers[part.consumer].device, {}, part.mask});
    } else if (part.mask != from.mask) {
      selects.push_back({from.device, {from.mask}, part.mask});
    }
  }
  std::vector<std::vector<Share>> sends = transfers(taken, producers, consumers);
  const auto fan =
      std::stable_partition(sends.begin(), sends.end(),
                            [](const std::vector<Share>& group) { return group.size() == 2; });
  std::vector<Step> steps;
  add(steps, StepKind::select, alone(selects));
  add(steps, StepKind::send, {sends.begin(), fan});
  add(steps, StepKind::broadcast, {fan, sends.end()});
  std::ranges::move(assemblies(taken, consumers), std::back_inserter(steps));
  return steps;
}

}  // namespace stratagem::lowering
