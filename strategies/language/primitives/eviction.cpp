// {"op-trans": "F(0, 2) F(0, 5)", "evict": 3}: what these cells keep is lent to the devices of
// stage 3.
#include <map>
#include <utility>

#include "base/input_error.hpp"
#include "strategies/language/chain.hpp"
#include "strategies/language/primitives/all.hpp"

namespace stratagem::strategies {
namespace {

/// Refuses cells that keep nothing to lend, and what is lent already.
void check_eviction(const Plan& plan, const placement::Cell& cell, int guest_of,
                    const std::string& path) {
  if (cell.pass != placement::CellPass::forward)
    throw InputError("", path, "forward cells such as \"F(0, 2)\"", to_text(cell));
  if (cell.stage == guest_of)
    throw InputError("", path, "cells of other stages than the one that takes in", to_text(cell));
  if (plan.evictions().contains({cell.stage, cell.micro_batch}))
    throw InputError("", path, "one eviction of a cell", "another one of " + to_text(cell));
}

}  // namespace

void read_eviction(PlanBuilder& builder, const JsonReader& reader) {
  Plan& plan = builder.plan();
  const Extent extent = plan.extent();
  const JsonReader subject = reader.at("op-trans");
  if (extent.slices > 1 || extent.repeats > 1)
    subject.fail("whole micro-batches and one forward pass where cells are evicted");
  const auto guest_of = static_cast<int>(reader.at("evict").between(0, extent.stages - 1));
  const Chain cells = parse_chain(subject.text(), extent, subject.path());
  if (cells.cells.empty() || !cells.together.empty()) subject.fail("cells with blanks between");
  for (const placement::Cell& cell : cells.cells) {
    check_eviction(plan, cell, guest_of, subject.path());
    plan.evict({.stage = cell.stage, .micro_batch = cell.micro_batch, .guest_of = guest_of});
  }
}

/// Those of one stage to another are one primitive.
std::vector<Primitive> write_evictions(const Plan& plan) {
  std::map<std::pair<int, int>, Chain> between;  // by stage and the one that takes in
  for (const auto& [key, guest_of] : plan.evictions())
    between[{key.first, guest_of}].cells.push_back({.stage = key.first, .micro_batch = key.second});
  std::vector<Primitive> result;
  for (const auto& [stages, cells] : between) {
    const ChainText text = text_of(cells, plan.extent());
    result.push_back({.name = "op-trans",
                      .subject = text.whole,
                      .text = text.abbreviated,
                      .fields = {field("evict", stages.second)}});
    result.back().fields.back().text =
        "evicted to the devices of stage " + std::to_string(stages.second);
  }
  return result;
}

}  // namespace stratagem::strategies
