// ZeRO-Offload: what lives on the device, what travels, and that everything steps once.
#include <map>

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::strategies::offload_test {

using lowering::lowered;
using lowering::resident;
using program::Call;
using program::Category;
using program::Program;
using program::Residence;
using program::Stream;
using program::Task;

namespace {

/// Every parameter has a multiple of 16 elements.
model::Graph even_gpt(bool tied = true) {
  return model::gpt({.layers = 4,
                     .hidden = 64,
                     .heads = 8,
                     .sequence = 16,
                     .vocabulary = 128,
                     .batch = 16,
                     .tied = tied});
}

std::string offloaded(int ranks, int stage, const std::string& more = "") {
  return R"({"offload": "optimizer", "data": )" + std::to_string(ranks) +
         ", \"zero\": " + std::to_string(stage) + more + "}";
}

double copied(const Program& program, cost::CollectiveKind kind) {
  double bytes = 0;
  for (const Call& call : program.sequences[0].calls) {
    for (const Task& task : program.blocks[call.block].tasks) {
      const program::Collective* work = lowering::collective_of(task);
      if (work != nullptr && work->kind == kind) bytes += work->payload.value;
    }
  }
  return bytes;
}

}  // namespace

// Ren et al., section 4.1: with fp16 weights on the GPU and everything else on the CPU, 2 bytes a
// parameter stay; 2 bytes of gradients leave and 2 bytes of weights come back every step.
TEST_CASE("weights alone stay on the device, gradients leave and weights come back once a step") {
  const model::Graph graph = even_gpt();
  const auto parameters = static_cast<double>(model::parameter_count(graph));
  for (const auto& [ranks, stage] :
       {std::pair(1, 0), std::pair(4, 1), std::pair(4, 2), std::pair(16, 2)}) {
    for (const std::string more :
         {"", R"(, "bucket": "8 KB")", R"(, "overlap_gradients": false)"}) {
      INFO(ranks << more);
      const Program program = lowered(graph, offloaded(ranks, stage, more));
      CHECK(resident(program.sequences[0], Category::parameters).value == 2 * parameters);
      CHECK(resident(program.sequences[0], Category::gradients).value == 0);
      CHECK(resident(program.sequences[0], Category::optimizer_states).value == 0);
      CHECK(copied(program, cost::CollectiveKind::to_host) == 2 * parameters / ranks);
      CHECK(copied(program, cost::CollectiveKind::from_host) == 2 * parameters / ranks);
    }
  }
  const Program sharded = lowered(graph, offloaded(4, 3));
  CHECK(resident(sharded.sequences[0], Category::parameters).value == 2 * parameters / 4);
}

// Rajbhandari et al., ZeRO-Infinity, arXiv:2104.07857: gradients on NVMe. Each micro-batch but the
// first reads what is there and adds to it, each writes it, and the steps read it beside 12 bytes
// of states, which they write again.
TEST_CASE("gradients on drives are read and written once a micro-batch") {
  const model::Graph graph = even_gpt(false);
  const auto parameters = static_cast<double>(model::parameter_count(graph));
  for (const int ranks : {1, 4}) {
    for (const int m : {1, 2, 5}) {
      for (const bool states : {false, true}) {
        for (const std::string more : {"", R"(, "bucket": "8 KB")"}) {
          INFO(ranks << " ranks, " << m << " micro-batches" << more);
          const Program program =
              lowered(graph,
                      R"({"offload": {"optimizer": ")" + std::string(states ? "drives" : "memory") +
                          R"(", "gradients": "drives"}, "zero": 2, "data": )" +
                          std::to_string(ranks) + more + "}",
                      m);
          const double each = (states ? 12 : 0) + 2 * m;
          CHECK(copied(program, cost::CollectiveKind::from_drives) == each * parameters / ranks);
          CHECK(copied(program, cost::CollectiveKind::to_drives) == each * parameters / ranks);
          double there = 0;
          for (const program::Resident& one : program.sequences[0].residents)
            if (one.place == Residence::drives) there += one.bytes.value;
          CHECK(there == ((states ? 12 : 0) + 2) * parameters / ranks);
        }
      }
    }
  }
}

TEST_CASE("parameters on the host leave nothing on the device, and are fetched for every pass") {
  const model::Graph graph = even_gpt(false);
  const auto parameters = static_cast<double>(model::parameter_count(graph));
  for (const int ranks : {1, 4}) {
    for (const int micro_batches : {1, 3}) {
      INFO(ranks << " ranks, " << micro_batches << " micro-batches");
      const Program program = lowered(
          graph, R"({"offload": "parameters", "zero": 3, "data": )" + std::to_string(ranks) + "}",
          micro_batches);
      const program::Sequence& sequence = program.sequences[0];
      CHECK(resident(sequence, Category::parameters).value == 0);
      CHECK(resident(sequence, Category::parameters, Residence::host).value ==
            2 * parameters / ranks);
      // Forward and backward; new weights stay where they are made.
      CHECK(copied(program, cost::CollectiveKind::from_host) ==
            micro_batches * 2 * 2 * parameters / ranks);
      CHECK(copied(program, cost::CollectiveKind::to_host) ==
            micro_batches * 2 * parameters / ranks);
    }
  }
}

TEST_CASE(
    "delayed steps come first, wait for nothing, and nobody waits for them but the exchange") {
  const model::Graph graph = even_gpt();
  const auto parameters = static_cast<double>(model::parameter_count(graph));
  const Program program = lowered(
      graph, R"({"data": 4, "zero": 2, "offload": {"of": "optimizer", "delayed_update": true}})");
  const program::Calls& calls = program.sequences[0].calls;
  const auto steps = [&](const Call& call) { return program.blocks[call.block].name == "step"; };
  CHECK(std::ranges::count_if(calls, steps) == static_cast<int>(graph.segments.size()));
  CHECK(std::ranges::is_partitioned(calls, steps));
  for (const Call& call : calls) {
    if (!steps(call)) continue;
    CHECK(call.waits.empty());
    for (const Task& task : program.blocks[call.block].tasks) CHECK(task.synchronizations == 0);
  }
  const auto exchange = std::ranges::find_if(calls, [&](const Call& call) {
    return program.blocks[call.block].name == "exchange with host";
  });
  REQUIRE(exchange != calls.end());
  CHECK((*exchange).waits.size() == 2);  // the last step, and the last gradients' way out
  CHECK(program.blocks[(*exchange).block].tasks.front().synchronizations == 1);
  CHECK(copied(program, cost::CollectiveKind::from_host) == 2 * parameters / 4);
}

TEST_CASE("gradients of every micro-batch leave for the host") {
  const model::Graph graph = even_gpt();
  const auto parameters = static_cast<double>(model::parameter_count(graph));
  const Program program = lowered(graph, offloaded(4, 2), 3);
  CHECK(copied(program, cost::CollectiveKind::to_host) == 3 * 2 * parameters / 4);
  CHECK(copied(program, cost::CollectiveKind::from_host) == 2 * parameters / 4);
}

TEST_CASE("steps on the host read and write 28 bytes a parameter of mixed-precision Adam") {
  const model::Graph graph = even_gpt();
  const Program program = lowered(graph, offloaded(4, 2));
  double traffic = 0;
  for (const Call& call : program.sequences[0].calls) {
    for (const Task& task : program.blocks[call.block].tasks) {
      if (task.stream != Stream::host) continue;
      const auto& kernel = std::get<cost::Kernel>(task.work);
      CHECK(kernel.kind == cost::KernelKind::host_optimizer);
      traffic += kernel.traffic.value;
    }
    for (const Task& task : program.blocks[call.block].tasks) CHECK_FALSE(lowering::steps(task));
  }
  CHECK(traffic == 28 * static_cast<double>(model::parameter_count(graph)) / 4);
}

TEST_CASE("all weights are back before anything is computed with them") {
  const model::Graph graph = even_gpt();
  for (const int stage : {2, 3}) {
    const Program program = lowered(graph, offloaded(2, stage));
    const program::Calls& calls = program.sequences[0].calls;
    // The last copy is on the stream of computations, and the others are in front of it.
    std::vector<std::size_t> copies;
    for (std::size_t c = 0; c < calls.size(); ++c) {
      for (const Task& task : program.blocks[calls[c].block].tasks) {
        const program::Collective* work = lowering::collective_of(task);
        if (work != nullptr && work->kind == cost::CollectiveKind::from_host) copies.push_back(c);
      }
    }
    REQUIRE(copies.size() == graph.segments.size());
    for (std::size_t i = 0; i < copies.size(); ++i) {
      const program::Block& block = program.blocks[calls[copies[i]].block];
      const bool last = i + 1 == copies.size();
      CHECK(block.tasks.back().stream == (last ? Stream::compute : Stream::copy_in));
      if (!last) continue;
      const auto waits_for_the_one_before = [&](const program::Wait& wait) {
        return wait.of_call == static_cast<int>(copies[i - 1]) &&
               wait.task == static_cast<int>(block.tasks.size()) - 1;
      };
      CHECK(std::ranges::any_of(calls[copies[i]].waits, waits_for_the_one_before));
    }
  }
}

TEST_CASE("ranks that would have to add up on the host are refused") {
  const auto refused = [&](const model::Graph& graph, const std::string& strategy) {
    return lowering::refusal([&] { lowered(graph, strategy, 2); });
  };
  CHECK_THAT(refused(even_gpt(), R"({"offload": "optimizer", "pipeline": 2})"),
             ContainsSubstring("on one stage (untied, and no copies of stages)"));
  CHECK_THAT(
      refused(even_gpt(), R"({"offload": "optimizer", "pipeline": 2, "schedule": "pipedream"})"),
      ContainsSubstring("a schedule with a flush where steps run on the host"));
  CHECK(refused(even_gpt(false), R"({"offload": "optimizer", "pipeline": 2})").empty());
  CHECK_THAT(refused(even_gpt(), R"({"offload": "optimizer", "data": 2})"),
             StartsWith("test.json: /strategy/offload: expected zero beside it"));
  CHECK_THAT(refused(even_gpt(), R"({"offload": "parameters", "data": 2, "zero": 2})"),
             StartsWith("test.json: /strategy/offload: expected zero 3 beside parameters"));
  CHECK_THAT(refused(even_gpt(), R"({"offload": {"of": "optimizer", "to": "nvme"}})"),
             ContainsSubstring("/strategy/offload/to: expected one of \"host\""));
  CHECK_THAT(refused(even_gpt(), R"({"offload": {"of": "nvme"}})"),
             ContainsSubstring("/strategy/offload/of: expected"));
  CHECK_THAT(
      refused(even_gpt(),
              R"({"zero": 3, "offload": {"of": "parameters", "delayed_update": true}})"),
      StartsWith("test.json: /strategy/offload/delayed_update: expected the optimizer alone"));
  const auto places = [&](const std::string& object, const std::string& more = "") {
    return refused(even_gpt(), R"({"offload": )" + object + more + "}");
  };
  CHECK(places(R"({"optimizer": "drives"})").empty());
  CHECK_THAT(places(R"({"optimizer": "nvme"})"),
             ContainsSubstring("/strategy/offload/optimizer: expected"));
  CHECK_THAT(
      places(R"({"parameters": "drives"})"),
      ContainsSubstring("/strategy/offload: expected one of the keys \"optimizer\", \"of\""));
  CHECK_THAT(places(R"({"optimizer": "drives", "parameters": "drives"})"),
             StartsWith("test.json: /strategy/offload/parameters: expected zero 3 beside"));
  CHECK_THAT(places(R"({"optimizer": "drives", "to": "host"})"),
             StartsWith("test.json: /strategy/offload/to: expected "));
  CHECK_THAT(places(R"({"optimizer": "drives"})", R"(, "data": 2)"),
             StartsWith("test.json: /strategy/offload/optimizer: expected zero beside it"));
}

// Adam in mixed precision keeps a master copy, a momentum and a variance in fp32: 12 bytes a
// parameter, all of which a step changes. Weights of 2 bytes are fetched for each pass.
TEST_CASE("12 bytes of states go to drives and back a step, 2 of weights come for each pass") {
  using cost::CollectiveKind;
  const model::Graph graph = even_gpt(false);
  const auto parameters = static_cast<double>(model::parameter_count(graph));
  const auto program = [&](int ranks, const std::string& places, int micro_batches) {
    return lowered(
        graph,
        R"({"zero": 3, "data": )" + std::to_string(ranks) + R"(, "offload": )" + places + "}",
        micro_batches);
  };
  for (const int ranks : {1, 4}) {
    for (const int micro_batches : {1, 3}) {
      INFO(ranks << " ranks, " << micro_batches << " micro-batches");
      const double each = parameters / ranks;
      const Program states = program(ranks, R"({"optimizer": "drives"})", micro_batches);
      CHECK(copied(states, CollectiveKind::from_drives) == 12 * each);
      CHECK(copied(states, CollectiveKind::to_drives) == 12 * each);
      CHECK(resident(states.sequences[0], Category::optimizer_states, Residence::drives).value ==
            12 * each);
      CHECK(resident(states.sequences[0], Category::optimizer_states, Residence::host) == Bytes{});
      const Program all =
          program(ranks, R"({"optimizer": "drives", "parameters": "drives"})", micro_batches);
      CHECK(copied(all, CollectiveKind::from_drives) == (12 + micro_batches * 2 * 2) * each);
      CHECK(copied(all, CollectiveKind::to_drives) == (12 + 2) * each);
      CHECK(copied(all, CollectiveKind::from_host) == micro_batches * 2 * 2 * each);
      CHECK(resident(all.sequences[0], Category::parameters, Residence::drives).value == 2 * each);
      const Program weights =
          program(ranks, R"({"optimizer": "memory", "parameters": "drives"})", micro_batches);
      CHECK(copied(weights, CollectiveKind::from_drives) == micro_batches * 2 * 2 * each);
      CHECK(copied(weights, CollectiveKind::to_drives) == 2 * each);
    }
  }
}

// Without a master copy a step reads the weights themselves: 4 bytes beside 8 of states.
TEST_CASE("weights in fp32 are read from drives for their step") {
  using cost::CollectiveKind;
  model::GptConfig config{.layers = 2,
                          .hidden = 64,
                          .heads = 8,
                          .sequence = 16,
                          .vocabulary = 128,
                          .batch = 16,
                          .tied = false};
  config.type = model::DataType::fp32;
  const model::Graph graph = model::gpt(config);
  const auto parameters = static_cast<double>(model::parameter_count(graph));
  const Program program =
      lowered(graph, R"({"zero": 3, "offload": {"optimizer": "drives", "parameters": "drives"}})",
              1, {.precision = cost::precision_named("fp32")});
  CHECK(copied(program, CollectiveKind::from_drives) == (2 * 4 + 8 + 4) * parameters);
  CHECK(copied(program, CollectiveKind::to_drives) == (8 + 4) * parameters);
}

TEST_CASE("a step begins when its states are there, and they are written when it has ended") {
  const Program program = lowered(even_gpt(), R"({"offload": {"optimizer": "drives"}})");
  const program::Calls& calls = program.sequences[0].calls;
  const auto named = [&](const Call& call) { return program.blocks[call.block].name; };
  int steps = 0;
  int synchronizations = 0;
  for (std::size_t c = 0; c < calls.size(); ++c) {
    const auto waits_for = [&](const std::string& name) {
      return std::ranges::count_if(calls[c].waits, [&](const program::Wait& wait) {
        return named(calls[wait.of_call]) == name;
      });
    };
    if (named(calls[c]) == "step") {
      ++steps;
      CHECK(waits_for("read from drives") == 1);
    }
    if (named(calls[c]) == "write to drives") {
      CHECK(waits_for("step") == 1);
      synchronizations += program.blocks[calls[c].block].tasks[0].synchronizations;
    }
  }
  CHECK(steps == static_cast<int>(even_gpt().segments.size()));
  CHECK(synchronizations == 1);  // the iteration ends with the last write
}

}  // namespace stratagem::strategies::offload_test
