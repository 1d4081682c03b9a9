// What the optimizer keeps of every parameter that a rank steps.
#pragma once

#include <cstddef>
#include <map>
#include <type_traits>
#include <utility>

#include "execute/arena.hpp"
#include "execute/engine.hpp"

namespace stratagem::execute {

/// Two moments, and in types of two bytes a main copy in fp32. In the arena, unless the program has
/// them on the host, or has no main copies where those are needed.
template <typename T>
class OptimizerStates {
 public:
  using Host = OnHost<T>;
  struct Of {
    Elements<Host> momentum, variance;
    Elements<Host> main;  ///< see `Step`
  };

  OptimizerStates(Engine<T>& engine, Arena& arena) : engine_(engine), arena_(arena) {}

  /// Those of a parameter, of which so many elements are stepped; and whether they are new.
  std::pair<Of*, bool> of(model::TensorId parameter, std::size_t size) {
    const auto [found, fresh] = states_.try_emplace(parameter);
    Of& states = found->second;
    if (fresh) {
      states.momentum = zeros(size);
      states.variance = zeros(size);
      if (mixed) states.main = zeros(size);
    }
    return {&states, fresh};
  }

 private:
  static constexpr bool mixed = !std::is_same_v<T, Host>;

  Elements<Host> zeros(std::size_t size) {
    const int buffer = arena_.packing().states;
    const std::size_t bytes = size * sizeof(Host), end = held_ + bytes;
    const bool fits = buffer >= 0 && (!mixed || end <= arena_.packing().buffers[buffer].capacity);
    Elements<Host> result;
    if (fits) {
      std::byte* const begin = arena_.hold(buffer, end) + std::exchange(held_, end);
      result = Elements<Host>(std::span<Host>(reinterpret_cast<Host*>(begin), size));
    } else {
      result = Elements<Host>(engine_.allocate(bytes), size);
    }
    engine_.clear(result.data(), bytes);
    return result;
  }

  Engine<T>& engine_;
  Arena& arena_;
  std::size_t held_ = 0;  ///< of the arena's buffer, in bytes
  std::map<model::TensorId, Of> states_;
};

}  // namespace stratagem::execute
