// Every kind of operator has a kernel that costs something, and is computed or says why not.
#include <algorithm>
#include <set>

#include "cost/kernel.hpp"
#include "cost/kernel_kind.hpp"
#include "execute/operators/application.hpp"
#include "model/operator_kinds.hpp"
#include "tests/catch.hpp"

namespace stratagem::execute::kinds_test {

TEST_CASE("a kind of operator has kernels, and is executed or says why it is simulated only") {
  std::set<std::string_view> names;
  for (const model::OperatorKind& kind : model::operator_kinds()) {
    INFO(kind.name);
    CHECK(names.insert(kind.name).second);
    CHECK(to_text(model::operator_named(kind.name)) == kind.name);
    CHECK_NOTHROW(cost::kernel_kind(kind.kernel));
    CHECK_NOTHROW(cost::kernel_kind(kind.gradient_kernel));
    const auto row = std::ranges::find(executions(), kind.name, &Execution::kind);
    REQUIRE(row != executions().end());
    const bool runs = row->in_float != nullptr && row->in_double != nullptr;
    CHECK(runs == row->not_at_all.empty());
    CHECK((kind.in_stacks.empty() || kind.passes.empty()));
    for (const model::GradientRule& rule : kind.gradients) {
      INFO(rule.kind);
      CHECK((rule.kind.empty() || names.contains(rule.kind) ||
             to_text(model::operator_named(rule.kind)) == rule.kind));
    }
  }
  for (const Execution& row : executions()) {
    INFO(row.kind);
    CHECK(names.contains(row.kind));
    CHECK(std::ranges::count(executions(), row.kind, &Execution::kind) == 1);
  }
}

TEST_CASE("kinds that code names are the first rows, in its order") {
  using model::OpKind;
  CHECK(to_text(OpKind::embedding) == "embedding");
  CHECK(to_text(OpKind::contraction) == "contraction");
  CHECK(to_text(OpKind::fused_attention) == "fused_attention");
  CHECK(to_text(OpKind::scaled_softmax) == "scaled_softmax");
  CHECK(to_text(OpKind::fused_attention_to_all) == "fused_attention_to_all");
  CHECK(to_text(OpKind::swiglu) == "swiglu");
  CHECK(to_text(OpKind::combine) == "combine");
  CHECK(to_text(OpKind::optimizer_step) == "optimizer_step");
}

}  // namespace stratagem::execute::kinds_test
