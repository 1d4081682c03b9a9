// Compares what a model's operators want with the profile, the stack and the degrees of a run.
#include "study/reading/model_checks.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/input_error.hpp"
#include "cost/attention.hpp"
#include "model/operator_kinds.hpp"

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

namespace {

bool has(const model::Graph& graph, model::OpKind kind) {
  return std::ranges::any_of(graph.operators,
                             [&](const model::Operator& op) { return op.kind == kind; });
}

/// Refuses keys of a strategy that act on what nothing is trained for.
void check_forward_only(const Run& run) {
  const strategies::Options& options = run.options;
  const std::vector<std::pair<const char*, bool>> acting = {
      {"recompute", options.recompute.what != "none"},
      {"swap", options.swap.layers > 0},
      {"offload", options.offload != strategies::OffloadOptions{}},
      {"gradient_buffers", options.gradients.buffers > 0},
      {"overlap_gradients", options.gradients.overlap && run.strategy.has("overlap_gradients")},
      {"bucket", run.strategy.has("bucket")}};
  for (const auto& [key, acts] : acting) {
    if (acts)
      run.strategy.at(key).fail("no \"" + std::string(key) +
                                "\" with \"optimizer\": \"none\", which has no backward pass");
  }
  if (options.zero.stage == 1 || options.zero.stage == 2)
    run.strategy.at("zero").fail(
        "0 or 3 with \"optimizer\": \"none\", which has no gradients and no states");
}

/// Refuses ranks that divide tokens of which one alone is read in the end.
void check_tokens(const Run& run) {
  for (const char* key : {"context", "ulysses"}) {
    if (run.strategy.has(key) && run.strategy.at(key).whole_number() > 1)
      run.strategy.at(key).fail("1 beside a cache or the head \"reward\", which read one token");
  }
}

}  // namespace

void check_training(const Run& run, const JsonReader& model, const JsonReader& training) {
  if (const auto frozen = model.find("frozen"); frozen && !cost::trains(run.training.optimizer))
    frozen->fail("no \"frozen\" with \"optimizer\": \"none\", which trains nothing");
  if (const auto head = model.find("head"); !head || head->text() != "reward") return;
  const auto answers = model.find("answers");
  const std::int64_t count = answers ? answers->whole_number() : 2;
  const JsonReader micro = training.at("micro_batch");
  if (count > 0 && micro.whole_number() % count != 0)
    micro.fail("a multiple of the " + std::to_string(count) + " answers to each prompt");
}

void check_passes(const Run& run, const JsonReader& model, const JsonReader& training) {
  static const model::OpKind last_token = model::operator_named("last_token");
  if (has(*run.graph, last_token)) check_tokens(run);
  const bool trained = cost::trains(run.training.optimizer);
  if (trained && has(*run.graph, model::OpKind::cached_attention))
    training.at("optimizer").fail("\"none\" with a cache, through which nothing is trained");
  if (trained) return;
  if (has(*run.graph, model::OpKind::dropout) ||
      has(*run.graph, model::OpKind::attention_dropout)) {
    throw InputError(model.file(), model.path() + "/dropout",
                     "false with \"optimizer\": \"none\": what trains nothing drops nothing",
                     "true");
  }
  check_forward_only(run);
}

void check_divided(const Run& run, const JsonReader& model) {
  const auto check = [&](const char* key, int ranks, const char* degree) {
    const auto count = model.find(key);
    if (!count || count->whole_number() % ranks == 0) return;
    run.strategy.at(degree).fail("a divisor of the model's " + count->dump() + " " + key);
  };
  check("kv_heads", run.options.tensor, "tensor");
  check("experts", run.options.expert, "expert");
}

}  // namespace stratagem::study
