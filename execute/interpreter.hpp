// Executes one device's part of a Program. sim/ is the other interpreter: it simulates the same
// Program. Waits of the host (Call::host_waits) are left out here: they say when a task is launched,
// not on which values it works, and a rank launches a task when these are there.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "execute/arena.hpp"
#include "execute/engine.hpp"
#include "execute/exchange.hpp"
#include "execute/finite.hpp"
#include "execute/host_engine.hpp"
#include "execute/messages.hpp"
#include "execute/optimizer_states.hpp"
#include "execute/place.hpp"
#include "execute/recording.hpp"
#include "execute/value.hpp"
#include "execute/weight_versions.hpp"
#include "kernels/adam.hpp"
#include "kernels/ranks/communicator.hpp"
#include "model/graph.hpp"
#include "program/buffers.hpp"
#include "program/program.hpp"

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
/// do to values, operators without a kernel of the backend. "" if it can.
std::string refusal(const program::Program& program, const model::Graph& graph,
                    Backend backend = Backend::cpu);

/// T is the type in which everything is held, whatever the model says: double to check plans, float
/// to run them on a processor or a GPU; kernels::Half and kernels::BFloat16 on a GPU, which sums in
/// fp32, with statistics, losses and the optimizer's states in fp32.
template <typename T>
class Interpreter {
 public:
  /// `world` has a rank for every device of the program, and outlives this. Called on all ranks.
  /// Expects a program that is not refused for the engine.
  Interpreter(const program::Program& program, const model::Graph& graph, const Settings& settings,
              kernels::Communicator& world,
              std::unique_ptr<Engine<T>> engine = std::make_unique<HostEngine<T>>());

  /// Sees a parameter's whole gradient, or this rank's shard, right before the step, on the host.
  using Host = OnHost<T>;
  using Watch = std::function<void(model::TensorId parameter, const Value<Host>& gradient)>;
  /// Runs one iteration and returns the average loss of all its samples, the same on all ranks.
  /// Throws NotFinite on all of them where it is no number.
  double iterate(const Watch& watch = {});
  /// Runs some, which overlap where the program has no flush, and returns the losses of all. Ends
  /// with a flush: the next iteration reads weights that have taken all steps.
  std::vector<double> train(int iterations, const Watch& watch = {});

  /// Which iteration the task that runs is of, from 0; the next one between them.
  [[nodiscard]] std::uint64_t iteration() const { return iteration_; }
  /// When the tasks of the last iteration ran. Where iterations overlap, of no use.
  [[nodiscard]] const Recording& recording() const { return recording_; }
  /// When this rank had done with each of the iterations that were asked for last, since it began.
  [[nodiscard]] const std::vector<Seconds>& ends() const { return ends_; }
  /// What lies in the device's memory; its peak is that of the last iteration. What messages are
  /// packed in, and copies of parts that a task looks at, are not there.
  [[nodiscard]] const Arena& arena() const { return arena_; }

  /// What this rank has of a parameter; it must have some.
  [[nodiscard]] Value<T>& parameter(model::TensorId id) { return *parameters_.at(id); }

 private:
  struct CallState;

  void create_groups();
  void create_parameters();
  void create_parameter(const program::Resident& resident);
  std::vector<double> overlap(int iterations, const Watch& watch);
  void run_round(const program::Sequence& sequence, int iterations);
  void run(const program::Launch& launch);
  void run(CallState& state, const program::Task& task);
  void apply(CallState& state, const program::Task& task, const program::Operation& operation);
  void convert(CallState& state, const program::Collective& work,
               const program::Operation& operation);
  void transfer(CallState& state, const program::Collective& work,
                const program::Operation& operation);
  void select(CallState& state, const program::Operation& operation);
  void join(CallState& state, const program::Operation& operation);
  void step(CallState& state, const program::Operation& operation);
  void free(int buffer);

  [[nodiscard]] int grid_of(model::TensorId tensor, const program::Call& call) const;
  [[nodiscard]] Region region(const CallState& state, const program::Operand& operand) const;
  [[nodiscard]] Region region_on(const CallState& state, const program::Operand& operand,
                                 std::size_t member, int device) const;
  Shared<T> read(CallState& state, const program::Operand& operand);
  Shared<T> held(const CallState& state, const program::Operand& operand);
  [[nodiscard]] Shared<T>& value_of(int buffer);
  [[nodiscard]] int place_of(int buffer) const;
  /// What an operand is written to: its buffer, whatever that holds.
  Shared<T> target(CallState& state, const program::Operand& operand);
  /// What it is added to: its buffer, with zeros if nothing is there.
  Shared<T> sum(CallState& state, const program::Operand& operand);
  Shared<T> target(CallState& state, const program::Operation& operation, std::size_t output);
  Shared<T> resident(model::TensorId tensor, const Region& region);
  Shared<T> placed(int buffer, model::TensorId tensor, const Region& region);
  /// Waits for a value, if it is a message that has not arrived: was it one?
  bool arrive(const Value<T>* value);
  void note_loss(const CallState& state, const program::Operation& operation,
                 const Value<T>& values);
  [[nodiscard]] double loss_weight() const;
  /// Of the program: that of a group of this device.
  [[nodiscard]] int communicator(int number) const;
  [[nodiscard]] kernels::Communicator& group(int number);
  /// Made when the group has its first collective, which all of its ranks come to.
  [[nodiscard]] Post<T>& post(int number);
  /// Do iterations begin before the steps of those before them?
  [[nodiscard]] bool without_flush() const { return program_.lag > 0 || versions_.any(); }

  const program::Program& program_;
  const model::Graph& graph_;
  Settings settings_;
  kernels::Communicator& world_;
  Place own_place_;
  Place& place_;
  std::unique_ptr<Engine<T>> engine_;  ///< outlives all values
  FiniteCheck finite_;
  int device_;
  program::Buffers buffers_;
  std::vector<std::unique_ptr<kernels::Communicator>> communicators_;  ///< null: not in it
  Arena arena_;
  std::map<model::TensorId, int> resident_buffers_;  ///< of the arena
  std::map<model::TensorId, Shared<T>> parameters_;  ///< the newest version of each
  WeightVersions<T> versions_;                       ///< of those that have more than one
  std::map<model::TensorId, Shared<T>> gradients_;   ///< resident ones, by gradient
  std::vector<std::vector<int>> coordinates_;  ///< by grid: of this device, if it stands there
  std::map<model::TensorId, int> grid_of_resident_;  ///< of a parameter and its gradient
  std::set<model::TensorId> in_parts_;  ///< of which every device has a part of its own
  OptimizerStates<T> states_;
  /// By iteration, of as many as overlap, then buffer; null: not written yet, or freed.
  std::vector<std::vector<Shared<T>>> values_;
  Messages<T> messages_;
  double loss_scale_;
  Packing<T> packing_;
  std::vector<std::unique_ptr<Post<T>>> posts_;  ///< as communicators_; null: not asked for yet
  Watch watch_;
  Recording recording_;
  std::size_t task_ = 0;     ///< that runs, in the order of the program
  int round_ = 0;            ///< since `first_`
  std::uint64_t first_ = 0;  ///< of the iterations that were asked for together
  std::uint64_t iteration_ = 0;
  std::vector<Seconds> ends_;  ///< when this rank had done with iterations since `first_`
};

}  // namespace stratagem::execute
