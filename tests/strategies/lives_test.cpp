// Births and deaths of buffers, and that streams wait for each other wherever one needs what
// another makes.
#include <map>
#include <tuple>

#include "model/zoo/evoformer.hpp"
#include "tests/catch.hpp"
#include "tests/strategies/lowered.hpp"
#include "tests/strategies/variants.hpp"

namespace stratagem::strategies {

namespace {

/// By stream: how many of its tasks have ended for sure.
using Clock = std::map<Stream, int>;

/// One execution of a task: the n-th of its stream, with what has ended for sure when it begins.
struct Moment {
  Stream stream = Stream::compute;
  int n = 0;
  Clock before;
};

bool follows(const Moment& later, const Moment& earlier) {
  if (later.stream == earlier.stream) return later.n >= earlier.n;
  const auto found = later.before.find(earlier.stream);
  return found != later.before.end() && found->second >= earlier.n;
}

/// A live buffer.
struct Life {
  Bytes bytes;
  Category category = Category::temporaries;
  Moment written;
  std::vector<Moment> used;
};

/// A tensor of a micro-batch, in one of the layouts that it has within a block: the n-th birth.
using Buffer = std::tuple<model::TensorId, int, int>;

/// Plays one sequence call by call, as a second implementation of what the header of the program
/// says: streams are queues, waits join them, slots are bound by the call's segment and
/// micro-batch.
class Replay {
 public:
  Replay(const Program& program, int sequence)
      : program_(program), calls_(program.sequences[sequence].calls) {
    for (std::size_t c = 0; c < calls_.size(); ++c) play(static_cast<int>(c));
  }

  [[nodiscard]] const std::map<Buffer, Life>& alive() const { return alive_; }
  [[nodiscard]] const std::map<Category, double>& balance() const { return balance_; }
  [[nodiscard]] const std::vector<std::vector<Moment>>& moments() const { return moments_; }
  [[nodiscard]] int births() const { return births_; }
  /// How many micro-batches' buffers of one tensor were alive at the same time.
  [[nodiscard]] int most(model::TensorId tensor) const { return most_.at(tensor); }

 private:
  void play(int c) {
    const Call& call = calls_[c];
    const Block& block = program_.blocks[call.block];
    moments_.emplace_back();
    born_here_.clear();
    births_before_ = births_;
    for (std::size_t t = 0; t < block.tasks.size(); ++t) {
      const Task& task = block.tasks[t];
      INFO("call " << c << ", " << block.name << ", " << task.name);
      Moment now{.stream = task.stream, .n = ++count_[task.stream], .before = ended_[task.stream]};
      const auto join = [&](const Moment& earlier) {
        for (const auto& [stream, n] : earlier.before)
          now.before[stream] = std::max(now.before[stream], n);
        now.before[earlier.stream] = std::max(now.before[earlier.stream], earlier.n);
      };
      for (const int wait : task.waits) join(moments_[c][wait]);
      for (const Wait& wait : call.waits) {
        if (wait.task == static_cast<int>(t)) join(moments_[wait.of_call][wait.of_task]);
      }
      ended_[task.stream] = now.before;
      moments_[c].push_back(now);
      run(call, block, task, now);
    }
    for (auto one = alive_.begin(); one != alive_.end();
         ++one) {  // later calls find it by its name
      const auto next = std::next(one);
      CHECK((next == alive_.end() || named(next->first) != named(one->first)));
    }
  }

  static std::pair<model::TensorId, int> named(const Buffer& buffer) {
    return {std::get<0>(buffer), std::get<1>(buffer)};
  }

  /// The buffer that a slot means: born in this call, or else the one that earlier calls left.
  [[nodiscard]] Buffer buffer(const Call& call, int slot) const {
    const int place = program_.blocks[call.block].slots[slot].tensor;
    const model::TensorId tensor =
        call.segment < 0 ? place : program_.segment_tensors[call.segment][place];
    if (const auto here = born_here_.find(slot); here != born_here_.end())
      return {tensor, call.cell.micro_batch, here->second};
    const auto left = alive_.lower_bound({tensor, call.cell.micro_batch, 0});
    REQUIRE(left != alive_.end());
    REQUIRE(named(left->first) == std::make_pair(tensor, call.cell.micro_batch));
    REQUIRE(std::get<2>(left->first) <= births_before_);
    return left->first;
  }

  void run(const Call& call, const Block& block, const Task& task, const Moment& now) {
    const auto key = [&](int slot) { return buffer(call, slot); };
    const auto is_resident = [&](int slot) {
      const Category category = block.slots[slot].category;
      return category == Category::parameters || category == Category::gradients ||
             category == Category::optimizer_states;
    };
    for (const int slot : task.births) {
      INFO(block.slots[slot].name);
      CHECK_FALSE(is_resident(slot));
      CHECK(born_here_.emplace(slot, ++births_).second);
      const model::TensorId tensor = std::get<0>(key(slot));
      most_[tensor] = std::max(most_[tensor], ++now_alive_[tensor]);
      alive_[key(slot)] = {
          .bytes = block.slots[slot].bytes, .category = block.slots[slot].category, .written = now};
      balance_[block.slots[slot].category] += block.slots[slot].bytes.value;
    }
    for (const int slot : task.reads) {
      if (is_resident(slot)) continue;
      INFO("reads " << block.slots[slot].name);
      REQUIRE(alive_.count(key(slot)) == 1);
      Life& life = alive_.at(key(slot));
      CHECK(follows(now, life.written));
      CHECK(life.bytes == block.slots[slot].bytes);
      life.used.push_back(now);
    }
    for (const int slot : task.writes) {
      if (is_resident(slot)) continue;
      INFO("writes " << block.slots[slot].name);
      REQUIRE(alive_.count(key(slot)) == 1);
      Life& life = alive_.at(key(slot));
      for (const Moment& use : life.used) CHECK(follows(now, use));
      CHECK(follows(now, life.written));
      life.written = now;
    }
    for (const int slot : task.deaths) {
      INFO("frees " << block.slots[slot].name);
      REQUIRE(alive_.count(key(slot)) == 1);
      const Life& life = alive_.at(key(slot));
      for (const Moment& use : life.used) CHECK(follows(now, use));
      CHECK(follows(now, life.written));
      CHECK(life.bytes == block.slots[slot].bytes);
      CHECK(life.category == block.slots[slot].category);
      balance_[block.slots[slot].category] -= block.slots[slot].bytes.value;
      --now_alive_[std::get<0>(key(slot))];
      alive_.erase(key(slot));
    }
  }

  const Program& program_;
  const std::vector<Call>& calls_;
  std::map<Stream, int> count_;
  std::map<Stream, Clock> ended_;
  std::vector<std::vector<Moment>> moments_;  ///< by call and task
  std::map<Buffer, Life> alive_;
  std::map<int, int> born_here_;  ///< by slot of the current call: the number of its birth
  int births_before_ = 0;         ///< when the current call began
  std::map<Category, double> balance_;
  std::map<model::TensorId, int> now_alive_, most_;
  int births_ = 0;
};

/// Every sum of a gradient and every step follows all weight gradients that go into it.
void check_gradients(const model::Graph& graph, const Program& program, int sequence,
                     const Replay& replay) {
  const std::vector<Call>& calls = program.sequences[sequence].calls;
  std::map<model::TensorId, std::vector<Moment>> written;  // by gradient of a parameter
  const auto note = [&](const Call& call, std::size_t c) {
    const Block& block = program.blocks[call.block];
    const std::string prefix = call.segment < 0 ? "" : graph.segments[call.segment].name + ".";
    for (const model::OpId id : graph.segments[call.segment].backward) {
      const model::Operator& op = graph.operators[id];
      if (op.pass != model::Pass::weight_gradient) continue;
      for (std::size_t t = 0; t < block.tasks.size(); ++t) {
        if (prefix + block.tasks[t].name == op.name)
          written[op.outputs[0]].push_back(replay.moments()[c][t]);
      }
    }
  };
  for (std::size_t c = 0; c < calls.size(); ++c) {
    if (calls[c].segment >= 0 && calls[c].cell.pass == CellPass::backward) note(calls[c], c);
  }
  REQUIRE_FALSE(written.empty());
  for (std::size_t c = 0; c < calls.size(); ++c) {
    const Block& block = program.blocks[calls[c].block];
    for (std::size_t t = 0; t < block.tasks.size(); ++t) {
      const Task& task = block.tasks[t];
      const bool sums = task.stream == Stream::gradient_communication;
      if (!sums && !steps(task)) continue;
      for (const int slot : task.reads) {
        const int tensor = block.slots[slot].tensor;
        const model::TensorId id =
            calls[c].segment < 0 ? tensor : program.segment_tensors[calls[c].segment][tensor];
        const model::TensorId gradient =
            graph.tensors[id].role == model::Role::parameter ? graph.gradient_of[id] : id;
        INFO("call " << c << ", " << task.name << ", " << graph.tensors[gradient].name);
        REQUIRE(written.count(gradient) == 1);
        for (const Moment& earlier : written[gradient])
          CHECK(follows(replay.moments()[c][t], earlier));
        if (sums) written[gradient].push_back(replay.moments()[c][t]);
      }
    }
  }
}

void check_program(const model::Graph& graph, const Program& program) {
  for (std::size_t s = 0; s < program.sequences.size(); ++s) {
    INFO("sequence " << s);
    const Replay replay(program, static_cast<int>(s));
    CHECK(replay.alive().empty());
    for (const auto& [category, bytes] : replay.balance()) {
      INFO(category_names[static_cast<std::size_t>(category)]);
      CHECK(bytes == 0);
    }
    CHECK(replay.births() > 0);
    check_gradients(graph, program, static_cast<int>(s), replay);
  }
}

/// Every buffer dies, whichever cells use it.
void check_deaths(const Program& program) {
  for (std::size_t s = 0; s < program.sequences.size(); ++s) {
    const Replay replay(program, static_cast<int>(s));
    CHECK(replay.alive().empty());
    for (const auto& [category, bytes] : replay.balance()) CHECK(bytes == 0);
  }
}

}  // namespace

TEST_CASE("buffers are born once, alive and complete when used, and dead in the end") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const Variant& variant : variants()) {
    INFO(variant.strategy << ", " << variant.micro_batches << " micro-batches");
    const Plan plan = plan_of(graph, variant.strategy, variant.micro_batches);
    check_program(plan.graph(), lower(plan, plain_stack()));
  }
}

TEST_CASE("what B and W cells read of each other and of recomputed groups lives as long") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const std::string options :
       {R"("recompute": "none")", R"("recompute": "selective")", R"("recompute": "full")",
        R"("coshard": 4)", R"("tensor": 2, "coshard": 2)"}) {
    INFO(options);
    check_deaths(lowered(graph, "{\"pipeline\": 2, \"schedule\": \"zb-h1\", " + options + "}", 4));
  }
  Plan plan(graph);  // a group that runs again in W alone
  plan.split_backward(0, 0);
  plan.recompute(
      {operator_named(graph, "layers.0.mlp.gelu"), operator_named(graph, "layers.0.mlp.fc2")});
  plan.chain({{0, 0, CellPass::forward}, {0, 0, CellPass::backward}, {0, 0, CellPass::weight}});
  check_deaths(lower(plan, plain_stack()));
}

TEST_CASE("buffers of mixtures of experts and of Evoformers live as long, too") {
  model::GptConfig config = small_gpt;
  config.experts = 4;
  config.experts_per_token = 2;
  config.moe_every = 2;
  config.tied = false;
  const model::Graph mixture = model::gpt(config);
  for (const std::string strategy :
       {R"({})", R"({"data": 4, "expert": 2, "tensor": 2, "sequence_parallel": true})",
        R"({"data": 2, "expert": 2, "pipeline": 2, "recompute": "full"})"}) {
    INFO(strategy);
    check_program(mixture, lowered(mixture, strategy, 2));
  }
  const model::Graph folding =
      model::evoformer({.layers = 4, .msa_rows = 8, .residues = 16, .batch = 2});
  for (const std::string strategy :
       {R"({})", R"({"dap": 4, "data": 2})", R"({"dap": 2, "recompute": "full", "pipeline": 2})",
        R"({"tensor": 2})"}) {
    INFO(strategy);
    check_program(folding, lowered(folding, strategy, 2));
  }
}

TEST_CASE("gradients are summed after the backward cell that runs last, whichever that is") {
  // Micro-batches go back in the other order than they came: B0 is the last to add to the
  // gradients.
  const model::Graph graph = model::gpt(small_gpt);
  Plan plan(graph);
  data_parallel(plan, {.data = 2, .overlap_gradients = true, .bucket = 16_KiB});
  plan.micro_batches = 2;
  plan.order({0, 0, CellPass::forward}, {0, 1, CellPass::forward});
  plan.order({0, 1, CellPass::forward}, {0, 1, CellPass::backward});
  plan.order({0, 1, CellPass::backward}, {0, 0, CellPass::backward});
  const Program program = lower(plan, plain_stack());
  REQUIRE(cells_of(program, 0) == "F0 F1 B1 B0");
  check_program(graph, program);
}

TEST_CASE("a stage keeps the input of every micro-batch in flight") {
  // GPipe: all m. 1F1B: min(m, p - s) at stage s.
  const model::Graph graph = model::gpt(small_gpt);
  for (const std::string recompute : {"none", "full"}) {
    for (const std::string schedule : {"gpipe", "1f1b"}) {
      for (const int m : {2, 6}) {
        const std::string options =
            "\"recompute\": \"" + recompute + "\", \"schedule\": \"" + schedule + "\"";
        const Program program = lowered(graph, "{\"pipeline\": 4, " + options + "}", m);
        for (int stage = 0; stage < 4; ++stage) {
          INFO(options << ", m " << m << ", stage " << stage);
          // Stage s has layer s; its input is the first operand of its first operator, the norm.
          const model::Operator& norm = graph.operators[graph.segments[stage + 1].forward.front()];
          const Replay replay(program, stage);
          CHECK(replay.most(norm.inputs[0]) == (schedule == "gpipe" ? m : std::min(m, 4 - stage)));
        }
      }
    }
  }
}

}  // namespace stratagem::strategies
