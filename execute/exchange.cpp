// Packs parts member by member, lets the communicator move them, and unpacks.
#include "execute/exchange.hpp"

#include <algorithm>
#include <functional>
#include <span>

#include "base/input_error.hpp"

namespace stratagem::execute {
namespace {

using cost::CollectiveKind;

/// The elements that two regions of one tensor share, whatever partial values they are; of runs of
/// one
/// mask or of all that two masks see.
Region common(const Region& one, const Region& other) {
  Region result = one;
  if (one.mask.ranges == other.mask.ranges) {
    result.begin = std::max(one.begin, other.begin);
    result.end = std::max(result.begin, std::min(one.end, other.end));
    return result;
  }
  expects(!one.is_run() && !other.is_run(), "runs are exchanged for runs of the same part");
  for (std::size_t d = 0; d < result.mask.ranges.size(); ++d) {
    strategies::Range& range = result.mask.ranges[d];
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
  Parts(std::size_t tensors, int members, const Part& part) {
    for (std::size_t tensor = 0; tensor < tensors; ++tensor) {
      std::int64_t largest = 0;
      for (int member = 0; member < members; ++member)
        largest = std::max(largest, part(tensor, member).size());
      begins_.push_back(begins_.back() + largest);
    }
  }
  [[nodiscard]] std::size_t length() const { return static_cast<std::size_t>(begins_.back()); }
  [[nodiscard]] std::ptrdiff_t offset(int member, std::size_t tensor) const {
    return static_cast<std::ptrdiff_t>(member) * begins_.back() + begins_[tensor];
  }

 private:
  std::vector<std::int64_t> begins_ = {0};  ///< of tensors within one member's part
};

/// As many elements of a list, which grows if it must.
template <typename T>
std::span<T> room(std::vector<T>& list, std::size_t elements) {
  if (list.size() < elements) list.resize(elements);
  return std::span<T>(list).first(elements);
}

/// Writes the elements of a region that lie somewhere into a whole that contains it.
template <typename T>
void unpack(const T* from, const Region& region, const Value<T>& whole, bool adds) {
  if (region.size() == 0) return;
  const auto copy = [&](std::int64_t there, std::int64_t here, std::int64_t length) {
    T* to = whole.data.begin() + there;
    if (adds) {
      std::transform(to, to + length, from + here, to, std::plus<>());
    } else {
      std::copy_n(from + here, length, to);
    }
  };
  if (region.mask.ranges == whole.region.mask.ranges) {
    copy(region.begin - whole.region.begin, 0, region.size());
  } else {
    for_each_stretch(whole.region.mask, region.mask, copy);
  }
}

template <typename T>
void pack(const Value<T>& value, T* to) {
  expects(value.bytes.empty(), "only numbers are exchanged");
  std::ranges::copy(value.data, to);
}

/// Do the parts of members, each a run, make up the whole, one behind the other?
bool lines_up(const std::function<Region(std::size_t, int)>& part, const Region& whole,
              int members) {
  const std::int64_t length = part(0, 0).size();
  for (int member = 0; member < members; ++member) {
    const Region region = part(0, member);
    if (region.mask.ranges != whole.mask.ranges || region.size() != length ||
        region.begin != whole.begin + member * length)
      return false;
  }
  return whole.size() == members * length;
}

kernels::Reduction reduction_of(const strategies::Collective& work) {
  return work.combine == model::Combine::maximum ? kernels::Reduction::maximum
                                                 : kernels::Reduction::sum;
}

template <typename T>
void all_reduce(const strategies::Collective& work, const Exchange<T>& exchange,
                Packing<T>& packing, kernels::Communicator& group) {
  const std::size_t tensors = exchange.inputs.size();
  if (tensors == 1 && !exchange.adds) {  // where the result lies
    const Value<T>& input = *exchange.inputs[0];
    const Value<T>& output = *exchange.outputs[0];
    if (input.data.data() != output.data.data()) pack(input, output.data.data());
    return group.all_reduce(reduction_of(work), std::span<T>(output.data));
  }
  const int me = group.rank();
  const Parts parts(tensors, 1, [&](std::size_t i, int) { return exchange.before(i, me); });
  const std::span<T> message = room(packing.out, parts.length());
  for (std::size_t i = 0; i < tensors; ++i)
    pack(*exchange.inputs[i], message.data() + parts.offset(0, i));
  group.all_reduce(reduction_of(work), message);
  for (std::size_t i = 0; i < tensors; ++i)
    unpack(message.data() + parts.offset(0, i), exchange.after(i, me), *exchange.outputs[i],
           exchange.adds);
}

template <typename T>
void reduce_scatter(const strategies::Collective& work, const Exchange<T>& exchange,
                    Packing<T>& packing, kernels::Communicator& group) {
  const std::size_t tensors = exchange.inputs.size();
  const Parts parts(tensors, group.size(), exchange.after);
  const std::span<T> mine = room(packing.in, parts.length());
  const bool as_it_lies =
      tensors == 1 && lines_up(exchange.after, exchange.inputs[0]->region, group.size());
  if (as_it_lies) {
    group.reduce_scatter(reduction_of(work), kernels::In<T>(exchange.inputs[0]->data), mine);
  } else {
    const std::span<T> message =
        room(packing.out, parts.length() * static_cast<std::size_t>(group.size()));
    for (int member = 0; member < group.size(); ++member) {
      for (std::size_t i = 0; i < tensors; ++i) {
        Region piece = exchange.after(i, member);
        piece.mask.value = exchange.inputs[i]->region.mask.value;
        pack(*view(exchange.inputs[i], piece), message.data() + parts.offset(member, i));
      }
    }
    group.reduce_scatter(reduction_of(work), kernels::In<T>(message), mine);
  }
  for (std::size_t i = 0; i < tensors; ++i)
    unpack(mine.data() + parts.offset(0, i), exchange.after(i, group.rank()), *exchange.outputs[i],
           exchange.adds);
}

template <typename T>
void all_gather(const Exchange<T>& exchange, Packing<T>& packing, kernels::Communicator& group) {
  const std::size_t tensors = exchange.inputs.size();
  if (tensors == 1 && !exchange.adds &&
      lines_up(exchange.before, exchange.outputs[0]->region, group.size()))
    return group.all_gather(kernels::In<T>(exchange.inputs[0]->data),
                            std::span<T>(exchange.outputs[0]->data));
  const Parts parts(tensors, group.size(), exchange.before);
  const std::span<T> mine = room(packing.out, parts.length());
  for (std::size_t i = 0; i < tensors; ++i)
    pack(*exchange.inputs[i], mine.data() + parts.offset(0, i));
  const std::span<T> message =
      room(packing.in, parts.length() * static_cast<std::size_t>(group.size()));
  group.all_gather(kernels::In<T>(mine), message);
  for (std::size_t i = 0; i < tensors; ++i) {
    for (int member = 0; member < group.size(); ++member)
      unpack(message.data() + parts.offset(member, i), exchange.before(i, member),
             *exchange.outputs[i], exchange.adds);
  }
}

template <typename T>
void all_to_all(const Exchange<T>& exchange, Packing<T>& packing, kernels::Communicator& group) {
  const int me = group.rank();
  const auto to = [&](std::size_t i, int member) {
    return common(exchange.before(i, me), exchange.after(i, member));
  };
  const auto from = [&](std::size_t i, int member) {
    return common(exchange.before(i, member), exchange.after(i, me));
  };
  const std::size_t tensors = exchange.inputs.size();
  const Parts parts(tensors, group.size(), to);
  const std::size_t all = parts.length() * static_cast<std::size_t>(group.size());
  const std::span<T> out = room(packing.out, all), in = room(packing.in, all);
  for (int member = 0; member < group.size(); ++member) {
    for (std::size_t i = 0; i < tensors; ++i)
      pack(*view(exchange.inputs[i], to(i, member)), out.data() + parts.offset(member, i));
  }
  group.all_to_all(kernels::In<T>(out), in);
  for (std::size_t i = 0; i < tensors; ++i) {
    for (int member = 0; member < group.size(); ++member)
      unpack(in.data() + parts.offset(member, i), from(i, member), *exchange.outputs[i],
             exchange.adds);
  }
}

}  // namespace

template <typename T>
void run(const strategies::Collective& work, const Exchange<T>& exchange, Packing<T>& packing,
         kernels::Communicator& group) {
  switch (work.kind) {
    case CollectiveKind::all_reduce:
      return all_reduce(work, exchange, packing, group);
    case CollectiveKind::reduce_scatter:
      return reduce_scatter(work, exchange, packing, group);
    case CollectiveKind::all_gather:
      return all_gather(exchange, packing, group);
    case CollectiveKind::all_to_all:
      return all_to_all(exchange, packing, group);
    default:
      throw BrokenPromise("a conversion is one of four collectives");
  }
}

#define INSTANTIATE(T)                                                                 \
  template void run<T>(const strategies::Collective&, const Exchange<T>&, Packing<T>&, \
                       kernels::Communicator&);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace stratagem::execute
