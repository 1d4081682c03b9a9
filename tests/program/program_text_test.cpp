// The text of a program says all of it, and nothing of how it is numbered.
#include "program/program_text.hpp"

#include <functional>
#include <set>

#include "tests/catch.hpp"
#include "tests/lowering/irregular_plans.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/lowering/variants.hpp"
#include "tests/program/renumbered.hpp"

namespace stratagem::program::program_text_test {
using lowering::divide;
using lowering::lower;
using lowering::lowered;
using lowering::plain_stack;
using lowering::plan_of;
using lowering::product_chain;
using lowering::small_gpt;
using lowering::Variant;
using lowering::variants;
using placement::AxisRole;
using placement::Grid;
using placement::Layout;
using placement::Mask;
using strategies::Plan;

namespace {

/// Has nothing to change here, or has changed one fact.
using Change = std::function<bool(Program&)>;

/// The first of something in a program that is changed so.
template <typename T>
bool first(std::vector<T>& all, const std::function<bool(T&)>& change) {
  return std::ranges::any_of(all, change);
}

/// Looks at what is called only: nothing else runs.
Change of_blocks(const std::function<bool(Block&)>& change) {
  return [=](Program& program) {
    return first<Sequence>(program.sequences, [&](Sequence& sequence) {
      return first<StoredCall>(sequence.calls.stored(), [&](StoredCall& call) {
        return change(program.blocks[call.block]);
      });
    });
  };
}
Change of_slots(const std::function<bool(Slot&)>& change) {
  return of_blocks([=](Block& block) { return first<Slot>(block.slots, change); });
}
Change of_tasks(const std::function<bool(Task&)>& change) {
  return of_blocks([=](Block& block) { return first<Task>(block.tasks, change); });
}
Change of_kernels(const std::function<void(cost::Kernel&)>& change) {
  return of_tasks([=](Task& task) {
    auto* kernel = std::get_if<cost::Kernel>(&task.work);
    if (kernel != nullptr) change(*kernel);
    return kernel != nullptr;
  });
}
Change of_collectives(const std::function<bool(Collective&)>& change) {
  return of_tasks([=](Task& task) {
    auto* collective = std::get_if<Collective>(&task.work);
    return collective != nullptr && change(*collective);
  });
}
Change of_operations(const std::function<bool(Operation&)>& change) {
  return of_tasks([=](Task& task) { return first<Operation>(task.operations, change); });
}
Change of_operands(const std::function<bool(Operand&)>& change) {
  return of_operations(
      [=](Operation& operation) { return first<Operand>(operation.inputs, change); });
}
Change of_calls(const std::function<bool(StoredCall&)>& change) {
  return [=](Program& program) {
    return first<Sequence>(program.sequences, [&](Sequence& s) {
      return first<StoredCall>(s.calls.stored(), change);
    });
  };
}
Change of_waits(const std::function<bool(Wait&)>& change) {
  return of_calls([=](StoredCall& call) { return first<Wait>(call.waits, change); });
}
Change of_host_waits(const std::function<bool(HostWait&)>& change) {
  return of_calls([=](StoredCall& call) { return first<HostWait>(call.host_waits, change); });
}
Change of_residents(const std::function<bool(Resident&)>& change) {
  return [=](Program& program) {
    return first<Sequence>(program.sequences,
                           [&](Sequence& s) { return first<Resident>(s.residents, change); });
  };
}

/// Takes the last of a list away.
bool shorten(auto& list) {
  if (list.empty()) return false;
  list.pop_back();
  return true;
}
/// Along the last axis, as was divided by nothing.
bool divide(Layout& layout) {
  if (!layout.empty()) layout.back().dim += 7;
  return !layout.empty();
}
/// The next of an enumeration's values, or the first again.
template <typename E>
bool step(E& value, int count) {
  value = static_cast<E>((static_cast<int>(value) + 1) % count);
  return true;
}
bool swap_first_two(auto& list) {
  if (list.size() < 2 || list[0] == list[1]) return false;
  std::swap(list[0], list[1]);
  return true;
}

struct Fact {
  const char* name;
  Change change;
};

std::vector<Fact> facts_of_blocks() {
  const Mask mask{.ranges = {{0, 3}}, .value = {1, 2}};
  return {
      {"a slot's bytes", of_slots([](Slot& s) { return s.bytes += Bytes{1}, true; })},
      {"a slot's category", of_slots([](Slot& s) { return step(s.category, 10); })},
      {"a slot's place", of_slots([](Slot& s) { return step(s.place, 3); })},
      {"a slot's tensor", of_slots([](Slot& s) { return s.tensor > 0 && (--s.tensor, true); })},
      {"a slot's layout", of_slots([](Slot& s) { return divide(s.layout); })},
      {"a slot's shards", of_slots([](Slot& s) { return s.shards.push_back(0), true; })},
      {"a slot's masks", of_slots([=](Slot& s) { return s.masks.push_back(mask), true; })},
      {"a task's name", of_tasks([](Task& t) { return t.name += "!", true; })},
      {"a task's stream", of_tasks([](Task& t) { return step(t.stream, 13); })},
      {"a task's waits", of_tasks([](Task& t) { return shorten(t.waits); })},
      {"a task's reads", of_tasks([](Task& t) { return shorten(t.reads); })},
      {"a task's writes", of_tasks([](Task& t) { return shorten(t.writes); })},
      {"what a task allocates", of_tasks([](Task& t) { return shorten(t.allocates); })},
      {"the order in which it allocates",
       of_tasks([](Task& t) { return swap_first_two(t.allocates); })},
      {"what a task frees", of_tasks([](Task& t) { return shorten(t.frees); })},
      {"synchronizations", of_tasks([](Task& t) { return ++t.synchronizations, true; })},
      {"recomputed", of_tasks([](Task& t) { return t.recomputed = !t.recomputed, true; })},
      {"the order of tasks", of_blocks([](Block& b) {
         return b.tasks.size() > 1 && (std::swap(b.tasks[0], b.tasks[1]), true);
       })},
      {"a kernel's kind", of_kernels([](cost::Kernel& k) { step(k.kind, 15); })},
      {"a kernel's type", of_kernels([](cost::Kernel& k) { step(k.type, 8); })},
      {"a kernel's pass", of_kernels([](cost::Kernel& k) { step(k.pass, 3); })},
      {"a kernel's m", of_kernels([](cost::Kernel& k) { ++k.m; })},
      {"a kernel's n", of_kernels([](cost::Kernel& k) { ++k.n; })},
      {"a kernel's k", of_kernels([](cost::Kernel& k) { ++k.k; })},
      {"a kernel's batch", of_kernels([](cost::Kernel& k) { ++k.batch; })},
      {"a kernel's FLOPs", of_kernels([](cost::Kernel& k) { k.flops += Flops{1}; })},
      {"a kernel's traffic", of_kernels([](cost::Kernel& k) { k.traffic += Bytes{0.5}; })},
      {"a kernel's launches", of_kernels([](cost::Kernel& k) { ++k.launches; })},
      {"who launches a kernel", of_kernels([](cost::Kernel& k) { step(k.by, 5); })},
      {"a kernel's pieces", of_kernels([](cost::Kernel& k) { ++k.piece.of; })},
      {"what a kernel spares", of_kernels([](cost::Kernel& k) { ++k.piece.spared; })},
      {"a kernel's slowdown", of_kernels([](cost::Kernel& k) { k.slowdown *= 2; })},
      {"a collective's kind", of_collectives([](Collective& c) { return step(c.kind, 11); })},
      {"who launches it",
       of_collectives([](Collective& c) { return c.in_library = !c.in_library, true; })},
      {"its combine", of_collectives([](Collective& c) { return step(c.combine, 2); })},
      {"its payload", of_collectives([](Collective& c) { return c.payload += Bytes{1}, true; })},
      {"its group", of_collectives([](Collective& c) { return c.group > 0 && (--c.group, true); })},
  };
}

std::vector<Fact> facts_of_operations() {
  const Mask mask{.ranges = {{0, 3}}, .value = {1, 2}};
  return {
      {"an action", of_operations([](Operation& o) { return step(o.action, 6); })},
      {"an operator", of_operations([](Operation& o) { return o.op > 0 && (--o.op, true); })},
      {"whether it adds", of_operations([](Operation& o) { return o.adds = !o.adds, true; })},
      {"how it combines", of_operations([](Operation& o) { return step(o.combine, 2); })},
      {"replicas", of_operations([](Operation& o) { return ++o.replicas, true; })},
      {"inputs", of_operations([](Operation& o) { return shorten(o.inputs); })},
      {"outputs", of_operations([](Operation& o) { return shorten(o.outputs); })},
      {"the order of inputs", of_operations([](Operation& o) {
         return o.inputs.size() > 1 && o.inputs[0].tensor != o.inputs[1].tensor &&
                (std::swap(o.inputs[0], o.inputs[1]), true);
       })},
      {"an operand's slot",
       of_operands([](Operand& o) { return o.slot >= 0 && (o.slot = -1, true); })},
      {"its tensor", of_operands([](Operand& o) { return o.tensor > 0 && (--o.tensor, true); })},
      {"its layout", of_operands([](Operand& o) { return divide(o.layout); })},
      {"its shards", of_operands([](Operand& o) { return o.shards.push_back(1), true; })},
      {"its masks", of_operands([=](Operand& o) { return o.masks.push_back(mask), true; })},
  };
}

/// A call for another segment that is alike.
bool other_segment(Program& program) {
  for (StoredCall& call : program.sequences.front().calls.stored()) {
    for (int s = 0; call.segment >= 0 && s < static_cast<int>(program.segment_tensors.size());
         ++s) {
      if (s == call.segment ||
          program.segment_tensors[s].size() != program.segment_tensors[call.segment].size())
        continue;
      call.segment = s;
      return true;
    }
  }
  return false;
}

/// Swaps neighbours that run one block for two segments.
bool swap_alike(Program& program) {
  std::vector<StoredCall>& calls = program.sequences.front().calls.stored();
  const auto alike =
      std::ranges::adjacent_find(calls, [](const StoredCall& a, const StoredCall& b) {
        return a.block == b.block && a.segment != b.segment && a.waits.empty() && b.waits.empty();
      });
  if (alike == calls.end()) return false;
  std::swap(alike[0], alike[1]);
  return true;
}

/// Swaps two of one category, which an allocator takes one after the other.
bool swap_residents(Program& program) {
  std::vector<Resident>& all = program.sequences.front().residents;
  for (Resident& one : all) {
    const auto alike = std::ranges::find_if(all, [&](const Resident& other) {
      return one.place == Residence::device && other.place == one.place && !one.span &&
             !other.span && other.category == one.category && other.bytes != one.bytes;
    });
    if (alike == all.end()) continue;
    std::swap(one, *alike);
    return true;
  }
  return false;
}

std::vector<Fact> facts_of_sequences() {
  return {
      {"a call's segment", &other_segment},
      {"a call's grid", of_calls([](StoredCall& c) { return c.grid > 0 && (--c.grid, true); })},
      {"its stage", of_calls([](StoredCall& c) { return ++c.cell.stage, true; })},
      {"its micro-batch", of_calls([](StoredCall& c) { return ++c.cell.micro_batch, true; })},
      {"its pass", of_calls([](StoredCall& c) { return step(c.cell.pass, 3); })},
      {"its slice", of_calls([](StoredCall& c) { return ++c.cell.slice, true; })},
      {"its repeat", of_calls([](StoredCall& c) { return ++c.cell.repeat, true; })},
      {"its lag", of_calls([](StoredCall& c) { return ++c.lag, true; })},
      {"versions behind", of_calls([](StoredCall& c) { return ++c.versions_behind, true; })},
      {"its waits", of_calls([](StoredCall& c) { return shorten(c.waits); })},
      {"who waits", of_waits([](Wait& w) { return w.task > 0 && (--w.task, true); })},
      {"for which call", of_waits([](Wait& w) {
         const bool any = w.of_call > 0;
         if (any) w = {w.task, w.of_call - 1, 0};
         return any;
       })},
      {"for which task", of_waits([](Wait& w) { return w.of_task > 0 && (--w.of_task, true); })},
      {"a wait of the host", of_calls([](StoredCall& c) { return shorten(c.host_waits); })},
      {"before what the host waits",
       of_host_waits([](HostWait& w) { return w.before = w.before < 0 ? 0 : -1, true; })},
      {"for which stream the host waits", of_host_waits([](HostWait& w) {
         return w.of_call < 0 && (w.of_task = w.of_task < 0 ? 0 : -1, true);
       })},
      {"for which task the host waits", of_host_waits([](HostWait& w) {
         return w.of_call >= 0 && w.of_task > 0 && (--w.of_task, true);
       })},
      {"where a pass begins",
       of_calls([](StoredCall& c) { return c.begins_pass = c.begins_pass < 0 ? 0 : -1, true; })},
      {"the order of calls", &swap_alike},
      {"a resident's category", of_residents([](Resident& r) { return step(r.category, 3); })},
      {"its bytes", of_residents([](Resident& r) { return r.bytes += Bytes{1}, true; })},
      {"its place", of_residents([](Resident& r) { return step(r.place, 3); })},
      {"its tensor", of_residents([](Resident& r) { return r.tensor > 0 && (--r.tensor, true); })},
      {"its grid", of_residents([](Resident& r) { return r.grid > 0 && (--r.grid, true); })},
      {"its layout", of_residents([](Resident& r) { return divide(r.layout); })},
      {"its shards", of_residents([](Resident& r) { return r.shards.push_back(0), true; })},
      {"its versions", of_residents([](Resident& r) { return ++r.versions, true; })},
      {"its span", of_residents([](Resident& r) { return r.span && (r.span.reset(), true); })},
      {"what it lives on until",
       of_residents([](Resident& r) { return r.span && (r.until_next = !r.until_next, true); })},
      {"a span's end", of_residents([](Resident& r) {
         const bool any = r.span && r.span->last.call > 0;
         if (any) r.span->last = {r.span->last.call - 1, 0};
         return any;
       })},
      {"the order of residents", &swap_residents},
  };
}

std::vector<Fact> facts_of_devices() {
  return {
      {"the order of ranks",
       [](Program& p) {
         return first<Communicator>(p.communicators,
                                    [](Communicator& c) { return swap_first_two(c.ranks); });
       }},
      {"the ranks of a communicator",
       [](Program& p) {
         return first<Communicator>(p.communicators, [](Communicator& c) {
           return c.ranks.size() > 1 && (c.ranks.pop_back(), true);
         });
       }},
      {"who runs a sequence",
       [](Program& p) {
         return first<Device>(p.devices,
                              [](Device& d) { return d.sequence > 0 && (--d.sequence, true); });
       }},
      {"a device of a grid", [](Program& p) { return ++p.grids.front().first_device, true; }},
      {"an axis",
       [](Program& p) {
         return first<Grid>(p.grids, [](Grid& g) { return !g.axes.empty() && ++g.axes[0].stride; });
       }},
      {"the tensors of a segment",
       [](Program& p) {
         return first<std::vector<model::TensorId>>(p.segment_tensors, [](auto& table) {
           return table.size() > 1 && (std::swap(table[0], table[1]), true);
         });
       }},
      {"the lag", [](Program& p) { return ++p.lag, true; }},
  };
}

/// Two kinds of pipelines, hosts that wait, what stays on the host and on drives, tables of masks,
/// several versions.
std::vector<Program> programs(const model::Graph& graph) {
  std::vector<Program> result;
  cost::Stack stack = plain_stack();
  stack.rules.push_back(cost::HostWaits::each_micro_batch);
  for (const char* strategy :
       {R"({"data": 2, "tensor": 2, "sequence_parallel": true, "pipeline": 2, "zero": 1,
            "recompute": "full", "bucket": "8 KiB", "overlap_gradients": true})",
        R"({"data": 3, "zero": 2, "offload": {"optimizer": "drives", "delayed_update": true}})",
        R"({"data": 2, "zero": 3, "tensor": 2, "swap": {"layers": 2}})",
        R"({"data": 2, "zero": 2, "bucket": "8 KiB", "gradient_buffers": 2})",
        R"({"pipeline": 2, "tensor": 2, "schedule": "pipedream"})"})
    result.push_back(lower(plan_of(graph, strategy, 4), stack));
  return result;
}

}  // namespace

TEST_CASE("renumbering a program leaves its text as it is") {
  const model::Graph graph = model::gpt(small_gpt);
  unsigned seed = 1;
  for (const Variant& variant : variants()) {
    INFO(variant.strategy);
    const Plan plan = plan_of(graph, variant.strategy, variant.micro_batches);
    const Program program = lower(plan, plain_stack());
    const std::string text = to_text(program, plan.graph());
    for (int i = 0; i < 3; ++i)
      CHECK(to_text(Renumbering(program, ++seed).renumber(), plan.graph()) == text);
  }
}

TEST_CASE("the text of a plan of unequal parts does not depend on numbers either") {
  const model::Graph graph = product_chain(3);
  Plan plan(graph);
  divide(plan, "all.shift", "r", {0, 1, 2});
  divide(plan, "all.product0", "n", {1, 0, 2});
  divide(plan, "all.product1", "k", {2, 3});
  divide(plan, "all.product2", "r", {0, 1, 2, 3, 4});
  const Program program = lower(plan, plain_stack());
  const std::string text = to_text(program, plan.graph());
  for (unsigned seed = 0; seed < 20; ++seed)
    CHECK(to_text(Renumbering(program, seed).renumber(), plan.graph()) == text);
}

TEST_CASE("every fact of a program is in its text") {
  const model::Graph graph = model::gpt(small_gpt);
  const std::vector<Program> all = programs(graph);
  for (const auto& facts :
       {facts_of_blocks(), facts_of_operations(), facts_of_sequences(), facts_of_devices()}) {
    for (const Fact& fact : facts) {
      INFO(fact.name);
      int changed = 0;
      for (const Program& program : all) {
        Program other = program;
        if (!fact.change(other)) continue;
        ++changed;
        CHECK(to_text(other, graph) != to_text(program, graph));
      }
      CHECK(changed > 0);
    }
  }
}

TEST_CASE("in which order calls take turns is in the text") {
  model::GptConfig mixture = small_gpt;
  mixture.experts = {.count = 2, .per_token = 1, .capacity_factor = 1};
  const model::Graph graph = model::gpt(mixture);
  const Program program =
      lowered(graph, R"({"pipeline": 2, "data": 2, "expert": 2, "schedule": "dualpipe"})", 4);
  const std::string text = to_text(program, graph);
  CHECK(to_text(Renumbering(program, 1).renumber(), graph) == text);
  int changed = 0;
  for (std::size_t s = 0; s < program.sequences.size(); ++s) {
    const std::vector<Launch>& launches = program.sequences[s].launches;
    for (std::size_t i = 0; i + 1 < launches.size(); ++i) {
      if (launches[i].call < launches[i + 1].call || launches[i + 1].first == 0) continue;
      Program other = program;
      std::swap(other.sequences[s].launches[i], other.sequences[s].launches[i + 1]);
      CHECK(to_text(other, graph) != text);
      ++changed;
    }
  }
  CHECK(changed > 0);
}

TEST_CASE("what repeats is written as a loop") {
  // GPipe: each stage runs four forward cells, then four backward ones, and receives before each
  // or sends after it. Stage 0 has no gradients to send, stage 1 no activations.
  const model::Graph graph = model::gpt(small_gpt);
  const Program program = lowered(graph, R"({"pipeline": 2, "schedule": "gpipe"})", 4);
  const std::string text = to_text(program, graph, CallText::in_loops);
  const auto without_waits = [&](std::string::size_type from) {
    std::string calls;
    while (from < text.size()) {
      const std::size_t end = text.find('\n', from);
      const std::string line = text.substr(from, end - from);
      if (!line.starts_with("      ")) calls += line + "\n";
      if (!line.starts_with("  ")) break;
      from = end + 1;
    }
    return calls;
  };
  CHECK_THAT(without_waits(text.find("  loop m = 0..3\n")),
             StartsWith("  loop m = 0..3\n"
                        "    F embedding in F(stage 0, micro-batch m)\n"
                        "    F layers.0 in F(stage 0, micro-batch m)\n"
                        "    F layers.1 in F(stage 0, micro-batch m)\n"
                        "    send layers.1.mlp.residual.out in F(stage 0, micro-batch m)\n"
                        "  loop m = 0..3\n"
                        "    receive layers.1.mlp.residual.out.grad in B(stage 0, micro-batch m)\n"
                        "    B layers.1 in B(stage 0, micro-batch m)\n"
                        "    B layers.0 in B(stage 0, micro-batch m)\n"
                        "    B embedding in B(stage 0, micro-batch m)\n"
                        "  reduce gradients in B(stage 0, micro-batch 3)\n"));
  CHECK_THAT(text, ContainsSubstring("micro-batch m), 1 call before\n"));
  CHECK_THAT(to_text(program, graph), !ContainsSubstring("loop"));
}

TEST_CASE("equal communicators are told apart by what uses them first") {
  // Two all-reduces of the same ranks: in one communicator each, or both in one.
  const auto program = [](int second) {
    Program p;
    const auto all_reduce = [](const char* name, int group) {
      return Task{.name = name, .work = Collective{.group = group, .payload = Bytes{8}}};
    };
    p.communicators = {{{0, 1}}, {{0, 1}}};
    p.blocks = {
        {.name = "both", .slots = {}, .tasks = {all_reduce("a", 0), all_reduce("b", second)}}};
    p.sequences = {{.calls = {{.block = 0}}, .residents = {}}};
    p.devices = {{.sequence = 0, .groups = {0, 1}}, {.sequence = 0, .groups = {0, 1}}};
    return p;
  };
  CHECK(to_text(program(0)) != to_text(program(1)));
  CHECK_THAT(to_text(program(1)), ContainsSubstring("both, in [0,1] [0,1] (2)"));
}

TEST_CASE("segments that are alike share the text of their blocks, whatever the program shares") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program program = lowered(graph, "{}", 2);
  Program apart = program;  // a block for each call
  for (StoredCall& call : apart.sequences[0].calls.stored()) {
    apart.blocks.push_back(Block(apart.blocks[call.block]));
    call.block = static_cast<int>(apart.blocks.size()) - 1;
  }
  CHECK(to_text(apart, graph) == to_text(program, graph));
}

}  // namespace stratagem::program::program_text_test
