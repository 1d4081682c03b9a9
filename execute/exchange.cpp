// Packs parts member by member, lets the post move them, and unpacks.
#include "execute/exchange.hpp"

#include <algorithm>
#include <functional>
#include <span>

#include "base/input_error.hpp"
#include "execute/types.hpp"

namespace stratagem::execute {
namespace {

using cost::CollectiveKind;

/// The elements that two regions of one tensor share, whatever partial values they are; of runs of
/// one mask or of all that two masks see.
Region common(const Region& one, const Region& other) {
  Region result = one;
  if (one.mask.ranges == other.mask.ranges) {
    result.begin = std::max(one.begin, other.begin);
    result.end = std::max(result.begin, std::min(one.end, other.end));
    return result;
  }
  expects(!one.is_run() && !other.is_run(), "runs are exchanged for runs of the same part");
  for (std::size_t d = 0; d < result.mask.ranges.size(); ++d) {
    placement::Range& range = result.mask.ranges[d];
    range.begin = std::max(range.begin, other.mask.ranges[d].begin);
    range.end = std::min(range.end, other.mask.ranges[d].end);
    if (range.begin >= range.end) return {.mask = one.mask, .begin = 0, .end = 0};
  }
  return all_of(result.mask);
}

/// Where tensors lie in a message that has a part for every member, with room in it for the largest
/// part of every tensor.
class Parts {
 public:
  /// `part` gives the region that a member sends or receives of a tensor.
  template <typename Part>
  Parts(const std::vector<std::size_t>& tensors, int members, const Part& part) {
    for (const std::size_t tensor : tensors) {
      std::int64_t largest = 0;
      for (int member = 0; member < members; ++member)
        largest = std::max(largest, part(tensor, member).size());
      begins_.push_back(begins_.back() + largest);
    }
  }
  [[nodiscard]] std::size_t length() const { return static_cast<std::size_t>(begins_.back()); }
  /// Of the i-th of the tensors.
  [[nodiscard]] std::ptrdiff_t offset(int member, std::size_t i) const {
    return static_cast<std::ptrdiff_t>(member) * begins_.back() + begins_[i];
  }

 private:
  std::vector<std::int64_t> begins_ = {0};  ///< of tensors within one member's part
};

kernels::Reduction reduction_of(const program::Collective& work) {
  return work.combine == model::Combine::maximum ? kernels::Reduction::maximum
                                                 : kernels::Reduction::sum;
}

template <typename T>
class Exchanging {
 public:
  using Host = OnHost<T>;

  Exchanging(Engine<T>& engine, const program::Collective& work, const Exchange<T>& exchange,
             Post<T>& post)
      : engine_(engine), work_(work), exchange_(exchange), post_(post), me_(post.rank()) {
    for (std::size_t i = 0; i < exchange.inputs.size(); ++i) {
      if (!goes_alone(i)) packed_.push_back(i);
    }
  }

  void all_reduce() {
    for_each_alone([&](const Value<T>& input, const Value<T>& output) {
      if (place_of(input) != place_of(output)) engine_.copy(input, output);
      const std::span<Host> message = post_.open(output);
      post_.all_reduce(reduction_of(work_), message);
      post_.close(message, output);
    });
    if (packed_.empty()) return;
    const Parts parts(packed_, 1, [&](std::size_t i, int) { return exchange_.before(i, me_); });
    const std::span<Host> message = post_.room_out(parts.length());
    pack_inputs(parts, message);
    post_.all_reduce(reduction_of(work_), message);
    unpack_mine(parts, message);
  }

  void reduce_scatter() {
    for_each_alone([&](const Value<T>& input, const Value<T>& output) {
      // A shard may begin where what it is reduced from does: messages do not overlap.
      const bool apart = exchange_.adds || place_of(input) == place_of(output);
      const auto size = static_cast<std::size_t>(output.region.size());
      const std::span<Host> mine = apart ? post_.room_in(size) : post_.place(output);
      post_.reduce_scatter(reduction_of(work_), post_.open(input), mine);
      if (apart) {
        post_.unpack(mine.data(), output.region, output, exchange_.adds);
      } else {
        post_.close(mine, output);
      }
    });
    if (packed_.empty()) return;
    const Parts parts(packed_, post_.size(), exchange_.after);
    const std::span<Host> message = post_.room_out(whole(parts));
    for (int member = 0; member < post_.size(); ++member) {
      for (std::size_t i = 0; i < packed_.size(); ++i)
        post_.pack(*exchange_.inputs[packed_[i]], exchange_.after(packed_[i], member),
                   message.data() + parts.offset(member, i));
    }
    const std::span<Host> mine = post_.room_in(parts.length());
    post_.reduce_scatter(reduction_of(work_), message, mine);
    unpack_mine(parts, mine);
  }

  void all_gather() {
    for_each_alone([&](const Value<T>& input, const Value<T>& output) {
      const std::span<Host> message = post_.place(output);
      post_.all_gather(post_.open(input), message);
      post_.close(message, output);
    });
    if (packed_.empty()) return;
    const Parts parts(packed_, post_.size(), exchange_.before);
    const std::span<Host> mine = post_.room_out(parts.length());
    pack_inputs(parts, mine);
    const std::span<Host> message = post_.room_in(whole(parts));
    post_.all_gather(mine, message);
    for (std::size_t i = 0; i < packed_.size(); ++i) {
      for (int member = 0; member < post_.size(); ++member)
        post_.unpack(message.data() + parts.offset(member, i), exchange_.before(packed_[i], member),
                     *exchange_.outputs[packed_[i]], exchange_.adds);
    }
  }

  void all_to_all() {
    const auto to = [&](std::size_t i, int member) {
      return common(exchange_.before(i, me_), exchange_.after(i, member));
    };
    const auto from = [&](std::size_t i, int member) {
      return common(exchange_.before(i, member), exchange_.after(i, me_));
    };
    // As long as the longest that any member sends to another: the same on all.
    const auto longest = [&](std::size_t i, int receiver) {
      Region result;
      for (int sender = 0; sender < post_.size(); ++sender) {
        const Region sent = common(exchange_.before(i, sender), exchange_.after(i, receiver));
        if (sent.size() > result.size()) result = sent;
      }
      return result;
    };
    const Parts parts(packed_, post_.size(), longest);
    const std::span<Host> out = post_.room_out(whole(parts));
    const std::span<Host> in = post_.room_in(whole(parts));
    for (int member = 0; member < post_.size(); ++member) {
      for (std::size_t i = 0; i < packed_.size(); ++i)
        post_.pack(*exchange_.inputs[packed_[i]], to(packed_[i], member),
                   out.data() + parts.offset(member, i));
    }
    post_.all_to_all(out, in);
    for (std::size_t i = 0; i < packed_.size(); ++i) {
      for (int member = 0; member < post_.size(); ++member)
        post_.unpack(in.data() + parts.offset(member, i), from(packed_[i], member),
                     *exchange_.outputs[packed_[i]], exchange_.adds);
    }
  }

 private:
  /// Does a tensor lie as a message of its own does, and is it large enough for one? The same on
  /// all members.
  [[nodiscard]] bool goes_alone(std::size_t i) const {
    constexpr std::int64_t few = 1 << 13;  // elements: packing them costs less than a message
    const Region& input = exchange_.inputs[i]->region;
    if (exchange_.inputs.size() > 1 && input.size() < few) return false;
    if (exchange_.adds && work_.kind != CollectiveKind::reduce_scatter) return false;
    switch (work_.kind) {
      case CollectiveKind::all_reduce:
        return true;
      case CollectiveKind::reduce_scatter:
        return lines_up(i, exchange_.after, input);
      case CollectiveKind::all_gather:
        return lines_up(i, exchange_.before, exchange_.outputs[i]->region);
      default:
        return false;
    }
  }

  /// Do the parts of members, runs of one length, make up the whole, one behind the other?
  [[nodiscard]] bool lines_up(std::size_t i, const std::function<Region(std::size_t, int)>& part,
                              const Region& whole) const {
    const std::int64_t length = part(i, 0).size();
    for (int member = 0; member < post_.size(); ++member) {
      const Region region = part(i, member);
      if (region.mask.ranges != whole.mask.ranges || region.size() != length ||
          region.begin != whole.begin + member * length)
        return false;
    }
    return whole.size() == post_.size() * length;
  }

  template <typename Do>
  void for_each_alone(const Do& exchange_one) const {
    for (std::size_t i = 0; i < exchange_.inputs.size(); ++i) {
      if (!std::ranges::binary_search(packed_, i))
        exchange_one(*exchange_.inputs[i], *exchange_.outputs[i]);
    }
  }

  [[nodiscard]] std::size_t whole(const Parts& parts) const {
    return parts.length() * static_cast<std::size_t>(post_.size());
  }

  void pack_inputs(const Parts& parts, std::span<Host> message) const {
    for (std::size_t i = 0; i < packed_.size(); ++i) {
      const Value<T>& input = *exchange_.inputs[packed_[i]];
      post_.pack(input, input.region, message.data() + parts.offset(0, i));
    }
  }

  void unpack_mine(const Parts& parts, std::span<const Host> message) const {
    for (std::size_t i = 0; i < packed_.size(); ++i)
      post_.unpack(message.data() + parts.offset(0, i), exchange_.after(packed_[i], me_),
                   *exchange_.outputs[packed_[i]], exchange_.adds);
  }

  Engine<T>& engine_;
  const program::Collective& work_;
  const Exchange<T>& exchange_;
  Post<T>& post_;
  int me_;
  std::vector<std::size_t> packed_;  ///< tensors that travel in one message, ascending
};

}  // namespace

template <typename T>
void run(Engine<T>& engine, const program::Collective& work, const Exchange<T>& exchange,
         Post<T>& post) {
  Exchanging<T> exchanging(engine, work, exchange, post);
  switch (work.kind) {
    case CollectiveKind::all_reduce:
      return exchanging.all_reduce();
    case CollectiveKind::reduce_scatter:
      return exchanging.reduce_scatter();
    case CollectiveKind::all_gather:
      return exchanging.all_gather();
    case CollectiveKind::all_to_all:
      return exchanging.all_to_all();
    default:
      throw BrokenPromise("a conversion is one of four collectives");
  }
}

#define INSTANTIATE(T) \
  template void run<T>(Engine<T>&, const program::Collective&, const Exchange<T>&, Post<T>&);
STRATAGEM_FOR_HELD_TYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace stratagem::execute
