// Expert parallelism: the lowering finds the published all-to-alls, and reduces only what is
// partial.
#include <set>

#include "model/zoo/llama.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/model/zoo/parameters.hpp"

namespace stratagem::strategies::expert_parallel_test {

using lowering::block_of;
using lowering::collectives;
using lowering::lowered;
using lowering::refusal;
using placement::CellPass;
using program::Collective;
using program::Program;

namespace {

constexpr model::GptConfig mixture{
    .layers = 4,
    .hidden = 48,
    .heads = 8,
    .sequence = 20,
    .vocabulary = 112,
    .batch = 24,
    .experts = {.count = 16, .per_token = 2, .capacity_factor = 2, .every = 2}};
constexpr double hidden = 48, experts = 16;
/// k * tokens * capacity factor slots of all experts together, in fp16.
constexpr Bytes slots = 24.0 * (2 * 20 * 2) * hidden * 2_B;

std::string strategy(int data, int expert, const std::string& more = "") {
  return "{\"data\": " + std::to_string(data) + ", \"expert\": " + std::to_string(expert) + more +
         "}";
}

Bytes reduced_over(const Program& program, std::size_t ranks) {
  Bytes sum;
  for (const Collective& one : collectives(program, 0, program::Stream::gradient_communication)) {
    const int communicator = program.devices[0].groups[one.group];
    if (program.communicators[communicator].ranks.size() == ranks) sum += one.payload;
  }
  return sum;
}

}  // namespace

TEST_CASE("a mixture has one all-to-all before and one after its experts, in every pass") {
  const model::Graph graph = model::gpt(mixture);
  for (const int data : {4, 8}) {
    for (const int expert : {2, 4}) {
      INFO("data " << data << ", expert " << expert);
      const Program program = lowered(graph, strategy(data, expert));
      for (const CellPass pass : {CellPass::forward, CellPass::backward}) {
        const std::vector<Collective> found = collectives(block_of(program, 2, pass));
        CHECK(found.size() == 2);
        for (const Collective& one : found) {
          CHECK(one.kind == cost::CollectiveKind::all_to_all);
          CHECK(one.payload == slots / data);  // each rank's share of the tokens
          const int communicator = program.devices[0].groups[one.group];
          CHECK(static_cast<int>(program.communicators[communicator].ranks.size()) == expert);
        }
        CHECK(collectives(block_of(program, 1, pass)).empty());  // one MLP
      }
    }
  }
}

TEST_CASE("experts are divided, all else is held by every rank") {
  const model::Graph graph = model::gpt(mixture);
  const double mlp = 8 * hidden * hidden + 5 * hidden;
  const auto all = static_cast<double>(model::gpt_parameters(mixture));
  for (const int expert : {1, 2, 4, 8}) {
    const Program program = lowered(graph, strategy(8, expert));
    CHECK(lowering::resident(program.sequences[0], program::Category::parameters) ==
          (all - 2 * experts * mlp * (1 - 1.0 / expert)) * 2_B);
  }
}

TEST_CASE("gradients of experts are reduced over data / expert ranks, all others over data ranks") {
  const model::Graph graph = model::gpt(mixture);
  const double of_experts = 2 * experts * (8 * hidden * hidden + 5 * hidden);
  const double others = static_cast<double>(model::gpt_parameters(mixture)) - of_experts;
  for (const int expert : {2, 4}) {
    const Program program = lowered(graph, strategy(8, expert));
    CHECK(reduced_over(program, 8) == others * 2_B);
    CHECK(reduced_over(program, 8 / expert) == (of_experts / expert) * 2_B);
  }
  // Every rank has experts of its own: nobody else has a part of their gradients.
  const Program alone = lowered(graph, strategy(8, 8));
  CHECK(reduced_over(alone, 8) == others * 2_B);
  CHECK(collectives(alone, 0, program::Stream::gradient_communication).size() == 1);
}

TEST_CASE("expert parallelism adds to tensor parallelism what it adds to one rank") {
  const model::Graph graph = model::gpt(mixture);
  const Program program = lowered(graph, strategy(4, 4, R"(, "tensor": 2)"));
  int exchanged = 0;
  for (const Collective& one : collectives(block_of(program, 2, CellPass::forward))) {
    if (one.kind != cost::CollectiveKind::all_to_all) continue;
    ++exchanged;
    const int communicator = program.devices[0].groups[one.group];
    CHECK(program.communicators[communicator].ranks == std::vector<int>{0, 2, 4, 6});
  }
  CHECK(exchanged == 2);
}

/// Two layers, hidden 48, MLPs of 96, four of eight heads share keys in pairs, 8 experts.
model::LlamaConfig gated_mixture(bool fused) {
  model::LlamaConfig config{2, 48, 8, 4, 96, 20, 112, 24};
  config.fused.attention = config.fused.swiglu = fused;
  config.experts = {.count = 8, .per_token = 2, .capacity_factor = 2};
  return config;
}

TEST_CASE("a router's bias is added where its tokens are") {
  model::LlamaConfig config = gated_mixture(false);
  config.experts.router_bias = true;
  const Program program = lowered(model::llama(config), strategy(8, 4));
  CHECK(collectives(block_of(program, 1, CellPass::forward)).size() == 2);
}

TEST_CASE("a Llama's experts are divided as a GPT's: the same all-to-alls, the rest everywhere") {
  for (const bool fused : {true, false}) {
    const model::LlamaConfig config = gated_mixture(fused);
    const model::Graph graph = model::llama(config);
    const auto all = static_cast<double>(model::llama_parameters(config));
    const double of_experts = 2 * 8 * 3 * hidden * 96;
    for (const int expert : {2, 4, 8}) {
      INFO("fused " << fused << ", expert " << expert);
      const Program program = lowered(graph, strategy(8, expert));
      for (const CellPass pass : {CellPass::forward, CellPass::backward}) {
        const std::vector<Collective> found = collectives(block_of(program, 1, pass));
        CHECK(found.size() == 2);
        for (const Collective& one : found) {
          CHECK(one.kind == cost::CollectiveKind::all_to_all);
          CHECK(one.payload == slots / 8);
        }
      }
      CHECK(lowering::resident(program.sequences[0], program::Category::parameters) ==
            (all - of_experts * (1 - 1.0 / expert)) * 2_B);
      CHECK(reduced_over(program, 8) == (all - of_experts) * 2_B);
    }
  }
}

TEST_CASE("tensor ranks divide the columns of each of a Llama's experts, and nothing of routers") {
  for (const bool fused : {true, false}) {
    const model::LlamaConfig config = gated_mixture(fused);
    const model::Graph graph = model::llama(config);
    // Norms and routers are whole, all matrices and tables are halves, experts also quarters.
    const double whole = (2 * 2 + 1) * hidden + 2 * 8 * hidden;
    const double of_experts = 2 * 8 * 3 * hidden * 96;
    const double halves = static_cast<double>(model::llama_parameters(config)) - whole - of_experts;
    for (const int expert : {1, 4}) {
      const Program program = lowered(graph, strategy(4, expert, R"(, "tensor": 2)"));
      CHECK(lowering::resident(program.sequences[0], program::Category::parameters) ==
            (whole + halves / 2 + of_experts / 2 / expert) * 2_B);
    }
  }
}

TEST_CASE("hardware FLOPs are of all slots of all experts, wherever they are") {
  // Two products of h x 4h for every slot, forward, and twice that backward, in two of four layers:
  // more slots are more of these and nothing else.
  const auto flops = [](double factor, const std::string& ranks) {
    model::GptConfig config = mixture;
    config.experts.capacity_factor = factor;
    return hardware_flops(lowered(model::gpt(config), ranks));
  };
  const auto of_slots = [](double slots) {
    return Flops{2 * 3 * 2 * 2.0 * 24 * slots * 4 * hidden * hidden};
  };
  for (const std::string& ranks : {strategy(1, 1), strategy(8, 4), strategy(4, 4)}) {
    // 16 experts with ceil(2 * 20 / 16 * factor) slots a sample: 3, 5 and 10.
    CHECK(close(flops(4, ranks) - flops(2, ranks), of_slots(16 * (10 - 5)), 1e-12));
    CHECK(close(flops(2, ranks) - flops(1, ranks), of_slots(16 * (5 - 3)), 1e-12));
  }
}

TEST_CASE(
    "experts are not computed twice without a word: tokens that they cannot divide are refused") {
  const model::Graph graph = model::gpt(mixture);
  CHECK_THAT(
      refusal([&] { lowered(graph, strategy(4, 4, R"(, "context": 2)")); }),
      StartsWith("test.json: /strategy/context: expected 1, since such ranks do not divide matrix "
                 "products of whole samples") &&
          ContainsSubstring("found 2: each rank would compute all of layers.1.mlp.fc1"));
  CHECK_THAT(
      refusal([&] { lowered(graph, R"({"token_slices": [12, 8]})"); }),
      ContainsSubstring("/strategy/token_slices: expected a model whose matrix products have "
                        "tokens to divide, no experts"));
}

TEST_CASE("expert degrees that fit neither the data ranks nor the model are refused") {
  const model::Graph graph = model::gpt(mixture);
  const auto refused = [&](const model::Graph& of, const std::string& text) {
    return refusal([&] { lowered(of, text); });
  };
  CHECK_THAT(refused(graph, strategy(4, 3)),
             ContainsSubstring("/strategy/expert: expected a divisor of data, 4"));
  CHECK_THAT(refused(graph, strategy(3, 3)), ContainsSubstring("/strategy/expert: "));
  const model::Graph dense = model::gpt(lowering::small_gpt);
  CHECK_THAT(refused(dense, strategy(4, 2)),
             StartsWith("test.json: /strategy/expert: expected a model with experts"));
}

}  // namespace stratagem::strategies::expert_parallel_test
