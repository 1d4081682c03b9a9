// The event loop: actors run ahead until they meet an unfinished collective, then the next flow
// event comes.
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

namespace stratagem::sim {
namespace {

constexpr Instant unknown{-1};

/// Where one stream of one actor stands.
struct StreamState {
  int iteration = 0;
  std::size_t next = 0;  ///< in the queue of its stream
  Instant tail;          ///< end of the task before
  bool in_collective = false;
};

struct ActorState {
  const FlatSequence* sequence = nullptr;
  std::array<StreamState, stream_count> streams;
  std::vector<Instant>
      host;  ///< by synchronisation over all iterations: when the host went on; the first is 0
};

/// A rank's part in a collective.
struct Arrival {
  int actor;
  int stream;
  int iteration;
  int task;
};

/// The k-th collective of a meeting.
struct Gathering {
  const strategies::Collective* collective = nullptr;
  int meeting = 0;
  Instant last_arrival;
  std::vector<Arrival> arrivals;
};

class Engine {
 public:
  Engine(const strategies::Program& program, const Cast& cast, const Prices& prices, int iterations)
      : cast_(cast), iterations_(iterations), flows_(cast), gatherings_of_(cast.meetings.size()) {
    for (const strategies::Sequence& sequence : program.sequences) {
      sequences_.push_back(flatten(program, sequence, prices));
    }
    for (std::size_t f = 0; f < cast.flows.size(); ++f) {
      flow_of_[{cast.flows[f].meeting, cast.flows[f].kind}] = static_cast<int>(f);
    }
    for (const Actor& actor : cast.actors) {
      const FlatSequence& sequence = sequences_[actor.sequence];
      actors_.push_back({.sequence = &sequence, .streams = {}, .host = {Instant{0}}});
      if (sequence.host_spans.size() ==
          1) {  // nothing synchronises: the host's times are known from the start
        std::vector<Instant>& host = actors_.back().host;
        for (int i = 0; i < iterations; ++i)
          host.push_back(host.back() + sequence.host_spans.front());
      }
      times_.push_back({});
      for (auto* times : {&times_.back().begins, &times_.back().ends}) {
        times->assign(iterations, std::vector<Instant>(sequence.tasks.size(), unknown));
      }
    }
  }

  Timeline run() {
    for (std::size_t a = 0; a < actors_.size(); ++a) advance(static_cast<int>(a));
    while (true) {
      const Instant now = std::min(flows_.next_end(), starts_.empty() ? never : starts_.top().when);
      if (now == never) break;
      for (const int gathering : flows_.end_at(now)) end(gathering, now);
      while (!starts_.empty() && starts_.top().when == now) {
        const int gathering = starts_.top().gathering;
        starts_.pop();
        const Gathering& g = gatherings_[gathering];
        flows_.begin(flow_of_.at({g.meeting, g.collective->kind}), gathering,
                     g.collective->payload);
      }
      flows_.share(now);
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
    int gathering;  ///< numbered in the order of creation: ties are settled by it
    friend auto operator<=>(const Start&, const Start&) = default;
  };

  /// Computes everything about an actor that does not depend on an unfinished collective.
  void advance(int actor) {
    ActorState& state = actors_[actor];
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < stream_count; ++s) {
        while (step(actor, state, static_cast<int>(s))) moved = true;
      }
    }
  }

  /// Runs the next task of a stream, if everything before it is known.
  bool step(int actor, ActorState& state, int stream) {
    StreamState& line = state.streams[stream];
    const std::vector<int>& queue = state.sequence->queues[stream];
    if (line.in_collective || queue.empty() || line.iteration == iterations_) return false;
    const int task = queue[line.next];
    const Instant ready = ready_time(actor, state, line, task);
    if (ready == unknown) return false;
    const FlatPrice& price = state.sequence->prices[task];
    if (price.collective != nullptr) {
      line.in_collective = true;
      arrive(price, {actor, stream, line.iteration, task}, ready);
      return false;
    }
    const std::size_t synchronisation =
        host_index(*state.sequence, line.iteration, price.synchronisations);
    const Instant launched = state.host[synchronisation] + price.finished;
    finish_task(actor, stream, task, ready, std::max(ready + price.device, launched));
    return true;
  }

  Instant ready_time(int actor, const ActorState& state, const StreamState& line, int task) const {
    const FlatSequence& sequence = *state.sequence;
    const FlatPrice& price = sequence.prices[task];
    const std::size_t synchronisation =
        host_index(sequence, line.iteration, price.synchronisations);
    if (synchronisation >= state.host.size()) return unknown;
    Instant ready = std::max(state.host[synchronisation] + price.launched, line.tail);
    const std::vector<Instant>& ends = times_[actor].ends[line.iteration];
    for (int w = price.first_wait; w < sequence.prices[task + 1].first_wait; ++w) {
      const Instant end = ends[sequence.waits[w]];
      if (end == unknown) return unknown;
      ready = std::max(ready, end);
    }
    return ready;
  }

  static std::size_t host_index(const FlatSequence& sequence, int iteration, int synchronisations) {
    return iteration * sequence.host_spans.size() + synchronisations;
  }

  void finish_task(int actor, int stream, int task, Instant begin, Instant end) {
    ActorState& state = actors_[actor];
    StreamState& line = state.streams[stream];
    times_[actor].begins[line.iteration][task] = begin;
    times_[actor].ends[line.iteration][task] = end;
    line.tail = end;
    if (++line.next == state.sequence->queues[stream].size()) {
      line.next = 0;
      ++line.iteration;
    }
    if (state.sequence->prices[task].synchronises) go_on(state, end);
  }

  /// The host waited for a task that ended at `end`, and launches on from there.
  void go_on(ActorState& state, Instant end) {
    const std::vector<Ticks>& spans = state.sequence->host_spans;
    const std::size_t span = (state.host.size() - 1) % spans.size();
    state.host.push_back(std::max(state.host.back() + spans[span], end));
    const bool last_of_iteration = state.host.size() % spans.size() == 0;
    if (last_of_iteration) state.host.push_back(state.host.back() + spans.back());
  }

  void arrive(const FlatPrice& price, const Arrival& arrival, Instant when) {
    const strategies::Collective& collective = *price.collective;
    const int meeting = cast_.actors[arrival.actor].meetings[collective.group];
    const int per_iteration = actors_[arrival.actor].sequence->collectives[collective.group];
    const std::size_t k =
        static_cast<std::size_t>(arrival.iteration) * per_iteration + price.ordinal;
    std::vector<int>& known = gatherings_of_[meeting];
    if (k >= known.size()) known.resize(k + 1, -1);
    if (known[k] < 0) {
      known[k] = static_cast<int>(gatherings_.size());
      gatherings_.push_back({&collective, meeting, when, {}});
    }
    Gathering& gathering = gatherings_[known[k]];
    expects(gathering.collective->kind == collective.kind &&
                gathering.collective->payload == collective.payload,
            "the k-th collectives of all ranks of a communicator are the same");
    gathering.last_arrival = std::max(gathering.last_arrival, when);
    gathering.arrivals.push_back(arrival);
    if (gathering.arrivals.size() < cast_.meetings[meeting].actors.size()) return;
    const Ticks latency = cast_.flows[flow_of_.at({meeting, collective.kind})].latency;
    starts_.push({gathering.last_arrival + latency, known[k]});
  }

  void end(int id, Instant now) {
    Gathering& gathering = gatherings_[id];
    for (const Arrival& arrival : gathering.arrivals) {
      actors_[arrival.actor].streams[arrival.stream].in_collective = false;
      finish_task(arrival.actor, arrival.stream, arrival.task, gathering.last_arrival, now);
      resumed_.push_back(arrival.actor);
    }
    gathering.arrivals = {};
  }

  Timeline timeline() {
    Timeline result;
    for (FlatSequence& sequence : sequences_) result.tasks.push_back(std::move(sequence.tasks));
    result.actors = cast_.actors;
    for (int i = 0; i < iterations_; ++i) {
      Instant last{0};
      for (const ActorTimes& times : times_) {
        for (const Instant end : times.ends[i]) {
          expects(end != unknown, "no rank waits for ever");
          last = std::max(last, end);
        }
      }
      result.iteration_ends.push_back(last);
    }
    result.times = std::move(times_);
    return result;
  }

  const Cast& cast_;
  int iterations_;
  ActiveFlows flows_;
  std::vector<FlatSequence> sequences_;
  std::vector<ActorState> actors_;
  std::vector<ActorTimes> times_;
  std::vector<Gathering> gatherings_;
  std::vector<std::vector<int>> gatherings_of_;  ///< by meeting
  std::map<std::pair<int, cost::CollectiveKind>, int> flow_of_;
  std::priority_queue<Start, std::vector<Start>, std::greater<>> starts_;
  std::deque<int> resumed_;
};

}  // namespace

Timeline run(const strategies::Program& program, const Cast& cast, const Prices& prices,
             int iterations) {
  return Engine(program, cast, prices, iterations).run();
}

Timeline run_until_steady(const strategies::Program& program, const Cast& cast,
                          const Prices& prices) {
  for (int iterations = 3;; iterations *= 2) {
    Timeline timeline = run(program, cast, prices, iterations);
    const std::vector<Instant>& ends = timeline.iteration_ends;
    const std::size_t n = ends.size();
    timeline.steady = (ends[n - 1] - ends[n - 2]).count == (ends[n - 2] - ends[n - 3]).count;
    if (timeline.steady || iterations > 8) return timeline;
  }
}

}  // namespace stratagem::sim
