// {"op-trans": "B(i, m)", "into": ["B", "W"], "where": ...}: backward cells in two.
#include "strategies/language/chain.hpp"
#include "strategies/language/expand.hpp"
#include "strategies/language/primitives/all.hpp"

namespace stratagem::strategies {
namespace {

Primitive split(const std::string& cells, const std::string& where) {
  Primitive result =
      primitive("op-trans", cells, {{"into", Json::array().push("B").push("W"), "into B and W"}});
  if (!where.empty()) result.fields.push_back(field("where", where));
  return result;
}

/// Runs of split micro-batches of one stage.
void write_stage(const Plan& plan, int stage, std::vector<Primitive>& result) {
  const std::string of_stage = "B(" + std::to_string(stage) + ", ";
  const int end = plan.micro_batches;
  for (int first = 0; first < end; ++first) {
    if (!plan.splits_backward(stage, first)) continue;
    int last = first;
    while (last + 1 < end && plan.splits_backward(stage, last + 1)) ++last;
    const std::string least = std::to_string(first);
    if (first == last) {
      result.push_back(split(of_stage + least + ")", ""));
    } else {
      const bool all = first == 0 && last + 1 == end;
      std::string where = least + " <= m && m <= ";
      where += std::to_string(last);
      result.push_back(split(of_stage + "m)", all ? "" : where));
    }
    first = last;
  }
}

}  // namespace

/// The cells of a pattern are found as those of an order rule are: every backward cell follows a
/// forward cell with the same coordinates.
void read_backward_split(PlanBuilder& builder, const JsonReader& reader) {
  const JsonReader cells = reader.at("op-trans");
  if (parse_cell_pattern(cells.text(), cells.path()).pass != placement::CellPass::backward)
    cells.fail("backward cells such as \"B(i, m)\"");
  std::vector<std::string> into;
  for (const JsonReader& pass : reader.at("into").elements()) into.push_back(pass.text());
  if (into != std::vector<std::string>{"B", "W"}) reader.at("into").fail(R"(["B", "W"])");
  OrderRule rule{.before = "F" + cells.text().substr(cells.text().find('(')),
                 .after = cells.text(),
                 .path = reader.path()};
  if (const auto where = reader.find("where")) rule.where = where->text();
  Extent extent = builder.plan().extent();
  extent.slices = extent.repeats = 1;
  for (const placement::Order& order : expand(rule, extent))
    builder.plan().split_backward(order.after.stage, order.after.micro_batch);
}

std::vector<Primitive> write_backward_splits(const Plan& plan) {
  std::vector<Primitive> result;
  bool all = true;
  for (int stage = 0; stage < static_cast<int>(plan.stages.size()); ++stage) {
    write_stage(plan, stage, result);
    for (int m = 0; m < plan.micro_batches; ++m) all = all && plan.splits_backward(stage, m);
  }
  if (all) return {split("B(i, m)", "")};
  return result;
}

}  // namespace stratagem::strategies
