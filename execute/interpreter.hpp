// Executes one device's part of a Program. sim/ is the other interpreter: it simulates the same
// Program. Waits of the host (Call::host_waits) are left out here: they say when a task is
// launched, not on which values it works, and a rank launches a task when these are there.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "execute/current_task.hpp"
#include "execute/engine.hpp"
#include "execute/exchange.hpp"
#include "execute/finite.hpp"
#include "execute/groups.hpp"
#include "execute/held.hpp"
#include "execute/host_engine.hpp"
#include "execute/messages.hpp"
#include "execute/optimizer_states.hpp"
#include "execute/recording.hpp"
#include "execute/regions.hpp"
#include "kernels/adam.hpp"
#include "kernels/ranks/communicator.hpp"
#include "program/program.hpp"

namespace stratagem::execute {

struct Settings {
  std::uint64_t seed = 1;
  int micro_batches = 1;  ///< of an iteration
  double dropout = 0.1;
  kernels::Adam optimizer = {};    ///< `step` is counted by the interpreter
  CurrentTask* current = nullptr;  ///< kept up to date if there is one; it outlives the interpreter
  bool finds_faults = false;       ///< which task made the first value that is not finite
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
  /// Runs some, which overlap where the program has no flush or delays its steps, and returns the
  /// losses of all. Ends with a flush: the next iteration reads weights that have taken all steps.
  std::vector<double> train(int iterations, const Watch& watch = {});

  /// Which iteration the task that runs is of, from 0; the next one between them.
  [[nodiscard]] std::uint64_t iteration() const { return now_.first + now_.iteration; }
  /// When the tasks of the last iteration ran. Where iterations overlap, of no use.
  [[nodiscard]] const Recording& recording() const { return record_.times; }
  /// When this rank had done with each of the iterations that were asked for last, since it began.
  [[nodiscard]] const std::vector<Seconds>& ends() const { return record_.ends; }
  /// What lies in the device's memory; its peak is that of the last iteration. What messages are
  /// packed in, and copies of parts that a task looks at, are not there.
  [[nodiscard]] const Arena& arena() const { return held_.arena(); }

  /// What this rank has of a parameter; it must have some.
  [[nodiscard]] Value<T>& parameter(model::TensorId id) { return held_.newest(id); }

 private:
  std::vector<double> overlap(int iterations, const Watch& watch);
  void run_round(int round, int iterations);
  void run(const program::Launch& launch);
  void run(const RunningCall& call, const program::Task& task);
  void apply(const RunningCall& call, const program::Task& task,
             const program::Operation& operation);
  void convert(const RunningCall& call, const program::Collective& work,
               const program::Operation& operation);
  void transfer(const RunningCall& call, const program::Collective& work,
                const program::Operation& operation);
  void select(const RunningCall& call, const program::Operation& operation);
  void join(const RunningCall& call, const program::Operation& operation);
  void step(const RunningCall& call, const program::Operation& operation);

  Shared<T> input_of_model(const RunningCall& call, model::TensorId tensor, const Region& region);
  Shared<T> read(const RunningCall& call, const program::Operand& operand,
                 bool by_operator = false);
  Shared<T> target(const RunningCall& call, const program::Operation& operation,
                   std::size_t output);
  /// Waits for a value, if it is a message that has not arrived: was it one?
  bool arrive(const Value<T>* value);
  void note_loss(const RunningCall& call, const program::Operation& operation,
                 const Value<T>& values);
  [[nodiscard]] double loss_weight() const;
  [[nodiscard]] double loss_scale() const;
  [[nodiscard]] const program::Sequence& sequence() const {
    return program_.sequences[program_.devices[world_.rank()].sequence];
  }
  /// Do iterations begin before the steps of those before them?
  [[nodiscard]] bool without_flush() const { return program_.lag > 0 || held_.has_versions(); }

  /// What is told of the tasks that run.
  struct Record {
    CurrentTask own;
    Recording times;
    std::vector<Seconds> ends;  ///< of iterations since `Now::first`
    FiniteCheck finite;
  };
  struct Now {
    std::uint64_t first = 0;      ///< of the iterations that were asked for together
    std::uint64_t iteration = 0;  ///< of these, of the task that runs
    std::size_t task = 0;         ///< that runs, in the order of the program
  };

  const program::Program& program_;
  const model::Graph& graph_;
  Settings settings_;
  kernels::Communicator& world_;
  std::unique_ptr<Engine<T>> engine_;  ///< outlives all values
  Regions regions_;
  Held<T> held_;
  OptimizerStates<T> states_;
  Groups<T> groups_;
  Messages<T> messages_;
  std::vector<int> lags_;  ///< by call
  Watch watch_;
  Record record_;
  Now now_;
};

}  // namespace stratagem::execute
