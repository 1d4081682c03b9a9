// Compares what a model's operators want with the profile, the stack and the degrees of a run.
#include "study/model_checks.hpp"

#include <algorithm>
#include <string>

#include "base/input_error.hpp"
#include "cost/attention.hpp"

namespace stratagem::study {

void check_attention(const Run& run, const JsonReader& model) {
  const bool fused = std::ranges::any_of(run.graph->operators, &model::is_fused_attention);
  const auto preferred = cost::preferred_attention(run.stack);
  const cost::Attentions& known = run.profile.kernels.attention;
  if (!fused || cost::chosen_attention(known, preferred) != known.end()) return;
  const auto said = model.find("attention");
  std::string names, there;
  for (const std::string& name : preferred) names += (names.empty() ? "" : " or ") + name;
  for (const auto& [name, sizes] : known) there += (there.empty() ? ", but by " : " and ") + name;
  throw InputError(model.file(), said ? said->path() : model.path() + "/attention",
                   "\"attention\": \"unfused\", since profile " + run.profile.name +
                       " has no constants of fused attention (its key \"attention\") by " + names +
                       ", which the stack prefers" + there,
                   said ? "\"fused\"" : "none, which is \"fused\"");
}

void check_use(const Run& run, const JsonReader& model) {
  const auto is = [](auto what) {
    return [what](const model::Operator& op) { return what == op.kind; };
  };
  const auto& operators = run.graph->operators;
  if (cost::trains(run.training.optimizer)) {
    if (std::ranges::any_of(operators, is(model::OpKind::cached_attention)))
      model.fail("the optimizer none with caches, through which nothing is trained");
    return;
  }
  if (std::ranges::any_of(operators, is(model::OpKind::dropout)) ||
      std::ranges::any_of(operators, is(model::OpKind::attention_dropout)))
    model.fail("\"dropout\": false, since the optimizer none trains nothing");
  if (const auto frozen = model.find("frozen"))
    frozen->fail("nothing, since the optimizer none trains nothing");
  for (const char* key : {"overlap_gradients", "bucket", "gradient_buffers", "offload", "swap",
                          "recompute", "partition_checkpoints", "cpu_checkpointing"}) {
    if (run.strategy.has(key))
      run.strategy.at(key).fail("nothing, since the optimizer none has no backward pass");
  }
  if (run.options.zero.stage == 1 || run.options.zero.stage == 2)
    run.strategy.at("zero").fail("0 or 3, since the optimizer none has no gradients and no states");
}

void check_divided(const Run& run, const JsonReader& model) {
  const auto check = [&](const char* key, int ranks, const std::string& what) {
    const auto count = model.find(key);
    if (!count || count->whole_number() % ranks == 0) return;
    count->fail("a multiple of the " + std::to_string(ranks) + what, count->dump());
  };
  check("kv_heads", run.options.tensor, " tensor ranks, which divide keys and values");
  check("experts", run.options.expert, " ranks that divide experts (\"expert\")");
}

}  // namespace stratagem::study
