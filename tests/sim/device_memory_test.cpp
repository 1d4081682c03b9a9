// What devices hold: live buffers, the allocator around them, and what stands beside it.
#include "sim/device_memory.hpp"

#include <map>
#include <optional>

#include "lowering/stack/host_waits.hpp"
#include "sim/caching_allocator.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/lowering/variants.hpp"
#include "tests/sim/hand_built.hpp"
#include "topology/presets.hpp"

namespace stratagem::sim {
namespace {

using Allocator = cost::MemoryFacts::Allocator;

cost::Stack stack_with(Allocator allocator) {
  cost::Stack stack = lowering::plain_stack();
  stack.slowdown.value = stack.host_factor.value = 1;
  stack.memory.allocator = allocator;
  return stack;
}

/// A GPU of 100 MiB, of which the context takes 10.
cost::Profile small_gpu() {
  cost::Profile profile;
  profile.memory.size.value = 100_MiB;
  profile.memory.context.value = 10_MiB;
  return profile;
}

/// x lives through the first two tasks, y in the second, z in the third alone.
HandBuilt three_tasks(Bytes x, Bytes y, Bytes z) {
  HandBuilt built;
  built.add_sequence({kernel(10), kernel(10), kernel(10)}, {{"x", -1, x, Category::activations},
                                                            {"y", -1, y, Category::temporaries},
                                                            {"z", -1, z, Category::temporaries}});
  std::vector<program::Task>& tasks = built.program.blocks[0].tasks;
  tasks[0].allocates = {0};
  tasks[1].allocates = {1};
  tasks[1].frees = {0, 1};
  tasks[2].allocates = {2};
  tasks[2].frees = {2};
  tasks[1].name = "second";
  tasks[2].name = "third";
  built.program.blocks[0].name = "block";
  built.add_device(0);
  return built;
}

/// Calls of a segment of which every buffer is a tensor, so that hosts can wait as a stack has it.
void of_a_segment(program::Program& program) {
  program.segment_tensors.emplace_back();
  for (program::Block& block : program.blocks) {
    for (std::size_t slot = 0; slot < block.slots.size(); ++slot)
      block.slots[slot].tensor = static_cast<int>(slot);
  }
  for (int tensor = 0; tensor < 100; ++tensor) program.segment_tensors.front().push_back(tensor);
  for (program::Sequence& sequence : program.sequences) {
    for (program::StoredCall& call : sequence.calls.stored()) call.segment = 0;
  }
}

/// Of two devices: in every layer a computation allocates a buffer of 12 MiB, a collective works on
/// it, and the next computation frees it.
HandBuilt layers_with_sums(int layers) {
  HandBuilt built;
  std::vector<Step> steps;
  std::vector<program::Slot> slots;
  for (int layer = 0; layer < layers; ++layer) {
    const int before = 3 * layer;
    steps.push_back(kernel(10));
    steps.push_back(collective(8_B, {before}));
    steps.push_back(kernel(10, 0, {before + 1}));
    slots.push_back({"sum", -1, 12_MiB, Category::temporaries});
    steps[before].task.allocates = {layer};
    steps[before + 1].task.reads = steps[before + 1].task.writes = {layer};
    steps[before + 2].task.frees = {layer};
  }
  built.add_sequence(steps, slots);
  built.add_device(0, {0});
  built.add_device(0, {0});
  return built;
}

DeviceMemory memory_of(const HandBuilt& built, const cost::Profile& profile,
                       const cost::Stack& stack) {
  const Timeline timeline = run(built.program, on_one_link(built.program), built.prices, 2);
  const std::vector<DeviceMemory> devices = device_memory(built.program, timeline, profile, stack);
  return fullest(devices);
}

}  // namespace

TEST_CASE(
    "without an allocator what is reserved is what is live, and the context stands beside it") {
  const HandBuilt built = three_tasks(30_MiB, 5_MiB, 32_MiB);
  const DeviceMemory device = memory_of(built, small_gpu(), stack_with(Allocator::none));
  CHECK(device.allocated == 35_MiB);
  CHECK(device.reserved == 35_MiB);
  CHECK(device.used() == 45_MiB);
  CHECK(device.at == "second of block in F(stage 0, micro-batch 0)");
  CHECK(device.peak.when == Instant{10});
}

TEST_CASE("a caching allocator keeps segments that later buffers do not fit in") {
  // x has a segment of 30 MiB, y one of 20 MiB. z fits in neither: 32 MiB more, with x and y free.
  const HandBuilt built = three_tasks(30_MiB, 5_MiB, 32_MiB);
  const DeviceMemory device = memory_of(built, small_gpu(), stack_with(Allocator::caching));
  CHECK(device.allocated == 35_MiB);
  CHECK(device.reserved == 82_MiB);
  CHECK(device.used() == 92_MiB);
  CHECK(device.releases == 0);
  // Expandable: x and y in 40 MiB of pages, of which z takes the first 32.
  CHECK(memory_of(built, small_gpu(), stack_with(Allocator::expandable)).reserved == 40_MiB);
}

TEST_CASE("the allocator has what everything else leaves, and gives back for more") {
  const HandBuilt built = three_tasks(30_MiB, 5_MiB, 32_MiB);
  cost::Stack stack = stack_with(Allocator::caching);
  stack.memory.workspace = cost::Constant<Bytes>{.value = 9_MiB, .source = "test"};
  // 100 - 10 - 9 = 81 are left, 82 are wanted: x's and y's go back before z's comes.
  const DeviceMemory beside = memory_of(built, small_gpu(), stack);
  CHECK(beside.releases == 1);
  CHECK(beside.reserved == 50_MiB);
  CHECK(beside.used() == 69_MiB);
  CHECK(beside.allocated == 35_MiB);
  // As a block of the allocator it takes 20 MiB, in which y finds room too: 20 + 30 + 32 of 90.
  stack.memory.workspace_allocated = true;
  const DeviceMemory within = memory_of(built, small_gpu(), stack);
  CHECK(within.releases == 0);
  CHECK(within.reserved == 82_MiB);
  CHECK(within.used() == 92_MiB);
  CHECK(within.allocated == 44_MiB);
  // Between iterations only the workspace lives.
  CHECK(beside.resident == Bytes{});
  CHECK(within.resident == 9_MiB);
}

TEST_CASE("what does not fit says how much is wanting") {
  // 30 and 64 MiB live together; 90 are left beside the context.
  const HandBuilt built = three_tasks(30_MiB, 64_MiB, 1_MiB);
  const DeviceMemory device = memory_of(built, small_gpu(), stack_with(Allocator::caching));
  // 1 MiB is small: 2 more, of which the others' segments are given back first.
  CHECK(device.used() - small_gpu().memory.size.value == 4_MiB);
}

TEST_CASE(
    "what lives on until the next iteration counts between iterations, and at no other peak") {
  HandBuilt built = three_tasks(30_MiB, 5_MiB, 20_MiB);
  built.program.sequences[0].residents = {
      {.category = Category::parameters, .bytes = 7_MiB},
      {.category = Category::temporaries,
       .bytes = 4_MiB,
       .span = program::Resident::Span{.first = {0, 2}, .last = {0, 2}}}};
  program::Resident& while_tasks_run = built.program.sequences[0].residents.back();
  const DeviceMemory gone = memory_of(built, small_gpu(), stack_with(Allocator::caching));
  while_tasks_run.until_next = true;
  const DeviceMemory stays = memory_of(built, small_gpu(), stack_with(Allocator::caching));
  CHECK(gone.resident == 7_MiB);
  CHECK(stays.resident == 11_MiB);
  CHECK(gone.allocated == 42_MiB);
  CHECK(stays.allocated == 42_MiB);
  CHECK(stays.reserved == gone.reserved);
}

TEST_CASE("residents come first: parameters, gradients, states, each rounded on its own") {
  HandBuilt built = three_tasks(512_B, 512_B, 512_B);
  // Six small ones of 512 B each, and 3 MiB, which take 20.
  for (const Category category :
       {Category::parameters, Category::gradients, Category::optimizer_states}) {
    built.program.sequences[0].residents.push_back({category, 100_B});
    built.program.sequences[0].residents.push_back({category, 512_B});
  }
  built.program.sequences[0].residents.push_back({Category::parameters, 3_MiB});
  const DeviceMemory device = memory_of(built, small_gpu(), stack_with(Allocator::caching));
  CHECK(device.reserved == 22_MiB);
  CHECK(device.allocated == 3_MiB + 3 * 612_B + 1024_B);
}

TEST_CASE("a host that runs ahead allocates beside what collectives still work on") {
  // The host launches all of five layers at once, so no buffer is free when the next is allocated.
  HandBuilt built = layers_with_sums(5);
  const DeviceMemory ahead = memory_of(built, small_gpu(), stack_with(Allocator::caching));
  CHECK(ahead.allocated == 12_MiB);  // of live tensors, in the order of time
  CHECK(ahead.reserved == 60_MiB);
  // A host that takes as long to launch as the device to compute finds each free again.
  for (Price& price : built.prices[0]) price.host = price.first_launch = {100};
  CHECK(memory_of(built, small_gpu(), stack_with(Allocator::caching)).reserved == 12_MiB);
  // Buffers that no collective works on are free at once for what is launched later.
  for (program::Task& task : built.program.blocks[0].tasks) task.reads = task.writes = {};
  for (Price& price : built.prices[0]) price.host = price.first_launch = {0};
  CHECK(memory_of(built, small_gpu(), stack_with(Allocator::caching)).reserved == 12_MiB);
}

TEST_CASE("a stream takes a thousand launches before the host waits for the first of them to end") {
  // A computation allocates a buffer, a collective works on it from 10 to 18 ps, and the next
  // computation frees it, from 18 to 28. The last one allocates another buffer: in the same block
  // if the host has waited for that second computation, else beside it.
  const auto reserved = [](int first, int second, int between, int last) {
    HandBuilt built;
    std::vector<Step> steps = {kernel(10), collective(8_B, {0}), kernel(10, 0, {1})};
    const auto launches = [&](Step& step, int count) {
      std::get<cost::Kernel>(step.task.work).launches = count;
    };
    launches(steps[0], first);
    launches(steps[2], second);
    for (int i = 0; i < between; ++i) steps.push_back(kernel(10));
    steps.push_back(kernel(10));
    launches(steps.back(), last);
    steps[0].task.allocates = {0};
    steps[1].task.reads = steps[1].task.writes = {0};
    steps[2].task.frees = {0};
    steps.back().task.allocates = steps.back().task.frees = {1};
    built.add_sequence(steps, {{"worked on", -1, 12_MiB, Category::temporaries},
                               {"later", -1, 12_MiB, Category::temporaries}});
    built.add_device(0, {0});
    built.add_device(0, {0});
    return memory_of(built, small_gpu(), stack_with(Allocator::caching)).reserved;
  };
  // Computations of one launch each: of 1001 the first must have ended, of 1002 the second.
  CHECK(reserved(1, 1, 998, 1) == 24_MiB);
  CHECK(reserved(1, 1, 999, 1) == 12_MiB);
  // Three of many launches: 1001, of which the first computation's one is taken off, and 1002.
  CHECK(reserved(1, 999, 0, 1) == 24_MiB);
  CHECK(reserved(1, 1000, 0, 1) == 12_MiB);
  CHECK(reserved(2, 1000, 0, 1) == 12_MiB);
  CHECK(reserved(3, 999, 0, 1) == 24_MiB);
  // One that is more than a stream takes waits for all before it.
  CHECK(reserved(1, 1, 0, 2000) == 12_MiB);
}

TEST_CASE("a host does not wait for the end of what it is launching") {
  // The collective works on the first computation's buffer until 110 ps; the last computation, of
  // more launches than a stream takes, waits for the one before it (20 ps) and not for itself.
  HandBuilt built;
  std::vector<Step> steps = {kernel(10), collective(100_B, {0}), kernel(10), kernel(10'000)};
  std::get<cost::Kernel>(steps[3].task.work).launches = 2000;
  steps[0].task.allocates = {0};
  steps[1].task.reads = steps[1].task.writes = {0};
  steps[2].task.frees = {0};
  steps[3].task.allocates = steps[3].task.frees = {1};
  built.add_sequence(steps, {{"worked on", -1, 12_MiB, Category::temporaries},
                             {"later", -1, 12_MiB, Category::temporaries}});
  built.add_device(0, {0});
  built.add_device(0, {0});
  CHECK(memory_of(built, small_gpu(), stack_with(Allocator::caching)).reserved == 24_MiB);
}

TEST_CASE("a host that waits between passes holds the buffers of one of them") {
  const auto reserved = [](std::optional<cost::HostWaits> waits) {
    HandBuilt built = layers_with_sums(3);
    std::vector<program::StoredCall>& calls = built.program.sequences[0].calls.stored();
    calls.push_back(calls.front());
    calls.back().cell.pass = placement::CellPass::backward;
    of_a_segment(built.program);
    cost::Stack stack = stack_with(Allocator::caching);
    if (waits) {
      stack.rules = {*waits};
      lowering::add_host_waits(built.program, stack);
    }
    return memory_of(built, small_gpu(), stack).reserved;
  };
  CHECK(reserved({}) == 72_MiB);
  CHECK(reserved(cost::HostWaits::each_pass) == 36_MiB);
  CHECK(reserved(cost::HostWaits::each_launch) == 12_MiB);
}

TEST_CASE("reserved is no less than what streams that run at once hold at a time") {
  // A copy on a stream of its own allocates its buffer while a computation still needs another one,
  // which the host has freed behind it by then.
  HandBuilt built;
  built.add_sequence(
      {kernel(10), kernel(3, 0, {}, Stream::copy_in)},
      {{"x", -1, 12_MiB, Category::temporaries}, {"y", -1, 12_MiB, Category::temporaries}});
  for (int task = 0; task < 2; ++task) {
    built.program.blocks[0].tasks[task].allocates =
        built.program.blocks[0].tasks[task].frees = {task};
  }
  built.add_device(0);
  const DeviceMemory device = memory_of(built, small_gpu(), stack_with(Allocator::caching));
  CHECK(device.allocated == 24_MiB);
  CHECK(device.reserved == 24_MiB);
}

TEST_CASE("a stage's host waits for exchanges, for what describes them, or for neither") {
  using cost::HostWaits;
  // Stage 0 reads before its backward pass what stage 1 sent, which reads nothing.
  const auto reserved = [](bool sends, const std::vector<cost::Rule>& waits, int stage = 0) {
    HandBuilt built = layers_with_sums(3);
    const Step step = collective(8_B, {}, Stream::receive_backward);
    if (sends) {
      built.program.blocks[0].tasks.push_back(step.task);
      built.prices[0].push_back({{step.device}, {step.host}, {step.host}});
    }
    std::vector<program::StoredCall>& calls = built.program.sequences[0].calls.stored();
    calls.push_back(calls.front());
    calls.back().cell.pass = placement::CellPass::backward;
    built.program.sequences.push_back(built.program.sequences[0]);
    built.program.devices[1].sequence = 1;
    for (program::StoredCall& call : built.program.sequences[1].calls.stored()) call.cell.stage = 1;
    const auto message = static_cast<int>(built.program.blocks[0].tasks.size()) - 1;
    if (sends) built.program.sequences[0].calls.stored()[1].waits = {{0, 0, message}};
    of_a_segment(built.program);
    cost::Stack stack = stack_with(Allocator::caching);
    stack.rules = waits;
    lowering::add_host_waits(built.program, stack);
    const Timeline timeline = run(built.program, on_one_link(built.program), built.prices, 2);
    for (const DeviceMemory& device : device_memory(built.program, timeline, small_gpu(), stack)) {
      if (device.device == stage || device.count == 2) return device.reserved;
    }
    throw std::logic_error("no device of that stage");
  };
  CHECK(reserved(true, {}) == 72_MiB);
  CHECK(reserved(true, {HostWaits::each_received_pass}) == 36_MiB);
  CHECK(reserved(true, {HostWaits::each_exchange}) == 36_MiB);
  CHECK(reserved(true, {HostWaits::each_exchange}, 1) == 36_MiB);
  // The last stage's backward passes begin with its own loss: nothing is read.
  CHECK(reserved(true, {HostWaits::each_received_pass}, 1) == 72_MiB);
  for (const auto any : {HostWaits::each_received_pass, HostWaits::each_exchange})
    CHECK(reserved(false, {any}) == 72_MiB);
}

TEST_CASE("buffers of gradients live until both what allocates and what frees them has run") {
  // Lent activations come back, and weights are gathered, on streams that do not wait for each
  // other.
  model::GptConfig config = lowering::small_gpt;
  config.tied = false;
  cost::Stack stack = stack_with(Allocator::caching);
  stack.rules = {
      cost::HostWaits::each_exchange,
      cost::ShardCollectives{.by_weight = true, .gathers_wait = true, .kernels_per_rank = 1}};
  const program::Program program = lowering::lower(
      lowering::plan_of(model::gpt(config),
                        R"({"pipeline": 2, "data": 4, "zero": 3, "gradient_buffers": 2,
                              "swap": {"layers": 1, "to": "peer"}})"),
      stack);
  const cost::Profile profile = cost::read_profile("scenarios/profiles/v100-sxm3.json");
  const auto& presets = topology::presets();
  const topology::Cluster cluster =
      std::ranges::find(presets, "dgx-2", &topology::Preset::name)->build(1);
  const Timeline timeline = run(program, fold(program, cluster, profile.collective, true),
                                price(program, profile, stack), 2);
  Bytes most;
  for (std::size_t a = 0; a < timeline.actors.size(); ++a) {
    Bytes live;
    for (const MemoryChange& change : memory_changes(program, timeline, a)) {
      live += change.bytes;
      CHECK(live >= 0_B);
      most = std::max(most, live);
    }
    CHECK(live == 0_B);
  }
  // All else that lives is there from begin to end.
  const MemoryFigures figures = highest(device_memory(program, timeline, profile, stack));
  CHECK(figures.allocated > most);
  CHECK(figures.reserved >= figures.allocated);
}

TEST_CASE("groups beside the plan's have communicators of their own, those of one rank none") {
  const HandBuilt built = three_tasks(512_B, 512_B, 512_B);
  cost::Profile profile = small_gpu();
  profile.memory.communicator = cost::CommunicatorConstants{};
  profile.memory.communicator->fixed.value = 1000_B;
  profile.memory.communicator->peer.value = 10_B;
  const Timeline timeline = run(built.program, on_one_link(built.program), built.prices, 2);
  const std::vector<DeviceMemory> devices = device_memory(
      built.program, timeline, profile, stack_with(Allocator::none), {}, {64, 8, 2, 1});
  CHECK(devices[0].communicator_count == 3);
  CHECK(devices[0].communicators == 3050_B);  // two neighbours of 64 and of 8, the other of two
}

TEST_CASE("every distinct group of GPUs has a communicator, with buffers for each peer") {
  HandBuilt built;
  // Two groups of the same four, in other orders, and one of two.
  built.add_sequence({collective(8_B, {}, Stream::communication, 0),
                      collective(8_B, {}, Stream::communication, 1),
                      collective(8_B, {}, Stream::communication, 2)});
  for (int device = 0; device < 4; ++device) built.add_device(0, {0, 1, device < 2 ? 2 : 3});
  std::swap(built.program.communicators[1].ranks[0], built.program.communicators[1].ranks[3]);
  cost::Profile profile = small_gpu();
  profile.memory.communicator = cost::CommunicatorConstants{};
  profile.memory.communicator->fixed.value = 1000_B;
  profile.memory.communicator->peer.value = 10_B;
  const DeviceMemory device = memory_of(built, profile, stack_with(Allocator::none));
  CHECK(device.communicator_count == 2);
  CHECK(device.communicators == 2030_B);  // two neighbours of four, and the other of two
  std::get<program::Collective>(built.program.blocks[0].tasks[0].work).kind =
      CollectiveKind::all_to_all;
  const Folding folding =
      on_one_link(built.program, {CollectiveKind::all_reduce, CollectiveKind::all_to_all});
  const Timeline timeline = run(built.program, folding, built.prices, 2);
  const std::vector<DeviceMemory> all =
      device_memory(built.program, timeline, profile, stack_with(Allocator::none));
  CHECK(all[0].communicators == 2040_B);  // all three others
}

TEST_CASE(
    "in the programs of all strategies every buffer is allocated before it is freed, once each") {
  const cost::Profile profile = cost::read_profile("scenarios/profiles/v100-sxm3.json");
  for (const lowering::Variant& variant : lowering::variants()) {
    INFO(variant.strategy);
    const program::Program program =
        lowering::lowered(model::gpt(lowering::small_gpt), variant.strategy, variant.micro_batches);
    const auto servers = static_cast<int>(program.devices.size() + 15) / 16;
    const auto& presets = topology::presets();
    const topology::Cluster cluster =
        std::ranges::find(presets, "dgx-2", &topology::Preset::name)->build(servers);
    const cost::Stack stack = stack_with(Allocator::caching);
    const Folding folding = fold(program, cluster, profile.collective, true);
    const Timeline timeline = run(program, folding, price(program, profile, stack), 2);
    for (std::size_t a = 0; a < timeline.actors.size(); ++a) {
      std::map<int, MemoryChange> live;
      for (const MemoryChange& change : memory_changes(program, timeline, a)) {
        REQUIRE(change.buffer >= 0);
        if (change.bytes > 0_B) {
          CHECK(live.emplace(change.buffer, change).second);
        } else if (change.bytes < 0_B) {
          const auto allocated = live.find(change.buffer);
          REQUIRE(allocated != live.end());
          CHECK(allocated->second.bytes + change.bytes == 0_B);
          CHECK(allocated->second.category == change.category);
          live.erase(allocated);
        }
      }
      if (timeline.lag == 0) CHECK(live.empty());
    }
    const std::vector<DeviceMemory> devices = device_memory(program, timeline, profile, stack);
    for (const DeviceMemory& device : devices) {
      CHECK(device.reserved >= device.allocated);
      CHECK(device.releases == 0);
      CHECK(device.used() == device.reserved + device.context + device.communicators);
    }
    CHECK(highest(devices).used == fullest(devices).used());
  }
}

}  // namespace stratagem::sim
