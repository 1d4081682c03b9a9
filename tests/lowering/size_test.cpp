// How large a program will be, told before it is made: held to programs that were made.
#include "lowering/size.hpp"

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/sanitized.hpp"

namespace stratagem::lowering::size_test {
namespace {

model::Graph gpt_of(std::int64_t layers) {
  model::GptConfig config = small_gpt;
  config.layers = layers;
  config.batch = 1;
  return model::gpt(config);
}

Size size_of(const model::Graph& graph, const std::string& strategy, int micro_batches) {
  const strategies::Plan plan = plan_of(graph, strategy, micro_batches);
  return lowering::size_of(plan, Stages(plan));
}

double tasks_of(const program::Program& program) {
  double tasks = 0;
  for (const program::Sequence& sequence : program.sequences)
    tasks += static_cast<double>(task_count(program, sequence));
  return tasks;
}

}  // namespace

TEST_CASE("as many tasks are foretold as there will be, within a third") {
  const model::Graph graph = gpt_of(8);
  for (const char* strategy :
       {"{}", R"({"tensor": 2, "data": 2})", R"({"recompute": "full"})", R"({"pipeline": 4})",
        R"({"pipeline": 4, "schedule": "interleaved"})",
        R"({"pipeline": 4, "schedule": "dualpipe"})",
        R"({"pipeline": 2, "schedule": "zb-h1", "tensor": 2})"}) {
    INFO(strategy);
    const bool divided = std::string(strategy).find("data") != std::string::npos;
    model::GptConfig config = small_gpt;
    config.layers = 8;
    config.batch = divided ? 2 : 1;
    const model::Graph own = model::gpt(config);
    const double tasks = tasks_of(lowered(own, strategy, 16));
    const double foretold = size_of(own, strategy, 16).tasks;
    CHECK(foretold > tasks / 1.5);
    CHECK(foretold < tasks * 1.33);
  }
}

TEST_CASE("an operator that is recomputed counts once more in each micro-batch") {
  const model::Graph graph = gpt_of(8);
  for (const char* strategy : {R"({"recompute": "full"})", R"({"recompute": "selective"})"}) {
    INFO(strategy);
    double again = 0;
    const strategies::Plan plan = plan_of(graph, strategy, 16);
    for (const std::vector<model::OpId>& group : plan.recomputed())
      again += static_cast<double>(group.size());
    CHECK(again > 0);
    CHECK(size_of(graph, strategy, 16).tasks == size_of(graph, "{}", 16).tasks + 16 * again);
  }
}

TEST_CASE("tasks grow with micro-batches, what waits with the square of a stage's layers") {
  const Size one = size_of(gpt_of(10), "{}", 1), more = size_of(gpt_of(10), "{}", 7);
  CHECK(more.tasks == 7 * one.tasks);
  CHECK(more.waiting == one.waiting);
  // 200 layers on one stage, or 10 on each of 20: the same tasks, a twentieth of the waiting, but
  // for the ends of the model.
  const Size whole = size_of(gpt_of(200), "{}", 1);
  const Size staged = size_of(gpt_of(200), R"({"pipeline": 20})", 1);
  CHECK(staged.tasks == whole.tasks);
  CHECK(close(staged.waiting, whole.waiting / 20, 0.05));
  CHECK(close(whole.waiting, 20.0 * 20 * one.waiting, 0.25));
}

TEST_CASE(
    "the largest runs that people report are accepted, absurd ones refused with what they need") {
  // Narayanan et al., arXiv:2104.04473, table 1: the trillion on 3,072 GPUs, 64 stages, 512
  // micro-batches; Brown et al. on 1,024, as there.
  const auto refuse = [](std::int64_t layers, const std::string& strategy, int micro_batches) {
    const model::Graph graph = gpt_of(layers);
    const strategies::Plan plan = plan_of(graph, strategy, micro_batches);
    refuse_size(plan, Stages(plan));
  };
  const std::string full = R"("recompute": "full"})";
  CHECK_NOTHROW(refuse(128, R"({"pipeline": 64, )" + full, 512));
  CHECK_NOTHROW(refuse(96, R"({"pipeline": 8, )" + full, 96));
  CHECK_NOTHROW(
      refuse(96, R"({"pipeline": 8, "schedule": "interleaved", "chunks": 6, )" + full, 96));
  CHECK_NOTHROW(refuse(500, "{}", 1));
  if (!sanitized) {  // such a graph alone takes half a gigabyte
    CHECK_THROWS_WITH(refuse(3000, "{}", 1),
                      ContainsSubstring("estimated to take at most 2.4 GB to simulate") &&
                          ContainsSubstring("3002 segments"));
  }
  CHECK_THROWS_WITH(refuse(256, R"({"pipeline": 256})", 1024),
                    ContainsSubstring("estimated to take at most 2.4 GB to simulate") &&
                        ContainsSubstring("1024 micro-batches in 256 sequences"));
}

}  // namespace stratagem::lowering::size_test
