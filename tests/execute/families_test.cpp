// Which family of models takes which strategy and which schedule: every pair is run, and
// docs/reference/families.md has what came of it.
#include <functional>
#include <map>
#include <optional>
#include <sstream>

#include "execute/agreement.hpp"
#include "execute/host_engine.hpp"
#include "model/zoo/bert.hpp"
#include "model/zoo/evoformer.hpp"
#include "model/zoo/llama.hpp"
#include "model/zoo/swin.hpp"
#include "model/zoo/t5.hpp"
#include "model/zoo/vit.hpp"
#include "tests/catch.hpp"
#include "tests/execute/generated_page.hpp"
#include "tests/execute/small_models.hpp"
#include "tests/execute/trained.hpp"
#include "tests/sanitized.hpp"

namespace stratagem::execute::families_test {
namespace {

constexpr int micro_batches = 4;

/// A small model of a family. Four layers, or four of an encoder and four of a decoder.
struct Family {
  std::string name;
  model::Graph graph;
};

model::Graph llama(bool mixture, bool latent) {
  model::LlamaConfig config{4, 16, 4, latent ? 0 : 2, 24, 8, 24, 4};
  if (mixture) config.experts = {.count = 4, .per_token = 2, .capacity_factor = 1.5};
  if (latent) config.variant.latent = {.key_rank = 6, .query_rank = 8, .rotary = 2, .values = 3};
  return model::llama(config);
}

/// A critic, or a reward model that compares two answers of each prompt.
model::Graph with_numbers(model::Predicts predicts) {
  model::LlamaConfig config{4, 16, 4, 2, 24, 8, 24, 8};
  config.variant.task = {.predicts = predicts, .answers = 2};
  return model::llama(config);
}

model::Graph t5() {
  model::T5Config config = small_t5();
  config.layers = config.decoder_layers = 4;
  config.tied = false;
  return model::t5(config);
}

std::vector<Family> made_families() {
  std::vector<Family> all;
  all.push_back({"GPT", four_layers()});
  all.push_back({"Llama", llama(false, false)});
  all.push_back({"latent", llama(false, true)});
  all.push_back({"mixture", llama(true, false)});
  all.push_back({"critic", with_numbers(model::Predicts::values)});
  all.push_back({"reward model", with_numbers(model::Predicts::reward)});
  all.push_back({"BERT", model::bert({.layers = 4,
                                      .hidden = 16,
                                      .heads = 4,
                                      .sequence = 8,
                                      .vocabulary = 24,
                                      .batch = 4,
                                      .fused_attention = true,
                                      .tied = false,
                                      .next_sentence = false})});
  all.push_back({"T5", t5()});
  all.push_back({"ViT", model::vit({.layers = 4,
                                    .hidden = 16,
                                    .heads = 4,
                                    .batch = 4,
                                    .images = {.size = 12, .patch = 4, .classes = 6},
                                    .fused_attention = true})});
  all.push_back({"Swin", model::swin({.depths = {2, 2},
                                      .hidden = 8,
                                      .heads = 4,
                                      .batch = 4,
                                      .images = {.size = 16, .patch = 2, .classes = 6},
                                      .window = 2})});
  all.push_back({"Evoformer", model::evoformer({.layers = 4,
                                                .msa_rows = 4,
                                                .residues = 8,
                                                .msa_width = 8,
                                                .pair_width = 8,
                                                .msa_heads = 2,
                                                .pair_heads = 2,
                                                .head_width = 4,
                                                .outer_width = 4,
                                                .batch = 4})});
  return all;
}

const std::vector<Family>& families() {
  static const std::vector<Family> all = made_families();
  return all;
}

const std::vector<std::string>& said_strategies() {
  static const std::vector<std::string> all = {
      R"("data": 2)",
      R"("data": 2, "zero": 1)",
      R"("data": 2, "zero": 2)",
      R"("data": 2, "zero": 3)",
      R"("data": 4, "zero": {"stage": 3, "ranks": 2})",
      R"("data": 2, "overlap_gradients": true, "bucket": "1 KiB")",
      R"("tensor": 2)",
      R"("tensor": 2, "sequence_parallel": true)",
      R"("context": 2)",
      R"("ulysses": 2)",
      R"("dap": 2)",
      R"("expert": 2, "data": 2)",
      R"("coshard": 2)",
      R"("token_slices": [4, 4])",
      R"("recompute": "selective")",
      R"("recompute": "full")",
      R"("recompute": {"every": 2})",
      R"("recompute": "full", "tensor": 2, "partition_checkpoints": true)",
      R"("swap": 2)",
      R"("offload": "optimizer")",
      R"("zero": 3, "data": 2, "offload": "parameters")",
      R"("pipeline": 2, "tensor": 2, "data": 2, "zero": 1)",
      R"("pipeline": 2, "replicas_per_stage": [2, 1])"};
  return all;
}

std::string on_stages(const strategies::Schedule& schedule) {
  return R"("pipeline": 2, "schedule": ")" + schedule.name + "\"";
}

/// Is a training compared? With sanitizers every seventh is.
bool is_compared() {
  static int number = 0;
  return number++ % stride(7) == 0;
}

/// What one device does, without gradients that are 0 but for rounding: of the scale of an
/// Evoformer's norm of what an earlier forward pass hands on, of which there is none; and, in each
/// block, of a shift that moves all scores of a row alike, which their softmax does not see.
Trained on_one_device(const Family& family) {
  Trained trained = train<double>(planned(family.graph, "{}", micro_batches), 2);
  const auto largest = [](const std::vector<double>& gradient) {
    return std::abs(std::ranges::max(gradient, {}, [](double g) { return std::abs(g); }));
  };
  double most = 0;
  for (const auto& [parameter, gradient] : trained.gradients)
    most = std::max(most, largest(gradient));
  const auto is_zero = [&](const auto& entry) { return largest(entry.second) < 1e-12 * most; };
  CHECK(std::erase_if(trained.gradients, is_zero) == (family.name == "Evoformer" ? 5 : 0));
  return trained;
}

/// "" where a family trains with a strategy as on one device; or what is written in its place.
std::string outcome(const Family& family, const std::string& strategy) {
  static std::map<std::string, Trained> references;
  try {
    const Planned one = planned(family.graph, "{" + strategy + "}", micro_batches);
    if (!one.plan.updates.flush) return "";  // one device has other versions of the weights
    if (std::string why = refusal(one.program, one.plan.graph()); !why.empty())
      return "simulated, not executed: " + why;
    if (!is_compared()) return "";
    if (!references.contains(family.name)) references.emplace(family.name, on_one_device(family));
    CHECK(distance(train<double>(one, 2), references.at(family.name)) <= 1e-9);
    return "";
  } catch (const InputError& error) {
    return error.path + ": expected " + error.expected +
           (error.found.empty() ? "" : ", found " + error.found);
  }
}

constexpr const char* head = R"(# Families and plans

For whoever wants to know which model takes which strategy and schedule, and why another does not.

Each cell was run: a small model of the family, lowered, checked, and trained for two iterations of
four micro-batches in double precision. What "runs" agrees with one device to 1e-9. Of schedules
without a flush (`pipedream`, `pipedream-vertical`, `pipedream-2bw`) it means that the program
passes all checks. A number names the refusal below. Models have four layers (the T5 four and four)
and no tied tables. "Latent" is a Llama with latent attention, "mixture" one with experts, "critic"
and "reward model" are Llamas with such heads.
`tests/execute/families_test.cpp` writes this page, and compares it.
)";

void append_table(std::ostringstream& text, Refusals& refusals, const std::string& title,
                  const std::vector<std::string>& plans) {
  text << "\n## " << title << "\n\n| |";
  for (const Family& family : families()) text << " " << family.name << " |";
  text << "\n|---|";
  for (std::size_t i = 0; i < families().size(); ++i) text << "---|";
  text << "\n";
  for (const std::string& plan : plans) {
    text << "| `" << plan << "` |";
    for (const Family& family : families()) {
      INFO(family.name << ": " << plan);
      text << " " << refusals.cell(outcome(family, plan)) << " |";
    }
    text << "\n";
  }
}

std::string page() {
  std::vector<std::string> schedules;
  for (const strategies::Schedule& one : strategies::schedules())
    schedules.push_back(on_stages(one));
  Refusals refusals;
  std::ostringstream text;
  text << head;
  append_table(text, refusals, "Strategies", said_strategies());
  append_table(text, refusals, "Schedules", schedules);
  refusals.append_to(text);
  return text.str();
}

}  // namespace

TEST_CASE(
    "every family trains with every plan that its structure admits, and the page says which") {
  check_page("families.md", page());
}

TEST_CASE("gradients that are rounding alone need not agree") {
  const model::Graph& graph = families().back().graph;  // an Evoformer, see on_one_device
  const Planned plan = planned(graph, R"({"dap": 2})", 2), alone = planned(graph, "{}", 2);
  const auto agreement = [&]<typename T>(T) {
    Agreement result;
    kernels::run_ranks(2, [&](kernels::Communicator& world) {
      Agreement mine =
          compare<T>({plan.program, plan.plan.graph()}, {alone.program, alone.plan.graph()},
                     {.seed = 7, .micro_batches = 2}, world, 2,
                     [] { return std::make_unique<HostEngine<T>>(); });
      if (world.rank() == 0) result = std::move(mine);
    });
    return result;
  };
  CHECK(agrees<double>(agreement(0.0)));
  CHECK(agrees<float>(agreement(0.0F)));
}

}  // namespace stratagem::execute::families_test
