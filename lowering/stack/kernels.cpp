// Maps kinds of operators to kinds of kernels, and local shapes to GEMM sizes and bytes moved.
#include "lowering/stack/kernels.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "base/pattern.hpp"
#include "cost/attention.hpp"
#include "cost/kernel_kind.hpp"
#include "cost/kernel_time.hpp"
#include "lowering/stack/extra_states.hpp"
#include "lowering/stages/segment.hpp"
#include "model/operator_kinds.hpp"

namespace stratagem::lowering {
namespace {

using model::OpKind;

cost::KernelKind kernel_kind(const model::Operator& op) {
  const model::OperatorKind& row = model::row_of(op.kind);
  return cost::kernel_kind(op.pass == model::Pass::forward ? row.kernel : row.gradient_kernel);
}

double product(const std::vector<std::int64_t>& shape) {
  double elements = 1;
  for (const std::int64_t size : shape) elements *= static_cast<double>(size);
  return elements;
}

/// Sizes of the leading identifiers of one operand.
std::map<std::string, std::int64_t> sizes(const std::vector<model::Term>& terms,
                                          const std::vector<std::int64_t>& shape) {
  std::map<std::string, std::int64_t> result;
  for (std::size_t d = 0; d < terms.size(); ++d) result[terms[d].identifiers.front()] = shape[d];
  return result;
}

void set_gemm_sizes(cost::Kernel& kernel, const model::Operator& op, const Shapes& inputs,
                    const Shapes& outputs) {
  const auto a = sizes(op.annotation->inputs[0], inputs[0]);
  const auto b = sizes(op.annotation->inputs[1], inputs[1]);
  const auto c = sizes(op.annotation->outputs[0], outputs[0]);
  kernel.m = kernel.n = kernel.k = kernel.batch = 1;
  for (const auto& [name, size] : a) {
    std::int64_t& target = !c.contains(name)  ? kernel.k
                           : b.contains(name) ? kernel.batch
                                              : kernel.m;
    target *= size;
  }
  for (const auto& [name, size] : b) {
    if (!a.contains(name)) kernel.n *= size;
  }
  const auto real = [](std::int64_t size) { return static_cast<double>(size); };
  kernel.flops = Flops{2 * real(kernel.m) * real(kernel.n) * real(kernel.k) * real(kernel.batch)};
}

/// The bytes, up to 16, at whose multiples all rows of operands in 16 bits begin. The last
/// dimension is contiguous.
int alignment_of(const Shapes& operands, int most = 16) {
  int bytes = most;
  for (const std::vector<std::int64_t>& shape : operands)
    while (!shape.empty() && 2 * shape.back() % bytes != 0) bytes /= 2;
  return bytes;
}

/// What unaligned products in 16 bits run on: batches without tensor cores, if the stack says so.
void choose_cores(cost::Kernel& kernel, const Shapes& inputs, const Shapes& outputs,
                  const cost::Stack& stack) {
  if (model::size_of(kernel.type) != 2_B) return;
  const int alignment = alignment_of(outputs, alignment_of(inputs));
  if (alignment == 16) return;
  if (kernel.batch > 1 && cost::says(stack, cost::UnalignedBatches::in_fp32)) {
    kernel.type = model::DataType::fp32;
  } else {
    kernel.alignment = alignment;
  }
}

/// Does it work on a tensor of experts: one whose first dimension they are?
bool works_on_experts(const model::Operator& op) {
  return model::dimension_of(op.annotation->inputs[0], "expert") == 0;
}

/// Has each matrix of a batch, as experts have, a launch of its own?
bool launches_one_by_one(const model::Graph& graph, const model::Operator& op,
                         const cost::Stack& stack) {
  const model::Operator& forward = op.forward < 0 ? op : graph.operators[op.forward];
  return graph.tensors[forward.inputs[1]].role == model::Role::parameter &&
         cost::says(stack, cost::GroupedProducts::one_by_one);
}

/// Tokens of a sample in the KV cache after a pass: those before and the new ones.
std::int64_t filled_of(const model::Operator& op, const Shapes& inputs) {
  return op.cached + inputs[3][1];
}

/// Twice the pairs of a query and a key that see each other in a document behind a causal mask, as
/// AttentionShape::seen counts them.
std::int64_t twice_pairs(std::int64_t length, std::int64_t window) {
  const bool windowed = window > 0 && window < length;
  return windowed ? 2 * length * window - window * (window - 1) : length * length;
}

/// Queries, keys and the size of a query's head; of a gradient the same, whatever it is of. FLOPs
/// are those of the products that the kernel computes, of pairs of tokens that see each other; the
/// gradient of the queries has the one that gives the scores again.
void set_attention(cost::Kernel& kernel, const model::Graph& graph, const model::Operator& op,
                   const Shapes& inputs) {
  const bool forward = op.pass == model::Pass::forward;
  const std::size_t queries = forward ? 0 : 1;  // what comes back for the output stands before them
  const auto q = sizes(op.annotation->inputs[queries], inputs[queries]);
  const auto k = sizes(op.annotation->inputs[queries + 1], inputs[queries + 1]);
  kernel.m = q.at("s");
  kernel.n = k.at("t");
  if (op.kind == OpKind::cached_attention) {
    kernel.n = filled_of(op, inputs);
    kernel.seen.before = op.cached;
    kernel.seen.in_cache = true;
  }
  kernel.k = k.at("d");
  kernel.batch = q.at("b") * q.at("g") * (q.at("e") / kernel.k);
  kernel.seen.all = op.kind == OpKind::fused_attention_to_all;
  const model::Operator& attention = forward ? op : graph.operators[op.forward];
  kernel.seen.window = attention.window;
  for (const std::int64_t length : attention.documents) {
    kernel.seen.longest_document = std::max(kernel.seen.longest_document, length);
    kernel.seen.twice_pairs += twice_pairs(length, attention.window);
  }
  const bool of_queries = model::dimension_of(op.annotation->outputs[0], "s") >= 0;
  const std::int64_t widths = widths_of_attention(op, kernel.k, inputs[queries + 2].back()) +
                              (!forward && of_queries ? kernel.k : 0);
  const cost::AttentionShape shape = cost::attention_shape(kernel);
  kernel.flops =
      Flops{2 * static_cast<double>(widths) * shape.heads * shape.queries * shape.seen()};
}

/// What it reads of an operand: one token of all, or a part of every row of what was joined.
std::vector<std::int64_t> read_of(const model::Operator& op,
                                  const std::vector<std::int64_t>& operand,
                                  const std::vector<std::int64_t>& result) {
  static const OpKind first_token = model::operator_named("first_token");
  static const OpKind last_token = model::operator_named("last_token");
  static const OpKind join = model::operator_named("join");
  const bool forward = op.pass == model::Pass::forward;
  if ((op.kind == first_token || op.kind == last_token) && forward) return result;
  std::vector<std::int64_t> part = operand;
  if (op.kind == join && !forward) part.back() = result.back();
  return part;
}

/// Does the operator move this operand through memory as a whole?
bool moves(const model::Operator& op, const std::vector<std::int64_t>& operand,
           const std::vector<std::int64_t>& result) {
  if (op.kind == OpKind::pick) return operand.size() == result.size();
  const bool looks_up =
      op.kind == OpKind::cross_entropy && op.pass == model::Pass::forward && op.outputs.size() == 1;
  return !looks_up || operand.size() == result.size();
}

Bytes bytes_moved(const model::Graph& graph, const model::Operator& op, const Shapes& inputs,
                  const Shapes& outputs, const cost::OperatorKernels& rule) {
  Bytes total;
  Bytes largest_operand;
  Bytes extra;  // for each element of it
  const auto count = [&](model::TensorId tensor, const std::vector<std::int64_t>& shape) {
    const bool made = std::ranges::count(op.outputs, tensor) > 0;
    const model::DataType type =
        made ? computed_type(graph, op, tensor) : graph.tensors[tensor].type;
    const Bytes bytes = product(shape) * model::size_of(type);
    total += bytes;
    if (bytes < largest_operand) return;
    largest_operand = bytes;
    extra = product(shape) * rule.extra_traffic;
  };
  if (op.kind == OpKind::identity) return {};
  if (op.kind == OpKind::embedding) {  // the rows that tokens pick, read and written
    const bool forward = op.pass == model::Pass::forward;
    const auto& rows = forward ? outputs[0] : inputs[0];
    count(forward ? op.outputs[0] : op.inputs[0], rows);
    return std::max(0.0, 2 + rule.extra_passes) * total + extra;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (op.kind == OpKind::cached_attention && (i == 1 || i == 2)) {
      std::vector<std::int64_t> filled = inputs[i];
      filled[1] = filled_of(op, inputs);
      count(op.inputs[i], filled);
      continue;
    }
    if (moves(op, inputs[i], outputs[0])) count(op.inputs[i], read_of(op, inputs[i], outputs[0]));
  }
  // One kernel reads all that the gradients of queries, keys and values need: a third each.
  if (is_fused_attention(op) && op.pass != model::Pass::forward) total = total / 3;
  for (std::size_t i = 0; i < outputs.size(); ++i) count(op.outputs[i], outputs[i]);
  return std::max(Bytes{}, total + rule.extra_passes * largest_operand) + extra;
}

}  // namespace

cost::OperatorKernels kernels_of(const cost::Stack& stack, const std::string& name) {
  return cost::rule_about(stack, &cost::OperatorKernels::of, name);
}

cost::OperatorKernels kernels_of(const cost::Stack& stack, const model::Graph& graph,
                                 const model::Operator& op) {
  const std::string kind = stack_name(op);
  const model::Operator& named = op.forward < 0 ? op : graph.operators[op.forward];
  const cost::OperatorKernels* of_kind = nullptr;
  for (auto rule = stack.rules.rbegin(); rule != stack.rules.rend(); ++rule) {
    const auto* one = std::get_if<cost::OperatorKernels>(&*rule);
    if (one == nullptr || one->of != kind) continue;
    const bool of_some = !one->named.empty() || one->each_expert;
    if (of_some && (one->named.empty() || matches(name_within(graph, named), one->named)) &&
        (!one->each_expert || works_on_experts(op)))
      return *one;
    if (!of_some && of_kind == nullptr) of_kind = one;
  }
  return of_kind == nullptr ? cost::OperatorKernels{} : *of_kind;
}

cost::Kernel kernel_of(const model::Graph& graph, const model::Operator& op, const Shapes& inputs,
                       const Shapes& outputs, const cost::Stack& stack) {
  const cost::OperatorKernels rule = kernels_of(stack, graph, op);
  cost::Kernel kernel;
  kernel.kind = kernel_kind(op);
  kernel.type = graph.tensors[op.kind == OpKind::embedding ? op.outputs[0] : op.inputs[0]].type;
  if (op.pass == model::Pass::forward)
    kernel.pass = cost::KernelPass::forward;
  else if (op.pass != model::Pass::optimizer)
    kernel.pass = cost::KernelPass::gradient;
  kernel.traffic = bytes_moved(graph, op, inputs, outputs, rule);
  kernel.launches = op.kind == OpKind::identity ? 0 : rule.launches;
  if (rule.each_expert) kernel.launches *= static_cast<int>(inputs[0][0]);
  if (rule.in_library) kernel.by = cost::LaunchedBy::library;
  kernel.slowdown = rule.slowdown;
  if (op.kind == OpKind::contraction) {
    set_gemm_sizes(kernel, op, inputs, outputs);
    choose_cores(kernel, inputs, outputs, stack);
    if (kernel.batch > 1 && launches_one_by_one(graph, op, stack)) {
      kernel.launches *= static_cast<int>(kernel.batch);
      kernel.by = cost::LaunchedBy::loop;
    }
  }
  if (is_fused_attention(op)) {
    set_attention(kernel, graph, op, inputs);
  }
  return kernel;
}

void hold_gradient(cost::Kernel& kernel, const model::Graph& graph, const model::Operator& op,
                   double elements, bool adds, const cost::Stack& stack) {
  const cost::OperatorKernels rule = kernels_of(stack, "gradient_accumulation");
  const Bytes computed = elements * model::size_of(computed_type(graph, op, op.outputs[0]));
  const Bytes held = elements * model::size_of(graph.tensors[op.outputs[0]].type);
  if (!held_in_another_type(graph, op)) {
    kernel.traffic += adds ? rule.extra_passes * held : Bytes{};
    kernel.launches += adds ? rule.launches : 0;
  } else {  // up to three passes of the framework are those of one addition
    const double more = adds ? 2 + std::max(0.0, rule.extra_passes - 3) : 1;
    kernel.traffic += computed + more * held;
    kernel.launches += adds ? std::max(1, rule.launches) : 1;
  }
}

model::DataType computed_type(const model::Graph& graph, const model::Operator& op,
                              model::TensorId output) {
  const bool of_weight = op.pass == model::Pass::weight_gradient;
  return graph.tensors[of_weight ? graph.operators[op.forward].outputs[0] : output].type;
}

bool held_in_another_type(const model::Graph& graph, const model::Operator& op) {
  return op.pass == model::Pass::weight_gradient &&
         computed_type(graph, op, op.outputs[0]) != graph.tensors[op.outputs[0]].type;
}

cost::Kernel optimizer_kernel(const cost::Stepped& tensor, const cost::Training& training,
                              const cost::Stack& stack) {
  const cost::OperatorKernels rule = kernels_of(stack, "optimizer_step");
  cost::Kernel kernel;
  kernel.kind = cost::KernelKind::optimizer;
  kernel.type = model::DataType::fp32;
  kernel.traffic = cost::step_traffic(training, tensor) + tensor.elements * rule.extra_traffic;
  kernel.launches = rule.launches + training.optimizer.passes - 1;
  kernel.slowdown = rule.slowdown;
  return kernel;
}

cost::Kernel host_optimizer_kernel(const cost::Stepped& tensor, const cost::Training& training,
                                   const cost::Stack& stack) {
  cost::Kernel kernel;
  kernel.kind = cost::KernelKind::host_optimizer;
  kernel.type = model::DataType::fp32;
  kernel.traffic = cost::step_traffic(training, tensor);
  for (const Bytes size :
       bytes_kept_with(stack, training.precision, cost::ExtraState::With::states))
    kernel.traffic += 2 * tensor.elements * size;
  kernel.launches = 0;
  return kernel;
}

}  // namespace stratagem::lowering
