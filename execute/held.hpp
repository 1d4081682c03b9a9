// What a rank holds: weights, their gradients, and the values of calls that are on their way.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "execute/arena.hpp"
#include "execute/engine.hpp"
#include "execute/regions.hpp"
#include "execute/weight_versions.hpp"
#include "program/buffers.hpp"

namespace stratagem::execute {

/// A call on its way.
struct RunningCall {
  const program::Call& call;
  int number = 0;               ///< of the call in its sequence
  std::uint64_t iteration = 0;  ///< that it is of, among those that were asked for together
  std::uint64_t before = 0;     ///< iterations before those
};

template <typename T>
class Held {
 public:
  /// Weights begin as the seed says. All arguments outlive it.
  Held(const program::Program& program, const model::Graph& graph, const Regions& regions,
       int device, std::uint64_t seed, Engine<T>& engine);

  /// Iterations begin, of which at most `overlapping` are under way at once. end() drops their
  /// values and gradients.
  void begin(std::size_t overlapping);
  void end();

  /// What is there of an operand: of a weight its newest version.
  [[nodiscard]] Shared<T> of(const RunningCall& call, const program::Operand& operand) const;
  /// The same, of a weight the version that operators of the call read.
  [[nodiscard]] Shared<T> read_by_operator(const RunningCall& call,
                                           const program::Operand& operand) const;
  /// What an operand is written to: its buffer, whatever that holds.
  Shared<T> target(const RunningCall& call, const program::Operand& operand);
  /// What it is added to: its buffer, with zeros if nothing is there.
  Shared<T> sum(const RunningCall& call, const program::Operand& operand);
  /// Gives back a buffer of the call's iteration, and returns what it held; null: nothing.
  Shared<T> free(const RunningCall& call, int buffer);
  void free_gradient(model::TensorId gradient) { gradients_.erase(gradient); }

  /// The newest version of a weight; it must be here.
  [[nodiscard]] Value<T>& newest(model::TensorId parameter) { return *parameters_.at(parameter); }
  /// What a step writes: the next version, a copy of the newest, or the only one if there is one.
  Value<T>& to_step(model::TensorId parameter);
  [[nodiscard]] bool has_versions() const { return versions_.any(); }

  [[nodiscard]] const program::Buffers& buffers() const { return buffers_; }
  [[nodiscard]] const Arena& arena() const { return arena_; }
  [[nodiscard]] Arena& arena() { return arena_; }

 private:
  void create_parameter(const program::Resident& resident, const Region& region,
                        std::uint64_t seed);
  void keep_next(model::TensorId parameter);
  [[nodiscard]] int place_of(std::uint64_t iteration, int buffer) const;
  Shared<T> placed(int buffer, model::TensorId tensor, const Region& region);
  Shared<T> resident(model::TensorId tensor, const Region& region);

  const model::Graph& graph_;
  const Regions& regions_;
  Engine<T>& engine_;
  program::Buffers buffers_;
  Arena arena_;
  std::map<model::TensorId, int> resident_buffers_;  ///< of the arena
  std::map<model::TensorId, Shared<T>> parameters_;  ///< the newest version of each
  WeightVersions<T> versions_;                       ///< of those that have more than one
  std::map<model::TensorId, Shared<T>> gradients_;   ///< resident ones, by gradient
  /// By iteration, of as many as overlap, then buffer; null: not written yet, or freed.
  std::vector<std::vector<Shared<T>>> values_;
};

}  // namespace stratagem::execute
