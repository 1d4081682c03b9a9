// Copies the forward operators one by one, a run's at the place of its last one, part by part.
#include "model/divide.hpp"

#include <string>
#include <utility>

#include "base/input_error.hpp"
#include "model/builder.hpp"

namespace stratagem::model {
namespace {

class Rewriting {
 public:
  Rewriting(const Graph& graph, const std::vector<Division>& divisions)
      : before_(graph), divisions_(divisions), graph_(forward_pass(graph)) {
    graph_.operators.clear();
    for (Segment& segment : graph_.segments) segment.forward.clear();
    parts_.resize(divisions.size());
  }

  Divided run() && {
    std::map<OpId, std::size_t> division_of;
    for (std::size_t d = 0; d < divisions_.size(); ++d) {
      for (const OpId id : divisions_[d].run.operators)
        expects(division_of.emplace(id, d).second, "runs that are divided share no operator");
    }
    for (OpId id = 0; id < static_cast<OpId>(before_.operators.size()); ++id) {
      if (before_.operators[id].pass != Pass::forward) continue;
      const auto found = division_of.find(id);
      if (found == division_of.end()) {
        add(before_.operators[id]);
      } else if (divisions_[found->second].run.operators.back() == id) {
        add_parts(found->second);
      }
    }
    differentiate(graph_, graph_.loss);
    return {std::move(graph_), std::move(parts_)};
  }

 private:
  OpId add(Operator op) {
    const auto id = static_cast<OpId>(graph_.operators.size());
    graph_.segments[op.segment].forward.push_back(id);
    graph_.operators.push_back(std::move(op));
    return id;
  }

  TensorId add_tensor(const Tensor& like, const std::string& suffix) {
    graph_.tensors.push_back(like);
    graph_.tensors.back().name += suffix;
    return static_cast<TensorId>(graph_.tensors.size()) - 1;
  }

  void add_parts(std::size_t division) {
    const auto& [run, parts] = divisions_[division];
    copies_.clear();
    for (const OpId id : run.operators)
      divide_operands(before_.operators[id], run.split.at(id), parts);
    const Operator& last = before_.operators[run.operators.back()];
    expects(last.outputs.size() == 1 && last.combine == Combine::sum, "a run ends in a sum");
    const TensorId whole = last.outputs.front();
    for (int k = 0; k < parts && parts > 1; ++k)
      copies_[whole].push_back(add_tensor(graph_.tensors[whole], part_name(k)));
    TensorId sum = -1;
    for (int k = 0; k < parts; ++k) {
      std::vector<OpId>& ops = parts_[division].emplace_back();
      for (const OpId id : run.operators)
        ops.push_back(add_copy(before_.operators[id], run.split.at(id), k, parts));
      if (parts > 1) sum = k == 0 ? copies_[whole][0] : add_sum(last, sum, k, parts);
    }
  }

  /// Makes the parts of every operand that has the divided dimension.
  void divide_operands(const Operator& op, const std::string& identifier, int parts) {
    const auto divide = [&](const std::vector<TensorId>& tensors,
                            const std::vector<std::vector<Term>>& terms) {
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        const int dimension = dimension_of(terms[i], identifier);
        if (dimension < 0) continue;
        const std::int64_t size = before_.tensors[tensors[i]].shape[dimension];
        if (size % parts != 0) {
          throw InputError("", "",
                           "dimension " + identifier + " of operator " + op.name +
                               " to divide into " + std::to_string(parts) + " equal parts",
                           std::to_string(size));
        }
        divide_tensor(tensors[i], dimension, parts);
      }
    };
    divide(op.inputs, op.annotation->inputs);
    divide(op.outputs, op.annotation->outputs);
  }

  void divide_tensor(TensorId tensor, int dimension, int parts) {
    if (parts == 1 || copies_.contains(tensor)) return;
    Origin origin = origin_of(graph_.tensors[tensor], tensor);
    graph_.tensors[tensor].shape[dimension] /= parts;
    graph_.tensors[tensor].origin = origin;
    std::vector<TensorId>& copies = copies_[tensor];
    for (int k = 1; k < parts; ++k) {
      copies.push_back(add_tensor(graph_.tensors[tensor], part_name(k)));
      origin.begin[dimension] += graph_.tensors[tensor].shape[dimension];
      graph_.tensors.back().origin = origin;
    }
    graph_.tensors[tensor].name += part_name(0);
    copies.insert(copies.begin(), tensor);
  }

  static std::string part_name(int k) { return ".part" + std::to_string(k); }

  OpId add_copy(Operator op, const std::string& identifier, int k, int parts) {
    if (parts > 1) {
      op.name += part_name(k);
      op.copies *= parts;
      op.shared = identifier;
    }
    for (auto* operands : {&op.inputs, &op.outputs}) {
      for (TensorId& tensor : *operands) {
        const auto found = copies_.find(tensor);
        if (found != copies_.end()) tensor = found->second[k];
      }
    }
    return add(std::move(op));
  }

  /// Adds the result of part k to the sum of those before it; the last sum is what the run leaves.
  TensorId add_sum(const Operator& last, TensorId before, int k, int parts) {
    const TensorId whole = last.outputs.front();
    const std::string name = ".sum" + std::to_string(k);
    const TensorId result = k + 1 == parts ? whole : add_tensor(graph_.tensors[whole], name);
    const std::vector<Term>& terms = last.annotation->outputs.front();
    const std::string dims = to_text(terms, terms);
    add({.name = last.name + name,
         .kind = OpKind::add,
         .pass = Pass::forward,
         .annotation = parse_annotation(dims + ", " + dims + " -> " + dims),
         .inputs = {before, copies_[whole][k]},
         .outputs = {result},
         .segment = last.segment,
         .forward = -1,
         .combine = Combine::sum});
    return result;
  }

  const Graph& before_;
  const std::vector<Division>& divisions_;
  Graph graph_;
  std::vector<std::vector<std::vector<OpId>>> parts_;
  std::map<TensorId, std::vector<TensorId>> copies_;  ///< of the run at hand: by tensor, its parts
};

}  // namespace

Divided divide(const Graph& graph, const std::vector<Division>& divisions) {
  return Rewriting(graph, divisions).run();
}

}  // namespace stratagem::model
