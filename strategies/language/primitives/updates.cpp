// {"op-order": "updates", "flush": false, "version": "latest"}: iterations that overlap.
#include <algorithm>
#include <iterator>

#include "strategies/language/primitives/all.hpp"

namespace stratagem::strategies {
namespace {

/// As Updates::Version counts them.
const std::vector<std::string> versions = {"latest", "vertical", "previous"};

}  // namespace

void read_updates(PlanBuilder& builder, const JsonReader& reader) {
  static_cast<void>(reader.at("op-order").one_of({"updates"}));
  Updates& updates = builder.plan().updates;
  updates.flush = reader.at("flush").boolean();
  if (const auto version = reader.find("version")) {
    const auto found = std::ranges::find(versions, version->one_of(versions));
    updates.version = static_cast<Updates::Version>(std::distance(versions.begin(), found));
  }
}

std::vector<Primitive> write_updates(const Plan& plan) {
  if (plan.updates.flush) return {};
  return {primitive("op-order", "updates",
                    {{"flush", Json(false), "without a flush"},
                     field("version", versions[static_cast<int>(plan.updates.version)])})};
}

}  // namespace stratagem::strategies
