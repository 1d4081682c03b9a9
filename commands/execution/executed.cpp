// Prints and writes an execution.
#include "commands/execution/executed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/input_error.hpp"
#include "base/quantity_text.hpp"
#include "calibrate/fit/pace.hpp"
#include "calibrate/measure/machine.hpp"
#include "calibrate/measure/stopwatch.hpp"
#include "sim/metrics.hpp"
#include "study/simulate.hpp"

namespace stratagem::commands {
namespace {

std::string why_no_time(const Lowered& lowered, const Unit& unit) {
  const study::Run& run = lowered.run;
  if (unit.is_gpu()) {
    if (run.profile.gpu != unit.name)
      return "profile " + run.profile.name + " is of " + run.profile.gpu + ", not " + unit.name;
    if (lowered.program.devices.size() > 1)
      return unit.nccl.empty() ? "ranks on GPUs send messages through memory of the host"
                               : "ranks on GPUs wait for each message, and those between stages go "
                                 "through memory of the host";
    return "";
  }
  if (run.profile.gpu != calibrate::this_machine().processor)
    return "profile " + run.profile.name + " is of " + run.profile.gpu + ", not this processor";
  if (lowered.program.devices.size() > std::thread::hardware_concurrency())
    return "ranks take turns on too few cores";
  return "";
}

std::vector<Seconds> times_of(const std::vector<execute::TimedIteration>& iterations) {
  std::vector<Seconds> result;
  for (const execute::TimedIteration& iteration : iterations) result.push_back(iteration.time);
  return result;
}

Seconds median(const std::vector<Seconds>& times) { return calibrate::median_of(times).median; }

/// What iterations would have taken at the pace of the profile; nullopt where one of the two is not
/// known.
std::optional<Seconds> median_at_pace(const std::vector<execute::TimedIteration>& iterations,
                                      const cost::Profile& profile) {
  std::vector<Seconds> times;
  for (const execute::TimedIteration& one : iterations) {
    if (!profile.pace || one.pace == Seconds{}) return std::nullopt;
    times.push_back(calibrate::at_pace(one.time, one.pace, profile.pace->value));
  }
  return median(times);
}

/// Those that count, and those that were set aside.
struct Sorted {
  std::vector<execute::TimedIteration> counted, aside;
};
Sorted sorted(const Executed& executed) {
  const auto places = execute::counting(executed.iterations, executed.steps);
  Sorted result;
  for (std::size_t i = 0; i < executed.iterations.size(); ++i) {
    const bool counts = std::ranges::binary_search(places, i);
    (counts ? result.counted : result.aside).push_back(executed.iterations[i]);
  }
  return result;
}

/// How many were disturbed, those that were set aside and those that count all the same.
std::string disturbances(const Sorted& iterations) {
  const auto still = std::ranges::count_if(iterations.counted, &execute::disturbed);
  std::string text;
  if (still > 0) text += fmt::format("; {} of them disturbed by others on the cores", still);
  if (!iterations.aside.empty())
    text += fmt::format("; {} more set aside that were{} disturbed", iterations.aside.size(),
                        still > 0 ? " more" : "");
  return text;
}

/// What was measured of the iterations that count; their median at the profile's pace, if it is
/// known.
Seconds print_times(std::FILE* to, const Executed& executed, const cost::Profile& profile,
                    bool at_pace) {
  const Sorted iterations = sorted(executed);
  const std::vector<Seconds> times = times_of(iterations.counted);
  const auto [least, most] = std::ranges::minmax(times);
  fmt::print(to, "  iteration: measured {} (median of {}, {} to {}{})", to_text(median(times)),
             times.size(), to_text(least), to_text(most), disturbances(iterations));
  const auto paced = at_pace ? median_at_pace(iterations.counted, profile) : std::nullopt;
  if (paced) fmt::print(to, ", {} at the profile's pace", to_text(*paced));
  return paced.value_or(median(times));
}

void print_agreement(std::FILE* to, const Executed& executed) {
  if (!executed.checked) return fmt::print(to, "  one device: not compared (--unchecked)\n");
  const execute::Agreement& agreement = *executed.agreement;
  fmt::print(
      to,
      "  one device: {}; gradients of {} parameters differ by at most {:.1e} ({}), losses of "
      "{} iterations by {:.1e}\n",
      executed.agrees ? "agrees" : "DISAGREES", agreement.parameters, agreement.gradients,
      agreement.worst, agreement.trained_losses.size(), agreement.losses);
}

/// Of the rank whose buffers hold most.
void print_memory(std::FILE* to, const execute::Trial& trial, const Predicted& expected) {
  const auto fullest =
      static_cast<std::size_t>(std::ranges::max_element(trial.peaks) - trial.peaks.begin());
  fmt::print(to, "  live bytes at the peak: measured {:.0f} on rank {}, in {:.0f}",
             trial.peaks[fullest].value, fullest, trial.extents[fullest].value);
  if (!expected.peaks.empty()) {
    const double more = expected.peaks[fullest].value - trial.peaks[fullest].value;
    fmt::print(to, ", predicted {:.0f} ({})", expected.peaks[fullest].value,
               more == 0 ? "the same" : fmt::format("{:+.0f}", more));
  }
  fmt::print(to, "\n");
}

/// By device; none without a timeline.
std::vector<Bytes> live_peaks(const program::Program& program, const sim::Timeline& timeline) {
  std::vector<Bytes> peaks;
  for (const int actor : timeline.actor_of)
    peaks.push_back(sim::memory_peak(program, timeline, static_cast<std::size_t>(actor)).total);
  return peaks;
}

Json list_of(const std::vector<Bytes>& by_rank) {
  Json list = Json::array();
  for (const Bytes bytes : by_rank) list.push(bytes.value);
  return list;
}

void add_iterations(Json& json, const Sorted& iterations) {
  Json times = Json::array(), paces = Json::array(), stolen = Json::array(), aside = Json::array();
  for (const execute::TimedIteration& iteration : iterations.counted) {
    times.push(iteration.time.value);
    if (iteration.pace > Seconds{}) paces.push(iteration.pace.value);
    stolen.push(iteration.stolen.value);
  }
  for (const execute::TimedIteration& iteration : iterations.aside)
    aside.push(
        Json::object().set("time_s", iteration.time.value).set("stolen_s", iteration.stolen.value));
  json.set("iteration_times_s", times).set("iteration_paces_s", paces);
  json.set("iteration_stolen_s", stolen).set("disturbed_iterations", aside);
  json.set("counted_though_disturbed", static_cast<std::int64_t>(std::ranges::count_if(
                                           iterations.counted, &execute::disturbed)));
  if (!iterations.counted.empty())
    json.set("iteration_time_s", median(times_of(iterations.counted)).value);
}

}  // namespace

Predicted predicted(const Lowered& lowered, const Unit& unit, const sim::Timeline& measured) try {
  const study::Run& run = lowered.run;
  if (unit.precision != run.training.precision.name)
    return {{}, "it would be of " + run.training.precision.name, {}};
  const study::Simulated simulated = study::simulate(run, {});
  if (!simulated.outcome.metrics) return {{}, simulated.outcome.reason, {}};
  Predicted result{.iteration = {},
                   .why_not = why_no_time(lowered, unit),
                   .peaks = live_peaks(simulated.program, simulated.timeline)};
  if (result.why_not.empty()) result.iteration = simulated.outcome.metrics->iteration_time;
  return result;
} catch (const InputError& lacking) {  // a constant, of what was run all the same
  return {{}, lacking.what(), live_peaks(lowered.program, measured)};
}

void print(std::FILE* to, const Lowered& lowered, const Executed& executed, const Unit& unit,
           const Predicted& expected) {
  fmt::print(to, "{}: {} ranks, {}, {} micro-batches\n", lowered.run.name,
             lowered.program.devices.size(), unit.text(), lowered.plan.micro_batches);
  print_agreement(to, executed);
  if (executed.iterations.empty())
    return fmt::print(to, "  no time is measured or predicted: {}\n", expected.why_not);
  const Seconds middle =
      print_times(to, executed, lowered.run.profile, expected.iteration.has_value());
  if (expected.iteration) {
    fmt::print(to, ", predicted {} ({:+.1f} %)\n", to_text(*expected.iteration),
               100 * (*expected.iteration / middle - 1));
  } else {
    fmt::print(to, "; no prediction: {}\n", expected.why_not);
  }
  if (executed.trial) print_memory(to, *executed.trial, expected);
}

Json to_json(const Lowered& lowered, const Executed& executed, const Unit& unit,
             const Predicted& expected) {
  const calibrate::Machine machine = calibrate::this_machine();
  const Sorted iterations = sorted(executed);
  Json losses = Json::array();
  if (executed.agreement) {
    for (const double loss : executed.agreement->trained_losses) losses.push(loss);
  }
  Json json = Json::object();
  json.set("schema", 1).set("scenario", lowered.run.origin.file).set("run", lowered.run.name);
  json.set("status", executed.iterations.empty() ? "checked" : "measured")
      .set("date", calibrate::today())
      .set("host", machine.host);
  json.set("processor", machine.processor).set("precision", unit.precision);
  if (unit.is_gpu()) json.set("gpu", unit.name);
  if (!unit.nccl.empty()) json.set("collectives", unit.nccl);
  json.set("ranks", static_cast<int>(lowered.program.devices.size())).set("losses", losses);
  json.set("compared_with_one_device", executed.checked);
  if (executed.agreement) {
    json.set("agrees", executed.agrees)
        .set("gradient_difference", executed.agreement->gradients)
        .set("loss_difference", executed.agreement->losses);
  }
  add_iterations(json, iterations);
  if (executed.trial) {
    json.set("peak_live_bytes", list_of(executed.trial->peaks));
    json.set("arena_bytes", list_of(executed.trial->extents));
  }
  if (!expected.peaks.empty()) json.set("predicted_peak_live_bytes", list_of(expected.peaks));
  if (!expected.iteration) {
    if (!expected.why_not.empty()) json.set("no_prediction", expected.why_not);
    return json;
  }
  json.set("predicted_iteration_time_s", expected.iteration->value);
  if (const auto paced = median_at_pace(iterations.counted, lowered.run.profile))
    json.set("profile_pace_s", lowered.run.profile.pace->value.value)
        .set("iteration_time_at_profile_pace_s", paced->value);
  return json;
}

}  // namespace stratagem::commands
