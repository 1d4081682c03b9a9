// Finds the operators of a rule in the forward pass of every segment.
#include "study/stack_facts.hpp"

#include <algorithm>
#include <vector>

#include "base/input_error.hpp"
#include "model/operator_kinds.hpp"

namespace stratagem::study {
namespace {

std::vector<std::string> forward_names(const model::Graph& graph, const model::Segment& segment) {
  std::vector<std::string> names;
  for (const model::OpId id : segment.forward)
    names.push_back(model::stack_name(graph.operators[id]));
  return names;
}

/// Does a segment have both operators of a rule, and the second behind the first?
enum class Readers { not_both, in_front, behind };
Readers found(const cost::HeldInputs& rule, const std::vector<std::string>& names) {
  const auto reader = std::ranges::find(names, rule.of);
  if (reader == names.end() || std::ranges::count(names, rule.until) == 0) return Readers::not_both;
  return std::find(reader, names.end(), rule.until) == names.end() ? Readers::in_front
                                                                   : Readers::behind;
}

}  // namespace

void check_held_inputs(const cost::Stack& stack, const model::Graph& graph,
                       const std::string& file) {
  for (const auto& rule : cost::rules_of<cost::HeldInputs>(stack)) {
    bool in_front = false;
    bool behind = false;
    for (const model::Segment& segment : graph.segments) {
      const Readers where = found(rule, forward_names(graph, segment));
      in_front = in_front || where == Readers::in_front;
      behind = behind || where == Readers::behind;
    }
    if (in_front && !behind) {
      throw InputError(file, "/rules",
                       "hold_inputs_of " + rule.of + " until an operator behind it in a layer",
                       rule.until);
    }
  }
}

}  // namespace stratagem::study
