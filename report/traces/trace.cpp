// Tasks as slices, messages as arrows, memory and links as counters.
#include "report/traces/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/input_error.hpp"
#include "base/json_writer.hpp"
#include "report/traces/events.hpp"
#include "report/traces/measured_round.hpp"
#include "report/traces/messages.hpp"
#include "sim/metrics.hpp"
#include "study/simulate.hpp"

namespace stratagem::report {
namespace {

double microseconds(sim::Instant from, sim::Instant to) {
  return static_cast<double>((to - from).count) / 1e6;
}

/// As it stands behind a name in JSON: "bytes":1.
std::string member(std::string_view name, double value) {
  return fmt::format(R"("{}":{})", name, value);
}

class Writer {
 public:
  Writer(const program::Program& program, const sim::Timeline& timeline, const TraceOf& of,
         const TraceContents& contents)
      : program_(program),
        timeline_(timeline),
        contents_(contents),
        is_shown_(shown_actors(timeline, contents.devices)),
        events_(described(of)) {}

  std::string write() {
    for (std::size_t a = 0; a < timeline_.actors.size(); ++a) {
      if (!is_shown_[a]) continue;
      events_.process(a, name_of(a));
      name_rows(a);
      write_tasks(a);
      write_memory(a, sim::memory_steps(program_, timeline_, a, static_cast<int>(round_) + 1));
      if (!contents_.links.empty()) write_links(a, contents_.links[a]);
    }
    write_messages();
    for (std::size_t h = 0; h < contents_.hosts.size(); ++h) {
      const sim::HostMemory& host = contents_.hosts[h];
      const std::size_t id = timeline_.actors.size() + h;
      events_.process(id, and_like_it("memory of server", host.server, host.count));
      write_memory(id, host.steps);
    }
    write_iteration(timeline_.actors.size() + contents_.hosts.size());
    return events_.text();
  }

 private:
  [[nodiscard]] Json described(const TraceOf& of) const {
    Json processes = Json::array(), peaks = Json::array();
    for (const int actor : timeline_.actor_of) processes.push(is_shown_[actor] ? actor : -1);
    for (const Bytes peak : of.peaks) peaks.push(peak.value);
    Json json = Json::object();
    json.set("schema", 1).set("run", of.run).set("provenance", of.provenance);
    json.set("iteration_time_s", of.iteration.value).set("peak_live_bytes", peaks);
    json.set("process_of_device", processes);
    return json;
  }

  static std::string and_like_it(const char* what, int first, int count) {
    if (count == 1) return fmt::format("{} {}", what, first);
    return fmt::format("{} {} and {} like it", what, first, count - 1);
  }

  /// Names the devices that were asked for, where some were.
  [[nodiscard]] std::string name_of(std::size_t a) const {
    const sim::Actor& actor = timeline_.actors[a];
    std::vector<int> asked;
    std::ranges::copy_if(contents_.devices, std::back_inserter(asked), [&](int device) {
      return timeline_.actor_of[device] == static_cast<int>(a);
    });
    if (asked.empty()) return and_like_it("device", actor.device, actor.multiplicity);
    return fmt::format("device{} {}", asked.size() == 1 ? "" : "s", fmt::join(asked, ", "));
  }

  void name_rows(std::size_t a) {
    const std::vector<sim::Queue>& queues = timeline_.queues[timeline_.actors[a].sequence];
    for (std::size_t q = 0; q < queues.size(); ++q) {
      const std::string stream(program::stream_names[static_cast<std::size_t>(queues[q].stream)]);
      events_.row(
          a, q,
          queues[q].group < 0 ? stream : fmt::format("{}, group {}", stream, queues[q].group));
    }
  }

  void write_tasks(std::size_t a) {
    const sim::FlatTasks& tasks = timeline_.tasks[timeline_.actors[a].sequence];
    const program::Sequence& sequence = program_.sequences[timeline_.actors[a].sequence];
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const program::Block& block = program_.blocks[tasks[i].block];
      const program::Task& task = block.tasks[tasks[i].task];
      const program::Call call = sequence.calls[tasks[i].call];
      events_.slice(
          begin_of(a, i), microseconds(begins(a)[i], timeline_.times[a].ends[round_][i]), task.name,
          fmt::format(R"("task":{},"block":{},"segment":{},"cell":"{}",{})", i,
                      Json(block.name).text(), call.segment, to_text(call.cell), work(task)));
    }
  }

  [[nodiscard]] const std::vector<sim::Instant>& begins(std::size_t a) const {
    return timeline_.times[a].begins[round_];
  }

  [[nodiscard]] TracePlace begin_of(std::size_t a, std::size_t i) const {
    const int queue = timeline_.tasks[timeline_.actors[a].sequence][i].queue;
    return {a, static_cast<std::size_t>(queue), microseconds(zero_, begins(a)[i])};
  }

  static std::string work(const program::Task& task) {
    if (const auto* kernel = std::get_if<cost::Kernel>(&task.work)) {
      return fmt::format(R"("kind":"{}","flops":{},"bytes":{},"launches":{})",
                         cost::to_text(kernel->kind), kernel->flops.value, kernel->traffic.value,
                         kernel->launches);
    }
    const auto& collective = std::get<program::Collective>(task.work);
    return fmt::format(R"("kind":"{}","bytes":{})", cost::to_text(collective.kind),
                       collective.payload.value);
  }

  void write_messages() {
    for (const Message& message : messages(program_, timeline_)) {
      const ActorTask& from = message.sent;
      const ActorTask& to = message.received;
      if (is_shown_[from.actor] && is_shown_[to.actor])
        events_.arrow("message", begin_of(from.actor, from.task), begin_of(to.actor, to.task));
    }
  }

  /// From the last step before the round on.
  void write_memory(std::size_t a, const std::vector<sim::MemoryStep>& steps) {
    const auto later = std::ranges::upper_bound(steps, zero_, {}, &sim::MemoryStep::when);
    const auto first = later == steps.begin() ? later : std::prev(later);
    for (auto step = first; step != steps.end(); ++step) {
      std::string values = member("all", sim::sum(step->live).value);
      for (std::size_t c = 0; c < step->live.size(); ++c) {
        if (step == first || step->live[c] != std::prev(step)->live[c])
          values += "," + member(program::category_names[c], step->live[c].value);
      }
      events_.counter(a, microseconds(zero_, std::max(zero_, step->when)), "memory", values);
    }
  }

  void write_iteration(std::size_t process) {
    const std::size_t number = timeline_.measured_iteration();
    const sim::Instant begin = iteration_begin(timeline_), end = timeline_.iteration_ends[number];
    events_.process(process, "run");
    events_.row(process, 0, "iterations");
    events_.slice({process, 0, microseconds(zero_, begin)}, microseconds(begin, end), "iteration",
                  fmt::format(R"("number":{})", number));
  }

  void write_links(std::size_t a, const LinkRates& links) {
    for (std::size_t s = 0; s < links.steps.size(); ++s) {
      std::string values;
      for (std::size_t l = 0; l < links.links.size(); ++l) {
        const BytesPerSecond rate = links.steps[s].rates[l];
        if (s == 0 || rate != links.steps[s - 1].rates[l])
          values += (values.empty() ? "" : ",") + member(links.links[l], rate.value / 1e9);
      }
      if (!values.empty())
        events_.counter(a, microseconds(zero_, links.steps[s].when), "links", values);
    }
  }

  const program::Program& program_;
  const sim::Timeline& timeline_;
  const TraceContents& contents_;
  std::size_t round_ = measured_round(timeline_);
  sim::Instant zero_ = std::min(first_begin(timeline_), iteration_begin(timeline_));
  std::vector<bool> is_shown_;  ///< by actor
  TraceEvents events_;
};

}  // namespace

std::vector<bool> shown_actors(const sim::Timeline& timeline, const std::vector<int>& devices) {
  std::vector<bool> by_actor(timeline.actors.size(), devices.empty());
  for (const int device : devices) by_actor[timeline.actor_of[device]] = true;
  return by_actor;
}

TraceOf trace_of(const std::string& run, const study::Simulated& simulated) {
  TraceOf of{.run = run, .iteration = simulated.outcome.metrics->iteration_time};
  for (std::size_t actor = 0; actor < simulated.timeline.actors.size(); ++actor)
    of.peaks.push_back(sim::memory_peak(simulated.program, simulated.timeline, actor).total);
  return of;
}

std::string chrome_trace(const program::Program& program, const sim::Timeline& timeline,
                         const TraceOf& of, const TraceContents& contents) {
  expects(timeline.left_out.empty(), "a trace has all turns of all loops");
  return Writer(program, timeline, of, contents).write();
}

}  // namespace stratagem::report
