// Compares the order of plans by predicted and by measured time: rank correlation, and the cost of
// a wrong choice.
#pragma once

#include <string>
#include <vector>

#include "study/validation.hpp"

namespace stratagem::study {

/// Plans of one model that were measured on equally many GPUs with the same batch.
struct Ranking {
  std::string group;
  std::string of;  ///< "39.1B parameters, 512 GPUs, batch 1536"
  int plans = 0;
  /// Spearman's rank correlation of predicted and measured iteration times; of equal times the mean
  /// rank. 0 where all of either are equal.
  double correlation = 0;
  std::string chosen;  ///< the run that is predicted to be fastest; of equals the first
  /// Its measured iteration time over that of the fastest plan, less 1.
  double loss = 0;
  std::string fastest;  ///< the run that was measured to be fastest
};

/// Of all sets of at least five plans whose iteration times count, in the order of the first of
/// each.
std::vector<Ranking> rankings(const Validation& validation);

/// The rankings of one group, or of all groups, summed up.
struct RankingStatistics {
  std::string group;
  int sets = 0;
  double median_correlation = 0;
  double least_correlation = 0;
  int near = 0;          ///< sets whose choice is at most 3 % slower than the fastest
  double mean_loss = 0;  ///< of Ranking::loss
};

/// Of every group in the order of its first ranking; where there are several groups, "all" behind
/// them.
std::vector<RankingStatistics> summed_up(const std::vector<Ranking>& rankings);

/// Spearman's, of two lists of the same length.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace stratagem::study
