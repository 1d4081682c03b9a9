// What hosts wait for: which passes begin with it, and what of the device.
#include "lowering/stack/host_waits.hpp"

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::lowering::host_waits_test {
namespace {

using placement::CellPass;
using program::Call;
using program::HostWait;
using program::Program;
using program::Sequence;
using program::Stream;

constexpr int compute = static_cast<int>(Stream::compute);

cost::Stack waiting(const std::vector<cost::Rule>& rules = {}) {
  cost::Stack stack = plain_stack();
  stack.rules = rules;
  return stack;
}

Program pipeline(const cost::Stack& stack, const std::string& strategy = R"({"pipeline": 2})") {
  model::GptConfig config = small_gpt;
  config.tied = false;
  return lower(plan_of(model::gpt(config), strategy, 4), stack);
}

/// Of a stage: how many waits for streams and how many for messages its cells of a pass begin with.
struct Count {
  int computations = 0, device = 0, messages = 0, others = 0;
  friend bool operator==(const Count&, const Count&) = default;
};
Count waits(const Program& program, int stage, CellPass pass) {
  const Sequence& sequence = program.sequences[stage];
  Count count;
  for (const Call& call : sequence.calls) {
    if (call.cell.pass != pass) continue;
    for (const HostWait& wait : call.host_waits) {
      if (wait.of_call >= 0) {
        const program::Block& block = program.blocks[sequence.calls[wait.of_call].block];
        const bool message = program::transfers(block.tasks[wait.of_task].stream);
        ++(message ? count.messages : count.others);
      } else {
        ++(wait.of_task == compute ? count.computations : count.device);
      }
    }
  }
  return count;
}

}  // namespace

TEST_CASE("the host waits before the passes that the stack names, for what they read") {
  using Waits = cost::HostWaits;
  const auto four = [](int computations, int device, int messages) {
    return Count{4 * computations, 4 * device, 4 * messages, 0};
  };
  Program program = pipeline(waiting());
  for (const int stage : {0, 1}) {
    CHECK(waits(program, stage, CellPass::forward) == Count{});
    CHECK(waits(program, stage, CellPass::backward) == Count{});
  }
  program = pipeline(waiting({Waits::each_micro_batch}));
  CHECK(waits(program, 0, CellPass::forward) == four(1, 0, 0));
  CHECK(waits(program, 1, CellPass::forward) == four(1, 0, 1));
  CHECK(waits(program, 0, CellPass::backward) == four(0, 0, 0));
  program = pipeline(waiting({Waits::each_received_pass}));
  CHECK(waits(program, 0, CellPass::forward) == Count{});
  CHECK(waits(program, 1, CellPass::forward) == four(1, 0, 1));
  CHECK(waits(program, 0, CellPass::backward) == four(1, 0, 1));
  CHECK(waits(program, 1, CellPass::backward) == Count{});
  for (const cost::Stack& stack : {waiting({Waits::each_exchange}), waiting({Waits::each_pass})}) {
    program = pipeline(stack);
    CHECK(waits(program, 0, CellPass::forward) == four(0, 1, 0));
    CHECK(waits(program, 0, CellPass::backward) == four(0, 1, 1));
    CHECK(waits(program, 1, CellPass::forward) == four(0, 1, 1));
    CHECK(waits(program, 1, CellPass::backward) == four(0, 1, 0));
  }
  for (const Sequence& sequence : pipeline(waiting({Waits::each_launch})).sequences) {
    for (const Call& call : sequence.calls) CHECK(call.host_waits[0] == HostWait{-1, -1, -1});
  }
}

TEST_CASE("of a micro-batch in slices the first alone reads its sizes") {
  const cost::Stack stack = waiting({cost::HostWaits::each_micro_batch});
  const std::string strategy = R"({"pipeline": 2, "token_slices": [)" +
                               std::to_string(small_gpt.sequence / 2) + ", " +
                               std::to_string(small_gpt.sequence / 2) + "]}";
  CHECK(waits(pipeline(stack, strategy), 0, CellPass::forward) == Count{4, 0, 0, 0});
}

TEST_CASE("a stage without others waits for no exchange") {
  const cost::Stack stack = waiting({cost::HostWaits::each_exchange});
  const Program program = pipeline(stack, R"({"data": 2})");
  CHECK(waits(program, 0, CellPass::forward) == Count{});
  CHECK(waits(program, 0, CellPass::backward) == Count{});
}

TEST_CASE("before a gather the host waits for what the plan orders before it") {
  const cost::Stack stack = waiting();
  const Program program = pipeline(stack, R"({"data": 2, "zero": 3})");
  int gathers = 0;
  for (const Call& call : program.sequences[0].calls) {
    for (const program::Wait& wait : call.waits) {
      const program::Task& task = program.blocks[call.block].tasks[wait.task];
      if (task.stream != Stream::parameter_communication) continue;
      const HostWait same{wait.task, wait.of_call, wait.of_task};
      CHECK(std::ranges::count(call.host_waits, same) == 1);
      ++gathers;
    }
  }
  CHECK(gathers > 4);
}

}  // namespace stratagem::lowering::host_waits_test
