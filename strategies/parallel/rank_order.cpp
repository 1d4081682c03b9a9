// The order of ranks, as Megatron-LM's --order has it, and how many there can be.
#include <algorithm>
#include <numeric>
#include <sstream>

#include "strategies/parallel/all.hpp"

namespace stratagem::strategies {
namespace {

/// "tp-dp-pp"
Format<std::vector<std::string>> kinds_of_ranks() {
  return {{text().schema.set("pattern", "^(tp|cp|dap|dp|pp)(-(tp|cp|dap|dp|pp))*$"),
           "kinds with `-` between"},
          [known = Options{}.rank_order](const JsonReader& reader) {
            std::vector<std::string> order;
            std::istringstream text(reader.text());
            for (std::string kind; std::getline(text, kind, '-');) {
              if (std::ranges::count(known, kind) == 0 || std::ranges::count(order, kind) > 0)
                reader.fail("each of tp, cp, dap, dp and pp once at most, such as \"tp-dp-pp\"");
              order.push_back(kind);
            }
            return order;
          }};
}

/// Devices of all ranks: an int holds them, and every product of some of their degrees.
void check_devices(const Options& options, const JsonReader& strategy) {
  const double without_pipeline =
      1.0 * options.tensor * options.context * options.dap * options.data;
  if (without_pipeline * options.pipeline > 1'000'000)
    strategy.fail("tensor x context x dap x pipeline x data of at most 1000000");
  const std::vector<int>& replicas = options.replicas_per_stage;
  if (without_pipeline * std::accumulate(replicas.begin(), replicas.end(), 0.0) > 1'000'000)
    strategy.at("replicas_per_stage").fail("replicas on at most 1000000 devices");
}

/// Kinds that are left out have one rank.
void complete_order(Options& options, const JsonReader& strategy) {
  check_devices(options, strategy);
  for (const std::string& kind : Options{}.rank_order) {
    if (std::ranges::count(options.rank_order, kind) > 0) continue;
    if (options.size(kind) > 1)
      strategy.at("rank_order").fail(kind + " in the order, of which there are several ranks");
    options.rank_order.push_back(kind);
  }
}

}  // namespace

Strategy rank_order() {
  return {{{"rank_order", &Options::rank_order, kinds_of_ranks(),
            "which ranks stand on neighbouring GPUs, innermost first, as Megatron-LM's `--order`: "
            "tensor, context, axial, data (expert ranks innermost among them), pipeline; kinds "
            "with one rank may be left out",
            "tp-cp-dap-dp-pp"}},
          [](Plan& /*plan*/, const Options& /*options*/) {},  // the others ask for strides
          &complete_order};
}

}  // namespace stratagem::strategies
