// Precisions and optimizers in programs: what lives on a device, what is reduced, what steps move.
#include <cmath>
#include <map>
#include <string>

#include "model/cast_products.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/irregular_plans.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/lowering/trained_gpts.hpp"
#include "tests/lowering/variants.hpp"

namespace stratagem::lowering::training_test {

using placement::CellPass;
using program::Block;
using program::Call;
using program::Category;
using program::Program;
using program::Task;
using strategies::Plan;

namespace {

/// Bytes of 8-bit Adam's states of so many elements, from Dettmers et al., section 2.
double in_8_bits(double elements) {
  return elements < 4096 ? 8 * elements : 2 * (elements + 4 * std::ceil(elements / 2048));
}

/// Sums over the parameters of a graph.
template <typename Of>
double sum_over_parameters(const model::Graph& graph, const Of& of) {
  double sum = 0;
  for (const model::Tensor& tensor : graph.tensors) {
    if (tensor.role == model::Role::parameter) sum += of(tensor);
  }
  return sum;
}

double elements(const model::Tensor& tensor) {
  return static_cast<double>(model::element_count(tensor));
}

double rows_and_columns(const model::Tensor& tensor) {
  const std::vector<std::int64_t>& shape = tensor.shape;
  REQUIRE(shape.size() <= 2);
  return 4.0 * static_cast<double>(shape.size() == 2 ? shape[0] + shape[1] : shape[0]);
}

/// Payloads of collectives of one kind on the stream of gradients, of one iteration.
double reduced(const Program& program, cost::CollectiveKind kind) {
  double bytes = 0;
  for (const program::Collective& one :
       collectives(program, 0, program::Stream::gradient_communication)) {
    if (one.kind == kind) bytes += one.payload.value;
  }
  return bytes;
}

}  // namespace

// Bytes a parameter: weights, gradients, master copy and states; with 64 ranks those that the stage
// divides are a 64th (Rajbhandari et al., SC 2020, figure 1, with other K).
TEST_CASE("ZeRO divides what every precision and optimizer keeps") {
  struct Kept {
    double weights, gradients, master;
  };
  const std::map<std::string, Kept> precisions = {{"fp16", {2, 2, 4}},
                                                  {"bf16", {2, 2, 4}},
                                                  {"bf16-fp32-gradients", {2, 4, 4}},
                                                  {"tf32", {4, 4, 0}},
                                                  {"fp32", {4, 4, 0}}};
  const std::map<std::string, double> optimizers = {
      {"adam", 8}, {"adamw", 8}, {"sgd", 0}, {"momentum", 4}};
  for (const auto& [precision, kept] : precisions) {
    const model::Graph graph = even_gpt(cost::precision_named(precision));
    const auto parameters = static_cast<double>(model::parameter_count(graph));
    for (const auto& [optimizer, states] : optimizers) {
      for (const auto& [stage, ranks] : {std::pair(0, 1), std::pair(0, 64), std::pair(1, 64),
                                         std::pair(2, 64), std::pair(3, 64)}) {
        INFO(precision << " " << optimizer << " stage " << stage << " of " << ranks);
        const Program program =
            lowered(graph, zero(stage, ranks), 2, training(precision, optimizer));
        const auto divided = [&](int from) { return stage >= from ? ranks : 1; };
        CHECK(held(program, Category::parameters) == kept.weights * parameters / divided(3));
        CHECK(held(program, Category::gradients) == kept.gradients * parameters / divided(2));
        CHECK(held(program, Category::optimizer_states) ==
              (kept.master + states) * parameters / divided(1));
      }
    }
  }
}

TEST_CASE("8-bit states go by the elements of a tensor, or of its shard") {
  const model::Graph graph = even_gpt(cost::precision_named("fp16"));
  const auto parameters = static_cast<double>(model::parameter_count(graph));
  for (const int ranks : {1, 4, 64}) {
    INFO(ranks << " ranks");
    const double expected = sum_over_parameters(
        graph, [&](const model::Tensor& tensor) { return in_8_bits(elements(tensor) / ranks); });
    const Program program = lowered(graph, zero(1, ranks), 1, training("fp16", "adam-8bit"));
    CHECK(held(program, Category::optimizer_states) == 4 * parameters / ranks + expected);
  }
}

TEST_CASE("Adafactor keeps rows and columns of what a tensor rank has of a matrix") {
  const model::Graph graph = even_gpt(cost::precision_named("fp32"));
  const double whole = sum_over_parameters(graph, rows_and_columns);
  CHECK(held(lowered(graph, R"({"data": 4})", 1, training("fp32", "adafactor")),
             Category::optimizer_states) == whole);
  // By hand: queries, keys and values and the first matrix of the MLP lose rows, the second one and
  // the projection columns, words and logits rows; so do the biases of the first two.
  const double layer = (3072 / 2 + 1024) + 3072 / 2 + (1024 + 1024 / 2) + 1024 + (4096 / 2 + 1024) +
                       4096 / 2 + (1024 + 4096 / 2) + 1024 + 4 * 1024;
  const double ends = 2 * (2048 / 2 + 1024) + (8 + 1024) + 2 * 1024;
  CHECK(held(lowered(graph, R"({"tensor": 2})", 1, training("fp32", "adafactor")),
             Category::optimizer_states) == 4 * (2 * layer + ends));
}

TEST_CASE("rows and columns have no runs of elements: Adafactor under ZeRO is refused") {
  const model::Graph graph = even_gpt(cost::precision_named("fp16"));
  for (const char* optimizer : {"adafactor", "adafactor-momentum"}) {
    for (const int stage : {1, 2, 3}) {
      const std::string text =
          refusal([&] { lowered(graph, zero(stage, 2), 1, training("fp16", optimizer)); });
      CHECK_THAT(text, StartsWith("/strategy/zero: expected an optimizer that keeps something of"));
      CHECK_THAT(text, ContainsSubstring(std::string("found ") + optimizer));
    }
    // One rank divides nothing.
    CHECK(refusal([&] { lowered(graph, zero(1, 1), 1, training("fp16", optimizer)); }).empty());
  }
}

TEST_CASE("steps move what the optimizer's formula needs and what the stack adds") {
  const model::Graph graph = even_gpt(cost::precision_named("fp16"));
  const auto parameters = static_cast<double>(model::parameter_count(graph));
  cost::Stack stack = plain_stack();
  stack.rules = {
      cost::OperatorKernels{.of = "optimizer_step", .launches = 5, .extra_traffic = 60_B}};
  const auto steps_of = [&](const std::string& optimizer) {
    const Program program = lower(plan_of(graph, "{}"), stack, training("fp16", optimizer));
    std::pair<double, int> sum;
    for (const Call& call : program.sequences[0].calls) {
      for (const Task& task : program.blocks[call.block].tasks) {
        if (!steps(task)) continue;
        sum.first += std::get<cost::Kernel>(task.work).traffic.value;
        sum.second += std::get<cost::Kernel>(task.work).launches;
      }
    }
    return sum;
  };
  const int tensors = 12 * 2 + 5;
  CHECK(steps_of("adam") == std::pair(88 * parameters, 5 * tensors));
  CHECK(steps_of("sgd") == std::pair(72 * parameters, 5 * tensors));
  CHECK(steps_of("adafactor").second == 7 * tensors);  // two more passes
}

TEST_CASE("gradients in fp32 are reduced in fp32, weights gathered in bf16") {
  const model::Graph graph = even_gpt(cost::precision_named("bf16-fp32-gradients"));
  const auto parameters = static_cast<double>(model::parameter_count(graph));
  const cost::Training mixed = training("bf16-fp32-gradients");
  using cost::CollectiveKind;
  CHECK(reduced(lowered(graph, R"({"data": 4})", 3, mixed), CollectiveKind::all_reduce) ==
        4 * parameters);
  CHECK(reduced(lowered(graph, zero(1, 4), 3, mixed), CollectiveKind::reduce_scatter) ==
        4 * parameters);
  CHECK(reduced(lowered(graph, zero(2, 4), 3, mixed), CollectiveKind::reduce_scatter) ==
        3 * 4 * parameters);  // every micro-batch
  double gathered = 0;
  for (const program::Collective& one :
       collectives(lowered(graph, zero(1, 4), 3, mixed), 0, program::Stream::compute))
    gathered += one.payload.value;
  CHECK(gathered == 2 * parameters);
}

TEST_CASE("a gradient that is held in fp32 is added from a bf16 buffer that lives no longer") {
  const cost::Precision precision = cost::precision_named("bf16-fp32-gradients");
  const model::Graph held_apart = even_gpt(precision);
  const model::Graph alike = even_gpt(cost::precision_named("bf16"));
  const auto weight_pass = [](const model::Graph& graph, const std::string& strategy,
                              const cost::Training& how) {
    const Program program = lowered(graph, strategy, 1, how);
    for (const Task& task : block_of(program, 1, CellPass::backward).tasks) {
      if (task.name == "mlp.fc1.W")
        return std::pair(task, block_of(program, 1, CellPass::backward));
    }
    throw std::out_of_range("no mlp.fc1.W");
  };
  const double count = 4096.0 * 1024;
  const auto [apart, block] = weight_pass(held_apart, "{}", training("bf16-fp32-gradients"));
  const auto [same, other] = weight_pass(alike, "{}", training("bf16"));
  // The product is written in bf16 either way; then 2 bytes are read, 4 read and 4 written.
  const auto& kernel = std::get<cost::Kernel>(apart.work);
  const auto& plain = std::get<cost::Kernel>(same.work);
  CHECK(kernel.traffic.value - plain.traffic.value == 10 * count);
  CHECK(kernel.launches == 2);
  REQUIRE(apart.allocates.size() == 1);
  CHECK(std::ranges::count(apart.frees, apart.allocates[0]) == 1);
  CHECK(block.slots[apart.allocates[0]].bytes.value == 2 * count);
  CHECK(same.allocates.empty());
  // Where a whole gradient is there until it is reduced to shards, it is cast: 2 read, 4 written.
  const auto [cast, scattered] =
      weight_pass(held_apart, zero(2, 2), training("bf16-fp32-gradients"));
  const auto [straight, unused] = weight_pass(alike, zero(2, 2), training("bf16"));
  CHECK(std::get<cost::Kernel>(cast.work).traffic.value -
            std::get<cost::Kernel>(straight.work).traffic.value ==
        6 * count);
  double whole = 0;
  for (const program::Slot& slot : scattered.slots) {
    if (slot.category == Category::whole_gradients && slot.name.starts_with("mlp.fc1.weight"))
      whole += slot.bytes.value;
  }
  CHECK(whole == 4 * count);
}

TEST_CASE("parts of layers that co-shard makes hold their gradients in fp32, too") {
  const model::Graph graph = even_gpt(cost::precision_named("bf16-fp32-gradients"));
  const Program program = lowered(graph, R"({"coshard": 2})", 1, training("bf16-fp32-gradients"));
  CHECK(held(program, Category::gradients) ==
        4 * static_cast<double>(model::parameter_count(graph)));
}

// Stages 0 and 1 add gradients up whole and reduce once; stages 2 and 3 reduce every micro-batch to
// shards and add those up (ZeRO, section 5; FSDP without no_sync).
TEST_CASE("between micro-batches the stages of ZeRO hold whole gradients or shards of them") {
  const model::Graph graph = even_gpt(cost::precision_named("fp16"));
  const auto parameters = static_cast<double>(model::parameter_count(graph));
  for (const int micro_batches : {1, 4}) {
    for (const int stage : {0, 1, 2, 3}) {
      INFO("stage " << stage << ", " << micro_batches << " micro-batches");
      const Program program = lowered(graph, zero(stage, 4), micro_batches);
      const bool shards = stage >= 2;
      CHECK(held(program, Category::gradients) == 2 * parameters / (shards ? 4 : 1));
      const double sums = reduced(program, cost::CollectiveKind::reduce_scatter) +
                          reduced(program, cost::CollectiveKind::all_reduce);
      CHECK(sums == 2 * parameters * (shards ? micro_batches : 1));
    }
  }
}

TEST_CASE("whatever precisions, optimizers and freed gradients make of a strategy can run") {
  const cost::Precision precision = cost::precision_named("fp8-fp32-gradients");
  cost::Stack stack = plain_stack();
  stack.rules = {cost::Lifetime::gradients_until_step, cost::Lifetime::sent_until_gradients};
  model::GptConfig config = small_gpt;
  config.type = precision.values;
  config.hidden *= 16;  // parts, too, are multiples of what fp8 wants
  config.batch *= 8;
  model::Graph graph = model::cast_products(model::gpt(config), precision.products);
  model::hold_gradients_in(graph, precision.gradients);
  const cost::Training how = training(precision.name, "adam-8bit");
  for (const Variant& variant : variants()) {
    INFO(variant.strategy << ", " << variant.micro_batches << " micro-batches");
    const Plan plan = plan_of(graph, variant.strategy, variant.micro_batches);
    const std::string text = refusal([&] { lower(plan, stack, how); });  // checks what it makes
    using strategies::Keep;
    const bool away = plan.place_of(Keep::What::parameters) != Keep::Where::device;
    if (away || !plan.divided(Keep::What::parameters).empty()) {
      CHECK_THAT(text, ContainsSubstring("weights that stay whole"));
    } else {
      CHECK(text == "");
    }
  }
  for (const strategies::Schedule& schedule : strategies::schedules()) {
    if (schedule.forward_passes > 1 || schedule.spreads_ends) continue;
    INFO(schedule.name);
    const std::string chunks = schedule.chunks == 0 ? ", \"chunks\": 2" : "";
    config.layers = 8;
    const model::Graph deep = model::cast_products(model::gpt(config), precision.products);
    const Plan plan = plan_of(
        deep, "{\"pipeline\": 4, \"schedule\": \"" + schedule.name + "\"" + chunks + "}", 8);
    CHECK(refusal([&] { lower(plan, stack, how); }).empty());
  }
}

TEST_CASE("irregular stages keep, reduce and step what uniform ones do in any precision") {
  for (const char* name : {"bf16-fp32-gradients", "fp8", "fp32"}) {
    INFO(name);
    const cost::Training how = training(name, "adam-8bit");
    const model::Graph graph = even_gpt(how.precision, true);
    const Plan plan = plan_of(graph, R"({"tensor": 2, "data": 2})", 2);
    const Program uniform = lower(plan, plain_stack(), how);
    const Program listed = lower(with_lists(plan), plain_stack(), how);
    for (const Category one :
         {Category::parameters, Category::gradients, Category::optimizer_states})
      CHECK(held(listed, one) == held(uniform, one));
    CHECK(reduced(listed, cost::CollectiveKind::all_reduce) ==
          reduced(uniform, cost::CollectiveKind::all_reduce));
    const auto products = [](const Program& program) {
      Bytes traffic;
      for (const Call& call : program.sequences[0].calls) {
        for (const Task& task : program.blocks[call.block].tasks) {
          const auto* kernel = std::get_if<cost::Kernel>(&task.work);
          if (kernel != nullptr && kernel->kind == cost::KernelKind::gemm)
            traffic += kernel->traffic;
        }
      }
      return traffic;
    };
    CHECK(products(listed) == products(uniform));
  }
}

TEST_CASE("TF32 is fp32 in memory: no casts, the same traffic, every product on tensor cores") {
  const model::Graph graph = even_gpt(cost::precision_named("tf32"), true);
  const Program fp32 = lowered(graph, "{}", 2, training("fp32", "adam"));
  const Program tf32 = lowered(graph, "{}", 2, training("tf32", "adam"));
  REQUIRE(fp32.blocks.size() == tf32.blocks.size());
  for (std::size_t b = 0; b < fp32.blocks.size(); ++b) {
    REQUIRE(fp32.blocks[b].tasks.size() == tf32.blocks[b].tasks.size());
    for (std::size_t t = 0; t < fp32.blocks[b].tasks.size(); ++t) {
      const auto* one = std::get_if<cost::Kernel>(&fp32.blocks[b].tasks[t].work);
      const auto* other = std::get_if<cost::Kernel>(&tf32.blocks[b].tasks[t].work);
      REQUIRE((one == nullptr) == (other == nullptr));
      if (one == nullptr) continue;
      CHECK(one->traffic == other->traffic);
      const bool product = one->kind == cost::KernelKind::gemm;
      CHECK(other->type == (product ? model::DataType::tf32 : one->type));
    }
  }
}

// ---- gradients that are freed between iterations

TEST_CASE("gradients that the stack frees live from the first addition to the step") {
  const model::Graph graph = even_gpt(cost::precision_named("fp16"), true);
  cost::Stack stack = plain_stack();
  stack.rules = {cost::Lifetime::gradients_until_step};
  const Program program = lower(plan_of(graph, R"({"data": 2})", 3), stack);
  const program::Sequence& sequence = program.sequences[0];
  int gradients = 0;
  for (const program::Resident& one : sequence.residents) {
    if (one.category != Category::gradients) {
      CHECK_FALSE(one.span);
      continue;
    }
    ++gradients;
    REQUIRE(one.span);
    const Call& first = sequence.calls[one.span->first.call];
    CHECK(first.cell.pass == CellPass::backward);
    CHECK(first.cell.micro_batch == 0);
    CHECK(program.blocks[first.block].tasks[one.span->first.task].name.find(".W") !=
          std::string::npos);
    const Call& last = sequence.calls[one.span->last.call];
    CHECK(steps(program.blocks[last.block].tasks[one.span->last.task]));
  }
  CHECK(gradients == 12 * 2 + 4);  // the table of words once
}

TEST_CASE(
    "what is kept with steps lives from the first to the last, or on until the next iteration") {
  using With = cost::ExtraState::With;
  const model::Graph graph = even_gpt(cost::precision_named("fp16"), true);
  double parameters = 0;
  for (const model::Tensor& tensor : graph.tensors)
    parameters += tensor.role == model::Role::parameter ? elements(tensor) : 0;
  for (const With with : {With::steps, With::until_next}) {
    cost::Stack stack = plain_stack();
    stack.rules = {cost::ExtraState{.name = "copies", .bytes = 4_B, .with = with}};
    const Program program = lower(plan_of(graph, "{}", 2), stack);
    const program::Sequence& sequence = program.sequences[0];
    const auto found =
        std::ranges::find(sequence.residents, Category::temporaries, &program::Resident::category);
    REQUIRE(found != sequence.residents.end());
    CHECK(found->bytes == parameters * 4_B);
    CHECK(found->until_next == (with == With::until_next));
    REQUIRE(found->span);
    for (const program::TaskOfCall& one : {found->span->first, found->span->last})
      CHECK(steps(program.blocks[sequence.calls[one.call].block].tasks[one.task]));
  }
}

TEST_CASE("gradients are copied to fp32 for steps only where they are in another type") {
  cost::Stack stack = plain_stack();
  stack.rules = {cost::ExtraState{.name = "copies",
                                  .bytes = 4_B,
                                  .with = cost::ExtraState::With::steps,
                                  .copies_gradients = true}};
  for (const auto& [precision, copies] : {std::pair("bf16", 1), {"bf16-fp32-gradients", 0}}) {
    const model::Graph graph = even_gpt(cost::precision_named(precision), true);
    const Program program = lower(plan_of(graph, "{}", 2), stack, training(precision, "adam"));
    CHECK(std::ranges::count(program.sequences[0].residents, Category::temporaries,
                             &program::Resident::category) == copies);
  }
}

TEST_CASE("shards of gradients, and gradients without a flush, live always") {
  const model::Graph graph = even_gpt(cost::precision_named("fp16"));
  cost::Stack stack = plain_stack();
  stack.rules = {cost::Lifetime::gradients_until_step};
  for (const std::string& strategy :
       {zero(2, 4), zero(3, 4), std::string(R"({"pipeline": 2, "schedule": "pipedream"})")}) {
    const Program program = lower(plan_of(graph, strategy, 4), stack);
    for (const program::Resident& one : program.sequences[0].residents) CHECK_FALSE(one.span);
  }
}

}  // namespace stratagem::lowering::training_test
