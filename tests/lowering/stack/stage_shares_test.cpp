// What tensor ranks send between stages: all of what they hold alike, or a share each, which the
// receivers gather.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::lowering::stage_shares_test {

using program::Collective;
using program::Program;
using program::Stream;

namespace {

using cost::CollectiveKind;

constexpr Bytes activation = 12.0 * 20 * 48 * 2_B;  // b*s*h in fp16
const cost::Stack shares{.rules = {cost::StageShares::activations, cost::StageShares::gradients}};

Program with(const cost::Stack& stack, const std::string& strategy, int micro_batches = 2) {
  const model::Graph graph = model::gpt(small_gpt);
  return lower(plan_of(graph, strategy, micro_batches), stack);
}

/// By stream: the payloads of a device's transfers in an iteration.
std::map<Stream, std::vector<Bytes>> transfers_of(const Program& program, int device) {
  std::map<Stream, std::vector<Bytes>> found;
  for (const Stream stream : {Stream::send_forward, Stream::receive_forward, Stream::send_backward,
                              Stream::receive_backward}) {
    for (const Collective& one : collectives(program, program.devices[device].sequence, stream))
      found[stream].push_back(one.payload);
  }
  return found;
}

/// The gathers of what has come from other stages, in order.
std::vector<Collective> gathers(const Program& program, int sequence) {
  std::vector<Collective> found;
  for (const program::Call& call : program.sequences[sequence].calls) {
    if (call.segment >= 0) continue;
    for (const Collective& one : collectives(program.blocks[call.block])) found.push_back(one);
  }
  return found;
}

const program::Block& message(const Program& program, int sequence, Stream stream) {
  for (const program::Call& call : program.sequences[sequence].calls) {
    for (const program::Task& task : program.blocks[call.block].tasks) {
      if (task.stream == stream) return program.blocks[call.block];
    }
  }
  throw std::out_of_range("no message on that stream");
}

}  // namespace

TEST_CASE("each of t tensor ranks sends a t-th of a tensor, and gathers what it receives") {
  // Four stages, two micro-batches: an inner stage sends two activations and two gradients and
  // receives as many; t divides 48, though not always 12 or 20.
  for (const int t : {2, 4, 8}) {
    INFO("tensor " << t);
    const std::string strategy = R"({"pipeline": 4, "tensor": )" + std::to_string(t) + "}";
    const Program program = with(shares, strategy);
    for (int device = t; device < 3 * t; ++device) {
      for (const auto& [stream, payloads] : transfers_of(program, device))
        CHECK(payloads == std::vector<Bytes>(2, activation / t));
      const std::vector<Collective> found = gathers(program, program.devices[device].sequence);
      REQUIRE(found.size() == 4);
      for (const Collective& one : found) {
        CHECK(one.kind == CollectiveKind::all_gather);
        CHECK(one.payload == activation);  // of which a device sends (t-1)/t: cost/ring.hpp
        std::vector<int> ranks;
        for (int rank = 0; rank < t; ++rank) ranks.push_back(device / t * t + rank);
        const int communicator = program.devices[device].groups[one.group];
        REQUIRE(communicator >= 0);
        CHECK(program.communicators[communicator].ranks == ranks);
      }
    }
  }
}

TEST_CASE("gathers of shares use the communicator of the tensor ranks' other collectives") {
  const Program with_shares = with(shares, R"({"pipeline": 2, "tensor": 4})");
  const Program whole = with({}, R"({"pipeline": 2, "tensor": 4})");
  CHECK(with_shares.communicators.size() == whole.communicators.size());
}

TEST_CASE("what is sent is received, activations and gradients each as the stack says") {
  for (const bool of_activations : {false, true}) {
    for (const bool of_gradients : {false, true}) {
      cost::Stack stack;
      if (of_activations) stack.rules.emplace_back(cost::StageShares::activations);
      if (of_gradients) stack.rules.emplace_back(cost::StageShares::gradients);
      const Program program = with(stack, R"({"pipeline": 2, "tensor": 4, "data": 3})");
      std::map<Stream, Bytes> total;
      for (int device = 0; device < 24; ++device) {
        for (const auto& [stream, payloads] : transfers_of(program, device)) {
          for (const Bytes bytes : payloads) total[stream] += bytes;
        }
      }
      // Two micro-batches cross one border: once if tensor ranks share them, else four times.
      CHECK(total[Stream::send_forward] == 2 * activation * (of_activations ? 1 : 4));
      CHECK(total[Stream::send_backward] == 2 * activation * (of_gradients ? 1 : 4));
      CHECK(total[Stream::receive_forward] == total[Stream::send_forward]);
      CHECK(total[Stream::receive_backward] == total[Stream::send_backward]);
    }
  }
}

TEST_CASE(
    "the share is freed when it is gathered, and what is gathered is counted as what was "
    "received") {
  const Program program = with(shares, R"({"pipeline": 2, "tensor": 4})");
  const Program whole = with({}, R"({"pipeline": 2, "tensor": 4})");
  const program::Block& block = message(program, 1, Stream::receive_forward);
  REQUIRE(block.tasks.size() == 2);
  REQUIRE(block.slots.size() == 2);
  CHECK(block.slots[0].bytes == activation / 4);
  CHECK(block.slots[1].bytes == activation);
  CHECK(block.tasks[0].allocates == std::vector<int>{0});
  CHECK(block.tasks[1].waits == std::vector<int>{0});
  CHECK(block.tasks[1].allocates == std::vector<int>{1});
  CHECK(block.tasks[1].frees == std::vector<int>{0});
  CHECK(block.slots[1].category ==
        message(whole, 1, Stream::receive_forward).slots.front().category);
}

TEST_CASE("of what is kept after it was sent a share is kept") {
  cost::Stack stack = shares;
  stack.rules.emplace_back(cost::Lifetime::sent_until_gradients);
  const Program program = with(stack, R"({"pipeline": 2, "tensor": 4})");
  const auto left = [&](int sequence, Stream stream) {
    return left_by(message(program, sequence, stream), program::Category::temporaries);
  };
  // The whole is freed, a part of it is allocated; the gradient's message frees that part and
  // leaves the gradient.
  CHECK(left(0, Stream::send_forward) == activation / 4 - activation);
  CHECK(left(0, Stream::receive_backward) == activation - activation / 4);
}

TEST_CASE("there is nothing to share where ranks hold different parts, or one holds all") {
  for (const char* strategy : {R"({"pipeline": 2, "tensor": 4, "sequence_parallel": true})",
                               R"({"pipeline": 2, "data": 4})", R"({"pipeline": 2})",
                               R"({"tensor": 4})", R"({"pipeline": 2, "context": 2})"}) {
    INFO(strategy);
    CHECK(to_text(with(shares, strategy)) == to_text(with({}, strategy)));
  }
}

}  // namespace stratagem::lowering::stage_shares_test
