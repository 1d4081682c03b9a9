// Plans of models as DeepSeek-V3 and GPT-OSS compute what one device computes: latent attention,
// shared experts, windows and sinks.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "model/zoo/llama.hpp"
#include "tests/execute/agreement.hpp"

namespace stratagem::execute::latent_test {
namespace {

model::LlamaConfig four_layers_of_a_llama() {
  model::LlamaConfig c{.layers = 4,
                       .hidden = 16,
                       .heads = 4,
                       .kv_heads = 4,
                       .intermediate = 24,
                       .sequence = 8,
                       .vocabulary = 24,
                       .batch = 4};
  c.variant.head_width = 6;
  return c;
}

/// Latent attention as one kernel or in parts, with an MLP in the first layer and mixtures after
/// it; windows with sinks, keys for two queries each; weights of experts within their activation.
enum class Kind : std::uint8_t { fused, in_parts, windows, weighed_within };
const model::Graph& tiny(Kind kind) {
  const auto latent = [](bool fused, model::Weighing weighing) {
    model::LlamaConfig c = four_layers_of_a_llama();
    c.fused.attention = fused;
    c.variant.latent = {.key_rank = 8, .query_rank = 10, .rotary = 2, .values = 4};
    c.experts = {.count = 4,
                 .per_token = 2,
                 .plain = 1,
                 .width = 12,
                 .shared = 1,
                 .router = model::Router::sigmoid,
                 .router_bias = true,
                 .weighing = weighing};
    return model::llama(c);
  };
  const auto windows = [] {
    model::LlamaConfig c = four_layers_of_a_llama();
    c.kv_heads = 2;
    c.variant.sight = {.window = 3, .full_every = 2, .sinks = true};
    return model::llama(c);
  };
  static const std::array graphs = {latent(true, model::Weighing::results),
                                    latent(false, model::Weighing::results), windows(),
                                    latent(true, model::Weighing::activation)};
  return graphs[static_cast<std::size_t>(kind)];
}

TEST_CASE("a latent attention with shared experts trains as on one device") {
  check_agreement(
      tiny(GENERATE(Kind::fused, Kind::in_parts, Kind::weighed_within)),
      GENERATE(as<std::string>{}, R"({"data": 2})", R"({"tensor": 2})", R"({"tensor": 4})",
               R"({"tensor": 2, "sequence_parallel": true})", R"({"data": 4, "expert": 2})",
               R"({"data": 4, "expert": 4, "zero": 1})", R"({"zero": 3, "data": 2})",
               R"({"recompute": "full"})", R"({"recompute": "selective"})",
               R"({"recompute": {"operators": ["layers.*.attention.up.*", "layers.*.input_norm",
                                               "layers.*.mlp_norm",
                                               "layers.*.mlp.swiglu"], "results": "dropped"}})",
               R"({"recompute": {"operators": ["layers.*.attention.up.*"], "results": "dropped"},
                   "pipeline": 2, "schedule": "zb-h1", "tensor": 2, "sequence_parallel": true})",
               R"({"pipeline": 2, "schedule": "1f1b", "data": 2, "expert": 2})",
               R"({"pipeline": 2, "schedule": "dualpipe"})",
               R"({"pipeline": 4, "schedule": "zb-h1"})",
               R"({"data": 2, "expert": 2, "tensor": 2, "sequence_parallel": true})"));
}

TEST_CASE("windows and sinks train as on one device") {
  check_agreement(tiny(Kind::windows),
                  GENERATE(as<std::string>{}, R"({"data": 2})", R"({"tensor": 2})",
                           R"({"tensor": 2, "sequence_parallel": true})", R"({"context": 2})",
                           R"({"zero": 3, "data": 2})", R"({"recompute": "full"})",
                           R"({"pipeline": 2, "schedule": "1f1b"})"));
}

/// Losses of three iterations on one device. Parameters begin as those of the same names in
/// `start`, which gets what is missing there.
std::vector<double> losses_from(const model::Graph& graph,
                                std::map<std::string, std::vector<double>>& start) {
  const Planned one = planned(graph, "{}", 1);
  const model::Graph& runs = one.plan.graph();
  std::vector<double> losses;
  kernels::run_ranks(1, [&](kernels::Communicator& world) {
    Interpreter<double> rank(one.program, runs, {.seed = 7}, world);
    for (std::size_t id = 0; id < runs.tensors.size(); ++id) {
      if (runs.tensors[id].role != model::Role::parameter) continue;
      auto& values = rank.parameter(static_cast<model::TensorId>(id)).data;
      const auto [at, missing] =
          start.try_emplace(runs.tensors[id].name, values.begin(), values.end());
      if (!missing) std::ranges::copy(at->second, values.begin());
    }
    for (int i = 0; i < 3; ++i) losses.push_back(rank.iterate({}));
  });
  return losses;
}

TEST_CASE("attention in parts, and weights within experts, train as one kernel and as results") {
  std::map<std::string, std::vector<double>> start;
  const std::vector<double> fused = losses_from(tiny(Kind::fused), start);
  const std::size_t parameters = start.size();
  CHECK(distance(losses_from(tiny(Kind::in_parts), start), fused) <= 1e-9);
  CHECK(distance(losses_from(tiny(Kind::weighed_within), start), fused) <= 1e-9);
  CHECK(start.size() == parameters);
}

TEST_CASE("packed documents train as on one device, and one alone changes nothing") {
  model::LlamaConfig packed = four_layers_of_a_llama();
  packed.variant.sight.documents = {.count = 2};
  check_agreement(model::llama(packed),
                  GENERATE(as<std::string>{}, R"({"data": 2})", R"({"tensor": 2})",
                           R"({"context": 2})", R"({"ulysses": 2})", R"({"recompute": "full"})",
                           R"({"pipeline": 2, "schedule": "1f1b"})"));
  std::map<std::string, std::vector<double>> start;
  const auto losses = [&](const model::Documents& documents) {
    packed.variant.sight.documents = documents;
    return losses_from(model::llama(packed), start);
  };
  const std::vector<double> one = losses({});
  CHECK(distance(losses({.lengths = {packed.sequence}}), one) == 0);
  CHECK(distance(losses({.count = 2}), one) > 1e-6);
  CHECK(distance(losses({.lengths = {4, 4}}), losses({.count = 2})) == 0);
}

TEST_CASE("a window as long as the sequence changes nothing, and a shorter one does") {
  model::LlamaConfig c = four_layers_of_a_llama();
  const auto losses = [&](std::int64_t window) {
    c.variant.sight.window = window;
    return train<double>(planned(model::llama(c), "{}", micro_batches)).losses;
  };
  const std::vector<double> all = losses(0);
  CHECK(distance(losses(8), all) == 0);
  CHECK(distance(losses(7), all) > 1e-6);
}

}  // namespace
}  // namespace stratagem::execute::latent_test
