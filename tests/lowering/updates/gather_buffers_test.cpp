// Buffers that a framework keeps for what it gathers between operators.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::lowering::gather_buffers_test {
namespace {

constexpr Bytes activation = 12.0 * 20 * 48 * 2_B;  // b*s*h of small_gpt in fp16

const cost::GatherInPieces ring{false, cost::GatherInPieces::By::ring_exchange};

program::Program lowered_with(const std::string& strategy, std::vector<cost::Rule> rules) {
  cost::Stack stack = plain_stack();
  stack.rules = std::move(rules);
  return lower(plan_of(model::gpt(small_gpt), strategy), stack);
}

/// Bytes of the buffers of a program that hold no parameter.
std::vector<Bytes> buffers(const program::Program& program) {
  std::vector<Bytes> found;
  for (const program::Resident& resident : program.sequences.at(0).residents) {
    if (resident.category == program::Category::temporaries) found.push_back(resident.bytes);
  }
  return found;
}

/// Bytes that the tasks of all blocks allocate for results of gathers.
Bytes allocated(const program::Program& program) {
  Bytes bytes;
  for (const program::Block& block : program.blocks) {
    for (const program::Task& task : block.tasks) {
      const program::Collective* one = collective_of(task);
      if (one == nullptr || task.stream != program::Stream::communication) continue;
      for (const int slot : task.allocates) {
        if (one->kind != cost::CollectiveKind::reduce_scatter) bytes += block.slots[slot].bytes;
      }
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("gathers of activations land in as many buffers as a rule says, whole or in pieces") {
  const std::string strategy = R"({"tensor": 4, "sequence_parallel": true})";
  CHECK(buffers(lowered_with(strategy, {})).empty());
  CHECK(allocated(lowered_with(strategy, {})) > Bytes{});
  for (const std::vector<cost::Rule>& cut : {std::vector<cost::Rule>{}, {ring}}) {
    std::vector<cost::Rule> rules = cut;
    rules.emplace_back(cost::GatherBuffers{3});
    const program::Program program = lowered_with(strategy, rules);
    CHECK(buffers(program) == std::vector<Bytes>(3, activation));
    CHECK(allocated(program) == Bytes{});
  }
}

TEST_CASE("where nothing is gathered there are no such buffers") {
  CHECK(buffers(lowered_with(R"({"tensor": 4})", {cost::GatherBuffers{3}})).empty());
  CHECK(buffers(lowered_with(R"({"data": 4})", {cost::GatherBuffers{3}})).empty());
}

}  // namespace stratagem::lowering::gather_buffers_test
