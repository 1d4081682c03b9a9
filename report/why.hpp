// Why runs take as long as they do: where time and memory go, and what more of one thing would
// change.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.hpp"
#include "report/columns.hpp"
#include "study/gains.hpp"
#include "study/simulate.hpp"

namespace stratagem::report {

/// How GPUs spend an iteration, as sim::Metrics has it.
struct Spent {
  Seconds iteration;
  Seconds exposed_communication;
  double bubble_fraction;
};
/// A row for each: the shares of computing, of communicating without computing, and of neither.
/// `shares_legend` says so for people.
std::vector<Column> shares_of_time(const std::vector<Spent>& all);
inline constexpr std::string_view shares_legend =
    "comp. is computing, comm. communication beside which nothing is computed, and idle neither "
    "(mean of all GPUs).";

/// A run that was simulated and fits.
struct Explained {
  std::string name;
  const study::Outcome* outcome;
  std::vector<study::Gain> gains;
};

/// A row for each: where its time goes, and what twice as much of each thing would change in it.
/// Below it what fills the fullest GPU.
std::string why_text(const std::vector<Explained>& runs);

/// {"network": 1.25, ...}: the iteration time in s with twice as much of each thing; null where
/// that is no plan or does not fit.
Json to_json(const std::vector<study::Gain>& gains);

}  // namespace stratagem::report
