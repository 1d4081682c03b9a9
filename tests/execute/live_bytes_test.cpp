// What ranks really hold at their fullest is what the simulator says, to the byte.
#include "sim/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/execute/trained.hpp"
#include "tests/sim/hand_built.hpp"

namespace stratagem::execute::live_bytes_test {
namespace {

constexpr model::GptConfig gpt_in_fp32{.layers = 4,
                                       .hidden = 16,
                                       .heads = 4,
                                       .sequence = 8,
                                       .vocabulary = 24,
                                       .batch = 2,
                                       .type = model::DataType::fp32};

/// Peaks of a simulation in which ranks do one thing at a time, messages take no time, and every
/// kernel as long as any other.
std::vector<double> simulated_peaks(const program::Program& program) {
  using cost::CollectiveKind;
  sim::Folding folding = sim::on_one_link(
      program, {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                CollectiveKind::all_gather, CollectiveKind::all_to_all, CollectiveKind::send});
  folding.serial = true;
  const sim::Prices prices = sim::price(
      program, [](const program::Task&) { return sim::Price{.device = {1'000'000'000}}; });
  const sim::Timeline timeline = sim::run(program, folding, prices, 1 + 2 * program.lag);
  std::vector<double> peaks;
  for (std::size_t actor = 0; actor < timeline.actors.size(); ++actor)
    peaks.push_back(sim::memory_peak(program, timeline, actor).total.value);
  return peaks;
}

std::vector<double> held_peaks(const Planned& plan) {
  std::vector<double> peaks(plan.program.devices.size());
  kernels::run_ranks(static_cast<int>(peaks.size()), [&](kernels::Communicator& world) {
    Interpreter<float> rank(plan.program, plan.plan.graph(),
                            {.micro_batches = plan.plan.micro_batches}, world);
    rank.iterate();
    rank.train(1 + 2 * plan.program.lag);  // from now on with the optimizer's states
    peaks[static_cast<std::size_t>(world.rank())] = static_cast<double>(rank.arena().peak());
  });
  return peaks;
}

Planned in_fp32(const model::Graph& graph, const std::string& strategy) {
  strategies::Plan plan = lowering::plan_of(graph, strategy, 4);
  program::Program program = lowering::lower(
      plan, lowering::plain_stack(),
      {.precision = cost::precision_named("fp32"), .optimizer = cost::optimizer_named("adam")});
  return {std::move(plan), std::move(program)};
}

TEST_CASE("live bytes at the peak are those that are predicted, on every rank") {
  const model::Graph graph = model::gpt(gpt_in_fp32);
  for (const char* strategy :
       {"{}", R"({"data": 2})", R"({"tensor": 2})", R"({"tensor": 2, "sequence_parallel": true})",
        R"({"pipeline": 2, "schedule": "gpipe"})", R"({"pipeline": 2, "schedule": "zb-h1"})",
        R"({"zero": 1, "data": 2})", R"({"zero": 2, "data": 2})", R"({"zero": 3, "data": 2})",
        R"({"recompute": "full"})", R"({"recompute": "selective"})", R"({"coshard": 2})"}) {
    INFO(strategy);
    const Planned plan = in_fp32(graph, strategy);
    CHECK(held_peaks(plan) == simulated_peaks(plan.program));
  }
}

TEST_CASE("where a stage goes on while its message leaves, that is the difference") {
  // A gradient that leaves lives, in a simulation, until it has been received; a rank sends a copy.
  const model::Graph graph = model::gpt(gpt_in_fp32);
  for (const int stages : {2, 4}) {
    const Planned plan =
        in_fp32(graph, R"({"schedule": "1f1b", "pipeline": )" + std::to_string(stages) + "}");
    const double message = 4.0 * gpt_in_fp32.batch * gpt_in_fp32.sequence * gpt_in_fp32.hidden;
    const std::vector<double> held = held_peaks(plan), predicted = simulated_peaks(plan.program);
    CHECK(held[0] == predicted[0]);  // whose first message leaves before its memory is fullest
    for (std::size_t stage = 1; stage < held.size(); ++stage)
      CHECK(held[stage] + message == predicted[stage]);
  }
}

TEST_CASE("without a flush versions of weights and activations on their way are as many") {
  const model::Graph graph = model::gpt(gpt_in_fp32);
  const double message = 4.0 * gpt_in_fp32.batch * gpt_in_fp32.sequence * gpt_in_fp32.hidden;
  for (const char* schedule : {"pipedream", "pipedream-2bw"}) {
    INFO(schedule);
    const Planned plan =
        in_fp32(graph, std::string(R"({"pipeline": 2, "schedule": ")") + schedule + "\"}");
    const std::vector<double> held = held_peaks(plan), predicted = simulated_peaks(plan.program);
    CHECK(held[0] == predicted[0]);
    CHECK(held[1] + message == predicted[1]);
  }
}

}  // namespace
}  // namespace stratagem::execute::live_bytes_test
