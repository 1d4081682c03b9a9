// Runs one device's part of a Program: the second interpreter of what sim/ plays in virtual time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "execute/finite.hpp"
#include "execute/place.hpp"
#include "execute/value.hpp"
#include "kernels/adam.hpp"
#include "kernels/communicator.hpp"
#include "model/graph.hpp"
#include "strategies/buffer_owners.hpp"
#include "strategies/program.hpp"

namespace stratagem::execute {

struct Settings {
  std::uint64_t seed = 1;
  int micro_batches = 1;  ///< of an iteration
  double dropout = 0.1;
  kernels::Adam optimizer = {};  ///< `step` is counted by the interpreter
  Place* place = nullptr;        ///< kept up to date if there is one; it outlives the interpreter
  bool finds_faults = false;     ///< which task made the first value that is not finite
};

/// Why a program cannot be run, naming what: plans of which lowering does not say what their tasks
/// do
/// to values, operators without a kernel. "" if it can.
std::string refusal(const strategies::Program& program, const model::Graph& graph);

/// T is the type in which everything is held and computed, whatever the model says: double to check
/// plans, float to run them.
template <typename T>
class Interpreter {
 public:
  /// `world` has a rank for every device of the program, and outlives this. Called on all ranks.
  /// Expects a program that is not refused.
  Interpreter(const strategies::Program& program, const model::Graph& graph,
              const Settings& settings, kernels::Communicator& world);

  /// Sees a parameter's whole gradient, or this rank's shard, right before the step.
  using Watch = std::function<void(model::TensorId parameter, const Value<T>& gradient)>;
  /// Runs one iteration and returns the average loss of all its samples, the same on all ranks.
  /// Throws NotFinite on all of them where it is no number.
  double iterate(const Watch& watch = {});

  /// What this rank has of a parameter; it must have some.
  [[nodiscard]] Value<T>& parameter(model::TensorId id) { return *parameters_.at(id); }

 private:
  struct CallState;
  using Owned = std::pair<model::TensorId, int>;

  void create_groups();
  void create_parameters();
  void run(const strategies::Call& call);
  void run(CallState& state, const strategies::Task& task);
  void apply(CallState& state, const strategies::Task& task,
             const strategies::Operation& operation);
  void convert(CallState& state, const strategies::Collective& work,
               const strategies::Operation& operation);
  void transfer(CallState& state, const strategies::Collective& work,
                const strategies::Operation& operation);
  void select(CallState& state, const strategies::Operation& operation);
  void step(CallState& state, const strategies::Operation& operation);
  void free(CallState& state, int slot);
  void keep(CallState& state);

  [[nodiscard]] Region region(const CallState& state, const strategies::Operand& operand) const;
  [[nodiscard]] Region region_on(const CallState& state, const strategies::Operand& operand,
                                 int device) const;
  Shared<T> read(CallState& state, const strategies::Operand& operand);
  Shared<T> held(CallState& state, const strategies::Operand& operand, const Region& wanted);
  Shared<T>* kept(const Owned& key, const Region& wanted);
  /// What an operand that is written to holds already; zeros if nothing is there.
  Shared<T> added_to(CallState& state, const strategies::Operand& operand);
  void write(CallState& state, const strategies::Operand& operand, Shared<T> value);
  void arrive(const Shared<T>& value);
  void note_loss(const CallState& state, const strategies::Operand& operand,
                 const Value<T>& values);
  [[nodiscard]] double loss_weight() const;
  [[nodiscard]] kernels::Communicator& group(int number);

  const strategies::Program& program_;
  const model::Graph& graph_;
  Settings settings_;
  kernels::Communicator& world_;
  Place own_place_;
  Place& place_;
  FiniteCheck finite_;
  int device_;
  strategies::BufferOwners owners_;
  std::vector<std::unique_ptr<kernels::Communicator>> communicators_;  ///< null: not in it
  std::map<model::TensorId, Shared<T>> parameters_;
  std::map<model::TensorId, Shared<T>> gradients_;  ///< resident ones, by gradient
  struct Moments {
    std::vector<T> momentum, variance;
  };
  std::map<model::TensorId, Moments> moments_;
  std::map<model::TensorId, model::TensorId> parameter_of_;  ///< by gradient
  std::map<Owned, std::vector<Shared<T>>> store_;            ///< between calls, by tensor and owner
  std::map<const Value<T>*, std::unique_ptr<kernels::Pending>> arriving_;
  std::vector<std::pair<std::unique_ptr<kernels::Pending>, Shared<T>>> leaving_;
  Watch watch_;
  std::uint64_t iteration_ = 0;
  double loss_ = 0;  ///< of this rank
};

}  // namespace stratagem::execute
