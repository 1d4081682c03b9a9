// Kinds of rules about kernels: which run, what they move and who launches them.
#pragma once

#include "cost/rule_kind.hpp"

namespace stratagem::cost {

RuleKind kernels();
RuleKind fusions();
RuleKind unaligned_batches();
RuleKind grouped_products();
RuleKind cuda_graph();
RuleKind preferred_attention();

}  // namespace stratagem::cost
