// A program plays the same whether its calls are stored in loops or one by one.
#include <string>
#include <vector>

#include "sim/memory_changes.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/sim/priced_by_name.hpp"

namespace stratagem::sim::loops_test {
namespace {

using program::Program;

Program spelled_out(Program program) {
  for (program::Sequence& sequence : program.sequences) sequence = program::unrolled(sequence);
  return program;
}

/// Hosts are behind in some places and ahead in others, with room for 20 launches.
Timeline run_of(const Program& program) {
  const auto devices = static_cast<int>(program.devices.size());
  Folding folding = fold(program, instant_cluster(devices, {1e12}), ideal_network(), false);
  folding.launch_queue = 20;
  const Prices prices = price(program, [](const program::Task& task) {
    const Ticks device = duration(task.name), host = duration(task.name + " host");
    return Price{.device = device, .host = host, .first_launch = host};
  });
  return run(program, folding, prices, 3);
}

bool same_tasks(const FlatTasks& a, const FlatTasks& b) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i)
    same = a[i].call == b[i].call && a[i].block == b[i].block && a[i].task == b[i].task &&
           a[i].queue == b[i].queue;
  return same;
}

bool same_memory(const std::vector<MemoryChange>& a, const std::vector<MemoryChange>& b) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i)
    same = a[i].when == b[i].when && a[i].task == b[i].task && a[i].buffer == b[i].buffer &&
           a[i].bytes == b[i].bytes && a[i].ready == b[i].ready;
  return same;
}

/// That a program has loops, and plays the same without.
void check(const Program& program) {
  std::size_t loops = 0;
  for (const program::Sequence& sequence : program.sequences)
    loops += sequence.calls.loops().size();
  CHECK(loops > 0);
  const Program one_by_one = spelled_out(program);
  const Timeline timeline = run_of(program), other = run_of(one_by_one);
  CHECK(timeline.iteration_ends == other.iteration_ends);
  for (std::size_t s = 0; s < timeline.tasks.size(); ++s)
    CHECK(same_tasks(timeline.tasks[s], other.tasks[s]));
  for (std::size_t a = 0; a < timeline.actors.size(); ++a) {
    CHECK(timeline.times[a].begins == other.times[a].begins);
    CHECK(timeline.times[a].ends == other.times[a].ends);
    CHECK(timeline.times[a].launches == other.times[a].launches);
    CHECK(same_memory(memory_changes(program, timeline, a), memory_changes(one_by_one, other, a)));
  }
}

}  // namespace

TEST_CASE("loops change no instant, no task and no buffer") {
  const model::Graph graph = model::gpt(lowering::small_gpt);
  for (const std::string strategy :
       {R"({"data": 2})", R"({"data": 2, "zero": 3})", R"({"pipeline": 4, "schedule": "1f1b"})",
        R"({"pipeline": 4, "schedule": "gpipe", "recompute": "full"})",
        R"({"pipeline": 2, "schedule": "interleaved", "chunks": 2})",
        R"({"pipeline": 4, "schedule": "zb-h1", "tensor": 2})",
        R"({"pipeline": 2, "schedule": "dualpipe", "tensor": 2})",
        R"({"pipeline": 2, "schedule": "pipedream"})",
        R"({"pipeline": 4, "swap": {"layers": 3, "to": "peer"}})"}) {
    INFO(strategy);
    check(lowering::lowered(graph, strategy, 12));
  }
}

TEST_CASE("nor do they where hosts wait") {
  using cost::HostWaits;
  model::GptConfig config = lowering::small_gpt;
  config.tied = false;
  const model::Graph graph = model::gpt(config);
  for (const HostWaits rule : {HostWaits::each_micro_batch, HostWaits::each_pass,
                               HostWaits::each_received_pass, HostWaits::each_exchange}) {
    cost::Stack stack = lowering::plain_stack();
    stack.rules = {rule, cost::StageShares::activations};
    for (const std::string strategy :
         {R"({"pipeline": 4, "tensor": 2})", R"({"pipeline": 2, "schedule": "zb-v", "tensor": 2})",
          R"({"pipeline": 2, "schedule": "dualpipe"})",
          R"({"pipeline": 2, "embedding": "all", "head": "all"})"}) {
      INFO(strategy << ", " << static_cast<int>(rule));
      const Program program = lowering::lower(lowering::plan_of(graph, strategy, 12), stack);
      std::size_t waits = 0;
      for (const program::Sequence& sequence : program.sequences) {
        for (const program::StoredCall& call : sequence.calls.stored())
          waits += call.host_waits.size();
      }
      CHECK(waits > 0);
      check(program);
    }
  }
}

}  // namespace stratagem::sim::loops_test
