// A plan while its file is read: the plan, and what must hold once every primitive has spoken.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/json_reader.hpp"
#include "model/divide.hpp"
#include "strategies/language/selector.hpp"
#include "strategies/plan/plan.hpp"

namespace stratagem::strategies {

/// Paths are JSON pointers of primitives: errors name them. All throw InputError without a file.
class PlanBuilder {
 public:
  PlanBuilder(const model::Graph& graph, int micro_batches);

  [[nodiscard]] Plan& plan() { return plan_; }
  /// The graph before any of its operators were divided on their devices.
  [[nodiscard]] const model::Graph& given() const { return given_; }

  /// What a selector names; `values` are names for stage(...).
  [[nodiscard]] std::vector<model::OpId> operators(
      const JsonReader& selector,
      const std::vector<std::pair<std::string, std::int64_t>>& values = {}) const;
  /// What a selector names of the given graph.
  [[nodiscard]] std::vector<model::OpId> given_operators(const JsonReader& selector) const;
  [[nodiscard]] std::vector<int> segments(const JsonReader& selector) const;

  /// op-trans of runs of the given graph on their devices, besides those before.
  void colocate(const std::vector<model::Division>& divisions, const std::string& path);
  /// op-trans along a new axis.
  void split(model::OpId op, const Split& split, const std::string& axis, const std::string& path);
  /// Has an operator such an axis?
  [[nodiscard]] bool has_axis(const std::string& axis) const;
  /// op-assign of the parts along an axis.
  void assign(model::OpId op, const std::string& axis, int stride, const std::string& path);
  /// op-assign of the whole operator.
  void assign(model::OpId op, int first_device, int copy, const std::string& path);

  /// op-assign of every part to a device of its own, those of the last axis fastest.
  void assign(model::OpId op, const std::vector<int>& devices, int copy, const std::string& path);

  /// Refuses parts and operators that stand nowhere, and parts of one operator on one device.
  void check_assigned() const;

 private:
  /// An axis of an operator.
  struct Level {
    Parts parts;
    int size = 1;
    std::string split_path;
    std::string assign_path;  ///< empty: not assigned yet
  };
  [[nodiscard]] const std::string& name(model::OpId op) const;
  void claim(model::OpId op, int copy, const std::string& path);
  void check_levels(model::OpId op) const;
  void check_devices() const;

  const model::Graph& given_;
  Plan plan_;
  std::vector<model::Division> divisions_;
  std::vector<std::map<std::string, Level>> levels_;  ///< by operator, then name of the axis
  std::map<std::pair<model::OpId, int>, std::string> whole_;  ///< paths by operator and copy
};

}  // namespace stratagem::strategies
