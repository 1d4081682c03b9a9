// Divides runs of operators, and identifies runs by the operators in which they end.
#include "strategies/language/colocate.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "strategies/language/summary.hpp"

namespace stratagem::strategies {
namespace {

std::vector<Colocation> told(const model::Graph& graph,
                             const std::vector<model::Division>& divisions) {
  std::vector<Colocation> result;
  std::vector<std::vector<model::OpId>> ends;  // of runs, by colocation
  for (const auto& [run, parts] : divisions) {
    const model::OpId last = run.operators.back();
    const Colocation one{.operators = "", .dim = run.split.at(last), .parts = parts};
    const auto same = std::ranges::find(result, one) - result.begin();
    if (same == std::ssize(result)) {
      result.push_back(one);
      ends.emplace_back();
    }
    ends[same].push_back(last);
  }
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i].operators = selector_of_operators(graph, ends[i]);
  return result;
}

}  // namespace

std::vector<std::vector<std::vector<model::OpId>>> colocate(
    Plan& plan, const model::Graph& graph, const std::vector<model::Division>& divisions) {
  model::Divided divided = model::divide(graph, divisions);
  plan.rewrite(std::move(divided.graph), told(graph, divisions));
  return std::move(divided.parts);
}

}  // namespace stratagem::strategies
