// Broken plans are noticed: what a program computes depends on every part of it.
#include <algorithm>
#include <string>

#include "model/adapters.hpp"
#include "model/zoo/bert.hpp"
#include "model/zoo/evoformer.hpp"
#include "model/zoo/llama.hpp"
#include "model/zoo/swin.hpp"
#include "model/zoo/t5.hpp"
#include "model/zoo/vit.hpp"
#include "tests/catch.hpp"
#include "tests/execute/trained.hpp"
#include "tests/sanitized.hpp"

namespace stratagem::execute::planted_test {
namespace {

using lowering::lowered;
using program::Action;
using program::Program;

constexpr model::GptConfig tiny_gpt{
    .layers = 2, .hidden = 16, .heads = 4, .sequence = 8, .vocabulary = 24, .batch = 4};

/// How far a program of two micro-batches is from one device, in fp64.
double distance_from_one(const Program& program) {
  const model::Graph graph = model::gpt(tiny_gpt);
  static const Trained reference = train<double>(graph, lowered(graph, "{}", 2), 2);
  return distance(train<double>(graph, program, 2), reference);
}

/// The first task of a program that does an action and, if asked for, reduces gradients.
program::Task& task_that(Program& program, Action action, bool gradients = false) {
  for (program::Block& block : program.blocks) {
    for (program::Task& task : block.tasks) {
      const bool reduces = task.stream == program::Stream::gradient_communication;
      if (!task.operations.empty() && task.operations[0].action == action && reduces == gradients)
        return task;
    }
  }
  throw std::out_of_range("no such task");
}

/// Has a task do nothing, in a way that no check of the program sees.
void omit(program::Task& task) { task.operations = {{.action = Action::select}}; }

Program program_of(const std::string& strategy) {
  return lowered(model::gpt(tiny_gpt), strategy, 2);
}

TEST_CASE("programs that the planted faults start from agree with one device") {
  CHECK(distance_from_one(program_of(R"({"data": 2})")) <= 1e-9);
  CHECK(distance_from_one(program_of(R"({"tensor": 2})")) <= 1e-9);
  CHECK(distance_from_one(program_of(R"({"pipeline": 2, "schedule": "gpipe"})")) <= 1e-9);
}

TEST_CASE("a missing reduction of gradients is noticed") {
  Program program = program_of(R"({"data": 2})");
  omit(task_that(program, Action::convert, true));
  CHECK_THROWS_AS(distance_from_one(program), BrokenPromise);  // what is stepped with is not whole
}

TEST_CASE("a missing sum over tensor ranks is noticed") {
  Program program = program_of(R"({"tensor": 2})");
  omit(task_that(program, Action::convert));
  CHECK_THROWS_AS(distance_from_one(program), BrokenPromise);  // what is read is not whole
}

TEST_CASE("a sum that takes the largest value is noticed") {
  Program program = program_of(R"({"tensor": 2})");
  std::get<program::Collective>(task_that(program, Action::convert).work).combine =
      model::Combine::maximum;
  CHECK(distance_from_one(program) > 1e-3);
}

TEST_CASE("a stale weight is noticed") {
  Program program = program_of("{}");
  omit(task_that(program, Action::step));
  CHECK(distance_from_one(program) > 1e-6);
}

TEST_CASE("a swapped order of messages is noticed") {
  Program program = program_of(R"({"pipeline": 2, "schedule": "gpipe"})");
  const auto swapped = [&](program::Sequence& sequence) {
    sequence = program::unrolled(sequence);
    std::vector<program::StoredCall*> sends;
    for (program::StoredCall& call : sequence.calls.stored()) {
      const program::Task& task = program.blocks[call.block].tasks.front();
      if (task.stream == program::Stream::send_forward) sends.push_back(&call);
    }
    if (sends.size() < 2) return false;
    std::swap(sends[0]->cell, sends[1]->cell);
    return true;
  };
  REQUIRE(std::ranges::any_of(program.sequences, swapped));
  // The first of them has not been computed yet when its message is to leave.
  CHECK_THROWS_AS(distance_from_one(program), BrokenPromise);
}

/// The loss of one device after a weight has been moved.
double loss_with(const model::Graph& graph, const Program& program, model::TensorId parameter,
                 std::size_t element, double change) {
  double loss = 0;
  kernels::run_ranks(1, [&](kernels::Communicator& world) {
    Interpreter<double> rank(program, graph, {.seed = 7, .micro_batches = 2}, world);
    rank.parameter(parameter).data[element] += change;
    loss = rank.iterate();
  });
  return loss;
}

/// Of all gradients, three elements each: how far the worst is from central differences of the
/// loss, over itself, or over a hundredth of what is typical of all: differences are good to 1e-5
/// of that.
double error_of_gradients(const model::Graph& graph) {
  const Program program = lowered(graph, "{}", 2);
  const Trained trained = train<double>(graph, program, 2, 1);
  std::vector<std::pair<double, double>> slopes;  // as the loss has it, and as it was found
  std::size_t number = 0;
  for (const auto& [parameter, gradient] : trained.gradients) {
    if (number++ % stride(2) != 0) continue;
    for (const std::size_t element : {std::size_t{0}, gradient.size() / 2, gradient.size() - 1}) {
      constexpr double h = 1e-5;
      const double slope = (loss_with(graph, program, parameter, element, h) -
                            loss_with(graph, program, parameter, element, -h)) /
                           (2 * h);
      slopes.emplace_back(slope, gradient[element]);
    }
  }
  double squares = 0, worst = 0;
  for (const auto& [slope, found] : slopes) squares += slope * slope;
  CHECK(squares > 0);
  const double least = std::sqrt(squares / static_cast<double>(slopes.size())) / 100;
  for (const auto& [slope, found] : slopes)
    worst = std::max(worst, std::abs(slope - found) / std::max(std::abs(slope), least));
  return worst;
}

TEST_CASE("the gradients that the interpreter finds are those of its loss") {
  CHECK(error_of_gradients(model::gpt(tiny_gpt)) < 1e-5);
}

TEST_CASE("a Llama's gradients are those of its loss") {
  model::LlamaConfig config{2, 16, 4, 2, 24, 8, 24, 4};
  config.fused.attention = false;
  config.fused.swiglu = config.fused.loss = GENERATE(false, true);
  CHECK(error_of_gradients(model::llama(config)) < 1e-5);
}

TEST_CASE("the gradients of latent attention, windows and sinks are those of the loss") {
  model::LlamaConfig latent{2, 16, 4, 4, 24, 8, 24, 4};
  latent.fused.attention = GENERATE(true, false);
  latent.variant.head_width = 6;
  latent.variant.latent = {.key_rank = 8, .query_rank = 10, .rotary = 2, .values = 4};
  CHECK(error_of_gradients(model::llama(latent)) < 1e-5);
  model::LlamaConfig windows{2, 16, 4, 2, 24, 8, 24, 4};
  windows.variant.sight = {.window = 3, .full_every = 2, .sinks = true};
  CHECK(error_of_gradients(model::llama(windows)) < 1e-5);
  windows.variant.sight = {.documents = {.lengths = {5, 1, 2}}};
  CHECK(error_of_gradients(model::llama(windows)) < 1e-5);
}

TEST_CASE("the gradients of values and rewards are those of their losses") {
  model::LlamaConfig config{2, 16, 4, 2, 24, 8, 24, 6};
  config.variant.task = {.predicts = GENERATE(model::Predicts::values, model::Predicts::reward),
                         .answers = 3};
  CHECK(error_of_gradients(model::llama(config)) < 1e-5);
}

TEST_CASE("an Evoformer's gradients are those of its loss") {
  CHECK(error_of_gradients(model::evoformer({.layers = 1,
                                             .msa_rows = 3,
                                             .residues = 4,
                                             .msa_width = 6,
                                             .pair_width = 5,
                                             .msa_heads = 2,
                                             .pair_heads = 3,
                                             .head_width = 2,
                                             .outer_width = 3,
                                             .batch = 4})) < 1e-5);
}

TEST_CASE("the gradients of fused attention are those of the loss") {
  model::GptConfig config = tiny_gpt;
  config.fused_attention = true;
  CHECK(error_of_gradients(model::gpt(config)) < 1e-5);
  model::LlamaConfig llama_config{2, 16, 4, 2, 24, 8, 24, 4};
  llama_config.fused.attention = true;
  CHECK(error_of_gradients(model::llama(llama_config)) < 1e-5);
}

TEST_CASE("the gradients of experts and their routers are those of the loss") {
  model::LlamaConfig config{2, 16, 4, 2, 24, 8, 24, 4};
  config.fused.attention = false;
  config.fused.swiglu = GENERATE(false, true);
  config.experts = {.count = 4, .per_token = 2};
  CHECK(error_of_gradients(model::llama(config)) < 1e-5);
  model::GptConfig plain = tiny_gpt;
  plain.experts = {.count = 4, .per_token = 2, .every = 2};
  CHECK(error_of_gradients(model::gpt(plain)) < 1e-5);
}

TEST_CASE(
    "whatever a decoder's norms, positions, keys and activation, its gradients are the loss's") {
  model::GptConfig config = tiny_gpt;
  config.fused_attention = GENERATE(false, true);
  config.variant = GENERATE(
      model::GptVariant{.norm = model::OpKind::rms_norm, .positions = model::Positions::rotary},
      model::GptVariant{.positions = model::Positions::none, .biases = false, .qk_norm = true},
      model::GptVariant{.kv_heads = 2, .qk_norm = true},
      model::GptVariant{
          .norm = model::OpKind::rms_norm, .kv_heads = 2, .qk_norm = true, .fused_loss = true});
  config.activation = config.variant.biases ? model::OpKind::squared_relu : model::OpKind::swiglu;
  CHECK(error_of_gradients(model::gpt(config)) < 1e-5);
}

TEST_CASE("a T5's gradients are those of its loss") {
  model::T5Config config;
  config.layers = config.decoder_layers = 2;
  config.hidden = 16;
  config.heads = 4;
  config.intermediate = 24;
  config.sequence = 8;
  config.decoder_sequence = 6;
  config.vocabulary = 24;
  config.batch = 4;
  config.bias_buckets = 8;
  using Kind = model::T5Kind;
  using Mlp = model::T5Mlp;
  config.variant = GENERATE(model::T5Variant{Kind::published, Mlp::relu},
                            model::T5Variant{Kind::published, Mlp::gated_gelu},
                            model::T5Variant{Kind::megatron, Mlp::gelu});
  if (config.variant.kind == Kind::megatron) config.bias_buckets = 0;
  config.tied = config.variant.mlp != Mlp::gated_gelu;
  CHECK(error_of_gradients(model::t5(config)) < 1e-5);
}

TEST_CASE("a BERT's gradients are those of its two losses") {
  model::BertConfig config{
      .layers = 2, .hidden = 16, .heads = 4, .sequence = 8, .vocabulary = 24, .batch = 4};
  config.norms = GENERATE(model::NormPlace::before, model::NormPlace::after);
  config.fused_attention = config.norms == model::NormPlace::before;
  config.next_sentence = GENERATE(false, true);
  CHECK(error_of_gradients(model::bert(config)) < 1e-5);
}

TEST_CASE("gradients of classifiers of images are those of their losses") {
  CHECK(error_of_gradients(
            model::swin({.depths = {2, 1},
                         .hidden = 8,
                         .heads = 2,
                         .batch = 4,
                         .images = {.size = 8, .channels = 1, .patch = 2, .classes = 6},
                         .window = 2})) < 1e-5);
  const auto pool = GENERATE(model::ImagePool::class_token, model::ImagePool::mean);
  CHECK(error_of_gradients(
            model::vit({.layers = 2,
                        .hidden = 16,
                        .heads = 4,
                        .batch = 4,
                        .images = {.size = 12, .channels = 1, .patch = 4, .classes = 6},
                        .pool = pool})) < 1e-5);
}

TEST_CASE("the gradients of adapters are those of the loss") {
  const auto in_layers = [](const model::Tensor& weight) {
    return weight.name.starts_with("layers.");
  };
  CHECK(error_of_gradients(model::with_adapters(model::gpt(tiny_gpt), 3, in_layers)) < 1e-5);
}

TEST_CASE("the gradients of prefixes are those of the loss") {
  model::GptConfig config = tiny_gpt;
  config.prefix = 3;
  CHECK(error_of_gradients(model::gpt(config)) < 1e-5);
  model::LlamaConfig llama_config{2, 16, 4, 2, 24, 8, 24, 4};
  llama_config.fused.attention = false;
  llama_config.prefix = 3;
  CHECK(error_of_gradients(model::llama(llama_config)) < 1e-5);
}

}  // namespace
}  // namespace stratagem::execute::planted_test
