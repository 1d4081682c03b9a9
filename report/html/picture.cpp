// Sums tasks up to cells and memory to a few hundred instants, so that a page stays small.
#include "report/html/picture.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "base/input_error.hpp"
#include "report/explain.hpp"
#include "report/groups.hpp"
#include "sim/metrics.hpp"
#include "study/plan_of.hpp"
#include "study/simulate.hpp"

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
/// Times of bars are whole numbers of so many parts of a period.
constexpr double ticks_per_iteration = 1e7;

bool is_optimizer(const program::Task& task) {
  const auto* kernel = std::get_if<cost::Kernel>(&task.work);
  return kernel != nullptr && kernel->kind == cost::KernelKind::optimizer;
}

/// The one in which sim::metrics() measures bubbles.
struct Period {
  Instant from;
  Instant to;
};

Period period_of(const sim::Timeline& timeline) {
  const std::size_t number = timeline.measured_iteration();
  return {timeline.iteration_ends[number - 1], timeline.iteration_ends[number]};
}

/// What one actor computes in a period, by cell; what is outside of cells, as one follows another.
class ActorBars {
 public:
  ActorBars(const program::Program& program, const sim::Timeline& timeline, std::size_t actor,
            const Period& period)
      : program_(program), sequence_(timeline.actors[actor].sequence) {
    const sim::FlatTasks& tasks = timeline.tasks[sequence_];
    const sim::ActorTimes& times = timeline.times[actor];
    for (std::size_t round = 0; round < times.begins.size(); ++round) {
      step_ = nullptr;
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        const Instant begin = times.begins[round][i], end = times.ends[round][i];
        if (begin == sim::never_ran || tasks[i].stream != program::Stream::compute) continue;
        if (end > period.from && begin < period.to)
          add(static_cast<int>(round), tasks[i], std::max(begin, period.from),
              std::min(end, period.to));
      }
    }
  }

  [[nodiscard]] std::vector<Bar> in_order() const {
    std::vector<Bar> bars(steps_.begin(), steps_.end());
    for (const auto& [key, bar] : cells_) bars.push_back(bar);
    std::ranges::stable_sort(bars, {}, &Bar::begin);
    return bars;
  }
  /// Of all kernels of optimizers.
  [[nodiscard]] Seconds optimizer() const { return optimizer_; }

 private:
  void add(int round, const sim::FlatTask& flat, Instant begin, Instant end) {
    const program::Call call = program_.sequences[sequence_].calls[flat.call];
    const bool optimizer = is_optimizer(program_.blocks[flat.block].tasks[flat.task]);
    if (optimizer) optimizer_ += to_seconds(end - begin);
    const placement::Cell& cell = call.cell;
    if (optimizer || call.segment < 0) {
      if (step_ == nullptr || step_->stage != cell.stage)
        step_ = &steps_.emplace_back(Bar{BarKind::step, cell.stage, 0, begin, end});
      step_->end = std::max(step_->end, end);
      return;
    }
    step_ = nullptr;
    Bar& bar = cells_
                   .try_emplace({round, cell}, Bar{static_cast<BarKind>(cell.pass), cell.stage,
                                                   cell.micro_batch, begin, end})
                   .first->second;
    bar.begin = std::min(bar.begin, begin);
    bar.end = std::max(bar.end, end);
  }

  const program::Program& program_;
  int sequence_;
  std::map<std::pair<int, placement::Cell>, Bar> cells_;  ///< by round
  std::deque<Bar> steps_;
  Bar* step_ = nullptr;  ///< to which the next step belongs, if no cell comes between
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
void add_devices(Json& json, const study::Simulated& simulated) {
  const sim::Timeline& timeline = simulated.timeline;
  const Period period = period_of(timeline);
  const Seconds tick = to_seconds(period.to - period.from) / ticks_per_iteration;
  Json list = Json::array();
  double optimizer = 0, devices = 0;
  std::size_t shown = 0;
  int without_bars = 0;
  for (std::size_t a = 0; a < timeline.actors.size(); ++a) {
    const ActorBars of_actor(simulated.program, timeline, a, period);
    const int count = timeline.actors[a].multiplicity;
    optimizer += count * of_actor.optimizer().value;
    devices += count;
    std::vector<Bar> bars = of_actor.in_order();
    shown += bars.size();
    if (shown > most_bars) {
      bars.clear();
      ++without_bars;
    }
    list.push(Json::object()
                  .set("device", timeline.actors[a].device)
                  .set("count", timeline.actors[a].multiplicity)
                  .set("bars", numbers(bars, period.from, tick))
                  .set("memory", memory(sim::memory_steps(simulated.program, timeline, a))));
  }
  json.set("tick_s", tick.value)
      .set("ticks", ticks_per_iteration)
      .set("optimizer_s", optimizer / devices)
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
  json.set("limit_bytes", run.profile.memory.size.value.value)
      .set("plan", explain(run, study::plan_of(run)))
      .set("links", links(run, simulated.program));
  add_devices(json, simulated);
  return json;
}

}  // namespace stratagem::report
