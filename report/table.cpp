// Prints runs for people: a line each, measured beside predicted values, and what they rest on.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/quantity_text.hpp"
#include "report/figure_text.hpp"
#include "report/memory_table.hpp"
#include "report/report.hpp"
#include "report/wrapped.hpp"
#include "study/figures.hpp"
#include "study/simulate.hpp"

namespace stratagem::report {
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

/// The run and its first measured figure; a line more for each further one, for every one of
/// memory, which is named, and for what went wrong.
std::string lines(const Result& result, const std::string& name, std::size_t name_width) {
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
  if (text.empty()) text = lead + "\n";
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

std::string baselines(const std::vector<Result>& results) {
  std::set<std::string> names;
  for (const Result& result : results) {
    if (!result.run->compared.baseline.empty()) names.insert(result.run->compared.baseline);
  }
  if (names.empty()) return "";
  const std::string of = names.size() == 1 ? "\"" + *names.begin() + "\"" : "the baseline";
  return " Scaling efficiency: model TFLOP/s per GPU over that of " + of + ".";
}

std::string legend(const std::vector<Result>& results) {
  std::string text = wrapped(
      "TFLOP/s: model counts matrix products, of a GPT those of Megatron-LM's formula, without "
      "recomputation; hardware (and measured) with it, as kernels compute: without pairs of tokens "
      "that fused attention skips." +
          baselines(results),
      2);
  text +=
      "Peak memory: used, as in nvidia-smi (docs/internals/memory.md); GB = 1e9 bytes. "
      "Error: % of measured, or points (pt).\n";
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

/// The weakest constants over all runs, by the file that they stand in.
std::string provenance(const std::vector<Result>& results) {
  cost::Provenance weakest = cost::Provenance::measured;
  for (const Result& result : results)
    weakest = std::max(weakest, result.outcome.weakest.provenance);
  std::map<std::string, std::vector<std::string>> by_file;
  const auto add = [&](const std::string& file, const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      const std::string name = path.substr(1);
      std::vector<std::string>& names = by_file[file];
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  };
  for (const Result& result : results) {
    if (result.outcome.weakest.provenance != weakest) continue;
    add("profile " + result.run->profile.name, result.outcome.weakest.profile);
    add("stack " + result.run->stack.name, result.outcome.weakest.stack);
    add("cluster " + result.run->cluster.design().name, result.outcome.weakest.cluster);
  }
  std::string text = "Weakest provenance used: " + cost::to_text(weakest) + "\n";
  for (const auto& [file, names] : by_file)
    text += wrapped(fmt::format("  {}: {}", file, fmt::join(names, ", ")), 4);
  return text;
}

/// The run with the largest share of kernels beyond what was measured, and that with the largest
/// share of communication; nothing where there is neither. Kinds of less than 0.1 % are in the sum
/// only.
std::string extrapolations(const std::vector<Result>& results) {
  const auto most = [&](const auto& share) {
    return std::ranges::max_element(
        results, {}, [&](const Result& result) { return share(result.outcome.extrapolated); });
  };
  const auto percent = [](double share) {
    return share < 0.0995 ? fmt::format("{:.2g} %", 100 * share)
                          : fmt::format("{:.0f} %", 100 * share);
  };
  std::string text;
  const auto kernels = most([](const auto& e) { return e.kernel_time; });
  if (kernels->outcome.extrapolated.kernel_time > 0) {
    constexpr double least_named = 0.001;
    std::vector<std::pair<double, std::string>> largest;
    for (const auto& [kind, share] : kernels->outcome.extrapolated.by_kind) {
      if (share >= least_named) largest.emplace_back(-share, kind);
    }
    std::ranges::sort(largest);
    std::vector<std::string> kinds;
    for (const auto& [share, kind] : largest) kinds.push_back(kind + " " + percent(-share));
    if (kinds.empty()) kinds.emplace_back("each kind less than 0.1 %");
    text += fmt::format(" {} of the kernels' time ({}; {});",
                        percent(kernels->outcome.extrapolated.kernel_time), fmt::join(kinds, ", "),
                        kernels->run->name);
  }
  const auto bytes = most([](const auto& e) { return e.bytes; });
  if (bytes->outcome.extrapolated.bytes > 0) {
    text += fmt::format(" {} of the bytes communicated ({});",
                        percent(bytes->outcome.extrapolated.bytes), bytes->run->name);
  }
  if (text.empty()) return "";
  text.back() = '.';
  return wrapped("Extrapolated beyond measured sizes, at most:" + text, 2);
}

/// The run that loses most to rows which are not aligned, if that is 1 % and more.
std::string unaligned(const std::vector<Result>& results) {
  const auto most = std::ranges::max_element(
      results, {}, [](const Result& result) { return result.outcome.extrapolated.unaligned; });
  const double share = most->outcome.extrapolated.unaligned;
  if (share < 0.01) return "";
  return wrapped(
      fmt::format("Unaligned rows of products cost at most {:.0f} % of the kernels' time "
                  "({}): sizes that are multiples of 8 would be faster.",
                  100 * share, most->run->name),
      2);
}

/// What was fitted to whole runs, so that everybody sees which ones are no predictions.
std::string scalars(const std::vector<Result>& results) {
  std::map<std::string, std::string> by_stack;
  for (const Result& result : results) {
    const cost::Stack& stack = result.run->stack;
    std::string& text = by_stack[stack.name];
    if (!text.empty()) continue;
    text = "Stack " + stack.name + ":";
    const auto add = [&](const char* name, const cost::Constant<double>& constant) {
      text += fmt::format(" {} {:.4g}, {} ({});", name, constant.value,
                          cost::to_text(constant.provenance), constant.source);
    };
    add("slowdown", stack.slowdown);
    add("host_factor", stack.host_factor);
    if (stack.product_slowdown) add("product_slowdown", *stack.product_slowdown);
    text.pop_back();
  }
  std::string all;
  for (const auto& [name, text] : by_stack) all += wrapped(text, 2);
  return all;
}

/// On which clusters measurements, not ports, limit collectives between servers.
std::string networks(const std::vector<Result>& results) {
  std::map<std::string, std::string> by_server;
  for (const Result& result : results) {
    const topology::NodeDesign& design = result.run->cluster.design();
    const std::vector<topology::MeasuredCollective>& measured = design.measured.all_reduces;
    if (measured.empty() || result.run->cluster.nodes() < 2) continue;
    std::string& text = by_server[design.name];
    if (!text.empty()) continue;
    text =
        "Collectives between servers of " + design.name + " get what was measured over all GPUs of";
    for (const topology::MeasuredCollective& one : measured)
      text += fmt::format(" {},", one.servers);
    text.back() = ' ';
    text += "servers, over as many ranks as theirs (" + measured.front().source + ").";
  }
  std::string all;
  for (const auto& [name, text] : by_server) all += wrapped(text, 2);
  return all;
}

}  // namespace

std::string table(const study::Scenario& scenario, const std::vector<Result>& results) {
  const std::vector<std::string> assumed = assumptions(results);
  std::size_t name_width = 4;
  for (const Result& result : results)
    name_width = std::max(name_width, marked_name(*result.run, assumed).size());
  std::string text = scenario.question + "\n\n" + heading(name_width);
  std::string group;
  for (const Result& result : results) {
    if (result.run->compared.group != group)
      text += "\n" + (group = result.run->compared.group) + "\n";
    text += lines(result, marked_name(*result.run, assumed), name_width);
  }
  text += "\n";
  const bool answered = std::ranges::any_of(
      results, [](const Result& one) { return one.outcome.metrics.has_value(); });
  if (answered) text += legend(results);
  for (std::size_t i = 0; i < assumed.size(); ++i)
    text += wrapped(fmt::format("[{}] assumed: {}", i + 1, assumed[i]), 4);
  if (!answered) return text;
  return text + provenance(results) + extrapolations(results) + unaligned(results) +
         networks(results) + scalars(results);
}

}  // namespace stratagem::report
