// The event loop: actors run ahead until they meet an unfinished collective, then the next event
// comes.
#include "sim/engine.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <utility>

#include "base/input_error.hpp"
#include "sim/active_flows.hpp"
#include "sim/flat_sequence.hpp"
#include "sim/host.hpp"
#include "sim/slowed_kernels.hpp"

namespace stratagem::sim {
namespace {

/// Where one queue of one actor stands.
struct QueueState {
  int round = 0;
  std::size_t next = 0;  ///< of its tasks
  Instant tail;          ///< end of the task before
  bool busy = false;     ///< with a collective, or a kernel that one can slow down
};

struct ActorState {
  const FlatSequence* sequence = nullptr;
  std::vector<QueueState> queues;
  Host host;
  int collectives = 0;  ///< that it has arrived at and that have not ended
};

/// A rank's part in a collective.
struct Arrival {
  int actor;
  int queue;
  int round;
  int task;
};

/// The k-th collective of a communicator class.
struct CollectiveInstance {
  const program::Collective* collective = nullptr;
  int communicator_class = 0;
  Instant last_arrival;
  std::vector<Arrival> arrivals;
};

class Engine {
 public:
  Engine(const program::Program& program, const Folding& folding, const Prices& prices,
         int iterations)
      : folding_(folding),
        iterations_(iterations),
        rounds_(iterations + program.lag),
        flows_(folding),
        slowdown_(to_millionths(folding.compute_slowdown)),
        kernels_(folding.actors.size()),
        instances_of_(folding.communicator_classes.size()) {
    for (const program::Sequence& sequence : program.sequences) {
      sequences_.push_back(flatten(program, sequence, prices, slowdown_, folding.serial));
    }
    for (std::size_t f = 0; f < folding.flows.size(); ++f) {
      const Flow& flow = folding.flows[f];
      Routes& routes = routes_of_[{flow.communicator_class, flow.kind}];
      if (flow.payloads.empty()) routes.any = static_cast<int>(f);
      for (const Bytes payload : flow.payloads) routes.by_payload[payload] = static_cast<int>(f);
    }
    for (const Actor& actor : folding.actors) {
      const FlatSequence& sequence = sequences_[actor.sequence];
      actors_.push_back({.sequence = &sequence,
                         .queues = std::vector<QueueState>(sequence.queues.size()),
                         .host = {sequence, iterations, rounds_, folding.launch_queue}});
      times_.push_back({});
      for (auto* times : {&times_.back().begins, &times_.back().ends}) {
        times->assign(rounds_, std::vector<Instant>(sequence.tasks.size(), unknown));
      }
      times_.back().launches.assign(program.lag + 1, times_.back().ends.front());
    }
  }

  Timeline run() {
    for (std::size_t a = 0; a < actors_.size(); ++a) advance(static_cast<int>(a));
    while (true) {
      const Instant flow = std::min(flows_.next_end(), when_next(starts_));
      const Instant now = slowdown_ == 0 ? flow : std::min(flow, next_of_kernels());
      if (now == never) break;
      if (flow == now) change_flows(now);
      if (slowdown_ > 0) change_kernels(now);
      while (!resumed_.empty()) {
        advance(resumed_.front());
        resumed_.pop_front();
      }
    }
    return timeline();
  }

 private:
  struct Start {
    Instant when;
    int instance;  ///< numbered in the order of creation: ties are settled by it
    friend auto operator<=>(const Start&, const Start&) = default;
  };

  using Starts = std::priority_queue<Start, std::vector<Start>, std::greater<>>;

  static Instant when_next(const Starts& starts) {
    return starts.empty() ? never : starts.top().when;
  }

  /// Ends and begins flows.
  void change_flows(Instant now) {
    for (const int instance : flows_.end_at(now)) end(instance, now);
    while (when_next(starts_) == now) {
      const int instance = starts_.top().instance;
      starts_.pop();
      const CollectiveInstance& g = instances_[instance];
      flows_.begin(flow_of(g.communicator_class, *g.collective), instance, g.collective->payload);
    }
    flows_.share(now);
  }

  [[nodiscard]] Instant next_of_kernels() const {
    return std::min(when_next(slowing_), kernels_.next_end());
  }

  /// Slows down the kernels of collectives that begin, and ends kernels.
  void change_kernels(Instant now) {
    while (when_next(slowing_) == now) {
      for (const Arrival& arrival : instances_[slowing_.top().instance].arrivals)
        kernels_.begin_communication(arrival.actor, now);
      slowing_.pop();
    }
    while (const auto kernel = kernels_.end_at(now)) {
      finish_kernel(*kernel);
      resumed_.push_back(kernel->actor);
    }
  }

  /// Computes everything about an actor that does not depend on an unfinished collective.
  void advance(int actor) {
    ActorState& state = actors_[actor];
    step_all(actor, state);
    if (slowdown_ > 0) advance_kernels(actor, state);
  }

  /// Without an unfinished collective nothing slows an actor's kernels down before it arrives at
  /// the next: the one that ends first does so, and perhaps lets another task begin.
  void advance_kernels(int actor, ActorState& state) {
    while (state.collectives == 0 && kernels_.any(actor)) {
      finish_kernel(kernels_.end_next(actor));
      step_all(actor, state);
    }
    kernels_.schedule(actor);
  }

  void step_all(int actor, ActorState& state) {
    for (bool moved = true; moved;) {
      moved = state.host.advance(times_[actor]);
      for (std::size_t q = 0; q < state.queues.size(); ++q) {
        while (step(actor, state, static_cast<int>(q))) moved = true;
      }
    }
  }

  /// Runs the next task of a queue, if everything before it is known.
  bool step(int actor, ActorState& state, int queue) {
    QueueState& line = state.queues[queue];
    if (line.busy || line.round == rounds_) return false;
    const int task = state.sequence->in_queue[queue][line.next];
    const Instant launch = times_[actor].begins[line.round][task];
    if (launch == unknown) return false;
    const FlatPrice& price = state.sequence->price(task);
    const int iteration = line.round - price.lag;
    if (iteration < 0 || iteration >= iterations_) return leave_out(actor, state, queue, task);
    const Instant ready = ready_time(actor, state, line, task);
    if (ready == unknown) return false;
    if (price.collective != nullptr) {
      line.busy = true;
      ++state.collectives;
      arrive(price, {actor, queue, line.round, task}, ready);
      return false;
    }
    const Instant launched = launch + price.host;
    if (price.slowdown > 0) {
      line.busy = true;
      kernels_.begin(actor, {.queue = queue,
                             .task = task,
                             .all = {ready, price.device, price.slowdown},
                             .last = {std::max(ready, launched), price.last_kernel, slowdown_}});
      return false;
    }
    finish_task(actor, queue, task, ready,
                std::max(ready + price.device, launched + price.last_kernel));
    return true;
  }

  void finish_kernel(const SlowedKernels::Ended& ended) {
    const SlowedKernel& kernel = ended.kernel;
    actors_[ended.actor].queues[kernel.queue].busy = false;
    finish_task(ended.actor, kernel.queue, kernel.task, kernel.all.from(), ended.end);
  }

  /// Passes over a task whose iteration does not exist. The host goes by in the time that launching
  /// it would take, which is pessimistic before the first and after the last iteration.
  bool leave_out(int actor, ActorState& state, int queue, int task) {
    QueueState& line = state.queues[queue];
    times_[actor].begins[line.round][task] = never_ran;
    times_[actor].ends[line.round][task] = never_ran;
    move_on(state, line, queue);
    return true;
  }

  static void move_on(const ActorState& state, QueueState& line, int queue) {
    if (++line.next == state.sequence->in_queue[queue].size()) {
      line.next = 0;
      ++line.round;
    }
  }

  Instant ready_time(int actor, const ActorState& state, const QueueState& line, int task) const {
    const FlatSequence& sequence = *state.sequence;
    Instant ready = std::max(
        times_[actor].begins[line.round][task] + sequence.price(task).first_launch, line.tail);
    const std::vector<Instant>& ends = times_[actor].ends[line.round];
    for (const FlatWait& wait : sequence.waits_of(task)) {
      const Instant end = ends[sequence.waited_for(task, wait)];
      if (end == unknown) return unknown;
      ready = std::max(ready, end);
    }
    return ready;
  }

  void finish_task(int actor, int queue, int task, Instant begin, Instant end) {
    ActorState& state = actors_[actor];
    QueueState& line = state.queues[queue];
    times_[actor].begins[line.round][task] = begin;
    times_[actor].ends[line.round][task] = end;
    line.tail = end;
    move_on(state, line, queue);
  }

  void arrive(const FlatPrice& price, const Arrival& arrival, Instant when) {
    const program::Collective& collective = *price.collective;
    const int communicator_class =
        folding_.actors[arrival.actor].communicator_classes[collective.group];
    const FlatSequence& sequence = *actors_[arrival.actor].sequence;
    const std::size_t k = static_cast<std::size_t>(arrival.round - price.lag) *
                              sequence.collectives[collective.group] +
                          sequence.ordinal(arrival.task);
    std::vector<int>& known = instances_of_[communicator_class];
    if (k >= known.size()) known.resize(k + 1, -1);
    if (known[k] < 0) {
      known[k] = static_cast<int>(instances_.size());
      instances_.push_back({&collective, communicator_class, when, {}});
    }
    CollectiveInstance& instance = instances_[known[k]];
    expects(instance.collective->kind == collective.kind &&
                instance.collective->payload == collective.payload,
            "the k-th collectives of all ranks of a communicator are the same");
    instance.last_arrival = std::max(instance.last_arrival, when);
    instance.arrivals.push_back(arrival);
    if (instance.arrivals.size() < folding_.communicator_classes[communicator_class].actors.size())
      return;
    if (slows(collective)) slowing_.push({instance.last_arrival, known[k]});
    const Ticks latency = folding_.flows[flow_of(communicator_class, collective)].latency;
    starts_.push({instance.last_arrival + latency, known[k]});
  }

  /// Copy engines carry copies to and from the host; all else takes multiprocessors.
  [[nodiscard]] bool slows(const program::Collective& collective) const {
    return slowdown_ > 0 && !cost::concerns_host(collective.kind);
  }

  /// The flows of one kind of collective of one communicator class.
  struct Routes {
    int any = -1;  ///< whatever the payload
    std::map<Bytes, int> by_payload;
  };

  [[nodiscard]] int flow_of(int communicator_class, const program::Collective& collective) const {
    const Routes& routes = routes_of_.at({communicator_class, collective.kind});
    return routes.any >= 0 ? routes.any : routes.by_payload.at(collective.payload);
  }

  void end(int id, Instant now) {
    CollectiveInstance& instance = instances_[id];
    for (const Arrival& arrival : instance.arrivals) {
      ActorState& state = actors_[arrival.actor];
      state.queues[arrival.queue].busy = false;
      --state.collectives;
      if (slows(*instance.collective)) kernels_.end_communication(arrival.actor, now);
      finish_task(arrival.actor, arrival.queue, arrival.task, instance.last_arrival, now);
      resumed_.push_back(arrival.actor);
    }
    instance.arrivals = {};
  }

  /// At the end: hosts that still stand still wait for each other.
  void refuse_full_queues() const {
    if (std::ranges::none_of(actors_, [](const ActorState& state) { return state.host.full(); }))
      return;
    throw InputError("", "/profile/launch_queue",
                     "room for the launches by which devices are ahead of each other",
                     std::to_string(folding_.launch_queue));
  }

  Timeline timeline() {
    Timeline result;
    result.actors = folding_.actors;
    result.actor_of = folding_.actor_of;
    result.lag = rounds_ - iterations_;
    result.iteration_ends.assign(iterations_, Instant{0});
    refuse_full_queues();
    for (std::size_t a = 0; a < times_.size(); ++a) {
      const FlatSequence& sequence = *actors_[a].sequence;
      for (int round = 0; round < rounds_; ++round) {
        for (std::size_t task = 0; task < sequence.tasks.size(); ++task) {
          const Instant end = times_[a].ends[round][task];
          expects(end != unknown, "no rank waits for ever");
          if (end == never_ran) continue;
          Instant& last = result.iteration_ends[round - sequence.price(task).lag];
          last = std::max(last, end);
        }
      }
    }
    for (FlatSequence& sequence : sequences_) {
      result.tasks.push_back(std::move(sequence.tasks));
      result.queues.push_back(std::move(sequence.queues));
    }
    result.times = std::move(times_);
    return result;
  }

  const Folding& folding_;
  int iterations_;
  int rounds_;
  ActiveFlows flows_;
  int slowdown_;  ///< millionths of a kernel's speed
  SlowedKernels kernels_;
  std::vector<FlatSequence> sequences_;
  std::vector<ActorState> actors_;
  std::vector<ActorTimes> times_;
  std::vector<CollectiveInstance> instances_;
  std::vector<std::vector<int>> instances_of_;  ///< by communicator class
  std::map<std::pair<int, cost::CollectiveKind>, Routes> routes_of_;
  Starts starts_;   ///< of flows
  Starts slowing_;  ///< of collectives that slow kernels down
  std::deque<int> resumed_;
};

}  // namespace

Timeline run(const program::Program& program, const Folding& folding, const Prices& prices,
             int iterations) {
  return Engine(program, folding, prices, iterations).run();
}

Timeline run_until_steady(const program::Program& program, const Folding& folding,
                          const Prices& prices) {
  for (int iterations = 3 + program.lag;; iterations *= 2) {
    Timeline timeline = run(program, folding, prices, iterations);
    const std::vector<Instant>& ends = timeline.iteration_ends;
    const std::size_t n = ends.size();
    timeline.steady = (ends[n - 1] - ends[n - 2]).count == (ends[n - 2] - ends[n - 3]).count;
    if (timeline.steady || iterations > 8 + 4 * program.lag) return timeline;
  }
}

}  // namespace stratagem::sim
