// Plans of a T5: what flows between encoder and decoder, what tensor ranks divide, what is refused.
#include "model/zoo/t5.hpp"

#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::lowering::t5_test {

using placement::CellPass;
using program::Program;
using program::Stream;

namespace {

constexpr double hidden = 48, encoder_tokens = 20 * 12, decoder_tokens = 14 * 12;

const model::Graph& small_t5() {
  static const model::Graph graph = [] {
    model::T5Config config;
    config.layers = config.decoder_layers = 4;
    config.hidden = 48;
    config.heads = 8;
    config.intermediate = 88;
    config.sequence = 20;
    config.decoder_sequence = 14;
    config.vocabulary = 112;
    config.batch = 12;
    return model::t5(config);
  }();
  return graph;
}

double sent(const Program& program, int sequence, Stream stream) {
  double bytes = 0;
  for (const program::Collective& one : collectives(program, sequence, stream))
    bytes += one.payload.value;
  return bytes;
}

TEST_CASE(
    "stages of the encoder send its states, those of the decoder the encoder's result besides") {
  const Program program = lowered(small_t5(), R"({"pipeline": 4, "schedule": "1f1b"})");
  const double encoder = 2 * encoder_tokens * hidden, decoder = 2 * decoder_tokens * hidden;
  CHECK(sent(program, 0, Stream::send_forward) == encoder);
  CHECK(sent(program, 1, Stream::send_forward) == encoder);
  CHECK(sent(program, 2, Stream::send_forward) == encoder + decoder);
  CHECK(sent(program, 3, Stream::send_backward) == encoder + decoder);
  CHECK(sent(program, 2, Stream::send_backward) == encoder);
}

TEST_CASE("tensor ranks reduce twice in an encoder's layer and pass, three times in a decoder's") {
  const Program program = lowered(small_t5(), R"({"tensor": 2})");
  const auto reductions = [&](int segment, CellPass pass) {
    double bytes = 0;
    for (const program::Collective& one : collectives(block_of(program, segment, pass))) {
      CHECK(one.kind == cost::CollectiveKind::all_reduce);
      bytes += one.payload.value;
    }
    return bytes;
  };
  const double encoder = 2 * encoder_tokens * hidden, decoder = 2 * decoder_tokens * hidden;
  CHECK(reductions(2, CellPass::forward) == 2 * encoder);
  CHECK(reductions(2, CellPass::backward) == 2 * encoder);
  CHECK(reductions(6, CellPass::forward) == 3 * decoder);
  // And the gradient of the encoder's result, which keys and values leave in parts.
  CHECK(reductions(6, CellPass::backward) == 3 * decoder + encoder);
}

TEST_CASE("biases by distance are divided as heads are, and are small") {
  const Program program = lowered(small_t5(), R"({"tensor": 2})");
  double parameters = 0;
  for (const program::Resident& one : program.sequences[0].residents) {
    const bool bias = one.tensor >= 0 && small_t5().tensors[one.tensor].name.ends_with("biases");
    if (bias && one.category == program::Category::parameters) parameters += one.bytes.value;
  }
  CHECK(parameters == 2 * (2 * 32 * 8) / 2);
}

/// Gradients in the order in which a sequence sums them with other stages.
std::vector<std::string> summed(const Program& program, int sequence) {
  std::vector<std::string> names;
  for (const program::Call& call : program.sequences[sequence].calls) {
    const program::Block& block = program.blocks[call.block];
    for (const program::Task& task : block.tasks) {
      if (task.stream != Stream::gradient_communication) continue;
      for (const int slot : task.writes) names.push_back(block.slots[slot].name);
    }
  }
  return names;
}

TEST_CASE("stages that share tables sum their gradients in one order") {
  // With two chunks a rank both ranks have layers of encoder and decoder: three tables are shared.
  const Program two =
      lowered(small_t5(), R"({"pipeline": 2, "schedule": "interleaved", "chunks": 2})", 2);
  CHECK(summed(two, 0).size() == 3);
  CHECK(summed(two, 0) == summed(two, 1));
  // Stages 0, 2 and 3 share the words, 0 and 1 the encoder's biases, 2 and 3 the decoder's.
  const Program four = lowered(small_t5(), R"({"pipeline": 4, "schedule": "1f1b"})", 4);
  CHECK(summed(four, 1).size() == 1);
  CHECK(summed(four, 0).size() == 2);
  CHECK(summed(four, 2).size() == 2);
  CHECK(summed(four, 2) == summed(four, 3));
}

std::vector<std::vector<int>> stages_of(const std::string& strategy) {
  return plan_of(small_t5(), strategy, 4).stages;
}

TEST_CASE("the decoder's embedding is with the decoder's first layer, or where the encoder's is") {
  // Segments: 0 and 5 embed, 1 to 4 and 6 to 9 are layers, 10 is the head.
  using Stages = std::vector<std::vector<int>>;
  CHECK(stages_of(R"({"pipeline": 4})") == Stages{{0, 1, 2}, {3, 4}, {5, 6, 7}, {8, 9, 10}});
  CHECK(stages_of(R"({"pipeline": 2, "layers_per_stage": [5, 3]})") ==
        Stages{{0, 1, 2, 3, 4, 5, 6}, {7, 8, 9, 10}});
  CHECK(stages_of(R"({"pipeline": 4, "layers_per_stage": [0, 4, 4, 0]})") ==
        Stages{{0}, {1, 2, 3, 4}, {5, 6, 7, 8, 9}, {10}});
  const Stages apart = {{0, 5}, {1, 2}, {3, 4}, {6, 7}, {8, 9}, {10}};
  CHECK(stages_of(R"({"pipeline": 4, "embedding": 1, "head": 2})") == apart);
  CHECK(stages_of(R"({"pipeline": 4, "schedule": "interlaced"})") == apart);
}

TEST_CASE("interlaced T5s have a quarter of the tables on each of four ranks, tied or not") {
  const Program program = lowered(small_t5(), R"({"pipeline": 4, "schedule": "interlaced"})", 6);
  for (const program::Device& device : program.devices) {
    double words = 0;
    for (const program::Resident& one : program.sequences[device.sequence].residents) {
      const bool named =
          one.tensor >= 0 && small_t5().tensors[one.tensor].name == "embedding.words";
      if (named && one.category == program::Category::parameters) words += one.bytes.value;
    }
    CHECK(words == 2 * 112 * 48 / 4);
  }
}

TEST_CASE("slices of tokens do not go with an encoder") {
  model::T5Config megatron{.layers = 2,
                           .decoder_layers = 2,
                           .hidden = 48,
                           .heads = 8,
                           .intermediate = 96,
                           .sequence = 20,
                           .decoder_sequence = 20,
                           .vocabulary = 112,
                           .variant = {.kind = model::T5Kind::megatron},
                           .bias_buckets = 0};
  for (const model::Graph& graph : {small_t5(), model::t5(megatron)}) {
    const std::string why =
        refusal([&] { lowered(graph, R"({"pipeline": 2, "token_slices": [8, 12]})", 2); });
    CHECK(why.find("/strategy/token_slices") != std::string::npos);
    CHECK(why.find("causal attention") != std::string::npos);
  }
}

}  // namespace
}  // namespace stratagem::lowering::t5_test
