// One table of columns serves people and programs.
#include "report/run_columns.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json_writer.hpp"
#include "base/quantity_text.hpp"
#include "report/columns.hpp"
#include "report/figure_text.hpp"
#include "report/wrapped.hpp"
#include "study/simulate.hpp"

namespace stratagem::report {
namespace {

using study::Result;
using Value = std::optional<double>;
using Status = study::Outcome::Status;

bool fits(const Result& result) { return result.outcome.status == Status::ok; }

double time_of(const Result& result) { return result.outcome.metrics->iteration_time.value; }

double tokens_per_s(const Result& result) {
  const study::Batch& batch = result.run->batch;
  return batch.global * static_cast<double>(batch.sequence) / time_of(result);
}

FlopsPerSecond peak_of(const Result& result) {
  const study::Run& run = *result.run;
  return run.profile.peak.at(model::to_text(run.training.precision.products)).value;
}

Value figure_if_fits(const Result& result, const char* name) {
  if (!fits(result)) return std::nullopt;
  const auto found = std::ranges::find(result.figures, name, &study::Figure::name);
  return found == result.figures.end() ? std::nullopt : found->predicted;
}

std::string number(double value) {
  return value < 1000 ? fmt::format("{:.4g}", value) : fmt::format("{:.0f}", value);
}
std::string whole(double value) { return fmt::format("{:.0f}", value); }
std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string seconds(double value) { return fmt::format("{:.3f} s", value); }
std::string rate(double teraflops) { return fmt::format("{:.1f}", teraflops); }
std::string bytes(double value) { return to_text(Bytes{value}); }

/// Of a run that fits.
template <double (*Of)(const Result&)>
Value if_fits(const Result& result) {
  return fits(result) ? Value(Of(result)) : std::nullopt;
}

double per_gpu(const Result& result) { return tokens_per_s(result) / result.outcome.gpus; }
double samples_per_s(const Result& result) { return result.run->batch.global / time_of(result); }
double model_rate(const Result& result) { return result.outcome.model_rate() / 1_TFLOPps; }
double hardware_rate(const Result& result) { return result.outcome.hardware_rate() / 1_TFLOPps; }
double mfu(const Result& result) { return result.outcome.model_rate() / peak_of(result); }
double hfu(const Result& result) { return result.outcome.hardware_rate() / peak_of(result); }
double exposed(const Result& result) {
  return result.outcome.metrics->exposed_communication.value / time_of(result);
}
double idle(const Result& result) { return result.outcome.metrics->bubble_fraction; }

Value memory(const Result& result) {
  if (!result.outcome.metrics) return std::nullopt;
  return result.outcome.memory.used.value;
}
Value memory_share(const Result& result) {
  if (!result.outcome.metrics) return std::nullopt;
  return result.outcome.memory.used / result.run->profile.memory.size.value;
}

Value cost(const Result& result) {
  if (!fits(result)) return std::nullopt;
  return study::cost_of_billion_tokens(*result.run, result.outcome.gpus,
                                       result.outcome.metrics->iteration_time);
}

std::string text_of_row(const RunColumn& column, const Result& result) {
  const Value value = column.value(result);
  if (!value) return "-";
  const bool differs = column.name == "iteration_time" && !result.outcome.metrics->steady;
  return (differs ? "~" : "") + column.text(*value);
}

/// Why a run does not run, or what it barely fits into.
std::string reason(const Result& result) {
  if (result.outcome.status == Status::refused)
    return result.run->name + ":" + refusal_text(result);
  if (fits(result))
    return result.outcome.tight.empty()
               ? ""
               : wrapped(result.run->name + ": tight: " + result.outcome.tight, 2);
  return wrapped(result.run->name + ": does not run: " + result.outcome.reason, 2);
}

/// Nothing for a run that is refused for its cluster.
std::string gpus(const Result& result) {
  return result.outcome.gpus == 0 ? "" : std::to_string(result.outcome.gpus);
}

/// What the program remarks of the runs, each once, a line each.
std::string remarks(const std::vector<Result>& results) {
  std::vector<std::string> all;
  for (const Result& result : results) {
    for (const std::string& one : result.run->compared.remarks)
      if (std::ranges::find(all, one) == all.end()) all.push_back(one);
  }
  std::string text;
  for (const std::string& one : all) text += wrapped("Assumed: " + one, 2);
  return text;
}

}  // namespace

const std::vector<RunColumn>& run_columns() {
  static const std::vector<RunColumn> all = {
      {"iteration_time", "iteration", &if_fits<time_of>, &seconds},
      {"tokens_per_s", "tokens/s", &if_fits<tokens_per_s>, &whole},
      {"tokens_per_s_per_gpu", "tokens/s/GPU", &if_fits<per_gpu>, &number},
      {"samples_per_s", "samples/s", &if_fits<samples_per_s>, &number},
      {"model_tflops", "model TFLOP/s", &if_fits<model_rate>, &rate},
      {"hardware_tflops", "hardware TFLOP/s", &if_fits<hardware_rate>, &rate},
      {"mfu", "MFU", &if_fits<mfu>, &percent},
      {"hfu", "HFU", &if_fits<hfu>, &percent},
      {"scaling_efficiency", "efficiency",
       [](const Result& result) { return figure_if_fits(result, "scaling_efficiency"); }, &percent},
      {"speedup", "speed-up",
       [](const Result& result) { return figure_if_fits(result, "speedup"); }, &number},
      {"exposed", "exposed comm.", &if_fits<exposed>, &percent},
      {"idle", "idle", &if_fits<idle>, &percent},
      {"memory", "memory", &memory, &bytes},
      {"memory_share", "of a GPU's", &memory_share, &percent},
      {"cost", "cost/Gtoken", &cost, &number}};
  return all;
}

std::vector<std::string> rows_of(const std::vector<Result>& results,
                                 const std::vector<std::string>& names,
                                 const std::vector<const RunColumn*>& columns) {
  std::vector<Column> table = {{.heading = "run", .left = true}, {"GPUs"}};
  for (const RunColumn* column : columns) table.push_back({column->heading});
  for (std::size_t i = 0; i < results.size(); ++i) {
    std::vector<std::string> row = {names[i], gpus(results[i])};
    for (const RunColumn* column : columns) row.push_back(text_of_row(*column, results[i]));
    add_row(table, row);
  }
  return lines_of(table);
}

std::string table_of(const std::vector<Result>& results,
                     const std::vector<const RunColumn*>& columns) {
  std::vector<std::string> names;
  std::string below;
  for (const Result& result : results) {
    names.push_back(result.run->name);
    below += reason(result);
  }
  below += remarks(results);
  return fmt::format("{}\n", fmt::join(rows_of(results, names, columns), "\n")) +
         (below.empty() ? "" : "\n" + below);
}

std::string csv_of(const std::vector<Result>& results) {
  std::string text = "run,group,status,gpus";
  for (const RunColumn& column : run_columns()) text += "," + column.name;
  text += "\n";
  const auto quoted = [](const std::string& name) {
    std::string result = "\"";
    for (const char one : name) result += one == '"' ? std::string("\"\"") : std::string(1, one);
    return result + "\"";
  };
  for (const Result& result : results) {
    const char* status = fits(result)                                     ? "ok"
                         : result.outcome.status == Status::out_of_memory ? "out_of_memory"
                                                                          : "refused";
    text += fmt::format("{},{},{},{}", quoted(result.run->name), quoted(result.run->compared.group),
                        status, gpus(result));
    for (const RunColumn& column : run_columns()) {
      const Value value = column.value(result);
      text += "," + (value ? Json(*value).text() : "");
    }
    text += "\n";
  }
  return text;
}

}  // namespace stratagem::report
