// Data parallelism: every gradient is summed once over the data ranks, in buckets, when it is
// complete.
#include <map>
#include <set>

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/model/zoo/parameters.hpp"

namespace stratagem::strategies::data_parallel_test {

using lowering::lowered;
using lowering::small_gpt;
using program::Call;
using program::Program;
using program::Stream;

namespace {

/// One reduction of a sequence.
struct Reduction {
  int call = 0;
  program::Collective work;
  std::vector<model::TensorId> gradients;
  Bytes bytes;  ///< of the slots
  std::vector<program::Wait> waits;
};

std::vector<Reduction> reductions(const Program& program, int sequence = 0) {
  std::vector<Reduction> result;
  const program::Calls& calls = program.sequences[sequence].calls;
  for (std::size_t c = 0; c < calls.size(); ++c) {
    const program::Block& block = program.blocks[calls[c].block];
    for (const program::Task& task : block.tasks) {
      if (task.stream != Stream::gradient_communication) continue;
      REQUIRE(lowering::collective_of(task) != nullptr);
      Reduction one{
          .call = static_cast<int>(c), .work = *lowering::collective_of(task), .waits = {}};
      for (const program::Wait& wait : calls[c].waits) one.waits.push_back(wait);
      CHECK(one.work.kind == cost::CollectiveKind::all_reduce);
      for (const int slot : task.reads) {
        one.gradients.push_back(block.slots[slot].tensor);
        one.bytes += block.slots[slot].bytes;
      }
      result.push_back(one);
    }
  }
  return result;
}

/// By gradient of a parameter: the last operator that writes it. Operators are in the order of the
/// backward pass.
std::map<model::TensorId, model::OpId> completing_operators(const model::Graph& graph) {
  std::map<model::TensorId, model::OpId> result;
  for (std::size_t id = 0; id < graph.operators.size(); ++id) {
    if (graph.operators[id].pass != model::Pass::weight_gradient) continue;
    result[graph.operators[id].outputs[0]] = static_cast<model::OpId>(id);
  }
  return result;
}

std::string data(int ranks, const std::string& more = "") {
  return "{\"data\": " + std::to_string(ranks) + more + "}";
}

}  // namespace

TEST_CASE("each gradient is summed exactly once, and as many bytes as the parameters have") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const int ranks : {2, 3, 4}) {
    for (const std::string more :
         {"", R"(, "bucket": "16 KiB")", R"(, "bucket": "1 B", "overlap_gradients": true)"}) {
      INFO(ranks << more);
      const Program program = lowered(graph, data(ranks, more), 3);
      std::multiset<model::TensorId> summed;
      Bytes bytes;
      for (const Reduction& one : reductions(program)) {
        summed.insert(one.gradients.begin(), one.gradients.end());
        CHECK(one.work.payload == one.bytes);
        bytes += one.work.payload;
      }
      std::multiset<model::TensorId> all;
      for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
        if (graph.tensors[id].role == model::Role::parameter) all.insert(graph.gradient_of[id]);
      }
      CHECK(summed == all);
      CHECK(bytes == static_cast<double>(model::gpt_parameters(small_gpt)) * 2_B);
      CHECK(bytes == lowering::resident(program.sequences[0], program::Category::gradients));
    }
  }
}

TEST_CASE("one data rank sums nothing") {
  const model::Graph graph = model::gpt(small_gpt);
  CHECK(reductions(lowered(graph, data(1, R"(, "overlap_gradients": true)"), 2)).empty());
  CHECK(reductions(lowered(graph, data(1, R"(, "tensor": 2)"), 2)).empty());
}

TEST_CASE("without a bucket size all gradients are summed at once") {
  const model::Graph graph = model::gpt(small_gpt);
  CHECK(reductions(lowered(graph, data(2))).size() == 1);
}

TEST_CASE("buckets follow the backward pass, and are full but for the last") {
  const model::Graph graph = model::gpt(small_gpt);
  const std::map<model::TensorId, model::OpId> completing = completing_operators(graph);
  for (const Bytes size : {1_B, 3000_B, 16_KiB, 60_KB, 1_MiB}) {
    INFO(size.value << " bytes");
    const std::string bucket =
        ", \"bucket\": \"" + std::to_string(static_cast<int>(size.value)) + " B\"";
    const std::vector<Reduction> buckets = reductions(lowered(graph, data(2, bucket)));
    model::OpId last = -1;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      if (i + 1 < buckets.size()) CHECK(buckets[i].bytes >= size);
      // Full only with its last gradient, so no bucket could have been closed earlier.
      const Bytes closing = model::bytes(graph.tensors[buckets[i].gradients.back()]);
      CHECK(buckets[i].bytes - closing < size);
      for (const model::TensorId gradient : buckets[i].gradients) {
        CHECK(completing.at(gradient) > last);
        last = completing.at(gradient);
      }
    }
  }
}

TEST_CASE("a gradient that fills a bucket to the byte closes it") {
  // PyTorch closes one as soon as its size is not below the limit (torch/csrc/distributed/c10d/
  // reducer.cpp, compute_bucket_assignment_by_size).
  const model::Graph graph = model::gpt(small_gpt);
  const auto with_buckets = [&](Bytes size) {
    const auto bytes = static_cast<std::int64_t>(size.value);
    return reductions(lowered(graph, data(2, R"(, "bucket": ")" + std::to_string(bytes) + " B\"")));
  };
  const std::vector<Reduction> each = with_buckets(1_B);
  REQUIRE(each[0].gradients.size() == 1);
  REQUIRE(each[1].gradients.size() == 1);
  const Bytes two = each[0].bytes + each[1].bytes;
  CHECK(with_buckets(two - 1_B)[0].gradients.size() == 2);
  CHECK(with_buckets(two)[0].gradients.size() == 2);
  CHECK(with_buckets(two + 1_B)[0].gradients.size() == 3);
}

TEST_CASE(
    "with overlap a bucket waits for the last micro-batch's backward call that completes it") {
  const model::Graph graph = model::gpt(small_gpt);
  const std::map<model::TensorId, model::OpId> completing = completing_operators(graph);
  for (const std::string schedule : {"gpipe", "1f1b"}) {
    const Program program =
        lowered(graph,
                data(2, R"(, "bucket": "16 KiB", "overlap_gradients": true, "schedule": ")" +
                            schedule + "\""),
                3);
    const program::Calls& calls = program.sequences[0].calls;
    const std::vector<Reduction> buckets = reductions(program);
    REQUIRE(buckets.size() > 3);
    for (const Reduction& one : buckets) {
      const int segment = graph.operators[completing.at(one.gradients.back())].segment;
      REQUIRE(one.waits.size() == 1);
      const program::Wait& wait = one.waits[0];
      CHECK(wait.task == 0);
      CHECK(calls[wait.of_call].segment == segment);
      CHECK(calls[wait.of_call].cell == placement::Cell{0, 2, placement::CellPass::backward});
      // Issued before the next segment's backward call, so that it can overlap with that.
      for (int c = wait.of_call + 1; c < one.call; ++c) {
        CHECK(program.blocks[calls[c].block].tasks[0].stream == Stream::gradient_communication);
      }
      // After the last computation of that call.
      const std::vector<program::Task>& tasks = program.blocks[calls[wait.of_call].block].tasks;
      for (std::size_t t = wait.of_task + 1; t < tasks.size(); ++t)
        CHECK(tasks[t].stream != Stream::compute);
    }
  }
}

TEST_CASE("without overlap all buckets wait for the end of the last backward call") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program program = lowered(graph, data(2, R"(, "bucket": "16 KiB")"), 3);
  const program::Calls& calls = program.sequences[0].calls;
  const std::vector<Reduction> buckets = reductions(program);
  REQUIRE(buckets.size() > 3);
  for (const Reduction& one : buckets) {
    REQUIRE(one.waits.size() == 1);
    CHECK(calls[one.waits[0].of_call].segment == 0);
    CHECK(calls[one.waits[0].of_call].cell == placement::Cell{0, 2, placement::CellPass::backward});
  }
}

TEST_CASE("with tensor parallelism gradients are summed over data ranks only") {
  // Tensor rank 1 of data rank 2 is device 2*4 + 1; its gradients are those of devices 1, 5, 9.
  const model::Graph graph = model::gpt(small_gpt);
  const Program program =
      lowered(graph, R"({"tensor": 4, "data": 3, "bucket": "4 KiB", "overlap_gradients": true})");
  Bytes bytes;
  std::set<model::TensorId> summed;
  for (const Reduction& one : reductions(program)) {
    for (std::size_t device = 0; device < program.devices.size(); ++device) {
      const int communicator = program.devices[device].groups[one.work.group];
      REQUIRE(communicator >= 0);
      const int rank = static_cast<int>(device) % 4;
      CHECK(program.communicators[communicator].ranks ==
            std::vector<int>{rank, rank + 4, rank + 8});
    }
    bytes += one.work.payload;
    for (const model::TensorId gradient : one.gradients) CHECK(summed.insert(gradient).second);
  }
  // Once each, norms and row biases too: 12 parameters per layer, tokens, positions, the final
  // norm.
  CHECK(summed.size() == 12 * 4 + 4);
  CHECK(bytes == lowering::resident(program.sequences[0], program::Category::parameters));
}

TEST_CASE("steps wait for all reductions") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const std::string more : {"", R"(, "overlap_gradients": true)"}) {
    const Program program = lowered(graph, data(2, R"(, "bucket": "16 KiB")" + more), 2);
    const program::Calls& calls = program.sequences[0].calls;
    const int last = reductions(program).back().call;
    for (std::size_t c = 0; c < calls.size(); ++c) {
      if (!lowering::steps(program.blocks[calls[c].block].tasks[0])) continue;
      REQUIRE(calls[c].waits.size() == 1);  // the first step; the others follow it on its stream
      CHECK(calls[c].waits[0].task == 0);
      CHECK(calls[c].waits[0].of_call == last);
      break;
    }
  }
}

TEST_CASE("a batch that does not divide is refused at /strategy/data") {
  const model::Graph graph = model::gpt(small_gpt);
  const std::string text = lowering::refusal([&] { lowered(graph, data(5)); });
  CHECK_THAT(text, StartsWith("test.json: /strategy/data: expected dimension b"));
  CHECK_THAT(text, ContainsSubstring("found 12"));
}

}  // namespace stratagem::strategies::data_parallel_test
