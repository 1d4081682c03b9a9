// Sets of comparable runs, and their order by both times.
#include "study/rankings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/input_error.hpp"
#include "base/median.hpp"

namespace stratagem::study {
namespace {

/// What plans of one set have in common: all but the strategy, the size of micro-batches, and the
/// vocabulary, which frameworks pad for each number of tensor ranks.
std::string setting_of(const Run& run) {
  const JsonReader settings = JsonReader::from_text(run.resolved.text(), run.origin.file);
  std::set<std::string> all = {settings.at("profile").dump(), settings.at("stack").dump(),
                               std::to_string(run.gpus)};
  for (const char* object : {"model", "cluster", "training"}) {
    const JsonReader of = settings.at(object);
    for (const std::string& key : of.keys()) {
      const bool varies = key == "vocabulary" || key == "micro_batch" || key == "gpus";
      if (!varies) all.insert(key + " " + of.at(key).dump());
    }
  }
  std::string text;
  for (const std::string& one : all) text += one + "\n";
  return text;
}

/// By place: its rank from 1; equal values share their mean rank.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<double> result;
  for (const double value : values) {
    const auto less = std::ranges::count_if(values, [&](double other) { return other < value; });
    const auto equal = std::ranges::count(values, value);
    result.push_back(static_cast<double>(less) + static_cast<double>(equal + 1) / 2);
  }
  return result;
}

Ranking ranking_of(const std::vector<const Compared*>& plans) {
  std::vector<double> predicted, measured;
  for (const Compared* plan : plans) {
    predicted.push_back(*plan->figure->predicted);
    measured.push_back(*plan->figure->measured);
  }
  const Run& run = *plans.front()->result->run;
  const auto chosen = std::ranges::min_element(predicted) - predicted.begin();
  const auto fastest = std::ranges::min_element(measured) - measured.begin();
  return {.group = plans.front()->group,
          .of = fmt::format("{:.3g}B parameters, {} GPUs, batch {}",
                            static_cast<double>(model::parameter_count(*run.graph)) / 1e9, run.gpus,
                            run.batch.global),
          .plans = static_cast<int>(plans.size()),
          .correlation = rank_correlation(predicted, measured),
          .chosen = plans[chosen]->result->run->name,
          .loss = measured[chosen] / measured[fastest] - 1,
          .fastest = plans[fastest]->result->run->name};
}

RankingStatistics of_group(const std::string& group, const std::vector<Ranking>& rankings) {
  constexpr double tolerance = 0.03;
  RankingStatistics result{.group = group, .least_correlation = 1};
  std::vector<double> correlations;
  for (const Ranking& one : rankings) {
    correlations.push_back(one.correlation);
    result.least_correlation = std::min(result.least_correlation, one.correlation);
    if (one.loss <= tolerance) ++result.near;
    result.mean_loss += one.loss / static_cast<double>(rankings.size());
  }
  result.sets = static_cast<int>(rankings.size());
  result.median_correlation = median(correlations);
  return result;
}

}  // namespace

std::vector<RankingStatistics> summed_up(const std::vector<Ranking>& rankings) {
  std::vector<std::string> groups;
  std::map<std::string, std::vector<Ranking>> of;
  for (const Ranking& one : rankings) {
    if (!of.contains(one.group)) groups.push_back(one.group);
    of[one.group].push_back(one);
  }
  std::vector<RankingStatistics> result;
  for (const std::string& group : groups) result.push_back(of_group(group, of[group]));
  if (groups.size() > 1) result.push_back(of_group("all", rankings));
  return result;
}

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  expects(a.size() == b.size(), "ranks are compared of two lists of the same length");
  const std::vector<double> of_a = ranks(a), of_b = ranks(b);
  const double mean = static_cast<double>(a.size() + 1) / 2;
  double both = 0, square_a = 0, square_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += (of_a[i] - mean) * (of_b[i] - mean);
    square_a += (of_a[i] - mean) * (of_a[i] - mean);
    square_b += (of_b[i] - mean) * (of_b[i] - mean);
  }
  return square_a == 0 || square_b == 0 ? 0 : both / std::sqrt(square_a * square_b);
}

std::vector<Ranking> rankings(const Validation& validation) {
  constexpr std::size_t least = 5;
  std::vector<std::string> order;
  std::map<std::string, std::vector<const Compared*>> sets;
  for (const Compared& one : validation.compared) {
    const Run& run = *one.result->run;
    if (!one.judges || one.figure->name != "iteration_time" || run.graph == nullptr) continue;
    const std::string key = one.group + "\n" + setting_of(run);
    auto& set = sets[key];
    if (set.empty()) order.push_back(key);
    set.push_back(&one);
  }
  std::vector<Ranking> result;
  for (const std::string& key : order) {
    if (sets[key].size() >= least) result.push_back(ranking_of(sets[key]));
  }
  return result;
}

}  // namespace stratagem::study
