// Sums tasks up to cells and memory to a few hundred instants, so that a page stays small.
#include "report/html/picture.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "base/input_error.hpp"
#include "report/explain.hpp"
#include "report/groups.hpp"
#include "sim/metrics.hpp"
#include "study/plan_of.hpp"

namespace stratagem::report {
namespace {

using sim::Instant;

/// What a bar stands for, as web/timeline.js colours it.
enum class BarKind : std::uint8_t { forward, backward, weight, step };

struct Bar {
  BarKind kind = BarKind::forward;
  int stage = 0;
  int micro_batch = 0;
  Instant begin;
  Instant end;
};

/// The most bars of one run. Of a run with more, its last device classes have none.
constexpr std::size_t most_bars = 100'000;
/// Instants at which a device's memory is shown.
constexpr int memory_instants = 240;
/// Times of bars are whole numbers of so many parts of an iteration.
constexpr double ticks_per_iteration = 1e7;

bool is_optimizer(const program::Task& task) {
  const auto* kernel = std::get_if<cost::Kernel>(&task.work);
  return kernel != nullptr && kernel->kind == cost::KernelKind::optimizer;
}

/// What one actor computes in the last iteration, by cell; what is outside of cells, by stage.
class ActorBars {
 public:
  ActorBars(const program::Program& program, const sim::Timeline& timeline, std::size_t actor)
      : program_(program), timeline_(timeline), sequence_(timeline.actors[actor].sequence) {
    const std::size_t last = timeline.iteration_ends.size() - 1;
    const std::vector<Instant>& begins = timeline.times[actor].begins[last];
    const std::vector<Instant>& ends = timeline.times[actor].ends[last];
    const sim::FlatTasks& tasks = timeline.tasks[sequence_];
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (begins[i] == sim::never_ran || tasks[i].stream != program::Stream::compute) continue;
      add(tasks[i], begins[i], ends[i]);
    }
  }

  [[nodiscard]] std::vector<Bar> in_order() const {
    std::vector<Bar> bars;
    for (const auto& [key, bar] : bars_) bars.push_back(bar);
    std::ranges::stable_sort(bars, {}, &Bar::begin);
    return bars;
  }
  /// Of all kernels of optimizers.
  [[nodiscard]] Seconds optimizer() const { return optimizer_; }

 private:
  void add(const sim::FlatTask& flat, Instant begin, Instant end) {
    const program::Call call = program_.sequences[sequence_].calls[flat.call];
    const bool optimizer = is_optimizer(program_.blocks[flat.block].tasks[flat.task]);
    if (optimizer) optimizer_ += to_seconds(end - begin);
    const bool step = optimizer || call.segment < 0;
    const placement::Cell& cell = call.cell;
    const BarKind kind = step ? BarKind::step : static_cast<BarKind>(cell.pass);
    const auto key = step ? Key{kind, cell.stage, 0, 0, 0}
                          : Key{kind, cell.stage, cell.micro_batch, cell.slice, cell.repeat};
    const auto [known, added] =
        bars_.try_emplace(key, Bar{kind, cell.stage, step ? 0 : cell.micro_batch, begin, end});
    known->second.begin = std::min(known->second.begin, begin);
    known->second.end = std::max(known->second.end, end);
  }

  using Key = std::tuple<BarKind, int, int, int, int>;
  const program::Program& program_;
  const sim::Timeline& timeline_;
  int sequence_;
  std::map<Key, Bar> bars_;
  Seconds optimizer_;
};

/// Of every bar five whole numbers in a row: kind, stage, micro-batch, begin and length in ticks.
Json numbers(const std::vector<Bar>& bars, Instant zero, Seconds tick) {
  Json list = Json::array();
  const auto ticks = [&](sim::Ticks time) {
    return static_cast<std::int64_t>(std::llround(to_seconds(time) / tick));
  };
  for (const Bar& bar : bars) {
    list.push(static_cast<int>(bar.kind)).push(bar.stage).push(bar.micro_batch);
    list.push(ticks(bar.begin - zero)).push(ticks(bar.end - bar.begin));
  }
  return list;
}

/// The fullest instant of each of many equal spans of time: seconds, and bytes by category.
Json memory(const std::vector<sim::MemoryStep>& steps) {
  Json at = Json::array(), bytes = Json::array();
  if (steps.empty()) return Json::object().set("at_s", at).set("bytes", bytes);
  const double whole = std::max(1.0, static_cast<double>(steps.back().when.picoseconds));
  const auto span = [&](const sim::MemoryStep& step) {
    const double part = static_cast<double>(step.when.picoseconds) / whole;
    return std::min(memory_instants - 1, static_cast<int>(part * memory_instants));
  };
  for (std::size_t i = 0; i < steps.size();) {
    std::size_t fullest = i, next = i;
    for (; next < steps.size() && span(steps[next]) == span(steps[i]); ++next) {
      if (sim::sum(steps[next].live) > sim::sum(steps[fullest].live)) fullest = next;
    }
    at.push(to_seconds(steps[fullest].when - Instant{0}).value);
    Json live = Json::array();
    for (const Bytes category : steps[fullest].live) live.push(category.value);
    bytes.push(live);
    i = next;
  }
  return Json::object().set("at_s", at).set("bytes", bytes);
}

Json categories() {
  Json names = Json::array();
  for (const std::string_view name : program::category_names) names.push(name);
  return names;
}

/// The devices of a run, its seconds in optimizers (mean over devices), and how many classes of
/// devices have no bars.
void add_devices(Json& json, const study::Simulated& simulated, Seconds tick) {
  const sim::Timeline& timeline = simulated.timeline;
  std::vector<ActorBars> all;
  Instant zero = sim::never;
  double optimizer = 0, devices = 0;
  for (std::size_t a = 0; a < timeline.actors.size(); ++a) {
    all.emplace_back(simulated.program, timeline, a);
    for (const Bar& bar : all.back().in_order()) zero = std::min(zero, bar.begin);
    const int count = timeline.actors[a].multiplicity;
    optimizer += count * all.back().optimizer().value;
    devices += count;
  }
  Json list = Json::array();
  std::size_t shown = 0;
  int without_bars = 0;
  for (std::size_t a = 0; a < timeline.actors.size(); ++a) {
    std::vector<Bar> bars = all[a].in_order();
    shown += bars.size();
    if (shown > most_bars) {
      bars.clear();
      ++without_bars;
    }
    list.push(Json::object()
                  .set("device", timeline.actors[a].device)
                  .set("count", timeline.actors[a].multiplicity)
                  .set("bars", numbers(bars, zero, tick))
                  .set("memory", memory(sim::memory_steps(simulated.program, timeline, a))));
  }
  json.set("optimizer_s", optimizer / devices)
      .set("without_bars", without_bars)
      .set("categories", categories())
      .set("devices", list);
}

/// The links of the cluster in the colours of the groups that use them, as SVG.
std::string links(const study::Run& run, const program::Program& program) {
  cost::Collectives collectives(run.cluster, run.profile.collective, run.stack.nccl);
  return groups_svg(group_links(program, collectives), run.cluster);
}

}  // namespace

Json picture(const study::Run& run, const study::Simulated& simulated) {
  Json json = Json::object().set("group", run.compared.group);
  if (!simulated.outcome.metrics) return json;
  expects(simulated.timeline.left_out.empty(), "a picture has all turns of all loops");
  const Seconds iteration = simulated.outcome.metrics->iteration_time;
  const Seconds tick = iteration / ticks_per_iteration;
  json.set("limit_bytes", run.profile.memory.size.value.value)
      .set("tick_s", tick.value)
      .set("plan", explain(run, study::plan_of(run)))
      .set("links", links(run, simulated.program));
  add_devices(json, simulated, tick);
  return json;
}

}  // namespace stratagem::report
