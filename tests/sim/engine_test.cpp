// The event engine on programs of a few tasks; every instant is derived by hand, in picoseconds.
#include "sim/engine.hpp"

#include "sim/steady.hpp"
#include "tests/catch.hpp"
#include "tests/cost/collective_time.hpp"
#include "tests/sim/hand_built.hpp"
#include "tests/sim/lowered.hpp"

namespace stratagem::sim {

namespace {

using Times = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("small kernels wait for their launch") {
  // A kernel begins when it is launched, 10 ps after the one before; it runs for 1.
  HandBuilt built;
  built.add_sequence({kernel(1, 10), kernel(1, 10), kernel(1, 10)});
  built.add_device(0);
  const Timeline timeline = run(built.program, on_one_link(built.program), built.prices, 2);
  CHECK(begins(timeline, 0, 0) == Times{10, 20, 30});
  CHECK(ends(timeline, 0, 0) == Times{11, 21, 31});
  CHECK(begins(timeline, 0, 1) == Times{40, 50, 60});  // the host goes on without waiting
  CHECK(timeline.iteration_ends == std::vector<Instant>{{31}, {61}});
}

TEST_CASE("large kernels wait for each other") {
  HandBuilt built;
  built.add_sequence({kernel(10, 1), kernel(10, 1), kernel(10, 1)});
  built.add_device(0);
  const Timeline timeline = run(built.program, on_one_link(built.program), built.prices, 2);
  CHECK(begins(timeline, 0, 0) == Times{1, 11, 21});
  CHECK(begins(timeline, 0, 1) == Times{31, 41, 51});  // the host is far ahead
}

TEST_CASE("a task of several launches begins after the first of them") {
  HandBuilt built;
  built.add_sequence({kernel(30, 0), kernel(5, 0)});
  built.prices[0][0] = {.device = {30}, .host = {30}, .first_launch = {10}};
  built.prices[0][1] = {.device = {5}, .host = {10}, .first_launch = {10}};
  built.add_device(0);
  const Timeline timeline = run(built.program, on_one_link(built.program), built.prices, 1);
  CHECK(begins(timeline, 0, 0) == Times{10, 40});
}

TEST_CASE("launches made in time cost the device nothing, and late ones hold it up") {
  // Ten kernels of 3, launched every 10: alone the last is launched at 100 and ends at 103; behind
  // a kernel of 1000 all are launched before it ends, and take 30.
  const Price ten{.device = {30}, .host = {100}, .first_launch = {10}, .last_kernel = {3}};
  HandBuilt alone;
  alone.add_sequence({kernel(30, 0)});
  alone.prices[0][0] = ten;
  alone.add_device(0);
  CHECK(ends(run(alone.program, on_one_link(alone.program), alone.prices, 1), 0, 0) == Times{103});
  HandBuilt behind;
  behind.add_sequence({kernel(1000, 1), kernel(30, 0)});
  behind.prices[0][1] = ten;
  behind.add_device(0);
  CHECK(ends(run(behind.program, on_one_link(behind.program), behind.prices, 1), 0, 0) ==
        Times{1001, 1031});
}

TEST_CASE("streams run beside each other and meet where a task waits") {
  HandBuilt built;
  built.add_sequence({
      kernel(10),                                // 0..10
      kernel(5, 0, {0}, Stream::communication),  // 10..15
      kernel(1),                                 // 10..11, waits for nobody
      kernel(2, 0, {1}),                         // 15..17
      kernel(1, 0, {}, Stream::communication),   // 15..16
  });
  built.add_device(0);
  const Timeline timeline = run(built.program, on_one_link(built.program), built.prices, 1);
  CHECK(begins(timeline, 0, 0) == Times{0, 10, 10, 15, 15});
  CHECK(ends(timeline, 0, 0) == Times{10, 15, 11, 17, 16});
}

TEST_CASE("a serial rank does one thing at a time, but for what it sends and receives") {
  HandBuilt built;
  built.add_sequence({
      kernel(10),                                                            // 0..10
      collective(5_B, {0}, Stream::gradient_communication),                  // 10..15
      kernel(1),                                                             // 15..16
      collective(20_B, {2}, Stream::send_forward, 1, CollectiveKind::send),  // 16..36
      kernel(2),                                                             // 16..18
  });
  built.add_device(0, {0, 1});
  Folding folding = on_one_link(built.program, {CollectiveKind::all_reduce, CollectiveKind::send});
  folding.serial = true;
  const Timeline timeline = run(built.program, folding, built.prices, 1);
  CHECK(begins(timeline, 0, 0) == Times{0, 10, 15, 16, 16});
  CHECK(ends(timeline, 0, 0) == Times{10, 15, 16, 36, 18});
}

TEST_CASE("a call waits for a task of an earlier call") {
  HandBuilt built;
  built.add_sequence({kernel(7, 0, {}, Stream::communication)});
  built.add_sequence({kernel(1), kernel(1)});
  built.program.sequences.resize(1);
  built.program.sequences[0].calls.stored().push_back(
      {.block = 1, .segment = -1, .cell = {}, .waits = {{.task = 1, .of_call = 0, .of_task = 0}}});
  built.add_device(0);
  const Timeline timeline = run(built.program, on_one_link(built.program), built.prices, 1);
  CHECK(begins(timeline, 0, 0) == Times{0, 0, 7});
}

TEST_CASE(
    "a collective begins when its last rank arrives, then takes latency and volume over rate") {
  // Ranks arrive at 10 and 30; 7 ps latency, 100 bytes at 1 byte per ps: 30..137 on both.
  HandBuilt built;
  for (const int work : {10, 30}) {
    built.add_sequence({kernel(work), collective(100_B, {0}), kernel(1), kernel(1, 0, {1})});
  }
  built.add_device(0, {0});
  built.add_device(1, {0});
  const Folding folding = on_one_link(built.program, {CollectiveKind::all_reduce}, {7});
  const Timeline timeline = run(built.program, folding, built.prices, 1);
  CHECK(begins(timeline, 0, 0) == Times{0, 30, 10, 137});
  CHECK(ends(timeline, 0, 0) == Times{10, 137, 11, 138});
  CHECK(begins(timeline, 1, 0) == Times{0, 30, 30, 137});
  CHECK(ends(timeline, 1, 0) == Times{30, 137, 31, 138});
}

TEST_CASE("a rank that waits in a collective occupies its stream") {
  HandBuilt built;
  built.add_sequence({collective(100_B), kernel(1, 0, {}, Stream::communication)});
  built.add_sequence({kernel(50), collective(100_B, {0})});
  built.add_device(0, {0});
  built.add_device(1, {0});
  const Timeline timeline = run(built.program, on_one_link(built.program), built.prices, 1);
  CHECK(begins(timeline, 0, 0) == Times{50, 150});
}

TEST_CASE("collectives of two communicators share the link") {
  // 100 bytes from 0 and 100 bytes from 40. Until 40 the first carries 40; then half rate: it ends
  // at 160, and the second, with 60 of 100 carried, has 40 left at full rate: 200.
  HandBuilt built;
  built.add_sequence({collective(100_B)});
  built.add_sequence({kernel(40), collective(100_B, {0})});
  for (int device = 0; device < 4; ++device) built.add_device(device / 2, {device / 2});
  const Timeline timeline = run(built.program, on_one_link(built.program), built.prices, 1);
  CHECK(ends(timeline, 0, 0) == Times{160});
  CHECK(ends(timeline, 2, 0) == Times{40, 200});
  CHECK(timeline.times[2].ends == timeline.times[3].ends);
}

TEST_CASE("the k-th collective of a rank meets the k-th of the others in program order") {
  // Rank 0 computes (10 ps) and sends 4 bytes; rank 1 receives and computes (10 ps); then both sum
  // 3 bytes in one communicator and 6 bytes in that of the sends. Rank 1 is ready for the receive
  // of the second iteration (at 14) before it is for the 6 bytes of the first, which come earlier
  // in the program.
  //   rank 0: compute 0-10, 10-20; sends 10-14, 20-24
  //   rank 1: compute 14-24, 24-34; sums 24-27 and 27-33, then 34-37 and 37-43
  HandBuilt built;
  built.add_sequence({kernel(10),
                      collective(4_B, {0}, Stream::send_forward, 0, CollectiveKind::send),
                      collective(3_B, {0}, Stream::communication, 1),
                      collective(6_B, {2}, Stream::gradient_communication)});
  built.add_sequence({collective(4_B, {}, Stream::receive_forward, 0, CollectiveKind::send),
                      kernel(10, 0, {0}), collective(3_B, {1}, Stream::communication, 1),
                      collective(6_B, {2}, Stream::gradient_communication)});
  built.add_device(0, {0, 1});
  built.add_device(1, {0, 1});
  const Folding folding =
      on_one_link(built.program, {CollectiveKind::send, CollectiveKind::all_reduce});
  const Timeline timeline = run(built.program, folding, built.prices, 2);
  CHECK(begins(timeline, 0, 0) == Times{0, 10, 24, 27});
  CHECK(ends(timeline, 0, 0) == Times{10, 14, 27, 33});
  CHECK(begins(timeline, 1, 1) == Times{20, 24, 34, 37});
  CHECK(ends(timeline, 1, 1) == Times{24, 34, 37, 43});
}

TEST_CASE("a promise is broken where ranks of a communicator post different collectives") {
  HandBuilt built;
  built.add_sequence({collective(4_B)});
  built.add_sequence({collective(5_B)});
  built.add_device(0, {0});
  built.add_device(1, {0});
  CHECK_THROWS_WITH(run(built.program, on_one_link(built.program), built.prices, 1),
                    ContainsSubstring("are the same"));
}

TEST_CASE("a promise is broken where a rank waits for ever") {
  HandBuilt built;
  built.add_sequence({collective(4_B)});
  built.add_sequence({kernel(1)});
  built.add_device(0, {0});
  built.add_device(1, {0});
  CHECK_THROWS_WITH(run(built.program, on_one_link(built.program), built.prices, 1),
                    ContainsSubstring("waits for ever"));
}

TEST_CASE("a synchronisation drains the queue before the host goes on") {
  // Launches cost 2. First task: launched at 2, runs 2..12, the host waits. Second: launched at 14,
  // runs 14..15. Next iteration: launched at 16, runs 16..26; 28..29. Without the wait the second
  // would run at 12.
  HandBuilt built;
  built.add_sequence({kernel(10, 2), kernel(1, 2)});
  built.add_device(0);
  const Folding folding = on_one_link(built.program);
  CHECK(begins(run(built.program, folding, built.prices, 2), 0, 0) == Times{2, 12});
  built.program.blocks[0].tasks[0].synchronizations = 1;
  const Timeline timeline = run(built.program, folding, built.prices, 2);
  CHECK(begins(timeline, 0, 0) == Times{2, 14});
  CHECK(begins(timeline, 0, 1) == Times{16, 28});
  CHECK(timeline.iteration_ends == std::vector<Instant>{{15}, {29}});
}

TEST_CASE("a synchronisation on a collective waits for the other ranks too") {
  // The sum begins at 30 and ends at 40; the host then launches (2 ps) the last kernel.
  HandBuilt built;
  for (const int work : {10, 30}) {
    built.add_sequence({kernel(work), collective(10_B, {0}), kernel(1, 2)});
    built.program.blocks.back().tasks[1].synchronizations = 1;
  }
  built.add_device(0, {0});
  built.add_device(1, {0});
  const Timeline timeline = run(built.program, on_one_link(built.program), built.prices, 2);
  CHECK(begins(timeline, 0, 0) == Times{0, 30, 42});
  CHECK(begins(timeline, 1, 0) == Times{0, 30, 42});
  CHECK(begins(timeline, 0, 1) == Times{43, 73, 85});
}

TEST_CASE("a host that waits before each of n launches takes n times launch and kernel") {
  HandBuilt built;
  built.add_sequence({kernel(10, 3), kernel(10, 3), kernel(10, 3), kernel(10, 3)});
  built.add_device(0);
  const Folding folding = on_one_link(built.program);
  CHECK(ends(run(built.program, folding, built.prices, 1), 0, 0) == Times{13, 23, 33, 43});
  built.program.sequences[0].calls.stored()[0].host_waits = {{}};
  const Timeline timeline = run(built.program, folding, built.prices, 2);
  CHECK(ends(timeline, 0, 0) == Times{13, 26, 39, 52});
  CHECK(ends(timeline, 0, 1) == Times{65, 78, 91, 104});  // the first waits for the last before it
  CHECK(timeline.times[0].launches[0] == std::vector<Instant>{{0}, {13}, {26}, {39}});
}

TEST_CASE("a launch waits until the queue of its stream has room") {
  // Kernels of 10, launches of 1. With q places the k-th launch begins when the one q before ends.
  HandBuilt built;
  built.add_sequence({kernel(10, 1), kernel(10, 1), kernel(10, 1), kernel(10, 1),
                      kernel(1, 1, {}, Stream::communication)});
  built.add_device(0);
  Folding folding = on_one_link(built.program);
  const auto launches = [&](int queue) {
    folding.launch_queue = queue;
    return run(built.program, folding, built.prices, 1).times[0].launches[0];
  };
  CHECK(launches(4) == std::vector<Instant>{{0}, {1}, {2}, {3}, {4}});
  CHECK(launches(3) == std::vector<Instant>{{0}, {1}, {2}, {11}, {12}});
  CHECK(launches(2) == std::vector<Instant>{{0}, {1}, {11}, {21}, {22}});
  CHECK(launches(1) == std::vector<Instant>{{0}, {11}, {22}, {33}, {34}});
  // What is launched in time begins as before; one place is a wait for each kernel.
  CHECK(ends(run(built.program, folding, built.prices, 1), 0, 0) == Times{11, 22, 33, 44, 36});
  folding.launch_queue = 2;
  CHECK(ends(run(built.program, folding, built.prices, 1), 0, 0) == Times{11, 21, 31, 41, 24});
}

TEST_CASE("a queue that devices fill before they meet is refused") {
  // Each device has its next collective behind two kernels that wait for the other's.
  HandBuilt built;
  for (const int group : {0, 1}) {
    const Stream one = Stream::communication, two = Stream::gradient_communication;
    built.add_sequence({collective(1_B, {}, one, group), kernel(1, 0, {0}), kernel(1),
                        collective(1_B, {}, two, 1 - group)});
    built.add_device(group, {0, 1});
  }
  Folding folding = on_one_link(built.program);
  CHECK_NOTHROW(run(built.program, folding, built.prices, 1));
  folding.launch_queue = 1;
  CHECK_THROWS_WITH(run(built.program, folding, built.prices, 1),
                    ContainsSubstring("/profile/launch_queue"));
}

TEST_CASE("a host waits for a stream, for a task, or for all but transfers") {
  // Computes 0..10, sums 10..208 (100 bytes, from 12 on at half the rate beside a send), computes
  // 10..12, sends. The last kernel's launch takes 3.
  HandBuilt built;
  built.add_sequence({kernel(10), collective(100_B, {0}), kernel(2),
                      collective(1000_B, {2}, Stream::send_forward, 0, CollectiveKind::send)});
  built.add_sequence({kernel(1, 3)});
  built.program.sequences.resize(1);
  built.program.sequences[0].calls.stored().push_back({.block = 1, .segment = -1, .cell = {}});
  built.add_device(0, {0});
  const Folding folding =
      on_one_link(built.program, {CollectiveKind::all_reduce, CollectiveKind::send});
  const auto last_begins = [&](std::vector<program::HostWait> waits) {
    built.program.sequences[0].calls.stored()[1].host_waits = std::move(waits);
    return begins(run(built.program, folding, built.prices, 1), 0, 0).back();
  };
  constexpr int compute = static_cast<int>(Stream::compute);
  CHECK(last_begins({}) == 12);
  CHECK(last_begins({{0, -1, compute}}) == 15);
  CHECK(last_begins({{0, 0, 1}}) == 211);
  CHECK(last_begins({{0, -1, -1}}) == 211);
  CHECK(last_begins({{0, 0, 0}}) == 13);  // over at 10, before the device is free
}

TEST_CASE("a wait that is over when the host comes changes nothing") {
  // The host takes longer than the device.
  HandBuilt built;
  built.add_sequence({kernel(2, 10), kernel(2, 10), kernel(2, 10)});
  built.add_device(0);
  const Folding folding = on_one_link(built.program);
  const Timeline before = run(built.program, folding, built.prices, 2);
  built.program.sequences[0].calls.stored()[0].host_waits = {{2, -1, -1}};
  built.program.blocks[0].tasks[0].waits = {};
  const Timeline timeline = run(built.program, folding, built.prices, 2);
  // But for the last, which ends 2 after its launch, and is waited for.
  CHECK(begins(timeline, 0, 0) == Times{10, 20, 32});
  CHECK(begins(before, 0, 0) == Times{10, 20, 30});
  std::vector<program::StoredCall>& calls = built.program.sequences[0].calls.stored();
  calls.push_back(calls[0]);
  built.program.sequences[0].calls.stored()[0].host_waits = {};
  built.program.sequences[0].calls.stored()[1].host_waits = {{0, 0, 0}, {1, 0, 1}, {2, 0, 2}};
  CHECK(begins(run(built.program, folding, built.prices, 1), 0, 0) ==
        Times{10, 20, 30, 40, 50, 60});
}

TEST_CASE("periods are equal once the program is steady") {
  // The first iteration is longer by the first launch; every later one takes 3 * 10.
  HandBuilt built;
  built.add_sequence({kernel(10, 3), kernel(10, 3), kernel(10, 3)});
  built.add_device(0);
  const Timeline timeline =
      run_until_steady(built.program, on_one_link(built.program), built.prices);
  CHECK(timeline.steady);
  CHECK(timeline.iteration_ends == std::vector<Instant>{{33}, {63}, {93}, {123}});
}

TEST_CASE("a collective with the network to itself takes what its cost formula says") {
  // To the picosecond, but for the one that rounding latency and transfer apart can make.
  const cost::Profile profile = cost::read_profile("scenarios/profiles/v100-sxm3-450w.json");
  const std::vector<std::vector<int>> groups = {
      {0, 1}, {0, 1, 2, 3}, {0, 8}, {0, 16}, {0, 1, 2, 3, 16, 17, 18, 19}};
  for (const char* preset : {"dgx-2h", "dgx-1v", "dgx-a100"}) {
    const topology::Cluster machine = cluster(preset, 4);
    for (const std::vector<int>& ranks : groups) {
      for (const CollectiveKind kind :
           {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
            CollectiveKind::all_to_all, CollectiveKind::broadcast, CollectiveKind::send}) {
        if (kind == CollectiveKind::send && ranks.size() > 2) continue;
        const Bytes payload = 123'456'789_B;
        HandBuilt built;
        built.add_sequence({collective(payload, {}, Stream::communication, 0, kind)});
        built.add_sequence({});
        for (int device = 0; device < machine.gpus(); ++device) {
          const bool member = std::ranges::count(ranks, device) > 0;
          built.add_device(member ? 0 : 1, {member ? 0 : -1});
        }
        const cost::Route route = cost::ring_route(kind, machine, ranks, profile.collective);
        const Ticks formula =
            to_ticks(cost::collective_time(route, payload, machine, profile.collective));
        for (const bool folded : {true, false}) {
          const Folding folding = fold(built.program, machine, profile.collective, folded);
          const Timeline timeline = run(built.program, folding, built.prices, 1);
          INFO(preset << " " << cost::to_text(kind) << " of " << ranks.size());
          CHECK(std::abs(ends(timeline, 0, 0)[0] - formula.count) <= 1);
        }
      }
    }
  }
}

TEST_CASE("two runs are equal to the picosecond") {
  const cost::Profile profile = cost::read_profile("scenarios/profiles/v100-sxm3-450w.json");
  const strategies::Options options{
      .tensor = 2, .pipeline = 2, .data = 4, .gradients = {.overlap = true, .bucket = 20_KB}};
  const program::Program program = lowered_gpt(2, 4, options);
  const Folding folding = fold(program, cluster("dgx-2h", 1), profile.collective, false);
  const Prices prices = price(program, profile, {.slowdown = {1}, .host_factor = {1}});
  const Timeline first = run(program, folding, prices, 3);
  const Timeline second = run(program, folding, prices, 3);
  CHECK(first.iteration_ends == second.iteration_ends);
  for (std::size_t a = 0; a < folding.actors.size(); ++a) {
    CHECK(first.times[a].begins == second.times[a].begins);
    CHECK(first.times[a].ends == second.times[a].ends);
  }
}

}  // namespace stratagem::sim
