// The event loop: actors run ahead until they meet an unfinished collective, then the next event
// comes.
#include "sim/engine.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "base/input_error.hpp"
#include "program/shorter.hpp"
#include "sim/active_flows.hpp"
#include "sim/collective_instances.hpp"
#include "sim/played_actor.hpp"
#include "sim/repeated_rounds.hpp"
#include "sim/repetition.hpp"
#include "sim/slowed_kernels.hpp"

namespace stratagem::sim {
namespace {

/// An event of a collective.
struct Start {
  Instant when;
  int instance;  ///< numbered in the order of creation: ties are settled by it
  friend auto operator<=>(const Start&, const Start&) = default;
};

/// Events to come. There are seldom more than actors, so a list is faster than a tree.
class Starts {
 public:
  void insert(const Start& start) {
    const auto place = std::ranges::lower_bound(latest_first_, start, std::greater{});
    latest_first_.insert(place, start);
  }
  [[nodiscard]] Instant when_next() const {
    return latest_first_.empty() ? never : latest_first_.back().when;
  }
  /// Removes the next one and returns its instance.
  int take_next() {
    const int instance = latest_first_.back().instance;
    latest_first_.pop_back();
    return instance;
  }
  /// Adds those of the open collectives.
  void write(RelativeState& state, const std::vector<int>& open) const {
    state.add(static_cast<std::int64_t>(latest_first_.size()));
    for (const Start& start : latest_first_) {
      state.add(start.when);
      state.add(std::ranges::lower_bound(open, start.instance) - open.begin());
    }
  }

 private:
  std::vector<Start> latest_first_;
};

class Engine {
 public:
  Engine(const program::Program& program, program::Shorter played, const Folding& folding,
         const Prices& prices, int iterations, Repeats repeats)
      : folding_(folding),
        iterations_(iterations),
        lag_(program.lag),
        played_(std::move(played)),
        flows_(folding),
        slowdown_(to_millionths(folding.compute_slowdown)),
        kernels_(folding.actors.size()),
        instances_(folding) {
    for (const program::Sequence& sequence : played_.sequences)
      sequences_.push_back(
          flatten(program, sequence, prices, {slowdown_, folding.serial, folding.pass}));
    for (const Actor& actor : folding.actors)
      actors_.emplace_back(sequences_[actor.sequence], iterations, lag_, folding.launch_queue);
    if (played_.count > 0) repetition_.emplace(played_, folding, actors_);
    if (repeats == Repeats::left_out && lag_ == 0) rounds_.emplace(actors_);
  }

  /// Empty where a shorter program does not repeat what it lacks.
  std::optional<Timeline> run() {
    for (std::size_t a = 0; a < actors_.size(); ++a) advance(static_cast<int>(a));
    for (Instant now{0};;) {
      if (repetition_ && repetition_->came_to_turn(actors_)) look_for_repetition(now);
      if (repetition_ && repetition_->missed()) return std::nullopt;
      if (rounds_ && rounds_->came_to_checkpoint(actors_) && copy_rounds_if_they_repeat(now)) break;
      const Instant flow = std::min(flows_.next_end(), starts_.when_next());
      now = slowdown_ == 0 ? flow : std::min(flow, next_of_kernels());
      if (now == never) {
        rounds_.reset();
        break;
      }
      if (flow == now) change_flows(now);
      if (slowdown_ > 0) change_kernels(now);
      while (!resumed_.empty()) {
        advance(resumed_.front());
        resumed_.pop_front();
      }
    }
    if (repetition_ && repetition_->rounds() < iterations_) return std::nullopt;
    if (!rounds_) refuse_full_queues();
    return timeline();
  }

 private:
  void look_for_repetition(Instant now) {
    if (std::optional<Snapshot> snapshot = snapshot_at(now, &PlayedActor::place_in_loop))
      repetition_->look(std::move(*snapshot), actors_);
  }

  /// If this round is a copy of the one before, gives it and the next one their times. False also
  /// in the last round, which no other follows.
  bool copy_rounds_if_they_repeat(Instant now) {
    const int round = rounds_->round();
    if (round + 2 > iterations_) return false;
    std::optional<Snapshot> snapshot = snapshot_at(now, &PlayedActor::place_in_round);
    if (!snapshot) return false;
    const std::optional<Ticks> period = rounds_->look(std::move(*snapshot), actors_);
    if (!period) return false;
    const Instant a_period_ago = now + -1 * *period;
    if (repetition_ && !repetition_->goes_on_from(a_period_ago)) return false;
    // What would be too long if all rounds were simulated is refused here, too.
    static_cast<void>(now + (iterations_ - round) * *period);
    for (PlayedActor& actor : actors_) actor.repeat(round, *period);
    iterations_ = round + 2;
    if (repetition_) repetition_->repeat(iterations_, *period);
    return true;
  }

  using PlaceOf = std::optional<PlayedActor::Place> (PlayedActor::*)() const;

  std::optional<Snapshot> snapshot_at(Instant now, PlaceOf place_of) {
    Snapshot snapshot{.state = RelativeState(now), .places = {}};
    for (PlayedActor& actor : actors_) {
      const auto place = (actor.*place_of)();
      if (!place || !actor.write(snapshot.state, *place)) return std::nullopt;
      snapshot.places.push_back(*place);
    }
    const std::vector<int>& open = instances_.open();
    instances_.write(snapshot.state);
    flows_.write(snapshot.state, open);
    kernels_.write(snapshot.state);
    starts_.write(snapshot.state, open);
    slowing_.write(snapshot.state, open);
    return snapshot;
  }

  /// Ends and begins flows.
  void change_flows(Instant now) {
    for (const int instance : flows_.end_at(now)) end(instance, now);
    while (starts_.when_next() == now) {
      const int instance = starts_.take_next();
      const CollectiveInstance& one = instances_[instance];
      flows_.begin(one.flow, instance, one.collective->payload);
    }
    flows_.share(now);
  }

  [[nodiscard]] Instant next_of_kernels() const {
    return std::min(slowing_.when_next(), kernels_.next_end());
  }

  /// Slows down the kernels of collectives that begin, and ends kernels.
  void change_kernels(Instant now) {
    while (slowing_.when_next() == now) {
      for (const Arrival& arrival : instances_[slowing_.take_next()].arrivals)
        kernels_.begin_communication(arrival.actor, now);
    }
    while (const auto kernel = kernels_.end_at(now)) {
      finish_kernel(*kernel);
      resumed_.push_back(kernel->actor);
    }
  }

  /// Computes everything about an actor that does not depend on an unfinished collective. Without
  /// one, nothing slows an actor's kernels down before it arrives at the next: the one that ends
  /// first does so, and perhaps lets another task begin.
  void advance(int actor) {
    step_all(actor);
    if (slowdown_ == 0) return;
    while (actors_[actor].collectives == 0 && kernels_.any(actor)) {
      finish_kernel(kernels_.end_next(actor));
      step_all(actor);
    }
    kernels_.schedule(actor);
  }

  void step_all(int actor) {
    const auto queues = static_cast<int>(actors_[actor].sequence().queues.size());
    for (bool moved = true; moved;) {
      moved = actors_[actor].launch();
      for (int queue = 0; queue < queues; ++queue) {
        while (step(actor, queue)) moved = true;
      }
    }
  }

  /// Runs the next task of a queue, if everything before it is known.
  bool step(int actor, int queue) {
    PlayedActor& played = actors_[actor];
    const auto next = played.next(queue);
    if (!next) return false;
    if (next->ready == never_ran) return true;
    const FlatPrice& price = played.sequence().price(next->task);
    if (price.collective != nullptr) {
      played.hold(queue);
      ++played.collectives;
      arrive(*next, {actor, queue});
      return false;
    }
    const Instant launched = next->launched + price.host;
    if (price.slowdown > 0) {
      played.hold(queue);
      kernels_.begin(actor,
                     {.queue = queue,
                      .all = {next->ready, price.device, price.slowdown},
                      .last = {std::max(next->ready, launched), price.last_kernel, slowdown_}});
      return false;
    }
    played.finish(queue, next->ready,
                  std::max(next->ready + price.device, launched + price.last_kernel));
    return true;
  }

  void finish_kernel(const SlowedKernels::Ended& ended) {
    actors_[ended.actor].finish(ended.kernel.queue, ended.kernel.all.from(), ended.end);
  }

  void arrive(const PlayedActor::Next& next, const Arrival& arrival) {
    const FlatSequence& sequence = actors_[arrival.actor].sequence();
    const FlatPrice& price = sequence.price(next.task);
    const program::Collective& collective = *price.collective;
    const int communicator_class =
        folding_.actors[arrival.actor].communicator_classes[collective.group];
    const std::size_t k =
        static_cast<std::size_t>(next.round - price.lag) * sequence.collectives[collective.group] +
        sequence.ordinal(next.task);
    const auto number = instances_.arrive(communicator_class, k, collective, arrival, next.ready);
    if (!number) return;
    const CollectiveInstance& instance = instances_[*number];
    if (slows(collective)) slowing_.insert({instance.last_arrival, *number});
    starts_.insert({instance.last_arrival + folding_.flows[instance.flow].latency, *number});
  }

  [[nodiscard]] bool slows(const program::Collective& collective) const {
    return slowdown_ > 0 && cost::takes_multiprocessors(collective.kind);
  }

  void end(int number, Instant now) {
    const CollectiveInstance& instance = instances_[number];
    for (const Arrival& arrival : instance.arrivals) {
      PlayedActor& actor = actors_[arrival.actor];
      --actor.collectives;
      if (slows(*instance.collective)) kernels_.end_communication(arrival.actor, now);
      actor.finish(arrival.queue, instance.last_arrival, now);
      resumed_.push_back(arrival.actor);
    }
    instances_.end(number);
  }

  /// At the end: hosts that still stand still wait for each other.
  void refuse_full_queues() const {
    if (std::ranges::none_of(actors_, [](const PlayedActor& actor) { return actor.host().full(); }))
      return;
    throw InputError("", "/profile/launch_queue",
                     "room for the launches by which devices are ahead of each other",
                     std::to_string(folding_.launch_queue));
  }

  Timeline timeline() {
    Timeline result;
    result.actors = folding_.actors;
    result.actor_of = folding_.actor_of;
    result.lag = lag_;
    result.simulated_rounds = rounds_ ? rounds_->round() : iterations_ + lag_;
    if (repetition_) result.left_out = repetition_->take();
    result.iteration_ends.assign(iterations_, Instant{0});
    for (PlayedActor& actor : actors_) {
      actor.put_off(result.iteration_ends);
      result.times.push_back(actor.take_times());
    }
    for (FlatSequence& sequence : sequences_) {
      result.tasks.push_back(std::move(sequence.tasks));
      result.queues.push_back(std::move(sequence.queues));
    }
    for (Instant& end : result.iteration_ends) end = result.in_full(end);
    result.played = std::move(played_);
    return result;
  }

  const Folding& folding_;
  int iterations_;
  int lag_;
  program::Shorter played_;
  ActiveFlows flows_;
  int slowdown_;  ///< millionths of a kernel's speed
  SlowedKernels kernels_;
  std::vector<FlatSequence> sequences_;
  std::vector<PlayedActor> actors_;
  CollectiveInstances instances_;
  Starts starts_;   ///< of flows
  Starts slowing_;  ///< of collectives that slow kernels down
  std::deque<int> resumed_;
  std::optional<Repetition> repetition_;  ///< of a shorter program
  std::optional<RepeatedRounds> rounds_;  ///< looked for; at the end: they repeat
};

}  // namespace

std::optional<Timeline> run_shorter(const program::Program& program, program::Shorter shorter,
                                    const Folding& folding, const Prices& prices, int iterations,
                                    Repeats rounds) {
  return Engine(program, std::move(shorter), folding, prices, iterations, rounds).run();
}

Timeline run(const program::Program& program, const Folding& folding, const Prices& prices,
             int iterations, Repeats repeats) {
  program::Shorter whole;
  whole.sequences = program.sequences;
  return *Engine(program, std::move(whole), folding, prices, iterations, repeats).run();
}

}  // namespace stratagem::sim
