// Chooses the tables that a fit reads, and rounds what it finds to constants.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "calibrate/datasheet.hpp"
#include "calibrate/fit/fit.hpp"
#include "calibrate/fit/least_squares.hpp"
#include "calibrate/measurements.hpp"

namespace stratagem::calibrate {

/// To as many digits as profiles keep.
double rounded(double value, int digits = 4);
Seconds rounded(Seconds value);
BytesPerSecond rounded(BytesPerSecond value);

/// Tables of one kind with the measurements that they stand in.
template <typename Table>
struct Chosen {
  struct Item {
    const Measurements* from;
    const Table* table;
  };
  std::vector<Item> items;
  bool same_architecture = true;

  [[nodiscard]] std::size_t points() const {
    std::size_t count = 0;
    for (const Item& item : items) count += item.table->points.size();
    return count;
  }
  /// "160 points on V100-SXM2-16GB (DeepBench ...)".
  [[nodiscard]] std::string source(const std::string& what) const {
    return (same_architecture ? "fitted to " : "another architecture's, fitted to ") +
           std::to_string(points()) + " " + what + " on " + measured_on();
  }
  /// "V100-SXM2-16GB (DeepBench ...)", "AMD EPYC on 2 ranks (...)".
  [[nodiscard]] std::string measured_on() const {
    std::vector<const Measurements*> files;
    for (const Item& item : items) {
      if (std::find(files.begin(), files.end(), item.from) == files.end())
        files.push_back(item.from);
    }
    std::string text;
    for (const Measurements* file : files) {
      const std::string ranks =
          file->ranks > 1 ? " on " + std::to_string(file->ranks) + " ranks" : "";
      text +=
          (text.empty() ? "" : "; ") + file->device.gpu + ranks + " (" + file->origin.source + ")";
    }
    return text;
  }
};

/// The wanted tables of the datasheet's architecture, or, if there are none, of all other
/// architectures. Among them, tables of files that only stand in are taken only if the other files
/// have none.
template <typename Table, typename Wanted>
Chosen<Table> choose(const std::vector<Measurements>& measurements, const Datasheet& datasheet,
                     std::vector<Table> Measurements::*tables, const Wanted& wanted) {
  for (const bool same : {true, false}) {
    for (const bool stands_in : {false, true}) {
      Chosen<Table> chosen{.items = {}, .same_architecture = same};
      for (const Measurements& from : measurements) {
        const bool of_it = from.device.architecture == datasheet.architecture;
        if (of_it != same || from.stands_in != stands_in) continue;
        for (const Table& table : from.*tables) {
          if (wanted(table)) chosen.items.push_back({&from, &table});
        }
      }
      if (!chosen.items.empty()) return chosen;
    }
  }
  return {.items = {}, .same_architecture = false};
}

/// Makes constants of what one fit gave.
class Source {
 public:
  template <typename Table>
  Source(const Chosen<Table>& chosen, const std::string& what, const Estimate& estimate)
      : provenance_(chosen.same_architecture ? cost::Provenance::fitted
                                             : cost::Provenance::assumed),
        text_(chosen.source(what)),
        error_(rounded(estimate.cross_validated_error, 2)) {}

  template <typename T>
  [[nodiscard]] cost::Constant<T> constant(T value) const {
    return {.value = rounded(value), .provenance = provenance_, .source = text_, .error = error_};
  }

 private:
  cost::Provenance provenance_;
  std::string text_;
  double error_;
};

/// A point of a table as it is judged.
MeasuredPoint judged(const GemmPoint& point);
MeasuredPoint judged(const StreamingPoint& point);
MeasuredPoint judged(const AttentionPoint& point);
MeasuredPoint judged(const AllReducePoint& point);

template <typename Table>
std::vector<MeasuredPoint> judged(const Chosen<Table>& chosen) {
  std::vector<MeasuredPoint> points;
  for (const auto& item : chosen.items) {
    for (const auto& point : item.table->points) points.push_back(judged(point));
  }
  return points;
}

/// Adds what a fit rests on and how good it is.
void note(Fit& fit, const std::string& what, const std::string& measured_on, bool same_architecture,
          const Estimate& estimate, Judgement judgement);
template <typename Table>
void note(Fit& fit, const std::string& what, const Chosen<Table>& chosen, const Estimate& estimate,
          const std::vector<Parameter>& parameters, const LogRatio& log_ratio) {
  note(fit, what, chosen.measured_on(), chosen.same_architecture, estimate,
       judge(parameters, estimate, judged(chosen), log_ratio));
}

/// The constant of a kind that is like another one.
template <typename T>
cost::Constant<T> as_another(const Likeness& likeness, const cost::Constant<T>& original) {
  auto constant = original;
  constant.provenance = std::max(likeness.provenance, original.provenance);
  constant.source = "as " + likeness.as + ": " + likeness.because;
  return constant;
}

/// What another kind rests on, this one does too: its sizes are those that were measured. Errors
/// stand with the other one.
void copy_evidence(cost::Profile& profile, const std::string& from, const std::string& to);

}  // namespace stratagem::calibrate
