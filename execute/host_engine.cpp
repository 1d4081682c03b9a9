// Copies, sums and messages of values in the memory of this process.
#include "execute/host_engine.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <type_traits>

#include "base/input_error.hpp"
#include "kernels/finite.hpp"
#include "kernels/half.hpp"

namespace stratagem::execute {
namespace {

/// Numbers in another type, or the same.
template <typename From, typename To>
void convert(const From* from, std::int64_t count, To* to) {
  if constexpr (std::is_same_v<From, To>) {
    std::copy_n(from, count, to);
  } else {
    std::transform(from, from + count, to, [](From x) { return static_cast<To>(x); });
  }
}

/// Adds numbers of the type or of another one.
template <typename From, typename To>
void accumulate(const From* from, std::int64_t count, To* to) {
  std::transform(to, to + count, from, to, [](To x, From y) { return static_cast<To>(x + y); });
}

/// Calls `act` with the lists of two values, which are of one kind; not if one has no elements.
template <typename T, typename Do>
void with_both(const Value<T>& one, const Value<T>& other, const Do& act) {
  if (one.region.size() == 0 || other.region.size() == 0) return;
  if (!one.bytes.empty()) return act(one.bytes, other.bytes);
  if (!one.wide.empty()) return act(one.wide, other.wide);
  act(one.data, other.data);
}

/// Calls `work` with the numbers of a value.
template <typename T, typename Work>
void with_numbers(const Value<T>& value, const Work& work) {
  expects(value.bytes.empty(), "only numbers are exchanged");
  if (value.wide.empty()) return work(value.data);
  work(value.wide);
}

/// Calls `copy(in_whole, in_part, length)` for stretches of a region that a whole contains.
template <typename Copy>
void for_each_piece(const Region& whole, const Region& region, const Copy& copy) {
  if (region.size() == 0) return;
  if (region.mask.ranges == whole.mask.ranges) {
    copy(region.begin - whole.begin, std::int64_t{0}, region.size());
  } else {
    for_each_stretch(whole.mask, region.mask, copy);
  }
}

}  // namespace

template <typename T>
Memory HostMemory<T>::allocate(std::size_t bytes) {
  constexpr std::size_t line = 64;
  const std::size_t size = std::max((bytes + line - 1) / line, std::size_t{1}) * line;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(line, size));
  if (memory == nullptr) throw std::bad_alloc();
  return {memory, [](std::byte* at) { std::free(at); }};
}

template <typename T>
void HostMemory<T>::clear(void* memory, std::size_t bytes) {
  if (bytes > 0) std::memset(memory, 0, bytes);  // which is zero in all types
}

template <typename T>
void HostMemory<T>::copy(const Value<T>& from, const Value<T>& to) {
  with_both(from, to, [](const auto& source, const auto& target) {
    if (source.data() != target.data()) std::ranges::copy(source, target.begin());
  });
}

template <typename T>
void HostMemory<T>::add(const Value<T>& from, const Value<T>& to) {
  with_both(from, to, [](const auto& source, const auto& target) {
    accumulate(source.data(), static_cast<std::int64_t>(source.size()), target.data());
  });
}

template <typename T>
void HostMemory<T>::copy_part(const Value<T>& whole, const Value<T>& part) {
  with_both(whole, part, [&](const auto& source, const auto& target) {
    for_each_piece(whole.region, part.region,
                   [&](std::int64_t there, std::int64_t here, std::int64_t length) {
                     std::copy_n(source.begin() + there, length, target.begin() + here);
                   });
  });
}

template <typename T>
void HostMemory<T>::put(const Value<T>& part, const Value<T>& whole, bool adds,
                        model::Combine combine) {
  expects(part.bytes.empty() && whole.bytes.empty(), "only numbers are put together");
  const auto both = [&](auto x, auto y) {
    return combine == model::Combine::maximum ? std::max(x, y) : static_cast<decltype(x)>(x + y);
  };
  with_both(part, whole, [&](const auto& source, const auto& target) {
    for_each_stretch(whole.region.mask, part.region.mask,
                     [&](std::int64_t there, std::int64_t here, std::int64_t length) {
                       const auto* from = source.data() + here;
                       auto* to = target.data() + there;
                       adds ? std::transform(from, from + length, to, to, both)
                            : std::copy_n(from, length, to);
                     });
  });
}

template <typename T>
bool HostMemory<T>::finite(const Value<T>& value) {
  if (!value.wide.empty()) return kernels::all_finite<float>(value.wide);
  return kernels::all_finite<T>(value.data);
}

template <typename T>
Shared<OnHost<T>> HostMemory<T>::on_host(const Shared<T>& value) {
  if constexpr (std::is_same_v<T, Host>) {
    return value;
  } else {
    Shared<Host> result = zeros<Host>(value->region);
    with_numbers(*value, [&](const auto& list) {
      convert(list.data(), value->region.size(), result->data.data());
    });
    return result;
  }
}

template <typename T>
Shared<T> HostMemory<T>::from_host(const Shared<Host>& value, List list) {
  if constexpr (std::is_same_v<T, Host>) {
    return value;
  } else {
    if (value->data.empty()) {  // tokens or labels
      auto result = std::make_shared<Value<T>>();
      result->region = value->region;
      result->numbers = value->numbers;
      return result;
    }
    const Shared<T> result = execute::zeros<T>(*this, list, value->region);
    unpack(value->data.data(), value->region, *result, false);
    return result;
  }
}

template <typename T>
void HostMemory<T>::note(const Value<T>& value, double weight, std::size_t sum) {
  if (noted_.size() <= sum) noted_.resize(sum + 1);
  with_numbers(value, [&](const auto& list) {
    for (const auto number : list) noted_[sum] += static_cast<double>(number) * weight;
  });
}

template <typename T>
std::vector<double> HostMemory<T>::noted(std::size_t sums) {
  std::vector<double> result = std::exchange(noted_, {});
  result.resize(sums);
  return result;
}

template <typename T>
std::span<OnHost<T>> HostMemory<T>::open(const Value<T>& value, std::vector<Host>& room) {
  const std::span<Host> message = place(value, room);
  if (message.data() != place_of(value)) pack(value, value.region, message.data());
  return message;
}

template <typename T>
std::span<OnHost<T>> HostMemory<T>::place(const Value<T>& value, std::vector<Host>& room) {
  expects(value.bytes.empty(), "only numbers are exchanged");
  const auto size = static_cast<std::size_t>(value.region.size());
  if constexpr (std::is_same_v<T, Host>) {
    return {value.data.data(), size};
  } else {
    if (!value.wide.empty()) return {value.wide.data(), size};
    if (room.size() < size) room.resize(size);
    return std::span<Host>(room).first(size);
  }
}

template <typename T>
void HostMemory<T>::close(std::span<const Host> message, const Value<T>& value) {
  if (message.data() != place_of(value)) unpack(message.data(), value.region, value, false);
}

template <typename T>
void HostMemory<T>::pack(const Value<T>& whole, const Region& region, Host* to) {
  with_numbers(whole, [&](const auto& list) {
    for_each_piece(whole.region, region,
                   [&](std::int64_t there, std::int64_t here, std::int64_t length) {
                     convert(list.data() + there, length, to + here);
                   });
  });
}

template <typename T>
void HostMemory<T>::unpack(const Host* from, const Region& region, const Value<T>& whole,
                           bool adds) {
  with_numbers(whole, [&](const auto& list) {
    for_each_piece(whole.region, region,
                   [&](std::int64_t there, std::int64_t here, std::int64_t length) {
                     adds ? accumulate(from + here, length, list.data() + there)
                          : convert(from + here, length, list.data() + there);
                   });
  });
}

template <typename T>
void HostEngine<T>::apply(const Application<T>& application) {
  execute::apply(application);
}

template <typename T>
void HostEngine<T>::step(const Step<T>& step) {
  kernels::adam<T>(step.settings, step.gradient, step.parameter, step.momentum, step.variance);
}

template class HostMemory<float>;
template class HostMemory<double>;
template class HostMemory<kernels::Half>;
template class HostMemory<kernels::BFloat16>;
template class HostEngine<float>;
template class HostEngine<double>;

}  // namespace stratagem::execute
