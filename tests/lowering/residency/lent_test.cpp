// Activations that wait on other stages: in which order devices send and receive them.
#include <map>
#include <set>
#include <string>
#include <utility>

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::lowering::lent_test {

using program::Call;
using program::Program;
using program::Task;

namespace {

/// Devices that do call after call, as ranks of `execute` do: a message leaves at once, a receive
/// is waited for by the first call that names it, other collectives wait for all of their group.
class InOrder {
 public:
  explicit InOrder(const Program& program)
      : program_(program), next_(program.devices.size()), posted_(program.devices.size()) {}

  /// Do all devices come to their end?
  [[nodiscard]] bool finishes() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t d = 0; d < next_.size(); ++d) {
        while (next_[d].first < calls(d).size() && advance(static_cast<int>(d))) moved = true;
      }
    }
    for (std::size_t d = 0; d < next_.size(); ++d) {
      if (next_[d].first < calls(d).size()) return false;
    }
    return true;
  }

 private:
  using Place = std::pair<std::size_t, std::size_t>;  ///< call and task
  using Message = std::pair<int, int>;                ///< communicator, and number on it

  [[nodiscard]] const program::Calls& calls(std::size_t device) const {
    return program_.sequences[program_.devices[device].sequence].calls;
  }
  [[nodiscard]] bool arrived(const Message& message) {
    return sent_[message.first] > message.second;
  }

  /// Does one task; false if it has to wait.
  bool advance(int d) {
    auto& [c, t] = next_[d];
    const Call& call = calls(d)[c];
    const std::vector<Task>& tasks = program_.blocks[call.block].tasks;
    if (t == tasks.size()) {
      ++c;
      t = 0;
      return true;
    }
    for (const program::Wait& wait : call.waits) {
      const auto found = posted_[d].find(wait.of_call);
      if (wait.task == static_cast<int>(t) && found != posted_[d].end() && !arrived(found->second))
        return false;
    }
    const auto* work = collective_of(tasks[t]);
    if (work != nullptr && !communicate(d, tasks[t], *work)) return false;
    ++t;
    return true;
  }

  bool communicate(int d, const Task& task, const program::Collective& work) {
    const int group = program_.devices[d].groups[work.group];
    const std::vector<int>& ranks = program_.communicators[group].ranks;
    if (program::transfers(task.stream)) {
      const bool sends = ranks.front() == d;
      const int number = (sends ? sent_ : received_)[group]++;
      if (!sends) posted_[d][static_cast<int>(next_[d].first)] = {group, number};
      return true;
    }
    const Place here = next_[d];
    if (!std::exchange(stands_[d], true)) ++came_[{group, d}];
    for (const int rank : ranks) {
      if (came_[{group, rank}] < came_[{group, d}]) return false;
    }
    stands_[d] = false;
    return here == next_[d];
  }

  const Program& program_;
  std::vector<Place> next_;
  std::vector<std::map<int, Message>> posted_;  ///< by device, by call
  std::map<int, int> sent_, received_;          ///< by communicator
  std::map<std::pair<int, int>, int> came_;     ///< to collectives, by communicator and device
  std::map<int, bool> stands_;                  ///< at one
};

/// A GPT of eight layers on four stages.
Program eight_layers(const std::string& more, const Neighbours& neighbours, int micro_batches = 6) {
  model::GptConfig config = small_gpt;
  config.layers = 8;
  config.tied = false;
  const model::Graph graph = model::gpt(config);
  const strategies::Plan plan = plan_of(graph, "{\"pipeline\": 4, " + more + "}", micro_batches);
  return lower(plan, plain_stack(), {}, neighbours);
}

/// The ranks that hold what each rank lends: "0 to 2 3, 1 to 3".
std::string peers_of(const std::string& more, const Neighbours& neighbours, int micro_batches = 6) {
  const Program program = eight_layers(more, neighbours, micro_batches);
  std::map<int, std::set<int>> peers;
  for (std::size_t d = 0; d < program.devices.size(); ++d) {
    for (const Call& call : program.sequences[program.devices[d].sequence].calls) {
      const Task& task = program.blocks[call.block].tasks.front();
      if (!task.name.starts_with("lend ") || task.stream != program::Stream::send_forward) continue;
      const int group = program.devices[d].groups[collective_of(task)->group];
      peers[static_cast<int>(d)].insert(program.communicators[group].ranks.back());
    }
  }
  std::string text;
  for (const auto& [lender, holders] : peers) {
    text += (text.empty() ? "" : ", ") + std::to_string(lender) + " to";
    for (const int holder : holders) text += " " + std::to_string(holder);
  }
  return text;
}

std::string swapped(int layers) {
  return R"("swap": {"to": "peer", "layers": )" + std::to_string(layers) + "}";
}

/// One link is faster than all others.
Neighbours fast(int a, int b) {
  return {.link = [=](int from, int to) { return from == a && to == b ? 50_GBps : 10_GBps; }};
}

/// The most that a rank has at the end of a call, of buffers that live all the time and of what
/// waits for backward passes.
Bytes most_held(const std::string& more, int rank, const Neighbours& neighbours) {
  const Program program = eight_layers(more, neighbours);
  const program::Sequence& sequence = program.sequences[program.devices[rank].sequence];
  Bytes held;
  for (const program::Resident& one : sequence.residents) held += one.bytes;
  Bytes most;
  for (const Call& call : sequence.calls) {
    const program::Block& block = program.blocks[call.block];
    for (const auto category : {program::Category::activations, program::Category::checkpoints,
                                program::Category::statistics})
      held += left_by(block, category);
    most = std::max(most, held);
  }
  return most;
}

}  // namespace

TEST_CASE("a stage lends over the fastest link, then to the stage with the most idle memory") {
  // 1F1B keeps 4, 3, 2 and 1 micro-batches of two layers on the stages. All links are equal: 0
  // chooses 3, which then has five; so 1 chooses 2.
  CHECK(peers_of(swapped(4), {}) == "0 to 3, 1 to 2");
  CHECK(peers_of(swapped(2), fast(0, 1)) == "0 to 1");
  CHECK(peers_of(swapped(4), fast(0, 2)) == "0 to 2, 1 to 3");
  CHECK(peers_of(swapped(6), fast(2, 0)) == "0 to 3, 1 to 2, 2 to 0");
  // Of four micro-batches BPipe lends one of stage 0, which then keeps three, as 1 does.
  const std::string bpipe = R"("schedule": "bpipe")";
  CHECK(peers_of(bpipe, {}, 4) == "0 to 3");
  CHECK(peers_of(bpipe, fast(0, 2), 4) == "0 to 2");
  CHECK(peers_of(bpipe, fast(0, 1), 4) == "0 to 3");  // 1 would have more than any
  // Of six it lends two at once: 2 has room for one, and 3, which has the logits besides.
  CHECK(peers_of(bpipe, {}) == "0 to 2 3");
}

TEST_CASE(
    "a peer takes what it has room for, the next one the rest, and what finds none is refused") {
  const std::string two = swapped(2);
  const Bytes alone = most_held(two, 3, fast(0, 1));
  const auto room = [&](Bytes memory) { return Neighbours{.link = {}, .memory = memory}; };
  const Bytes whole = most_held(two, 3, {});  // with both layers of stage 0
  CHECK(peers_of(two, room(whole)) == "0 to 3");
  const Bytes less = whole - 1_B;
  const std::string divided = peers_of(two, room(less));
  CHECK(divided == "0 to 2 3");
  for (const int rank : {2, 3}) CHECK(most_held(two, rank, room(less)) <= less);
  CHECK_THROWS_WITH(peers_of(two, room(alone)),
                    ContainsSubstring("room on other stages for what stage 0 swaps, found none"));
  // Cells that are lent even out what stages hold.
  CHECK(peers_of(R"("schedule": "bpipe")", room(alone)) == "");
  CHECK_THROWS_WITH(lowered(model::gpt(small_gpt),
                            R"({"pipeline": 2, "token_slices": [8, 12],
                                "swap": {"to": "peer", "layers": 1}})",
                            4),
                    ContainsSubstring("whole micro-batches"));
}

TEST_CASE("devices that do one call after the other never wait in a circle for what is lent") {
  const model::Graph tied = model::gpt(small_gpt);
  model::GptConfig config = small_gpt;
  config.tied = false;
  const model::Graph untied = model::gpt(config);
  model::Graph thrice = model::gpt(config);
  thrice.forward_repeats = 3;
  const auto finishes = [](const model::Graph& graph, const std::string& strategy) {
    INFO(strategy);
    const Program program = lowered(graph, strategy, 6);
    CHECK(InOrder(program).finishes());
  };
  finishes(tied, R"({"pipeline": 4, "schedule": "bpipe"})");
  finishes(untied, R"({"pipeline": 4, "data": 2, "schedule": "bpipe"})");
  const std::string swaps = R"({"pipeline": 2, "swap": {"layers": 4, "to": "peer", "prefetch": )";
  for (const std::string prefetch : {"0}", "1}", "2}"}) {
    finishes(tied, swaps + prefetch + "}");
    finishes(tied, swaps + prefetch + R"(, "schedule": "zb-h1"})");
    finishes(tied, swaps + prefetch + R"(, "schedule": "zb-v", "recompute": "full"})");
    finishes(tied, swaps + prefetch + R"(, "schedule": "chimera"})");
    finishes(untied, swaps + prefetch + R"(, "embedding": "all", "head": "all"})");
    finishes(thrice, swaps + prefetch + R"(, "schedule": "3f1b"})");
  }
}

}  // namespace stratagem::lowering::lent_test
