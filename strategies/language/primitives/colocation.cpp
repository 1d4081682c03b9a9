// {"op-trans": SELECTOR, "dim": "heads", "parts": 4, "colocated": true}: runs in parts on their
// devices.
#include <algorithm>
#include <set>
#include <utility>

#include "model/operator_run.hpp"
#include "strategies/language/primitives/all.hpp"

namespace stratagem::strategies {
namespace {

/// Which of the runs divide `dim` of the operators that a selector names: each is of one.
std::set<std::size_t> select_runs(const PlanBuilder& builder,
                                  const std::vector<model::OperatorRun>& runs,
                                  const JsonReader& selector, const std::string& dim) {
  const model::Graph& graph = builder.given();
  std::set<std::size_t> result;
  for (const model::OpId op : builder.given_operators(selector)) {
    const auto divides = [&](const model::OperatorRun& run) {
      const auto found = run.split.find(op);
      return found != run.split.end() && found->second == dim;
    };
    const auto run = std::ranges::find_if(runs, divides);
    if (run == runs.end()) {
      selector.fail("operators between two matrices, all of which can divide dimension " + dim,
                    graph.operators[op].name + " (" + graph.operators[op].annotation->text + ")");
    }
    result.insert(run - runs.begin());
  }
  return result;
}

}  // namespace

void read_colocation(PlanBuilder& builder, const JsonReader& reader) {
  if (!reader.at("colocated").boolean()) reader.at("colocated").fail("true");
  const auto parts = static_cast<int>(reader.at("parts").between(1, 1'000'000));
  const std::vector<model::OperatorRun> runs = model::operator_runs(builder.given());
  std::vector<model::Division> divisions;
  for (const std::size_t run :
       select_runs(builder, runs, reader.at("op-trans"), reader.at("dim").text()))
    divisions.push_back({runs[run], parts});
  builder.colocate(divisions, reader.path());
}

std::vector<Primitive> write_colocations(const Plan& plan) {
  std::vector<Primitive> result;
  for (const auto& [operators, dim, parts] : plan.colocations()) {
    result.push_back(primitive(
        "op-trans", operators,
        {field("dim", dim), field("parts", parts), {"colocated", Json(true), "on one device"}}));
  }
  return result;
}

}  // namespace stratagem::strategies
