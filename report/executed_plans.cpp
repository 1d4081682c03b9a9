// Runs are matched by name; the figures of several executions of one are put together.
#include "report/executed_plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "base/median.hpp"
#include "base/quantity_text.hpp"

namespace stratagem::report {
namespace {

constexpr double noticeable = 0.1;  // plans that differ by less are not held to an order

/// The largest of a list of bytes, one a rank.
Bytes fullest(const JsonReader& bytes) {
  Bytes most;
  for (const JsonReader& each : bytes.elements()) most = std::max(most, Bytes{each.number()});
  return most;
}

/// What the files say of the pace of cores, by plan as in the others.
struct Paces {
  std::optional<Seconds> of_profile;
  std::vector<Seconds> of_iterations;  ///< as many as there are times, or it is not known
};

Seconds median_of(const std::vector<Seconds>& times) {
  std::vector<double> values;
  for (const Seconds time : times) values.push_back(time.value);
  return Seconds{median(values)};
}

/// Takes all plans to one pace, if it is known of all of them.
void take_to_one_pace(ExecutedPlans& plans, const std::vector<Paces>& paces) {
  std::vector<Seconds> all;
  for (std::size_t p = 0; p < plans.plans.size(); ++p) {
    const Paces& of = paces[p];
    if (plans.plans[p].times.empty()) continue;
    if (!of.of_profile || of.of_iterations.size() != plans.plans[p].times.size()) return;
    all.insert(all.end(), of.of_iterations.begin(), of.of_iterations.end());
  }
  if (all.empty()) return;
  const Seconds pace = median_of(all);
  plans.pace = pace;
  for (std::size_t p = 0; p < plans.plans.size(); ++p) {
    ExecutedPlan& plan = plans.plans[p];
    if (plan.times.empty()) continue;
    plan.predicted = pace / *paces[p].of_profile * plan.predicted;
    for (std::size_t i = 0; i < plan.held.size(); ++i)
      plan.held[i] = pace / paces[p].of_iterations[i] * plan.held[i];
  }
}

Seconds positive(const JsonReader& time) {
  if (time.number() <= 0) time.fail("a time above 0");
  return Seconds{time.number()};
}

/// Adds what was measured.
void add(const JsonReader& executed, ExecutedPlan& plan, Paces& paces) {
  if (executed.at("status").text() != "measured")
    executed.at("status").fail("an execution that was timed to its end, \"measured\"");
  const std::string where = executed.at("precision").text() + " on " + executed.at("host").text();
  if (!plan.where.empty() && plan.where != where)
    executed.fail("another execution of \"" + plan.run + "\" in " + plan.where, where);
  plan.where = where;
  for (const JsonReader& time : executed.at("iteration_times_s").elements()) {
    plan.times.push_back(positive(time));
  }
  if (const auto list = executed.find("iteration_paces_s")) {
    const auto elements = list->elements();
    if (!elements.empty() && elements.size() != executed.at("iteration_times_s").elements().size())
      list->fail("none, or a pace for each iteration", std::to_string(elements.size()));
    for (const JsonReader& pace : elements) paces.of_iterations.push_back(positive(pace));
  }
  if (const auto aside = executed.find("disturbed_iterations"))
    plan.set_aside += static_cast<int>(aside->elements().size());
  if (const auto counted = executed.find("counted_though_disturbed"))
    plan.disturbed += static_cast<int>(counted->whole_number());
  if (plan.times.empty()) executed.at("iteration_times_s").fail("times of iterations", "none");
  plan.peak = std::max(plan.peak, fullest(executed.at("peak_live_bytes")));
  plan.arena = std::max(plan.arena, fullest(executed.at("arena_bytes")));
  const auto compared = executed.find("compared_with_one_device");
  if (compared && !compared->boolean()) {
    plan.compared = false;
  } else {
    plan.agrees = plan.agrees && executed.at("agrees").boolean();
  }
}

void set_agreement(Json& json, const ExecutedPlan& plan) {
  json.set("compared_with_one_device", plan.compared);
  if (plan.compared) json.set("agrees", plan.agrees);
}

/// What a run computed, where that is not as one device computes it, or not known.
std::string complaint(const ExecutedPlan& plan) {
  if (!plan.agrees) return "computes something else than one device: " + plan.run + "\n";
  return plan.compared ? "" : "not compared with one device: " + plan.run + "\n";
}

/// Adds the file of an execution to the run of its name.
void add_file(const std::string& file, const std::string& simulated, ExecutedPlans& result,
              std::vector<Paces>& paces) {
  const JsonReader execution = JsonReader::from_file(file);
  if (!execution.has("run")) execution.fail("what `stratagem execute --json` wrote");
  const JsonReader run = execution.at("run");
  const auto is_it = [&](const UnpredictedPlan& one) { return one.plan.run == run.text(); };
  if (const auto refused = std::ranges::find_if(result.unpredicted, is_it);
      refused != result.unpredicted.end()) {
    Paces unused;
    return add(execution, refused->plan, unused);
  }
  const auto plan = std::ranges::find(result.plans, run.text(), &ExecutedPlan::run);
  if (plan == result.plans.end())
    run.fail("a run that " + simulated + " has a time of", run.text());
  add(execution, *plan, paces[static_cast<std::size_t>(plan - result.plans.begin())]);
  plan->predicted_peak =
      std::max(plan->predicted_peak, fullest(execution.at("predicted_peak_live_bytes")));
}

std::vector<double> absolute_errors(const std::vector<ExecutedPlan>& plans) {
  std::vector<double> errors;
  for (const ExecutedPlan& plan : plans) errors.push_back(std::abs(plan.error()));
  return errors;
}

std::string milliseconds(Seconds time) { return fmt::format("{:.0f}", 1e3 * time.value); }

}  // namespace

Seconds ExecutedPlan::measured() const { return median_of(times); }

Seconds ExecutedPlan::at_pace() const { return median_of(held); }

double ExecutedPlan::error() const { return predicted / at_pace() - 1; }

double ExecutedPlans::median_error() const { return median(absolute_errors(plans)); }

double ExecutedPlans::worst_error() const { return std::ranges::max(absolute_errors(plans)); }

std::vector<std::pair<std::string, std::string>> ExecutedPlans::in_wrong_order() const {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const ExecutedPlan& slow : plans) {
    for (const ExecutedPlan& quick : plans) {
      const bool differ = slow.at_pace() > (1 + noticeable) * quick.at_pace();
      if (differ && slow.predicted <= quick.predicted) pairs.emplace_back(slow.run, quick.run);
    }
  }
  return pairs;
}

bool ExecutedPlans::as_expected() const {
  return std::ranges::all_of(plans,
                             [](const ExecutedPlan& plan) {
                               return plan.agrees && plan.peak == plan.predicted_peak;
                             }) &&
         std::ranges::all_of(unpredicted,
                             [](const UnpredictedPlan& one) { return one.plan.agrees; });
}

bool is_simulated(const std::string& file) { return JsonReader::from_file(file).has("runs"); }

ExecutedPlans executed_plans(const std::string& simulated,
                             const std::vector<std::string>& executed) {
  const JsonReader predictions = JsonReader::from_file(simulated);
  ExecutedPlans result;
  std::vector<Paces> paces;
  for (const JsonReader& run : predictions.at("runs").elements()) {
    if (!run.has("status")) predictions.fail("what `stratagem simulate --json` wrote");
    const std::string status = run.at("status").text();
    if (status == "refused")
      result.unpredicted.push_back(
          {{.run = run.at("name").text(), .predicted = {}}, run.at("reason").text()});
    if (status != "ok") continue;
    paces.emplace_back();
    if (const auto pace = run.find("pace_s")) paces.back().of_profile = positive(*pace);
    result.plans.push_back(
        {.run = run.at("name").text(), .predicted = Seconds{run.at("iteration_time_s").number()}});
  }
  for (const std::string& file : executed) add_file(file, simulated, result, paces);
  for (ExecutedPlan& plan : result.plans) plan.held = plan.times;
  take_to_one_pace(result, paces);
  for (ExecutedPlan& plan : result.plans) std::ranges::sort(plan.times);
  for (const ExecutedPlan& plan : result.plans) {
    if (plan.times.empty()) result.not_executed.push_back(plan.run);
  }
  std::erase_if(result.plans, [](const ExecutedPlan& plan) { return plan.times.empty(); });
  std::erase_if(result.unpredicted, [](const auto& one) { return one.plan.times.empty(); });
  return result;
}

std::string to_markdown(const ExecutedPlans& plans) {
  const bool paced = plans.pace.has_value();
  std::string text = fmt::format(
      "| plan | measured | least to most |{} predicted | error | live bytes | predicted | arena |\n"
      "|---|--:|--:|{}--:|--:|--:|--:|--:|\n",
      paced ? " at one pace |" : "", paced ? "--:|" : "");
  for (const ExecutedPlan& plan : plans.plans) {
    text += fmt::format(
        "| {} | {} ms | {} to {} ms |{} {} ms | {:+.1f} % | {:.0f} | {:.0f} | {:.0f} |\n", plan.run,
        milliseconds(plan.measured()), milliseconds(plan.times.front()),
        milliseconds(plan.times.back()), paced ? " " + milliseconds(plan.at_pace()) + " ms |" : "",
        milliseconds(plan.predicted), 100 * plan.error(), plan.peak.value,
        plan.predicted_peak.value, plan.arena.value);
  }
  if (paced)
    text += fmt::format("\none pace: {}, the median of all iterations\n", to_text(*plans.pace));
  if (!plans.plans.empty())
    text += fmt::format("\nmedian error {:.1f} %, worst {:.1f} %\n", 100 * plans.median_error(),
                        100 * plans.worst_error());
  const auto wrong = plans.in_wrong_order();
  if (wrong.empty() && !plans.plans.empty())
    text += fmt::format("plans that differ by more than 10 %{} are in the right order\n",
                        paced ? " at one pace" : "");
  for (const auto& [slow, quick] : wrong)
    text += fmt::format("in the wrong order: {} takes longer than {}\n", slow, quick);
  for (const ExecutedPlan& plan : plans.plans) {
    if (plan.peak != plan.predicted_peak) text += "not the peak predicted: " + plan.run + "\n";
    if (plan.set_aside + plan.disturbed > 0)
      text += fmt::format("disturbed by others on the cores: of {} {} set aside, {} counted\n",
                          plan.run, plan.set_aside, plan.disturbed);
    text += complaint(plan);
  }
  for (const auto& [plan, because] : plans.unpredicted) {
    text += fmt::format("no time predicted: {}, measured {}: {}\n", plan.run,
                        milliseconds(plan.measured()) + " ms", because);
    text += complaint(plan);
  }
  for (const std::string& run : plans.not_executed) text += "not executed: " + run + "\n";
  return text;
}

Json to_json(const ExecutedPlans& plans) {
  Json list = Json::array(), wrong = Json::array();
  for (const ExecutedPlan& plan : plans.plans) {
    Json row = Json::object();
    row.set("run", plan.run)
        .set("predicted_s", plan.predicted.value)
        .set("measured_s", plan.measured().value)
        .set("at_pace_s", plan.at_pace().value)
        .set("least_s", plan.times.front().value)
        .set("most_s", plan.times.back().value)
        .set("iterations", static_cast<std::int64_t>(plan.times.size()))
        .set("set_aside", plan.set_aside)
        .set("disturbed", plan.disturbed)
        .set("error", plan.error())
        .set("peak_live_bytes", plan.peak.value)
        .set("predicted_peak_live_bytes", plan.predicted_peak.value)
        .set("arena_bytes", plan.arena.value);
    set_agreement(row, plan);
    list.push(row);
  }
  for (const auto& [slow, quick] : plans.in_wrong_order())
    wrong.push(Json::array().push(slow).push(quick));
  Json unseen = Json::array();
  for (const std::string& run : plans.not_executed) unseen.push(run);
  Json json = Json::object();
  json.set("schema", 1);
  if (plans.pace) json.set("pace_s", plans.pace->value);
  json.set("not_executed", unseen).set("plans", list).set("in_wrong_order", wrong);
  if (!plans.plans.empty())
    json.set("median_error", plans.median_error()).set("worst_error", plans.worst_error());
  Json unpredicted = Json::array();
  for (const auto& [plan, because] : plans.unpredicted) {
    Json row = Json::object();
    row.set("run", plan.run).set("because", because).set("measured_s", plan.measured().value);
    set_agreement(row, plan);
    unpredicted.push(row);
  }
  return json.set("unpredicted", unpredicted);
}

}  // namespace stratagem::report
