// Operators of a plan for which a primitive says the same, named by one selector.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "strategies/language/summary.hpp"
#include "strategies/plan/plan.hpp"

namespace stratagem::strategies {

/// What is said of which operators, in the order in which it was first said.
template <typename Key>
class OperatorGroups {
 public:
  explicit OperatorGroups(const Plan& plan) : plan_(plan) {}

  void add(const Key& key, model::OpId op) {
    auto found = std::ranges::find(groups_, key, [](const auto& group) { return group.first; });
    if (found == groups_.end()) found = groups_.insert(groups_.end(), {key, {}});
    found->second.push_back(op);
  }

  /// Every key with a selector of its operators.
  [[nodiscard]] std::vector<std::pair<Key, std::string>> selectors() const {
    std::vector<std::pair<Key, std::string>> result;
    for (const auto& [key, ops] : groups_)
      result.emplace_back(key, selector_of_operators(plan_.graph(), ops));
    return result;
  }

 private:
  const Plan& plan_;
  std::vector<std::pair<Key, std::vector<model::OpId>>> groups_;
};

}  // namespace stratagem::strategies
