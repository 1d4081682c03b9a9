// Rows of the tables, from the evidence of profiles.
#include "calibrate/fit/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/quantity_text.hpp"

namespace stratagem::calibrate {
namespace {

using cost::Compared;
using cost::Evidence;

/// What is asked of a row.
struct Target {
  double median;
  /// Below that of the constant rate, at the 95th percentile; 0 where it is not asked.
  double gain = 0;

  [[nodiscard]] std::string verdict(const Compared& errors) const {
    std::string missed;
    if (errors.fit.median > median) missed = fmt::format("median, {:.0f} %", 100 * median);
    if (gain > 0 && errors.fit.p95 > (1 - gain) * errors.constant.p95)
      missed += fmt::format("{}95th, {:.0f} %", missed.empty() ? "" : "; ",
                            100 * (1 - gain) * errors.constant.p95);
    return missed.empty() ? "yes" : "no: " + missed;
  }
};

constexpr Target large_products{.median = 0.05, .gain = 0.3};
constexpr Target small_products{.median = 0.15};
constexpr Target moving_memory{.median = 0.10};
constexpr Target collectives{.median = 0.06};

/// "V100-SXM2-16GB (DeepBench)" of a longer source.
std::string short_source(const Evidence& evidence) {
  const std::string& source = evidence.source;
  const std::size_t open = source.find(" (");
  if (open == std::string::npos) return source;
  const std::size_t end = source.find_first_of(" ,)", open + 2);
  return source.substr(0, end) + ")";
}

std::string percent(double share) {
  return fmt::format("{:.{}f} %", 100 * share, share < 0.0995 ? 1 : 0);
}

std::string row(const Evidence& evidence, const std::string& shapes, const Compared& errors,
                const Target& target) {
  if (errors.fit.points == 0) return "";
  const std::string constant =
      errors.constant.points == 0
          ? " | "
          : fmt::format("{} | {}", percent(errors.constant.median), percent(errors.constant.p95));
  return fmt::format("| {}{} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", evidence.of,
                     shapes, short_source(evidence), evidence.parameters, errors.fit.points,
                     evidence.families, percent(errors.fit.median), percent(errors.fit.p90),
                     percent(errors.fit.p95), percent(errors.fit.worst), constant,
                     target.verdict(errors));
}

std::string rows(const Evidence& evidence) {
  if (evidence.ranks) return row(evidence, "", evidence.all, collectives);
  if (!evidence.smallest) return row(evidence, "", evidence.all, moving_memory);
  return row(evidence, ", >= 100 GFLOP", evidence.large, large_products) +
         row(evidence, ", smaller", evidence.small, small_products);
}

/// Every fit of the profiles once, products first.
std::vector<const Evidence*> distinct(const std::vector<cost::Profile>& profiles) {
  std::vector<const Evidence*> all;
  std::set<std::pair<std::string, std::string>> seen;
  for (const cost::Profile& profile : profiles) {
    for (const auto& [what, evidence] : profile.evidence) {
      if (what == evidence.of && seen.emplace(evidence.of, evidence.source).second)
        all.push_back(&evidence);
    }
  }
  const auto order = [](const Evidence* evidence) {
    return std::tuple(!evidence->smallest, evidence->ranks.has_value(), evidence->of,
                      evidence->source);
  };
  std::ranges::sort(all, {}, order);
  return all;
}

std::string decades(const std::vector<const Evidence*>& all) {
  std::string text =
      "| | measured on | median by power of ten of the size (points) |\n|---|---|---|\n";
  for (const Evidence* evidence : all) {
    std::string cells;
    for (const auto& [power, errors] : evidence->decades) {
      cells +=
          fmt::format("{}1e{} {}: {} ({})", cells.empty() ? "" : ", ", power,
                      evidence->smallest ? "FLOP" : "B", percent(errors.median), errors.points);
    }
    text += fmt::format("| {} | {} | {} |\n", evidence->of, short_source(*evidence), cells);
  }
  return text;
}

std::string owners(const std::vector<cost::Profile>& profiles) {
  std::string text =
      "| profile | fitted to its architecture | to another one's, assumed |\n|---|---|---|\n";
  for (const cost::Profile& profile : profiles) {
    std::string own;
    std::string others;
    for (const auto& [what, evidence] : profile.evidence) {
      if (what != evidence.of) continue;
      std::string& list = evidence.another_architecture ? others : own;
      list += (list.empty() ? "" : ", ") + what;
    }
    text += fmt::format("| {} | {} | {} |\n", profile.name, own, others);
  }
  return text;
}

}  // namespace

std::string fit_table(const std::vector<cost::Profile>& profiles) {
  const std::vector<const Evidence*> all = distinct(profiles);
  std::string text =
      "| fit | measured on | constants | points | families | median | 90th | 95th | worst | "
      "constant "
      "rate: median | 95th | target met |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const Evidence* evidence : all) text += rows(*evidence);
  return text + "\n" + decades(all) + "\n" + owners(profiles);
}

}  // namespace stratagem::calibrate
