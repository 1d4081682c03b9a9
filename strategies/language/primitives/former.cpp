// Primitives that plan files held before there was `keep`: they say the same, and are not written.
//   {"op-trans": "layers.[0-7]", "swap": "host", "prefetch": 1}   keep activations, of
//   {"op-trans": "F(0, 2) F(0, 5)", "evict": 3}                   keep activations, cells
#include "base/input_error.hpp"
#include "strategies/language/primitives/all.hpp"

namespace stratagem::strategies {
namespace {

/// Errors of what a rule says are at the subject.
void keep(Plan& plan, Keep rule, const JsonReader& subject) {
  try {
    plan.residency.keep(std::move(rule));
  } catch (const InputError& error) {
    throw InputError("", subject.path(), error.expected, error.found);
  }
}

}  // namespace

void read_swap(PlanBuilder& builder, const JsonReader& reader) {
  Keep rule{.what = Keep::What::activations,
            .segments = builder.segments(reader.at("op-trans")),
            .where = Keep::Where::host,
            .ahead = 0};
  if (const auto prefetch = reader.find("prefetch"))
    rule.ahead = static_cast<int>(prefetch->between(0, 1'000));
  const JsonReader to = reader.at("swap");
  if (to.is_number()) {
    rule.where = Keep::Where::stage;
    rule.stage = static_cast<int>(
        to.between(0, static_cast<std::int64_t>(builder.plan().stages.size()) - 1));
  } else {
    static_cast<void>(to.one_of({"host"}));
  }
  keep(builder.plan(), std::move(rule), reader.at("op-trans"));
}

void read_eviction(PlanBuilder& builder, const JsonReader& reader) {
  Plan& plan = builder.plan();
  Keep rule{.what = Keep::What::activations, .where = Keep::Where::stage};
  rule.stage = static_cast<int>(
      reader.at("evict").between(0, static_cast<std::int64_t>(plan.stages.size()) - 1));
  read_cells(rule, reader.at("op-trans"), plan.extent());
  keep(plan, std::move(rule), reader.at("op-trans"));
}

std::vector<Primitive> write_nothing(const Plan& /*plan*/) { return {}; }

}  // namespace stratagem::strategies
