// Packs parts member by member, lets the communicator move them, and unpacks.
#include "execute/exchange.hpp"

#include <algorithm>
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

/// A message with a part for every member, in which every tensor has room for its largest part.
template <typename T>
class Parts {
 public:
  Parts(const Exchange<T>& exchange, int members) : exchange_(exchange), members_(members) {}

  /// Reserves room; `part` gives the region that a member sends or receives of a tensor.
  template <typename Part>
  void measure(const Part& part) {
    begins_ = {0};
    for (std::size_t tensor = 0; tensor < exchange_.inputs.size(); ++tensor) {
      std::int64_t largest = 0;
      for (int member = 0; member < members_; ++member)
        largest = std::max(largest, part(tensor, member).size());
      begins_.push_back(begins_.back() + largest);
    }
  }
  [[nodiscard]] std::size_t length() const { return static_cast<std::size_t>(begins_.back()); }

  void put(std::vector<T>& message, int place, std::size_t tensor, const Shared<T>& value) const {
    expects(value->bytes.empty(), "only numbers are exchanged");
    std::ranges::copy(value->data, message.begin() + offset(place, tensor));
  }
  [[nodiscard]] Shared<T> take(const std::vector<T>& message, int place, std::size_t tensor,
                               const Region& region) const {
    Shared<T> value = zeros<T>(region);
    std::copy_n(message.begin() + offset(place, tensor), region.size(), value->data.begin());
    return value;
  }

 private:
  [[nodiscard]] std::ptrdiff_t offset(int place, std::size_t tensor) const {
    return static_cast<std::ptrdiff_t>(place) * begins_.back() + begins_[tensor];
  }

  const Exchange<T>& exchange_;
  int members_;
  std::vector<std::int64_t> begins_ = {};  ///< of tensors within one member's part
};

/// Copies a part into a whole that contains it.
template <typename T>
void place(const Value<T>& part, Value<T>& whole) {
  if (part.region.size() == 0) return;
  const auto copy = [&](std::int64_t there, std::int64_t here, std::int64_t length) {
    std::copy_n(part.data.begin() + here, length, whole.data.begin() + there);
  };
  if (part.region.mask.ranges == whole.region.mask.ranges) {
    copy(part.region.begin - whole.region.begin, 0, part.region.size());
  } else {
    for_each_stretch(whole.region.mask, part.region.mask, copy);
  }
}

kernels::Reduction reduction_of(const strategies::Collective& work) {
  return work.combine == model::Combine::maximum ? kernels::Reduction::maximum
                                                 : kernels::Reduction::sum;
}

template <typename T>
std::vector<Shared<T>> all_reduce(const strategies::Collective& work, const Exchange<T>& exchange,
                                  kernels::Communicator& group) {
  const int me = group.rank();
  Parts<T> parts(exchange, 1);
  parts.measure([&](std::size_t tensor, int) { return exchange.before(tensor, me); });
  std::vector<T> message(parts.length());
  for (std::size_t i = 0; i < exchange.inputs.size(); ++i)
    parts.put(message, 0, i, exchange.inputs[i]);
  group.all_reduce(reduction_of(work), std::span<T>(message));
  std::vector<Shared<T>> result;
  for (std::size_t i = 0; i < exchange.inputs.size(); ++i)
    result.push_back(parts.take(message, 0, i, exchange.after(i, me)));
  return result;
}

template <typename T>
std::vector<Shared<T>> reduce_scatter(const strategies::Collective& work,
                                      const Exchange<T>& exchange, kernels::Communicator& group) {
  Parts<T> parts(exchange, group.size());
  parts.measure(exchange.after);
  std::vector<T> message(parts.length() * static_cast<std::size_t>(group.size()));
  for (int member = 0; member < group.size(); ++member) {
    for (std::size_t i = 0; i < exchange.inputs.size(); ++i) {
      Region piece = exchange.after(i, member);
      piece.mask.value = exchange.inputs[i]->region.mask.value;
      parts.put(message, member, i, view(exchange.inputs[i], piece));
    }
  }
  std::vector<T> mine(parts.length());
  group.reduce_scatter(reduction_of(work), kernels::In<T>(message), std::span<T>(mine));
  std::vector<Shared<T>> result;
  for (std::size_t i = 0; i < exchange.inputs.size(); ++i)
    result.push_back(parts.take(mine, 0, i, exchange.after(i, group.rank())));
  return result;
}

template <typename T>
std::vector<Shared<T>> all_gather(const Exchange<T>& exchange, kernels::Communicator& group) {
  Parts<T> parts(exchange, group.size());
  parts.measure(exchange.before);
  std::vector<T> mine(parts.length());
  for (std::size_t i = 0; i < exchange.inputs.size(); ++i)
    parts.put(mine, 0, i, exchange.inputs[i]);
  std::vector<T> message(parts.length() * static_cast<std::size_t>(group.size()));
  group.all_gather(kernels::In<T>(mine), std::span<T>(message));
  std::vector<Shared<T>> result;
  for (std::size_t i = 0; i < exchange.inputs.size(); ++i) {
    result.push_back(zeros<T>(exchange.after(i, group.rank())));
    for (int member = 0; member < group.size(); ++member)
      place(*parts.take(message, member, i, exchange.before(i, member)), *result.back());
  }
  return result;
}

template <typename T>
std::vector<Shared<T>> all_to_all(const Exchange<T>& exchange, kernels::Communicator& group) {
  const int me = group.rank();
  const auto to = [&](std::size_t i, int member) {
    return common(exchange.before(i, me), exchange.after(i, member));
  };
  const auto from = [&](std::size_t i, int member) {
    return common(exchange.before(i, member), exchange.after(i, me));
  };
  Parts<T> parts(exchange, group.size());
  parts.measure(to);
  std::vector<T> out(parts.length() * static_cast<std::size_t>(group.size()));
  for (int member = 0; member < group.size(); ++member) {
    for (std::size_t i = 0; i < exchange.inputs.size(); ++i)
      parts.put(out, member, i, view(exchange.inputs[i], to(i, member)));
  }
  std::vector<T> in(out.size());
  group.all_to_all(kernels::In<T>(out), std::span<T>(in));
  std::vector<Shared<T>> result;
  for (std::size_t i = 0; i < exchange.inputs.size(); ++i) {
    result.push_back(zeros<T>(exchange.after(i, me)));
    for (int member = 0; member < group.size(); ++member)
      place(*parts.take(in, member, i, from(i, member)), *result.back());
  }
  return result;
}

}  // namespace

template <typename T>
std::vector<Shared<T>> run(const strategies::Collective& work, const Exchange<T>& exchange,
                           kernels::Communicator& group) {
  switch (work.kind) {
    case CollectiveKind::all_reduce:
      return all_reduce(work, exchange, group);
    case CollectiveKind::reduce_scatter:
      return reduce_scatter(work, exchange, group);
    case CollectiveKind::all_gather:
      return all_gather(exchange, group);
    case CollectiveKind::all_to_all:
      return all_to_all(exchange, group);
    default:
      throw BrokenPromise("a conversion is one of four collectives");
  }
}

#define INSTANTIATE(T)                                                                      \
  template std::vector<Shared<T>> run<T>(const strategies::Collective&, const Exchange<T>&, \
                                         kernels::Communicator&);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace stratagem::execute
