// Megatron-LM's tensor parallelism: the lowering finds exactly the published collectives.
#include "model/adapters.hpp"
#include "model/cast_products.hpp"
#include "model/zoo/llama.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::strategies::tensor_parallel_test {

using lowering::block_of;
using lowering::collectives;
using lowering::lowered;
using lowering::resident;
using lowering::small_gpt;
using placement::CellPass;
using program::Category;
using program::Collective;
using program::Program;

namespace {

constexpr double batch = 12, sequence_length = 20, hidden = 48, vocabulary = 112, layers = 4;
constexpr Bytes activation = batch * sequence_length * hidden * 2_B;  // b*s*h in fp16

std::string tensor(int ranks, const std::string& more = "") {
  return "{\"tensor\": " + std::to_string(ranks) + more + "}";
}

void check_all_reduces(const program::Block& block, std::size_t count, Bytes payload) {
  INFO(block.name);
  const std::vector<Collective> found = collectives(block);
  CHECK(found.size() == count);
  for (const Collective& one : found) {
    CHECK(one.kind == cost::CollectiveKind::all_reduce);
    CHECK(one.payload == payload);
  }
}

}  // namespace

TEST_CASE("a layer has two all-reduces of b*s*h forward and two backward") {
  // Shoeybi et al., arXiv:1909.08053, figure 4: g after each row-split product, f before each
  // column-split one.
  const model::Graph graph = model::gpt(small_gpt);
  for (const int t : {2, 4, 8}) {
    INFO("tensor " << t);
    const Program program = lowered(graph, tensor(t));
    for (int layer = 1; layer <= 4; ++layer) {
      check_all_reduces(block_of(program, layer, CellPass::forward), 2, activation);
      check_all_reduces(block_of(program, layer, CellPass::backward), 2, activation);
    }
  }
}

TEST_CASE("an MLP is divided by columns and then by rows, however narrow it is") {
  // Hidden 48, an MLP of 16: with gate and factor in one product or in two, in bf16 with casts
  // between, and with adapters beside its products.
  model::LlamaConfig fused{2, 48, 8, 4, 16, 20, 112, 12};
  model::LlamaConfig apart = fused;
  apart.fused.swiglu = false;
  const auto of_mlp = [](const model::Tensor& weight) {
    return weight.name.find(".mlp.") != weight.name.npos;
  };
  for (const model::Graph& plain : {model::llama(fused), model::llama(apart)}) {
    for (const model::Graph& graph : {plain, model::cast_products(plain, model::DataType::bf16)}) {
      const Program program = lowered(graph, tensor(4)), whole = lowered(graph, tensor(1));
      check_all_reduces(block_of(program, 1, CellPass::forward), 2, activation);
      const auto held = [](const Program& one) {
        return lowering::resident(one.sequences[0], program::Category::parameters);
      };
      // Embedding, head and layers are divided by four, but for norms of 48.
      CHECK(held(program) - held(whole) / 4 == 5 * (48.0 - 48.0 / 4) * 2_B);
    }
    const Program adapted = lowered(model::with_adapters(plain, 4, of_mlp), tensor(4));
    for (const Collective& one : collectives(block_of(adapted, 1, CellPass::forward)))
      CHECK(one.kind == cost::CollectiveKind::all_reduce);
  }
}

TEST_CASE("full recomputation adds the two forward all-reduces to a layer's backward pass") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const int t : {2, 4, 8}) {
    INFO("tensor " << t);
    const Program program = lowered(graph, tensor(t, R"(, "recompute": "full")"));
    for (int layer = 1; layer <= 4; ++layer) {
      check_all_reduces(block_of(program, layer, CellPass::forward), 2, activation);
      check_all_reduces(block_of(program, layer, CellPass::backward), 4, activation);
    }
  }
}

TEST_CASE("looking up a divided token table takes one all-reduce forward and none backward") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program program = lowered(graph, tensor(4));
  check_all_reduces(block_of(program, 0, CellPass::forward), 1, activation);
  check_all_reduces(block_of(program, 0, CellPass::backward), 0, activation);
}

TEST_CASE(
    "cross-entropy over a divided vocabulary communicates three fp32 numbers per token, no "
    "logits") {
  // Maximum, sum of exponentials, the label's logit. Backward: the input gradient of the logits.
  const model::Graph graph = model::gpt(small_gpt);
  for (const int t : {2, 4, 8}) {
    const Program program = lowered(graph, tensor(t));
    check_all_reduces(block_of(program, 5, CellPass::forward), 3, batch * sequence_length * 4_B);
    check_all_reduces(block_of(program, 5, CellPass::backward), 1, activation);
  }
}

TEST_CASE("one rank communicates with nobody") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program program = lowered(graph, tensor(1));
  CHECK(program.devices.size() == 1);
  for (const program::Block& block : program.blocks) {
    for (const program::Task& task : block.tasks) CHECK(lowering::collective_of(task) == nullptr);
  }
}

TEST_CASE("all-reduces are of all tensor ranks and no other device") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program program = lowered(graph, tensor(2, R"(, "data": 3)"));
  for (std::size_t device = 0; device < program.devices.size(); ++device) {
    const int first = static_cast<int>(device) / 2 * 2;
    for (const Collective& one :
         collectives(program, program.devices[device].sequence, program::Stream::communication)) {
      const int communicator = program.devices[device].groups[one.group];
      REQUIRE(communicator >= 0);
      CHECK(program.communicators[communicator].ranks == std::vector<int>{first, first + 1});
    }
  }
}

TEST_CASE("data-parallel ranks all-reduce activations of their share of the batch") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program program = lowered(graph, tensor(2, R"(, "data": 3)"));
  for (const CellPass pass : {CellPass::forward, CellPass::backward}) {
    check_all_reduces(block_of(program, 2, pass), 2, activation / 3);
  }
}

TEST_CASE("a rank holds its share of matrices and of column biases, and all of the rest") {
  // Divided: 12h^2 weights and 3h + 4h biases per layer, the token table. Whole: two row biases and
  // two norms per layer, positions, the final norm.
  const model::Graph graph = model::gpt(small_gpt);
  for (const int t : {1, 2, 4, 8}) {
    const double parameters =
        layers * ((12 * hidden * hidden + 7 * hidden) / t + 2 * hidden + 4 * hidden) +
        vocabulary * hidden / t + sequence_length * hidden + 2 * hidden;
    const Program program = lowered(graph, tensor(t));
    CHECK(resident(program.sequences[0], Category::parameters) == parameters * 2_B);
    CHECK(resident(program.sequences[0], Category::gradients) == parameters * 2_B);
    CHECK(resident(program.sequences[0], Category::optimizer_states) == parameters * 12_B);
  }
}

TEST_CASE("gradients of parameters that all tensor ranks hold are not summed over them") {
  // Every rank computes them from whole activations: equal, not partial.
  const model::Graph graph = model::gpt(small_gpt);
  const Program program = lowered(graph, tensor(4));
  CHECK(collectives(program, 0, program::Stream::gradient_communication).empty());
}

TEST_CASE("heads that do not divide are refused at /strategy/tensor") {
  // 120 tokens and 3*48 columns divide by 3, 8 heads do not.
  model::GptConfig config = small_gpt;
  config.vocabulary = 120;
  const model::Graph graph = model::gpt(config);
  const std::string text = lowering::refusal([&] { lowered(graph, tensor(3)); });
  CHECK_THAT(text, StartsWith("test.json: /strategy/tensor: expected "));
  CHECK_THAT(text, ContainsSubstring("split_heads"));
  CHECK_THAT(text, ContainsSubstring("3 equal parts"));
  CHECK_THAT(text, ContainsSubstring("found 8 (9 does; 8 divides into 2 or 4)"));
}

}  // namespace stratagem::strategies::tensor_parallel_test
