// Writes trace events one by one, since timelines are long.
#include "report/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/input_error.hpp"
#include "base/json_writer.hpp"
#include "report/measured_round.hpp"
#include "sim/metrics.hpp"
#include "study/simulate.hpp"

namespace stratagem::report {
namespace {

double microseconds(sim::Instant from, sim::Instant to) {
  return static_cast<double>((to - from).count) / 1e6;
}

class Writer {
 public:
  Writer(const program::Program& program, const sim::Timeline& timeline)
      : program_(program), timeline_(timeline) {}

  std::string write(const TraceOf& of, const std::vector<sim::HostMemory>& hosts) {
    text_ = "{\"displayTimeUnit\":\"ms\",\"otherData\":" + described(of).text() +
            ",\"traceEvents\":[\n";
    for (std::size_t a = 0; a < timeline_.actors.size(); ++a) {
      name_rows(a);
      write_tasks(a);
      write_memory(a, sim::memory_steps(program_, timeline_, a));
    }
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      const std::size_t id = timeline_.actors.size() + h;
      name_process(id, "memory of server", hosts[h].server, hosts[h].count);
      write_memory(id, hosts[h].steps);
    }
    text_ += "\n]}\n";
    return std::move(text_);
  }

 private:
  [[nodiscard]] Json described(const TraceOf& of) const {
    Json processes = Json::array(), peaks = Json::array();
    for (const int actor : timeline_.actor_of) processes.push(actor);
    for (const Bytes peak : of.peaks) peaks.push(peak.value);
    Json json = Json::object();
    json.set("schema", 1).set("run", of.run).set("provenance", of.provenance);
    json.set("iteration_time_s", of.iteration.value).set("peak_live_bytes", peaks);
    json.set("process_of_device", processes);
    return json;
  }

  void event(const std::string& line) {
    text_ += (first_ ? "" : ",\n") + line;
    first_ = false;
  }

  void name_process(std::size_t id, const char* what, int first, int count) {
    const std::string name = count == 1
                                 ? fmt::format("{} {}", what, first)
                                 : fmt::format("{} {} and {} like it", what, first, count - 1);
    event(fmt::format(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":"{}"}}}})", id,
                      name));
  }

  void name_rows(std::size_t a) {
    const sim::Actor& actor = timeline_.actors[a];
    name_process(a, "device", actor.device, actor.multiplicity);
    const std::vector<sim::Queue>& queues = timeline_.queues[actor.sequence];
    for (std::size_t q = 0; q < queues.size(); ++q) {
      const std::string_view stream =
          program::stream_names[static_cast<std::size_t>(queues[q].stream)];
      event(fmt::format(
          R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"{}"}}}})", a, q,
          queues[q].group < 0 ? std::string(stream)
                              : fmt::format("{}, group {}", stream, queues[q].group)));
    }
  }

  void write_tasks(std::size_t a) {
    const sim::FlatTasks& tasks = timeline_.tasks[timeline_.actors[a].sequence];
    const program::Sequence& sequence = program_.sequences[timeline_.actors[a].sequence];
    const std::vector<sim::Instant>& begins = timeline_.times[a].begins[round_];
    const std::vector<sim::Instant>& ends = timeline_.times[a].ends[round_];
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const program::Block& block = program_.blocks[tasks[i].block];
      const program::Task& task = block.tasks[tasks[i].task];
      const program::Call call = sequence.calls[tasks[i].call];
      event(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{:.6f},"dur":{:.6f},"name":{},)"
                        R"("args":{{"task":{},"block":{},"segment":{},"cell":"{}",{}}}}})",
                        a, tasks[i].queue, microseconds(zero_, begins[i]),
                        microseconds(begins[i], ends[i]), Json(task.name).text(), i,
                        Json(block.name).text(), call.segment, to_text(call.cell), work(task)));
    }
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

  void write_memory(std::size_t a, const std::vector<sim::MemoryStep>& steps) {
    for (const sim::MemoryStep& step : steps) {
      std::string values;
      for (std::size_t c = 0; c < step.live.size(); ++c) {
        values += fmt::format(R"({}"{}":{})", c == 0 ? "" : ",", program::category_names[c],
                              step.live[c].value);
      }
      event(fmt::format(R"({{"ph":"C","pid":{},"ts":{:.6f},"name":"memory","args":{{{}}}}})", a,
                        microseconds(sim::Instant{0}, step.when), values));
    }
  }

  const program::Program& program_;
  const sim::Timeline& timeline_;
  std::size_t round_ = measured_round(timeline_);
  sim::Instant zero_ = first_begin(timeline_);
  std::string text_;
  bool first_ = true;
};

}  // namespace

TraceOf trace_of(const std::string& run, const study::Simulated& simulated) {
  TraceOf of{.run = run, .iteration = simulated.outcome.metrics->iteration_time};
  for (std::size_t actor = 0; actor < simulated.timeline.actors.size(); ++actor)
    of.peaks.push_back(sim::memory_peak(simulated.program, simulated.timeline, actor).total);
  return of;
}

std::string chrome_trace(const program::Program& program, const sim::Timeline& timeline,
                         const TraceOf& of, const std::vector<sim::HostMemory>& hosts) {
  expects(timeline.left_out.empty(), "a trace has all turns of all loops");
  return Writer(program, timeline).write(of, hosts);
}

}  // namespace stratagem::report
