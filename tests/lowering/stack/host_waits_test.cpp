// What hosts wait for: which passes begin with it, and what of the device.
#include "lowering/stack/host_waits.hpp"

#include <tuple>

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

/// Of a sequence: how many waits for streams and how many for messages its cells of a pass begin
/// with.
struct Count {
  int computations = 0, device = 0, messages = 0, others = 0;
  friend bool operator==(const Count&, const Count&) = default;
};
Count waits(const Program& program, int device_class, CellPass pass, int stage = -1) {
  const Sequence& sequence = program.sequences[device_class];
  Count count;
  for (const Call& call : sequence.calls) {
    if (call.cell.pass != pass || (stage >= 0 && call.cell.stage != stage)) continue;
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
  const std::string chunks = R"({"pipeline": 2, "schedule": "interleaved"})";
  CHECK(to_text(pipeline(waiting({Waits::each_exchange_unless_interleaved}))) ==
        to_text(pipeline(waiting({Waits::each_exchange}))));
  CHECK(waits(pipeline(waiting({Waits::each_exchange_unless_interleaved}), chunks), 0,
              CellPass::forward) == Count{});
  for (const Sequence& sequence : pipeline(waiting({Waits::each_launch})).sequences) {
    for (const Call& call : sequence.calls) CHECK(call.host_waits[0] == HostWait{-1, -1, -1});
  }
}

TEST_CASE("every pass begins once, and cells that take turns begin together") {
  const auto begun = [](const Program& program, CellPass pass) {
    return std::ranges::count_if(program.sequences[0].calls, [&](const Call& call) {
      return call.cell.pass == pass && call.begins_pass >= 0;
    });
  };
  const cost::Stack stack = waiting({cost::PassWork{.launches = 5}});
  for (const CellPass pass : {CellPass::forward, CellPass::backward}) {
    CHECK(begun(pipeline(waiting()), pass) == 0);
    CHECK(begun(pipeline(stack), pass) == 4);
  }
  // The computation of weight gradients is no pass of its own.
  const Program split = pipeline(stack, R"({"pipeline": 2, "schedule": "zb-h1"})");
  CHECK(begun(split, CellPass::backward) == 4);
  CHECK(begun(split, CellPass::weight) == 0);
  // Three of four micro-batches' forward passes run together with a backward pass.
  model::GptConfig experts = small_gpt;
  experts.experts = {.count = 2, .per_token = 1, .capacity_factor = 1};
  const std::string pairs = R"({"data": 2, "expert": 2, "schedule": "combined-1f1b", "chunks": 1})";
  const Program mixture = lower(plan_of(model::gpt(experts), pairs, 4), stack);
  CHECK(begun(mixture, CellPass::forward) + begun(mixture, CellPass::backward) == 5);
}

TEST_CASE("of a micro-batch in slices the first alone reads its sizes") {
  const cost::Stack stack = waiting({cost::HostWaits::each_micro_batch});
  const std::string strategy = R"({"pipeline": 2, "token_slices": [)" +
                               std::to_string(small_gpt.sequence / 2) + ", " +
                               std::to_string(small_gpt.sequence / 2) + "]}";
  CHECK(waits(pipeline(stack, strategy), 0, CellPass::forward) == Count{4, 0, 0, 0});
}

TEST_CASE("shares that tensor ranks sent are waited for before they are gathered") {
  const std::string strategy = R"({"tensor": 2, "pipeline": 2})";
  const auto lowered_with = [&](cost::HostWaits rule) {
    return pipeline(waiting({cost::StageShares::activations, rule}), strategy);
  };
  for (const auto& [rule, computations, device] :
       {std::tuple{cost::HostWaits::each_received_pass, 4, 0},
        std::tuple{cost::HostWaits::each_exchange, 0, 4}}) {
    const Program program = lowered_with(rule);
    CHECK(waits(program, 1, CellPass::forward) == Count{computations, device, 4, 0});
    for (const Call& call : program.sequences[1].calls) {
      if (call.cell.pass != CellPass::forward || call.host_waits.empty()) continue;
      const program::Task& before = program.blocks[call.block].tasks[call.host_waits[0].before];
      CHECK(before.name.find("gather") != std::string::npos);
      CHECK(call.segment < 0);
    }
  }
  // A backward cell reads before it computes again.
  const Program again = pipeline(waiting({cost::HostWaits::each_received_pass}),
                                 R"({"pipeline": 2, "recompute": "full"})");
  for (const Call& call : again.sequences[0].calls) {
    for (const HostWait& wait : call.host_waits) CHECK(wait.before == 0);
  }
  CHECK(waits(again, 0, CellPass::backward) == Count{4, 0, 4, 0});
  // Sizes are copied when all is gathered.
  const Program program = lowered_with(cost::HostWaits::each_micro_batch);
  CHECK(waits(program, 1, CellPass::forward) == Count{4, 0, 0, 4});
}

TEST_CASE("a pass receives if it reads what another device sent, whatever its stage's number") {
  const cost::Stack stack = waiting({cost::HostWaits::each_received_pass});
  // Stages 0 and 3 are on one device, 1 and 2 on the other: nothing comes to stage 2 forward, nor
  // to stage 1 backward.
  const Program v = pipeline(stack, R"({"pipeline": 2, "schedule": "zb-v"})");
  const Count none{}, each{4, 0, 4, 0};
  CHECK(waits(v, 0, CellPass::forward, 0) == none);
  CHECK(waits(v, 1, CellPass::forward, 1) == each);
  CHECK(waits(v, 1, CellPass::forward, 2) == none);
  CHECK(waits(v, 0, CellPass::forward, 3) == each);
  CHECK(waits(v, 0, CellPass::backward, 3) == none);
  CHECK(waits(v, 1, CellPass::backward, 2) == each);
  CHECK(waits(v, 1, CellPass::backward, 1) == none);
  CHECK(waits(v, 0, CellPass::backward, 0) == each);
  for (const int device_class : {0, 1}) CHECK(waits(v, device_class, CellPass::weight) == none);
  // What a peer gives back is no message of a stage.
  const Program lent = pipeline(
      stack, R"({"pipeline": 2, "schedule": "zb-v", "swap": {"layers": 2, "to": "peer"}})");
  CHECK(waits(lent, 1, CellPass::backward, 1) == none);
  CHECK(waits(lent, 0, CellPass::backward, 0) == each);
}

TEST_CASE("of cells that take turns each reads what it needs, and as passes they are one") {
  const std::string strategy = R"({"pipeline": 2, "schedule": "dualpipe"})";
  const auto all_of = [](const Program& program, CellPass pass) {
    Count sum;
    for (std::size_t c = 0; c < program.sequences.size(); ++c) {
      const Count one = waits(program, static_cast<int>(c), pass);
      sum.computations += one.computations;
      sum.device += one.device;
    }
    return sum;
  };
  const Program sizes = pipeline(waiting({cost::HostWaits::each_micro_batch}), strategy);
  CHECK(all_of(sizes, CellPass::forward).computations == 2 * 4);  // both stages, 4 micro-batches
  CHECK(all_of(sizes, CellPass::backward).computations == 0);
  const Program passes = pipeline(waiting({cost::HostWaits::each_pass}), strategy);
  int taking_turns = 0;
  for (const Sequence& sequence : passes.sequences) {
    const std::vector<int> first = program::first_beside(sequence);
    std::map<int, int> for_streams;  // by the first call of those that take turns
    std::set<int> pairs;
    for (std::size_t c = 0; c < first.size(); ++c) {
      if (sequence.calls[first[c]].cell != sequence.calls[c].cell) pairs.insert(first[c]);
      for (const HostWait& wait : sequence.calls[c].host_waits)
        for_streams[first[c]] += wait.of_call < 0 ? 1 : 0;
    }
    for (const int pair : pairs) CHECK(for_streams[pair] == 1);
    taking_turns += static_cast<int>(pairs.size());
  }
  CHECK(taking_turns > 0);
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
