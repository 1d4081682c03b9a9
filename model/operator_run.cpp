// Walks back from every product with a parameter along the dimension over which it sums.
#include "model/operator_run.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace stratagem::model {
namespace {

class Search {
 public:
  explicit Search(const Graph& graph)
      : graph_(graph), producer_(graph.tensors.size(), -1), readers_(graph.tensors.size()) {
    for (OpId id = 0; id < static_cast<OpId>(graph.operators.size()); ++id) {
      const Operator& op = graph.operators[id];
      if (op.pass != Pass::forward) continue;
      for (const TensorId tensor : op.outputs) producer_[tensor] = id;
      for (const TensorId tensor : op.inputs) readers_[tensor].push_back(id);
    }
  }

  /// The run that ends where `last` sums over `identifier`.
  [[nodiscard]] std::optional<OperatorRun> ending(OpId last, const std::string& identifier) const {
    std::map<OpId, std::string> split = {{last, identifier}};
    std::vector<OpId> open = {last};
    while (!open.empty()) {
      const OpId id = open.back();
      open.pop_back();
      const auto sources = sources_of(id, split.at(id));
      if (!sources) return std::nullopt;
      for (const auto& [source, name] : *sources) {
        const auto [known, fresh] = split.emplace(source, name);
        if (known->second != name) return std::nullopt;
        if (fresh) open.push_back(source);
      }
    }
    if (split.size() == 1 || !stands_alone(last, split)) return std::nullopt;
    OperatorRun run{.operators = {}, .split = std::move(split)};
    for (const auto& [id, name] : run.split) run.operators.push_back(id);
    return run;
  }

 private:
  using Split = std::map<OpId, std::string>;

  /// The operators that must divide too where one divides `identifier`, and what they call it;
  /// nullopt where it cannot, since an operand comes divided from elsewhere.
  [[nodiscard]] std::optional<Split> sources_of(OpId id, const std::string& identifier) const {
    const Operator& op = graph_.operators[id];
    if (!may_split(*op.annotation, identifier)) return std::nullopt;
    Split sources;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const int dimension = dimension_of(op.annotation->inputs[i], identifier);
      const TensorId tensor = op.inputs[i];
      if (dimension < 0) continue;
      if (graph_.tensors[tensor].role == Role::parameter) {
        if (readers_[tensor].size() != 1) return std::nullopt;
        continue;
      }
      const OpId source = producer_[tensor];
      if (source < 0 || graph_.operators[source].segment != op.segment) return std::nullopt;
      const Operator& from = graph_.operators[source];
      const auto output = std::ranges::find(from.outputs, tensor) - from.outputs.begin();
      sources[source] = from.annotation->outputs[output][dimension].identifiers.front();
    }
    return sources;
  }

  /// Does everything that the run computes come out divided, for operators of the run that divide
  /// the same dimension?
  [[nodiscard]] bool stands_alone(OpId last, const Split& split) const {
    for (const auto& [id, name] : split) {
      const Operator& op = graph_.operators[id];
      if (id == last) continue;
      for (std::size_t o = 0; o < op.outputs.size(); ++o) {
        const int dimension = dimension_of(op.annotation->outputs[o], name);
        if (dimension < 0 || !read_within(op.outputs[o], dimension, split)) return false;
      }
    }
    return true;
  }

  [[nodiscard]] bool read_within(TensorId tensor, int dimension, const Split& split) const {
    const auto recycled = [&](const auto& pair) { return pair.first == tensor; };
    if (tensor == graph_.loss || std::ranges::any_of(graph_.recycled, recycled)) return false;
    return std::ranges::all_of(readers_[tensor], [&](OpId reader) {
      const auto found = split.find(reader);
      if (found == split.end()) return false;
      const Operator& op = graph_.operators[reader];
      const auto input = std::ranges::find(op.inputs, tensor) - op.inputs.begin();
      return dimension_of(op.annotation->inputs[input], found->second) == dimension;
    });
  }

  const Graph& graph_;
  std::vector<OpId> producer_;              ///< by tensor: its forward operator
  std::vector<std::vector<OpId>> readers_;  ///< by tensor: forward operators
};

bool multiplies_parameter(const Graph& graph, const Operator& op) {
  return op.pass == Pass::forward && op.kind == OpKind::contraction &&
         std::ranges::any_of(op.inputs, [&](TensorId tensor) {
           return graph.tensors[tensor].role == Role::parameter;
         });
}

}  // namespace

std::vector<OperatorRun> operator_runs(const Graph& graph) {
  const Search search(graph);
  std::vector<OperatorRun> result;
  for (OpId id = 0; id < static_cast<OpId>(graph.operators.size()); ++id) {
    const Operator& op = graph.operators[id];
    if (!multiplies_parameter(graph, op)) continue;
    for (const std::string& identifier : op.annotation->reductions) {
      if (auto run = search.ending(id, identifier)) result.push_back(std::move(*run));
    }
  }
  return result;
}

}  // namespace stratagem::model
