// Finds the function that computes an operator on processors, and says which operators have none.
#include <algorithm>

#include "base/input_error.hpp"
#include "base/table.hpp"
#include "execute/operators/application.hpp"
#include "model/operator_kinds.hpp"

namespace stratagem::execute {

// The files of this folder, each with rows for some kinds.
STRATAGEM_TABLE(execution_files, std::vector<Execution>, products, fused_attentions, pointwise,
                along_rows, on_heads, joins, single_tokens, on_images, mixtures, losses,
                losses_of_numbers)

namespace {

constexpr Execution no_row = {.not_at_all = "for which there is no kernel"};

/// By kind of operator.
const Execution& execution_of(model::OpKind kind) {
  static const std::vector<Execution> by_kind = [] {
    std::vector<Execution> result;
    for (const model::OperatorKind& row : model::operator_kinds()) {
      const auto found = std::ranges::find(executions(), row.name, &Execution::kind);
      result.push_back(found == executions().end() ? no_row : *found);
    }
    return result;
  }();
  return by_kind[static_cast<std::size_t>(kind)];
}

}  // namespace

const std::vector<Execution>& executions() {
  static const std::vector<Execution> rows = [] {
    std::vector<Execution> all = {
        {.kind = "optimizer_step", .not_at_all = "which is not an operator when a program runs"},
        {.kind = "cached_attention", .not_at_all = "whose cache nothing has filled"},
        {.kind = "cast", .not_at_all = "which makes 8-bit numbers of 16-bit ones"}};
    for (const std::vector<Execution>& of_file : execution_files())
      all.insert(all.end(), of_file.begin(), of_file.end());
    return all;
  }();
  return rows;
}

std::string refusal(const model::Graph& graph, const model::Operator& op, Backend backend) {
  const Execution& row = execution_of(op.kind);
  std::string why;
  if (!row.not_at_all.empty()) {
    why = to_text(op.kind) + ", " + std::string(row.not_at_all);
  } else if (backend == Backend::cuda && !row.not_on_gpu.empty()) {
    why = row.not_on_gpu;
  } else if (row.refuses != nullptr) {
    why = row.refuses(graph, op, backend);
  }
  return why.empty() ? why : why + " (operator " + op.name + ")";
}

template <typename T>
void apply(const Application<T>& application) {
  const Execution& row = execution_of(application.op.kind);
  expects(row.not_at_all.empty(), "an operator that is not refused is computed");
  if constexpr (std::is_same_v<T, float>) {
    row.in_float(application);
  } else {
    row.in_double(application);
  }
}

template void apply<float>(const Application<float>&);
template void apply<double>(const Application<double>&);

}  // namespace stratagem::execute
