// What holds for the program of every strategy: work is conserved, groups agree, and it can be
// printed.
#include "program/program.hpp"

#include <map>
#include <set>

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/lowering/variants.hpp"

namespace stratagem::program::program_test {

using lowering::lowered;
using lowering::small_gpt;
using lowering::Variant;
using lowering::variants;

TEST_CASE("every plan of a model computes its products, what it computes again aside, once") {
  // 72BLsh^2(1 + s/6h + V/12hL) for a batch B of micro-batches; replicated operators do no
  // products.
  const model::Graph graph = model::gpt(small_gpt);
  const double b = 12, s = 20, h = 48, layers = 4, vocabulary = 112;
  const double micro_batch =
      72 * b * layers * s * h * h * (1 + s / (6 * h) + vocabulary / (12 * h * layers));
  for (const Variant& variant : variants()) {
    INFO(variant.strategy);
    if (variant.strategy.find("token_slices") != std::string::npos) continue;  // see fewer keys
    const Program program = lowered(graph, variant.strategy, variant.micro_batches);
    CHECK(close(lowering::flops_once(program), Flops{variant.micro_batches * micro_batch}, 1e-12));
  }
}

TEST_CASE("the members of a group issue its collectives in one order") {
  // Else they would wait for each other for ever.
  const model::Graph graph = model::gpt(small_gpt);
  for (const Variant& variant : variants()) {
    INFO(variant.strategy);
    const Program program = lowered(graph, variant.strategy, variant.micro_batches);
    // By communicator and device.
    std::map<int, std::map<int, std::vector<std::pair<cost::CollectiveKind, double>>>> issued;
    for (int d = 0; d < static_cast<int>(program.devices.size()); ++d) {
      const Device& device = program.devices[d];
      for (const Call& call : program.sequences[device.sequence].calls) {
        for (const Task& task : program.blocks[call.block].tasks) {
          const Collective* one = lowering::collective_of(task);
          if (one == nullptr) continue;
          REQUIRE(one->group < static_cast<int>(device.groups.size()));
          const int communicator = device.groups[one->group];
          REQUIRE(communicator >= 0);
          issued[communicator][d].emplace_back(one->kind, one->payload.value);
        }
      }
    }
    for (const auto& [communicator, by_device] : issued) {
      const std::vector<int>& ranks = program.communicators[communicator].ranks;
      const cost::CollectiveKind kind = by_device.begin()->second.front().first;
      const bool copies = cost::concerns_host(kind);
      CHECK((ranks.size() > 1) != copies);
      CHECK(std::set<int>(ranks.begin(), ranks.end()).size() == ranks.size());
      for (const int rank : ranks) {
        REQUIRE(by_device.count(rank) == 1);
        CHECK(by_device.at(rank) == by_device.at(ranks[0]));
      }
      CHECK(by_device.size() == ranks.size());
    }
  }
}

TEST_CASE("tasks are well formed: waits point back, slots exist") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const Variant& variant : variants()) {
    INFO(variant.strategy);
    const Program program = lowered(graph, variant.strategy, variant.micro_batches);
    for (const Block& block : program.blocks) {
      for (std::size_t t = 0; t < block.tasks.size(); ++t) {
        const Task& task = block.tasks[t];
        INFO(block.name << ": " << task.name);
        for (const int wait : task.waits) CHECK((wait >= 0 && wait < static_cast<int>(t)));
        for (const auto* slots : {&task.reads, &task.writes, &task.allocates, &task.frees}) {
          for (const int slot : *slots)
            CHECK((slot >= 0 && slot < static_cast<int>(block.slots.size())));
          CHECK(std::set<int>(slots->begin(), slots->end()).size() == slots->size());
        }
      }
    }
    for (const Sequence& sequence : program.sequences) {
      for (std::size_t c = 0; c < sequence.calls.size(); ++c) {
        for (const Wait& wait : sequence.calls[c].waits) {
          REQUIRE((wait.of_call >= 0 && wait.of_call < static_cast<int>(c)));
          CHECK(wait.task < static_cast<int>(program.blocks[sequence.calls[c].block].tasks.size()));
          const Block& earlier = program.blocks[sequence.calls[wait.of_call].block];
          CHECK(wait.of_task < static_cast<int>(earlier.tasks.size()));
        }
      }
    }
  }
}

TEST_CASE("no two tasks of a block have the same name") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const Variant& variant : variants()) {
    for (const Block& block : lowered(graph, variant.strategy, variant.micro_batches).blocks) {
      std::set<std::string> names;
      for (const Task& task : block.tasks) {
        INFO(variant.strategy << ": " << block.name << ": " << task.name);
        CHECK(names.insert(task.name).second);
      }
    }
  }
}

TEST_CASE("equal plans become equal programs") {
  for (const Variant& variant : variants()) {
    INFO(variant.strategy);
    const model::Graph one = model::gpt(small_gpt);
    const model::Graph other = model::gpt(small_gpt);
    const std::string text = to_text(lowered(one, variant.strategy, variant.micro_batches));
    CHECK_FALSE(text.empty());
    CHECK(text == to_text(lowered(other, variant.strategy, variant.micro_batches)));
  }
}

TEST_CASE("the text of a program tells different programs apart") {
  const model::Graph graph = model::gpt(small_gpt);
  std::set<std::string> texts;
  for (const Variant& variant : variants()) {
    texts.insert(to_text(lowered(graph, variant.strategy, variant.micro_batches)));
  }
  CHECK(texts.size() == variants().size());
}

TEST_CASE("a program has as many blocks for 4 layers as for 20, and for 1 micro-batch as for 9") {
  const auto blocks = [](std::int64_t layers, const Variant& variant) {
    model::GptConfig config = small_gpt;
    config.layers = layers;
    const model::Graph graph = model::gpt(config);
    return lowered(graph, variant.strategy, variant.micro_batches).blocks.size();
  };
  for (const std::string strategy :
       {"{}", R"({"recompute": "full"})", R"({"tensor": 2, "data": 3})",
        R"({"pipeline": 2, "tensor": 2})"}) {
    INFO(strategy);
    CHECK(blocks(20, {strategy, 2}) == blocks(8, {strategy, 2}));
    CHECK(blocks(8, {strategy, 9}) == blocks(8, {strategy, 2}));
  }
  CHECK(blocks(4, {"{}", 1}) == blocks(20, {"{}", 1}));
}

TEST_CASE("a sequence runs every task of every cell") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program program = lowered(graph, "{}", 3);
  std::size_t operators = 0;
  std::size_t optimizer_steps = 0;
  for (const model::Operator& op : graph.operators)
    ++(op.pass == model::Pass::optimizer ? optimizer_steps : operators);
  CHECK(task_count(program, program.sequences[0]) == 3 * operators + optimizer_steps);
}

}  // namespace stratagem::program::program_test
