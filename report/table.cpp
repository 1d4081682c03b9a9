// Prints runs for people: a line each, measured beside predicted values, and what they rest on.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/quantity_text.hpp"
#include "report/answer_rows.hpp"
#include "report/figure_text.hpp"
#include "report/memory_table.hpp"
#include "report/report.hpp"
#include "report/sources.hpp"
#include "report/wrapped.hpp"
#include "study/figures.hpp"
#include "study/simulate.hpp"

namespace stratagem::report {

bool any_measured(const std::vector<study::Result>& results) {
  return std::ranges::any_of(results, [](const study::Result& result) {
    return std::ranges::any_of(
        result.figures, [](const study::Figure& figure) { return figure.measured.has_value(); });
  });
}

namespace {

using study::Figure;
using study::Outcome;
using study::Result;

/// The assumptions of all runs, each once; the n-th is marked [n].
std::vector<std::string> assumptions(const std::vector<Result>& results) {
  std::vector<std::string> found;
  for (const Result& result : results) {
    const std::string text = result.run->compared.all_assumed();
    if (!text.empty() && std::ranges::find(found, text) == found.end()) found.push_back(text);
  }
  return found;
}

std::string marked_name(const study::Run& run, const std::vector<std::string>& assumed) {
  const std::string text = run.compared.all_assumed();
  if (text.empty()) return run.name;
  const auto place = std::ranges::find(assumed, text) - assumed.begin();
  return run.name + fmt::format(" [{}]", place + 1);
}

constexpr const char* run_columns = "{:<{}} {:>5} {:>10} {:>6} {:>9} {:>11} {:>12}";

std::string heading(std::size_t name_width) {
  const std::string above =
      fmt::format("{:<{}} {:>5} {:>10} {:>16} {:>11} {:>12}", "", name_width, "", "iteration",
                  "TFLOP/s per GPU", "scaling", "peak memory");
  const std::string below = fmt::format(run_columns, "run", name_width, "GPUs", "time", "model",
                                        "hardware", "efficiency", "per GPU");
  return fmt::format("{}\n{} {:>13} {:>13} {:>9}\n", above, below, "measured", "predicted",
                     "error");
}

/// Of a run's line, up to its memory.
std::size_t heading_width(std::size_t name_width) {
  return fmt::format(run_columns, "", name_width, "", "", "", "", "", "").size();
}

/// Marked where successive iterations still differ.
std::string iteration_time(const sim::Metrics& metrics) {
  return (metrics.steady ? "" : "~") + value_text("iteration_time", metrics.iteration_time.value);
}

bool any_unsteady(const std::vector<Result>& results) {
  return std::ranges::any_of(results, [](const Result& result) {
    const Outcome& outcome = result.outcome;
    return outcome.status == Outcome::Status::ok && outcome.metrics && !outcome.metrics->steady;
  });
}

/// What a run that does not fit would take is no prediction: only its memory is shown.
std::string prediction(const Result& result, const std::string& name, std::size_t name_width) {
  const int gpus = result.outcome.gpus;
  if (gpus == 0) return name;  // refused for its cluster
  if (!result.outcome.metrics) return fmt::format("{:<{}} {:>5}", name, name_width, gpus);
  const sim::Metrics& m = *result.outcome.metrics;
  const std::string peak = to_text(result.outcome.memory.used);
  if (result.outcome.status != Outcome::Status::ok) {
    return fmt::format(run_columns, name, name_width, gpus, "", "", "", "", peak);
  }
  const auto efficiency = std::ranges::find(result.figures, "scaling_efficiency", &Figure::name);
  const bool relative = efficiency != result.figures.end() && efficiency->predicted;
  return fmt::format(run_columns, name, name_width, gpus, iteration_time(m),
                     fmt::format("{:.1f}", result.outcome.model_rate() / 1_TFLOPps),
                     fmt::format("{:.1f}", result.outcome.hardware_rate() / 1_TFLOPps),
                     relative ? value_text(efficiency->name, *efficiency->predicted) : "", peak);
}

std::string comparison(const Result& result, const Figure& figure) {
  const std::string measured =
      value_text(figure.name, *figure.measured) + (figure.gates ? " " : "*");
  const bool shown =
      result.outcome.status == Outcome::Status::ok || study::concerns_memory(figure.name);
  if (!shown || !figure.predicted) return fmt::format(" {:>14}", measured);
  return fmt::format(" {:>14} {:>12} {:>9}", measured, value_text(figure.name, *figure.predicted),
                     error_text(figure));
}

/// What a figure of memory is called, below the column of peak memory: "used on device 0".
std::string label(const Figure& figure) {
  constexpr std::string_view peak = "peak_";
  const std::string name =
      figure.name.starts_with(peak) ? figure.name.substr(peak.size()) : figure.name;
  return figure.device ? fmt::format("{} on device {}", name, *figure.device) : name;
}

/// With what a run would fit that does not, where that was asked.
std::string remedies(const Result& result) {
  if (!result.remedies) return "";
  if (result.remedies->empty())
    return wrapped(
        "  nothing that was tried makes it fit: smaller micro-batches, recomputation, ZeRO, other "
        "ranks, schedules, places on the host, and up to three of them together",
        4);
  std::size_t width = 0;
  for (const study::Remedy& remedy : *result.remedies)
    width = std::max(width, remedy.change.size());
  std::string text = "  it would fit, as simulated, with\n";
  for (const study::Remedy& remedy : *result.remedies) {
    text += fmt::format("    {:<{}} {:>11} {:>10}{}\n", remedy.change, width,
                        value_text("iteration_time", remedy.iteration_time.value),
                        to_text(remedy.used), remedy.tight ? ", tight" : "");
  }
  return text;
}

/// The run and its first measured figure; a line more for each further one, and for every one of
/// memory, which is named.
std::string compared(const Result& result, const std::string& name, std::size_t name_width) {
  std::string lead = prediction(result, name, name_width);
  const std::size_t width = heading_width(name_width);
  std::string text;
  for (const Figure& figure : result.figures) {
    if (!figure.measured) continue;
    if (study::concerns_memory(figure.name)) {
      if (text.empty()) text = lead + "\n";
      lead = fmt::format("{:>{}}", label(figure), width);
    }
    text += lead + comparison(result, figure) + "\n";
    lead.assign(width, ' ');
  }
  return text.empty() ? lead + "\n" : text;
}

/// A line for what went wrong, or nearly.
std::string notes(const Result& result) {
  std::string text;
  if (!result.outcome.tight.empty()) text += "  tight: " + result.outcome.tight + "\n";
  if (!result.outcome.metrics) text += refusal_text(result);
  if (result.outcome.status == Outcome::Status::out_of_memory) {
    const study::Outcome& outcome = result.outcome;
    text += "  does not run: " + outcome.reason + "\n";
    if (outcome.gpu_shortfall > Bytes{}) {
      text += wrapped(fmt::format("  {} short; allocated: {}", to_text(outcome.gpu_shortfall),
                                  breakdown(sim::fullest(outcome.devices))),
                      4);
    }
    if (outcome.host_shortfall > Bytes{}) {
      text += wrapped(fmt::format("  {} short on a server: {}", to_text(outcome.host_shortfall),
                                  breakdown(sim::fullest(outcome.hosts).peak)),
                      4);
    }
    if (outcome.drives_shortfall > Bytes{}) {
      text += wrapped(
          fmt::format("  {} short on a server's drives: {}", to_text(outcome.drives_shortfall),
                      breakdown(sim::fullest(outcome.drives).peak)),
          4);
    }
    text += remedies(result);
  }
  return text;
}

/// Of columns that stand beside measured figures.
std::string compared_legend(const std::vector<Result>& results) {
  const std::string baseline = baseline_in_words(results);
  const std::string text = wrapped(
      "TFLOP/s: model counts matrix products, of a GPT those of Megatron-LM's formula, without "
      "recomputation; hardware (and measured) with it, as kernels compute: without pairs of tokens "
      "that fused attention skips." +
          (baseline.empty()
               ? ""
               : " Scaling efficiency: model TFLOP/s per GPU over that of " + baseline + "."),
      2);
  return text +
         "Peak memory: used, as in nvidia-smi (docs/internals/memory.md); GB = 1e9 bytes. "
         "Error: % of measured, or points (pt).\n";
}

std::string legend(const std::vector<Result>& results) {
  std::string text = any_measured(results) ? compared_legend(results) : answer_legend(results);
  const bool from_memory = std::ranges::any_of(results, [](const Result& result) {
    return std::ranges::any_of(result.figures,
                               [](const Figure& f) { return f.measured && !f.gates; });
  });
  if (from_memory)
    text += "* recalled from memory, not read in the source: shown, but nothing is judged by it\n";
  if (std::ranges::any_of(results, [](const Result& one) { return !one.outcome.tight.empty(); }))
    text += "tight: less than 5 % of a memory is left, and predictions are a few per cent off\n";
  if (any_unsteady(results)) {
    text +=
        "~ not steady: the last two iterations that were simulated differ; the time is the last "
        "one's\n";
  }
  return text;
}

/// The headings, then the lines of each run: figures beside measured ones, where there are any.
std::vector<std::string> rows_with_headings(const std::vector<Result>& results,
                                            const std::vector<std::string>& assumed) {
  std::vector<std::string> names;
  for (const Result& result : results) names.push_back(marked_name(*result.run, assumed));
  if (!any_measured(results)) {
    std::vector<std::string> rows = answer_rows(results, names);
    for (std::string& row : rows) row += "\n";
    return rows;
  }
  std::size_t width = 4;
  for (const std::string& name : names) width = std::max(width, name.size());
  std::vector<std::string> rows = {heading(width)};
  for (std::size_t i = 0; i < results.size(); ++i)
    rows.push_back(compared(results[i], names[i], width));
  return rows;
}

}  // namespace

std::string table(const study::Scenario& scenario, const std::vector<Result>& results,
                  Sources sources) {
  const std::vector<std::string> assumed = assumptions(results);
  const std::vector<std::string> rows = rows_with_headings(results, assumed);
  std::string text = scenario.question + "\n\n" + rows.front();
  std::string group;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].run->compared.group != group)
      text += "\n" + (group = results[i].run->compared.group) + "\n";
    text += rows[i + 1] + notes(results[i]);
  }
  text += "\n";
  if (!any_measured(results)) text += where_time_goes(results);
  const bool answered = std::ranges::any_of(
      results, [](const Result& one) { return one.outcome.metrics.has_value(); });
  if (answered) text += legend(results);
  for (std::size_t i = 0; i < assumed.size(); ++i)
    text += wrapped(fmt::format("[{}] assumed: {}", i + 1, assumed[i]), 4);
  if (!answered) return text;
  text += unaligned_rows(results);
  return text + (sources == Sources::in_full ? sources_in_full(results) : sources_line(results));
}

}  // namespace stratagem::report
