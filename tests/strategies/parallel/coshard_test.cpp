// Co-shard: parts of attention and MLP one after another on a device.
#include <algorithm>
#include <map>
#include <set>

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::strategies::coshard_test {

using lowering::block_of;
using lowering::collectives;
using lowering::left_by;
using lowering::lowered;
using lowering::small_gpt;
using placement::CellPass;
using program::Block;
using program::Category;
using program::Collective;
using program::Program;
using program::Task;

namespace {

constexpr double a = 8, b = 12, s = 20, h = 48, layers = 4;
constexpr double sbh = s * b * h;
// Inner activations of an attention: queries, keys, values and the merged context, 8sbh; two fp16
// squares and a mask, 5as^2b. Of an MLP: fc1's result and the gelu's, 16sbh.
constexpr double attention = 8 * sbh + 5 * a * s * s * b;
constexpr double mlp = 16 * sbh;

std::string coshard(int attention_parts, int mlp_parts, const std::string& more = "") {
  return R"({"coshard": {"attention": )" + std::to_string(attention_parts) + R"(, "mlp": )" +
         std::to_string(mlp_parts) + "}" + more + "}";
}

std::string tensor(int ranks) { return ", \"tensor\": " + std::to_string(ranks); }

/// The most bytes of a category that a block holds beyond what was there when it began.
Bytes peak(const Block& block, Category category) {
  Bytes now;
  Bytes most;
  for (const Task& task : block.tasks) {
    for (const int slot : task.allocates)
      if (block.slots[slot].category == category) now += block.slots[slot].bytes;
    most = std::max(most, now);
    for (const int slot : task.frees)
      if (block.slots[slot].category == category) now -= block.slots[slot].bytes;
  }
  return most;
}

Bytes inner_peak(const model::Graph& graph, const std::string& strategy) {
  // Frees of what the forward pass left are not of the peak: count what this block allocates.
  const Program program = lowered(graph, strategy);
  Block block = block_of(program, 2, CellPass::backward);
  std::set<int> allocated;
  for (Task& task : block.tasks) {
    allocated.insert(task.allocates.begin(), task.allocates.end());
    std::erase_if(task.frees, [&](int slot) { return !allocated.contains(slot); });
  }
  return peak(block, Category::activations);
}

}  // namespace

TEST_CASE("inner activations of C parts peak at 1/C of the attention's or the MLP's") {
  const model::Graph graph = model::gpt(small_gpt);
  // Plain full recomputation holds those of the layer at once; outside of both runs are two masks,
  // two results of norms and the residual sum between attention and MLP: 8sbh.
  CHECK(inner_peak(graph, R"({"recompute": "full"})") == Bytes{attention + mlp + 8 * sbh});
  for (const int t : {1, 2}) {
    for (const int parts : {2, 4}) {
      INFO("tensor " << t << ", parts " << parts);
      const double share = 1.0 * t * parts;
      CHECK(inner_peak(graph, coshard(parts, parts, tensor(t))) ==
            Bytes{std::max(attention, mlp) / share});
      // One MLP part: the MLP's whole peak. One attention part: the attention's.
      CHECK(inner_peak(graph, coshard(parts, 1, tensor(t))) ==
            Bytes{std::max(attention / share, mlp / t)});
      CHECK(inner_peak(graph, coshard(1, parts, tensor(t))) ==
            Bytes{std::max(attention / t, mlp / share)});
    }
  }
}

TEST_CASE("gradients of what all parts read are added up part by part") {
  // Before a part's gradient is added there is the sum of those before it: two, and the new sum.
  const model::Graph graph = model::gpt(small_gpt);
  for (const int parts : {1, 2, 4, 8}) {
    const Plan plan = lowering::plan_of(graph, coshard(1, parts));
    const Block block =
        block_of(lowering::lower(plan, lowering::plain_stack()), 2, CellPass::backward);
    int alive = 0, most = 0;
    const auto counts = [&](int slot) {
      return block.slots[slot].name.find("mlp_norm.out.grad") == 0 ? 1 : 0;
    };
    for (const Task& task : block.tasks) {
      for (const int slot : task.allocates) alive += counts(slot);
      most = std::max(most, alive);
      for (const int slot : task.frees) alive -= counts(slot);
    }
    CHECK(most == (parts == 1 ? 1 : 3));
    CHECK(alive == 0);
  }
}

TEST_CASE("a layer keeps what is outside of its parts: 10sbh bytes") {
  // Its input, the sum between attention and MLP and two masks, 6sbh; for the parts' second run the
  // norms' results, 4sbh. Neither heads nor ranks divide them.
  const model::Graph graph = model::gpt(small_gpt);
  for (const int t : {1, 2}) {
    const Program program = lowered(graph, coshard(2, 4, tensor(t)));
    const Block& block = block_of(program, 2, CellPass::forward);
    CHECK(left_by(block, Category::activations) == Bytes{6 * sbh});
    CHECK(left_by(block, Category::checkpoints) == Bytes{4 * sbh});
    CHECK(left_by(block, Category::temporaries) == 0_B);
  }
}

TEST_CASE("parts take the FLOPs of the whole, and recomputation those of all products of a layer") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program plain = lowered(graph, R"({"recompute": "full"})", 3);
  for (const std::string more : {"", ", \"tensor\": 2", ", \"data\": 3", ", \"pipeline\": 2"}) {
    INFO(more);
    const Program parts = lowered(graph, coshard(4, 2, more), 3);
    CHECK(close(lowering::flops_once(parts), lowering::flops_once(plain), 1e-12));
    CHECK(close(hardware_flops(parts), hardware_flops(plain), 1e-12));
  }
}

TEST_CASE("parts communicate what plain tensor parallelism does, the second run nothing") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const int parts : {2, 4}) {
    const Program program = lowered(graph, coshard(parts, parts, tensor(2)));
    const Program plain = lowered(graph, R"({"tensor": 2})");
    for (const CellPass pass : {CellPass::forward, CellPass::backward}) {
      const std::vector<Collective> found = collectives(block_of(program, 2, pass));
      REQUIRE(found.size() == collectives(block_of(plain, 2, pass)).size());
      for (const Collective& one : found) {
        CHECK(one.kind == cost::CollectiveKind::all_reduce);
        CHECK(one.payload == Bytes{2 * sbh});
      }
    }
  }
}

TEST_CASE("with sequence parallelism, too, parts communicate as the whole does") {
  const model::Graph graph = model::gpt(small_gpt);
  const std::string more = R"(, "tensor": 2, "sequence_parallel": true)";
  const Program program = lowered(graph, coshard(4, 2, more));
  const Program plain = lowered(graph, R"({"tensor": 2, "sequence_parallel": true})");
  for (const CellPass pass : {CellPass::forward, CellPass::backward}) {
    std::map<cost::CollectiveKind, Bytes> found;
    std::map<cost::CollectiveKind, Bytes> expected;
    for (const Collective& one : collectives(block_of(program, 2, pass)))
      found[one.kind] += one.payload;
    for (const Collective& one : collectives(block_of(plain, 2, pass)))
      expected[one.kind] += one.payload;
    CHECK(found == expected);
  }
}

TEST_CASE("every parameter's gradient is reduced once and stepped once") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto reduced = [&](const std::string& strategy) {
    Bytes bytes;
    for (const Collective& one :
         collectives(lowered(graph, strategy, 2), 0, program::Stream::gradient_communication))
      bytes += one.payload;
    return bytes;
  };
  CHECK(reduced(coshard(4, 2, ", \"data\": 2")) == reduced(R"({"data": 2})"));
  const Program program = lowered(graph, coshard(4, 2, ", \"data\": 2"), 2);
  const Program plain = lowered(graph, R"({"data": 2})", 2);
  for (const Category category :
       {Category::parameters, Category::gradients, Category::optimizer_states}) {
    CHECK(lowering::resident(program.sequences[0], category) ==
          lowering::resident(plain.sequences[0], category));
  }
}

TEST_CASE("parts of a layer that runs again as a whole run a third time") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program program =
      lowered(graph, coshard(2, 2, R"(, "coshard_layers": 2, "recompute": "full")"));
  const auto again = [](const Block& block) {
    return std::ranges::count_if(block.tasks, &Task::recomputed);
  };
  const Program alone = lowered(graph, coshard(2, 2, R"(, "coshard_layers": 2)"));
  // Of 21 forward operators 13 are of attention and MLP; each stands there twice.
  CHECK(graph.segments[1].forward.size() == 21);
  std::map<int, std::vector<const Block*>> backward;  // by segment
  for (const program::Call& call : program.sequences[0].calls) {
    if (call.cell.pass == CellPass::backward && !lowering::ends_iteration(program, call))
      backward[call.segment].push_back(&program.blocks[call.block]);
  }
  for (const int layer : {1, 2}) {
    REQUIRE(backward[layer].size() == 2);
    const Block& second = *backward[layer][0];
    const Block& gradients = *backward[layer][1];
    const Block& first_alone = block_of(alone, layer, CellPass::forward);
    CHECK(again(second) == static_cast<std::ptrdiff_t>(first_alone.tasks.size()));
    CHECK(again(gradients) == 2 * 13);
    // The first run keeps the layer's input, which the embeddings left or the layer before; the
    // second what the parts' layer keeps by itself.
    const Block& first = block_of(program, layer, CellPass::forward);
    CHECK(left_by(first, Category::checkpoints) == Bytes{2 * sbh});
    CHECK(left_by(first, Category::activations) == 0_B);
    CHECK(left_by(second, Category::activations) + left_by(second, Category::checkpoints) ==
          Bytes{(10 - 2) * sbh});
  }
  for (const int layer : {3, 4}) {
    REQUIRE(backward[layer].size() == 1);
    CHECK(again(*backward[layer][0]) == 21);
  }
}

TEST_CASE("what parts read may be dropped, too: then it is computed before the first of them") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program program =
      lowered(graph, coshard(2, 4, R"(, "recompute": {"operators": ["layers.*.input_norm",
                                              "layers.*.mlp_norm"], "results": "dropped"})"));
  // Less 4sbh of the norms' results: the input, the sum between attention and MLP, two masks.
  const Block& forward = block_of(program, 2, CellPass::forward);
  CHECK(left_by(forward, Category::activations) == Bytes{2 * sbh});
  CHECK(left_by(forward, Category::checkpoints) == Bytes{4 * sbh});
  CHECK(left_by(forward, Category::statistics) == 0_B);
  const Block& backward = block_of(program, 2, CellPass::backward);
  const auto place = [&](const std::string& name) {
    const auto found = std::ranges::find(backward.tasks, name, &Task::name);
    REQUIRE(found != backward.tasks.end());
    CHECK(std::ranges::count(backward.tasks, name, &Task::name) == 1);
    return found - backward.tasks.begin();
  };
  CHECK(place("mlp_norm again") < place("mlp.fc1.part3 again"));
  CHECK(place("mlp.fc1.part3 again") < place("mlp.fc1.part0 again"));
  CHECK(place("mlp.fc1.part0 again") < place("input_norm again"));
  CHECK(place("input_norm again") < place("attention.qkv.part1 again"));
}

TEST_CASE("parts that do not come out even are refused where they stand") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto refused = [&](const std::string& strategy) {
    return lowering::refusal([&] { lowered(graph, strategy); });
  };
  CHECK_THAT(refused(R"({"coshard": 3})"), StartsWith("test.json: /strategy/coshard: "));
  CHECK_THAT(refused(R"({"coshard": 3})"), ContainsSubstring("3 equal parts"));
  CHECK_THAT(refused(R"({"coshard": 2, "coshard_layers": 5})"),
             ContainsSubstring("coshard_layers of at most the model's 4"));
  // 8 heads in 4 parts leave 2 for the ranks.
  CHECK_THAT(refused(R"({"coshard": 4, "tensor": 4})"),
             StartsWith("test.json: /strategy/tensor: "));
}

}  // namespace stratagem::strategies::coshard_test
