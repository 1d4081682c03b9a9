// Declares the kinds of rules about kernels.
#include "cost/kernel_rules.hpp"

#include <algorithm>

#include "cost/attention.hpp"
#include "cost/rule_writing.hpp"
#include "model/operator_kinds.hpp"

namespace stratagem::cost {
namespace {

std::vector<std::string> operators_and_updates() {
  std::vector<std::string> names = model::stack_names();
  names.insert(names.end(), {"gradient_accumulation", "optimizer_step"});
  return names;
}

void check_kernels(const OperatorKernels& rule, const JsonReader& reader) {
  for (const char* key : {"extra_traffic", "synchronizations", "slowdown"}) {
    if (rule.of == "gradient_accumulation" && reader.has(key))
      reader.at(key).fail("no such key of gradient_accumulation");
  }
  const bool update = rule.of == "gradient_accumulation" || rule.of == "optimizer_step";
  for (const char* key : {"temporary", "kept_buffers"}) {
    if (update && reader.has(key))
      reader.at(key).fail("no such key of " + rule.of, reader.at(key).dump());
  }
  if (rule.kept_buffers > 0 && std::ranges::count(model::stack_names("F"), rule.of) == 0)
    reader.at("kept_buffers").fail("no such key but of forward operators");
  if (update && rule.in_library)
    reader.at("in_library").fail("no such key of " + rule.of, reader.at("in_library").dump());
  for (const char* key : {"named", "each_expert"}) {
    if (!reader.has(key)) continue;
    if (update) reader.at(key).fail("no such key of " + rule.of);
    if (rule.kept_buffers > 0) reader.at(key).fail("no such key beside kept_buffers");
  }
  if (rule.each_expert && rule.of.starts_with("contraction"))
    reader.at("each_expert").fail("a rule grouped_products for products");
  if (rule.of != "optimizer_step" && reader.has("flat_shares"))
    reader.at("flat_shares").fail("no such key of " + rule.of, reader.at("flat_shares").dump());
  if (rule.of == "optimizer_step" && reader.has("extra_passes"))
    reader.at("extra_passes").fail("extra_traffic of optimizer_step in place of passes");
}

}  // namespace

RuleKind kernels() {
  Format<std::string> names = name_of("a kind of operator", operators_and_updates());
  names.schema = words(operators_and_updates()).schema;
  return kind<OperatorKernels>(
      {"kernels of a kind of operator", "launches, device memory traffic, rates, waits of the host",
       "temporary buffers, and such as live all the time"},
      {{"operator", &OperatorKernels::of, names,
        "the operator, `.B` or `.W` appended for the gradient of its input or weight; or "
        "`optimizer_step`, of one parameter tensor, or `gradient_accumulation`, of one gradient in "
        "each micro-batch",
        must_be_there},
       {"named", &OperatorKernels::named, some_text(),
        "only where the operator has such a name within its layer (`*` is any text); counts before "
        "a rule about all of its kind",
        "any"},
       {"each_expert", &OperatorKernels::each_expert, flag(),
        "only where it works on tensors of experts, of each of which `launches` are; counts before "
        "a rule about all of its kind"},
       {"launches", &OperatorKernels::launches, whole(0, 10'000),
        "kernels; of a step with those of an optimizer in one pass"},
       {"extra_passes", &OperatorKernels::extra_passes, number(),
        "passes over the largest tensor beyond reading inputs and writing outputs once; of an "
        "accumulation: passes over the gradient"},
       {"extra_traffic", &OperatorKernels::extra_traffic, size_per_element(),
        "device memory traffic for each element of the largest tensor, or for each parameter",
        "none"},
       {"synchronizations", &OperatorKernels::synchronizations, whole(0, 1000),
        "how often the host waits for the kernels, as when it reads a result"},
       {"slowdown", &OperatorKernels::slowdown, positive(1'000),
        "device time over that of the profile's kernels, where another implementation runs"},
       {"temporary", &OperatorKernels::temporary, size_per_element(),
        "buffers that live while the kernels run, for each element of the first result", "none"},
       {"kept_buffers", &OperatorKernels::kept_buffers, whole(0, 100),
        "of a forward operator: buffers of the framework that live all the time, each as large as "
        "the largest first result"},
       {"flat_shares", &OperatorKernels::flat_shares, flag(),
        "of `optimizer_step`: are the shares that ranks step (ZeRO 1 and 2) pieces of one flat "
        "buffer? Then each of n ranks launches and waits for one tensor in n, otherwise for its "
        "piece of every tensor"},
       {"in_library", &OperatorKernels::in_library, flag(),
        "does a library launch the kernels within the call of another operator? Then the host "
        "takes the time of a tiny kernel for each (`kernel_floor`), not a launch of the "
        "framework"}},
      &check_kernels);
}

RuleKind fusions() {
  const auto check = [](const Fusion& rule, const JsonReader& reader) {
    if (!rule.kernel.empty() && std::ranges::count(rule.kinds, rule.kernel) == 0)
      reader.at("kernel").fail("one of the kinds that are fused", rule.kernel);
  };
  return kind<Fusion>(
      {"operators that follow each other and run as one kernel",
       "no launch and no traffic of what passes between them",
       "no buffer for what passes between them"},
      {{"fuse", &Fusion::kinds,
        list_of<std::string>(name_of("kinds of operators", model::stack_names()), 2),
        "their kinds in order; each reads what the one before it wrote", must_be_there},
       {"kernel", &Fusion::kernel, name_of("kinds of operators", model::stack_names()),
        "the one of them whose kernel it is, as fast as that one's", "the last"}},
      check);
}

RuleKind unaligned_batches() {
  return kind<UnalignedBatches>(
      {"how batches of products in 16 bits, as those of attention's heads, are computed where an "
       "operand has rows that do not begin at multiples of 16 bytes; otherwise like all other "
       "products",
       "the rate of these products", ""},
      {{"unaligned_batches", itself<UnalignedBatches>,
        choice<UnalignedBatches>({{"in fp32", UnalignedBatches::in_fp32}}),
        "without tensor cores, at the rates of fp32 products", must_be_there}});
}

RuleKind grouped_products() {
  return kind<GroupedProducts>(
      {"how products are launched whose matrices are one for each expert; otherwise as one kernel",
       "the host's time", ""},
      {{"grouped_products", itself<GroupedProducts>,
        choice<GroupedProducts>({{"one by one", GroupedProducts::one_by_one}}),
        "a launch for each expert, in a loop of a library, on streams beside each other",
        must_be_there}});
}

RuleKind cuda_graph() {
  return kind<CudaGraph>(
      {"operators that CUDA graphs have: those that follow each other are one launch, up to one on "
       "which the host waits",
       "the host's time", "", 0},
      {{"cuda_graph", &CudaGraph::operators, list_of<std::string>(some_text(), 1),
        "patterns of their names within a layer (`*` is any text), such as `attention.*`; of their "
        "gradients, too",
        must_be_there}});
}

RuleKind preferred_attention() {
  const std::vector<std::string> names(attention_implementations.begin(),
                                       attention_implementations.end());
  std::string known;
  for (const std::string& one : names) known += (known.empty() ? "" : ", ") + one;
  const Format<std::string> name = name_of("implementations: " + known, names);
  return kind<PreferredAttention>(
      {"which implementation of fused attention runs; otherwise FlashAttention-2",
       "the rate of fused attention", "", 0},
      {{"attention", &PreferredAttention::implementations, list_of<std::string>(name, 1),
        "the first of them that the profile knows; where it knows none, the only one that it does "
        "know",
        must_be_there}});
}

}  // namespace stratagem::cost
