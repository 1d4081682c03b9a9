// What a framework does beside the collectives of ZeRO 3, and parameters that are too small to be
// divided.
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::lowering::shard_collectives_test {

using program::Category;
using program::Program;
using program::Task;

namespace {

using cost::CollectiveKind;

Program with_facts(const model::Graph& graph, const std::string& strategy,
                   const cost::ShardCollectives& facts) {
  cost::Stack stack = plain_stack();
  stack.rules = {facts};
  return lower(plan_of(graph, strategy, 2), stack);
}

/// What the first device runs in an iteration.
struct Run {
  explicit Run(const Program& program) {
    for (const program::Call& call : program.sequences[0].calls) {
      for (const Task& task : program.blocks[call.block].tasks) note(task);
    }
  }

  void note(const Task& task) {
    if (const program::Collective* work = collective_of(task)) {
      ++collectives[work->kind];
      payload[work->kind] += work->payload;
      tensors[work->kind] += static_cast<int>(task.operations.front().inputs.size());
      return;
    }
    const auto& kernel = std::get<cost::Kernel>(task.work);
    if (task.name.starts_with("parts of ")) {
      copied += kernel.traffic;
      copies += kernel.launches;
    } else if (task.name.starts_with("add ")) {
      added += kernel.traffic;
      additions += kernel.launches;
    } else if (task.name.starts_with("clear ")) {
      cleared += kernel.traffic;
      waits += task.synchronizations;
    }
  }

  std::map<CollectiveKind, int> collectives;
  std::map<CollectiveKind, int> tensors;
  std::map<CollectiveKind, Bytes> payload;
  Bytes copied, cleared, added;
  int copies = 0;
  int additions = 0;
  int waits = 0;
};

model::Graph untied_gpt() {
  model::GptConfig config = small_gpt;
  config.tied = false;
  return model::gpt(config);
}

/// Elements of parameters, of those alone that have fewer than `below` or of the others.
double elements(const model::Graph& graph, int below, bool small) {
  double sum = 0;
  for (const model::Tensor& tensor : graph.tensors) {
    if (tensor.role != model::Role::parameter) continue;
    const auto count = static_cast<double>(model::element_count(tensor));
    if ((count < below) == small) sum += count;
  }
  return sum;
}

constexpr auto gather = CollectiveKind::all_gather;
constexpr auto scatter = CollectiveKind::reduce_scatter;

}  // namespace

TEST_CASE("weight by weight there are as many collectives as weights, and as many bytes") {
  const model::Graph graph = untied_gpt();
  for (const std::string more : {"", R"(, "recompute": "full")", R"(, "tensor": 2)"}) {
    INFO(more);
    const std::string strategy = R"({"data": 4, "zero": 3)" + more + "}";
    const Run together(with_facts(graph, strategy, {}));
    const Run single(with_facts(graph, strategy, {.by_weight = true}));
    for (const CollectiveKind kind : {gather, scatter}) {
      CHECK(together.collectives.at(kind) < together.tensors.at(kind));
      CHECK(single.collectives.at(kind) == together.tensors.at(kind));
      CHECK(close(single.payload.at(kind).value, together.payload.at(kind).value, 1e-12));
    }
    const auto weights =
        std::ranges::count(graph.tensors, model::Role::parameter, &model::Tensor::role);
    CHECK(single.collectives.at(scatter) == 2 * weights);  // of two micro-batches
  }
}

TEST_CASE("each rank's part is copied through a second buffer, what is gathered cleared before") {
  const model::Graph graph = untied_gpt();
  for (const bool by_weight : {false, true}) {
    const Run run(
        with_facts(graph, R"({"data": 4, "zero": 3})",
                   {.by_weight = by_weight, .gathers_wait = true, .kernels_per_rank = 3}));
    const Bytes gathered = run.payload.at(gather);
    CHECK(run.copies == 3 * 4 * (run.collectives.at(gather) + run.collectives.at(scatter)));
    CHECK(close(run.copied.value, 2 * (gathered + run.payload.at(scatter)).value, 1e-12));
    CHECK(close(run.cleared.value, gathered.value, 1e-12));
    CHECK(run.waits == run.collectives.at(gather));
  }
}

TEST_CASE("reduced shards are added up by the kernels that add up whole gradients") {
  // Of each micro-batch a rank adds the fourth of what it reduces: it reads what it has and what
  // came, and writes their sum.
  const model::Graph graph = untied_gpt();
  for (const std::string stage : {"2", "3"}) {
    const std::string strategy = R"({"data": 4, "zero": )" + stage + "}";
    cost::Stack stack = plain_stack();
    stack.rules = {cost::OperatorKernels{.of = "gradient_accumulation", .extra_passes = 3}};
    const Run run(lower(plan_of(graph, strategy, 2), stack));
    CHECK(close(run.added.value, 3 * run.payload.at(scatter).value / 4, 1e-12));
    CHECK(run.additions == run.tensors.at(scatter));
    stack.rules = {cost::OperatorKernels{.of = "gradient_accumulation", .launches = 0}};
    CHECK(Run(lower(plan_of(graph, strategy, 2), stack)).additions == 0);
  }
}

TEST_CASE("a gather waits for what was computed and reduced before it, a copy from the host not") {
  const model::Graph graph = untied_gpt();
  const std::string begin = R"({"data": 4, "bucket": "1 B", "zero": {"stage": 3, "prefetch": 1})";
  for (const std::string more : {"}", R"(, "offload": "parameters"})"}) {
    INFO(more);
    const Program program = with_facts(graph, begin + more, {.gathers_wait = true});
    const program::Calls& calls = program.sequences[0].calls;
    std::optional<int> computed, reduced;
    int waiting = 0;
    for (int c = 0; c < static_cast<int>(calls.size()); ++c) {
      const program::Block& block = program.blocks[calls[c].block];
      const auto clear = std::ranges::find_if(
          block.tasks, [](const Task& task) { return task.name.starts_with("clear "); });
      if (clear == block.tasks.end()) {
        const bool reduces = block.tasks.front().stream == program::Stream::gradient_communication;
        (reduces ? reduced : computed) = c;
        continue;
      }
      const auto task = static_cast<int>(clear - block.tasks.begin());
      const auto waits = [&](int index, std::optional<int> before) {
        return std::ranges::any_of(calls[c].waits, [&](const program::Wait& wait) {
          return wait.task == index && wait.of_call == before;
        });
      };
      if (computed) CHECK(waits(task, computed));
      if (reduced) CHECK(waits(task, reduced));
      if (reduced && task > 0) CHECK_FALSE(waits(0, reduced));
      waiting += reduced ? 1 : 0;
    }
    CHECK(waiting > 4);
  }
}

TEST_CASE("where nothing divides weights nothing is gathered, and nobody waits") {
  const model::Graph graph = untied_gpt();
  const cost::ShardCollectives facts{
      .by_weight = true, .gathers_wait = true, .kernels_per_rank = 1};
  const std::string strategy = R"({"offload": "parameters", "zero": 3})";
  CHECK(to_text(with_facts(graph, strategy, facts)) == to_text(with_facts(graph, strategy, {})));
}

TEST_CASE("a framework that gathers by one rank does as often, and as many bytes, as by four") {
  const model::Graph graph = untied_gpt();
  const cost::ShardCollectives facts{
      .by_weight = true, .gathers_wait = true, .kernels_per_rank = 1, .of_one_rank = true};
  const Program program = with_facts(graph, R"({"zero": 3})", facts);
  const Run alone(program), four(with_facts(graph, R"({"data": 4, "zero": 3})", facts));
  CHECK(alone.collectives.at(gather) == four.collectives.at(gather));
  CHECK(alone.payload.at(gather) == four.payload.at(gather));
  CHECK(alone.waits == four.waits);
  CHECK(close(alone.cleared.value, four.cleared.value, 1e-12));
  // What it keeps is whole, nothing is reduced to shards.
  CHECK(close(resident(program.sequences[0], Category::parameters).value,
              2 * elements(graph, 0, false), 1e-12));
  CHECK_FALSE(alone.collectives.contains(scatter));
  const cost::ShardCollectives none{.by_weight = true, .gathers_wait = true, .kernels_per_rank = 1};
  CHECK(to_text(with_facts(graph, R"({"zero": 3})", none)) ==
        to_text(with_facts(graph, "{}", none)));
}

TEST_CASE("what ranks have stepped is gathered in as many shares as buckets go into it") {
  const model::Graph graph = untied_gpt();
  double largest = 0;
  for (const model::Tensor& tensor : graph.tensors) {
    if (tensor.role == model::Role::parameter)
      largest = std::max(largest, 2.0 * static_cast<double>(model::element_count(tensor)));
  }
  for (const char* zero : {"1", "2"}) {
    const strategies::Plan plan =
        plan_of(graph, R"({"data": 4, "zero": )" + std::string(zero) + "}", 2);
    cost::Stack stack = plain_stack();
    const Run together(lower(plan, stack));
    CHECK(together.collectives.at(gather) == 1);
    CHECK(together.copies == 0);
    stack.rules = {cost::StepGathers{.bucket = 20000_B, .kernels_per_rank = 1}};
    const Program program = lower(plan, stack);
    const Run parts(program);
    const double all = 2 * elements(graph, 0, false);
    CHECK(close(parts.payload.at(gather).value, all, 1e-12));
    CHECK(close(parts.copied.value, 2 * all, 1e-12));
    CHECK(parts.copies == 4 * parts.collectives.at(gather));
    CHECK(parts.tensors.at(gather) == together.tensors.at(gather));
    // num_shards of DeepSpeed's all_gather_dp_groups, as many equal shares of the flat buffer.
    const double shares = std::floor(all / 20000);
    CHECK(parts.collectives.at(gather) == shares);
    for (const program::Block& block : program.blocks) {
      for (const Task& task : block.tasks) {
        const program::Collective* work = collective_of(task);
        if (work == nullptr || work->kind != gather) continue;
        CHECK(std::abs(work->payload.value - all / shares) < largest);
      }
    }
    stack.rules = {cost::StepGathers{.bucket = Bytes{2 * all}, .kernels_per_rank = 1}};
    CHECK(Run(lower(plan, stack)).collectives.at(gather) == 1);
  }
}

TEST_CASE("facts of ZeRO 3 leave other stages as they are") {
  const model::Graph graph = untied_gpt();
  const cost::ShardCollectives facts{
      .by_weight = true, .gathers_wait = true, .kernels_per_rank = 1};
  for (const std::string zero : {"0", "1", "2"}) {
    const std::string strategy = R"({"data": 4, "zero": )" + zero + "}";
    CHECK(to_text(with_facts(graph, strategy, facts)) == to_text(with_facts(graph, strategy, {})));
  }
}

// A weight that stays whole is as in ZeRO 2: 2 + 14/N bytes an element instead of 16/N, and 2
// (N-1)/N of its elements communicated instead of 3 (N-1)/N.
TEST_CASE("small weights stay whole, and are told after the step") {
  const model::Graph graph = untied_gpt();
  for (const int below : {0, 100, 3000, 1'000'000}) {
    INFO(below);
    const std::string strategy =
        R"({"data": 4, "zero": {"stage": 3, "whole_below": )" + std::to_string(below) + "}}";
    const Program program = lowered(graph, strategy);
    const double whole = elements(graph, below, true);
    const double divided = elements(graph, below, false);
    const program::Sequence& sequence = program.sequences[0];
    CHECK(
        close(resident(sequence, Category::parameters).value, 2 * whole + 2 * divided / 4, 1e-12));
    CHECK(close(resident(sequence, Category::gradients).value, 2 * (whole + divided) / 4, 1e-12));
    CHECK(close(resident(sequence, Category::optimizer_states).value, 12 * (whole + divided) / 4,
                1e-12));
    const Run run(program);
    CHECK(close(run.payload.at(scatter).value, 2 * (whole + divided), 1e-12));
    CHECK(close(run.payload.at(gather).value, 2 * whole + 4 * divided, 1e-12));
  }
}

TEST_CASE("tensor ranks count the elements of what they hold") {
  const model::Graph graph = untied_gpt();
  const auto parameters = [&](int below) {
    const std::string strategy =
        R"({"tensor": 2, "data": 2, "zero": {"stage": 3, "whole_below": )" + std::to_string(below) +
        "}}";
    return resident(lowered(graph, strategy).sequences[0], Category::parameters);
  };
  // An MLP's matrix has 4 * 48 * 48 elements, half of which are on a rank.
  CHECK(parameters(2 * 48 * 48 + 1) > parameters(2 * 48 * 48));
  CHECK(parameters(4 * 48 * 48) == parameters(2 * 48 * 48 + 1));
}

TEST_CASE("a smallest size wants parameters that are divided, on the device") {
  const model::Graph graph = untied_gpt();
  const auto refused = [&](const std::string& strategy) {
    return refusal([&] { lowered(graph, strategy); });
  };
  CHECK_THAT(refused(R"({"data": 2, "zero": {"stage": 2, "whole_below": 5}})"),
             StartsWith("test.json: /strategy/zero/whole_below: expected stage 3"));
  CHECK_THAT(refused(R"({"data": 2, "zero": {"stage": 3, "whole_below": -1}})"),
             ContainsSubstring("/strategy/zero/whole_below"));
  CHECK_THAT(refused(R"({"data": 2, "offload": "parameters",
                         "zero": {"stage": 3, "whole_below": 5}})"),
             StartsWith("test.json: /strategy/offload: expected all parameters divided"));
}

}  // namespace stratagem::lowering::shard_collectives_test
