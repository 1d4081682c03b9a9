// Takes columns from those that --columns chooses among.
#include "report/answer_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/figure_text.hpp"
#include "report/run_columns.hpp"
#include "report/wrapped.hpp"

namespace stratagem::report {
namespace {

using study::Result;

bool fits(const Result& result) { return result.outcome.status == study::Outcome::Status::ok; }

/// Those that always say something, and others where they do.
std::vector<const RunColumn*> columns_of(const std::vector<Result>& results) {
  constexpr std::string_view always[] = {
      "iteration_time", "tokens_per_s", "tokens_per_s_per_gpu", "mfu", "exposed",
      "idle",           "memory",       "memory_share"};
  constexpr std::string_view sometimes[] = {"scaling_efficiency", "cost"};
  std::vector<const RunColumn*> columns;
  for (const RunColumn& column : run_columns()) {
    const bool says = std::ranges::any_of(
        results, [&](const Result& result) { return column.value(result).has_value(); });
    if (std::ranges::count(always, column.name) > 0 ||
        (says && std::ranges::count(sometimes, column.name) > 0))
      columns.push_back(&column);
  }
  return columns;
}

}  // namespace

/// Those that follow from others go first where lines would be longer than `widest`.
std::vector<std::string> answer_rows(const std::vector<Result>& results,
                                     const std::vector<std::string>& names) {
  constexpr std::size_t widest = 120;
  std::vector<const RunColumn*> columns = columns_of(results);
  std::vector<std::string> rows = rows_of(results, names, columns);
  for (const std::string_view follows : {"tokens_per_s", "memory_share", "scaling_efficiency"}) {
    if (std::ranges::max(rows, {}, &std::string::size).size() <= widest) break;
    std::erase_if(columns, [&](const RunColumn* column) { return column->name == follows; });
    rows = rows_of(results, names, columns);
  }
  return rows;
}

std::string answer_legend(const std::vector<Result>& results) {
  std::string text =
      "MFU: the model's FLOP/s, without recomputation, of the GPUs' peak in this precision. "
      "Exposed comm.: communication beside which nothing is computed; idle: neither (pipeline "
      "bubbles, the host); means over all GPUs. Memory: used on the fullest GPU, as in nvidia-smi "
      "(docs/internals/memory.md); GB = 1e9 bytes.";
  if (const std::string baseline = baseline_in_words(results); !baseline.empty())
    text += " Efficiency: model FLOP/s per GPU over that of " + baseline + ".";
  return wrapped(text, 2);
}

std::string where_time_goes(const std::vector<Result>& results) {
  const Result* fastest = nullptr;
  const auto time = [](const Result& one) { return one.outcome.metrics->iteration_time; };
  for (const Result& one : results) {
    if (fits(one) && (fastest == nullptr || time(one) < time(*fastest))) fastest = &one;
  }
  if (fastest == nullptr) return "";
  const sim::Metrics& metrics = *fastest->outcome.metrics;
  const double communication = metrics.exposed_communication / metrics.iteration_time;
  const double computing = 1 - communication - metrics.bubble_fraction;
  const double products = computing * fastest->outcome.extrapolated.products;
  std::vector<std::pair<double, std::string>> parts = {
      {products, "products and attention"},
      {computing - products, "other kernels, by memory bandwidth"},
      {communication, "exposed communication"},
      {metrics.bubble_fraction, "idling"}};
  std::ranges::stable_sort(parts, std::greater<>(), &std::pair<double, std::string>::first);
  std::string text;
  for (const auto& [share, what] : parts)
    text += fmt::format("{}{:.0f} % {}", text.empty() ? "" : ", ", 100 * share, what);
  const std::string who = results.size() == 1 ? "An iteration" : "Fastest: " + fastest->run->name;
  return wrapped(fmt::format("{}: {}. --why simulates what would help most.", who, text), 2);
}

}  // namespace stratagem::report
