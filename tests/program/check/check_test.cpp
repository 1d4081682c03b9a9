// Programs that cannot run are refused, with the devices, operators and cells to blame; all that
// lowering makes can.
#include "program/check/check.hpp"

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/lowering/variants.hpp"

namespace stratagem::program::check_test {

namespace {

using Kind = cost::CollectiveKind;

Task kernel(const std::string& name, std::vector<int> waits = {}) {
  Task task;
  task.name = name;
  task.work = cost::Kernel{};
  task.waits = std::move(waits);
  return task;
}

Task collective(const std::string& name, Kind kind = Kind::all_reduce,
                Stream stream = Stream::communication, int group = 0, Bytes payload = 8_B) {
  Task task;
  task.name = name;
  task.work = Collective{.kind = kind, .group = group, .payload = payload};
  task.stream = stream;
  return task;
}

/// One device for each list of tasks, which is one block of one call, in F(stage d, micro-batch 0).
/// Communicators have the given ranks; each is the group of its number.
Program program_of(const std::vector<std::vector<Task>>& devices,
                   const std::vector<std::vector<int>>& communicators) {
  Program program;
  for (const std::vector<int>& ranks : communicators) program.communicators.push_back({ranks});
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const auto id = static_cast<int>(d);
    program.blocks.push_back({.name = "work", .slots = {}, .tasks = devices[d]});
    program.sequences.push_back(
        {.calls = {{.block = id, .segment = -1, .cell = {.stage = id}, .waits = {}}},
         .residents = {}});
    program.devices.push_back({.sequence = id, .groups = {}});
    for (std::size_t c = 0; c < communicators.size(); ++c) {
      const bool member = std::ranges::count(communicators[c], id) > 0;
      program.devices.back().groups.push_back(member ? static_cast<int>(c) : -1);
    }
  }
  return program;
}

std::string refused(const Program& program) {
  return lowering::refusal([&] { check(program); });
}

}  // namespace

TEST_CASE("collectives in different orders on two ranks are refused") {
  const Task sum = collective("sum");
  const Task gather = collective("gather", Kind::all_gather);
  CHECK(refused(program_of({{sum, gather}, {sum, gather}}, {{0, 1}})).empty());
  CHECK(
      refused(program_of({{sum, gather}, {gather, sum}}, {{0, 1}})) ==
      "expected the devices of a communicator to post equal collectives in equal order, found "
      "all_reduce of 8 B on device 0 (sum of work in F(stage 0, micro-batch 0)) as number 0 of an "
      "iteration, and all_gather of 8 B on device 1 (gather of work in F(stage 1, micro-batch 0))");
  // Payloads and operations count too.
  const Task larger = collective("sum", Kind::all_reduce, Stream::communication, 0, 9_B);
  CHECK_THAT(refused(program_of({{sum}, {larger}}, {{0, 1}})),
             ContainsSubstring("of 9 B on device 1"));
  Task maximum = sum;
  std::get<Collective>(maximum.work).combine = model::Combine::maximum;
  CHECK_THAT(refused(program_of({{sum}, {maximum}}, {{0, 1}})),
             ContainsSubstring("all_reduce (maximum) of 8 B on device 1"));
}

/// Two devices that compute and communicate, and then do it again in another call.
Program called_twice(const Task& first, const Task& second) {
  Program program = program_of({{kernel("k"), first}, {kernel("k"), first}}, {{0, 1}, {0, 1}});
  for (Sequence& sequence : program.sequences) {
    sequence.calls.stored().push_back(sequence.calls.stored().front());
    sequence.calls.stored().back().block = static_cast<int>(program.blocks.size());
    program.blocks.push_back({.name = "more", .slots = {}, .tasks = {kernel("k"), second}});
  }
  return program;
}

TEST_CASE("calls that take turns are checked in the order of their launches") {
  const std::vector<Launch> turns = {{0, 0, 1}, {1, 0, 1}, {0, 1, 2}, {1, 1, 2}};
  const std::vector<Launch> crossed = {{0, 0, 1}, {1, 0, 2}, {0, 1, 2}};
  const Task sum = collective("sum");
  // Of one communicator, as which number each comes.
  Program one = called_twice(sum, collective("gather", Kind::all_gather));
  for (Sequence& sequence : one.sequences) sequence.launches = turns;
  CHECK(refused(one).empty());
  one.sequences[1].launches = crossed;
  CHECK_THAT(refused(one), ContainsSubstring("all_gather of 8 B on device 1 (gather of more"));
  // Of two communicators on one stream, which waits for which.
  Program two = called_twice(sum, collective("sum", Kind::all_reduce, Stream::communication, 1));
  for (Sequence& sequence : two.sequences) sequence.launches = crossed;
  CHECK(refused(two).empty());
  two.sequences[0].launches = turns;
  CHECK_THAT(refused(two), ContainsSubstring("expected devices that do not wait for each other"));
}

TEST_CASE("hosts that wait for each other's collectives are refused") {
  // Both devices launch both sums, on streams of their own, in different orders.
  const Task one = collective("one", Kind::all_reduce, Stream::communication, 0);
  const Task two = collective("two", Kind::all_reduce, Stream::gradient_communication, 1);
  Program program = program_of({{one, two}, {two, one}}, {{0, 1}, {0, 1}});
  CHECK(refused(program).empty());
  for (Sequence& sequence : program.sequences)
    sequence.calls.stored()[0].host_waits = {{1, -1, -1}};
  CHECK_THAT(
      refused(program),
      ContainsSubstring("expected devices that do not wait for each other for ever, found on "
                        "device 0 one of work in F(stage 0, micro-batch 0) before"));
  CHECK_THAT(refused(program),
             ContainsSubstring("on device 1 two of work in F(stage 1, micro-batch 0) before one"));
  // One host that waits, or both for another stream, hold nobody up.
  program.sequences[1].calls.stored()[0].host_waits = {};
  CHECK(refused(program).empty());
  for (Sequence& sequence : program.sequences)
    sequence.calls.stored()[0].host_waits = {{1, -1, static_cast<int>(Stream::compute)}};
  CHECK(refused(program).empty());
  // A task that synchronises is such a wait.
  program = program_of({{one, two}, {two, one}}, {{0, 1}, {0, 1}});
  for (Block& block : program.blocks) block.tasks[0].synchronizations = 1;
  CHECK_THAT(refused(program), ContainsSubstring("expected devices that do not wait"));
}

TEST_CASE("a host that waits for a message waits with all that it launches later") {
  // Device 0 waits for what device 1 sends after it has received what device 0 launches later.
  const Task receive = collective("receive", Kind::send, Stream::receive_backward, 1);
  const Task send = collective("send", Kind::send, Stream::send_forward, 0);
  Task take = send, give = receive;
  take.stream = Stream::receive_forward;
  give.stream = Stream::send_backward;
  give.waits = {0};
  Program program = program_of({{receive, send}, {take, give}}, {{0, 1}, {1, 0}});
  CHECK(refused(program).empty());
  std::vector<StoredCall>& calls = program.sequences[0].calls.stored();
  calls[0].host_waits = {{1, -1, -1}};  // transfers are not among all
  CHECK(refused(program).empty());
  calls[0].host_waits = {};
  calls.push_back(calls[0]);
  calls[1].block = 2;
  program.blocks.push_back({.name = "later", .slots = {}, .tasks = {send}});
  program.blocks[0].tasks = {receive};
  CHECK(refused(program).empty());
  calls[1].host_waits = {{0, 0, 0}};
  CHECK_THAT(
      refused(program),
      ContainsSubstring("receive of work in F(stage 0, micro-batch 0) before send of later"));
}

TEST_CASE("the host waits for what it has launched, before tasks that there are") {
  Program program = called_twice(collective("sum"), collective("sum"));
  std::vector<HostWait>& waits = program.sequences[0].calls.stored()[1].host_waits;
  for (const HostWait& right :
       {HostWait{-1, -1, -1}, HostWait{1, 0, 1}, HostWait{0, -1, 3}, HostWait{1, 1, 0}}) {
    waits = {right};
    CHECK(refused(program).empty());
  }
  for (const HostWait& wrong : {HostWait{2, -1, -1}, HostWait{0, 1, 0}, HostWait{1, 1, 1},
                                HostWait{0, 0, 2}, HostWait{0, -1, 14}}) {
    waits = {wrong};
    CHECK_FALSE(refused(program).empty());
  }
  waits = {{1, -1, -1}, {0, -1, -1}};
  CHECK_THAT(refused(program), ContainsSubstring("in order"));
}

TEST_CASE("launches have every task once, after what it waits for") {
  Program program = called_twice(collective("sum"), collective("sum"));
  std::vector<Launch>& launches = program.sequences[0].launches;
  for (const std::vector<Launch>& wrong :
       {std::vector<Launch>{{0, 0, 2}, {1, 0, 1}}, std::vector<Launch>{{0, 0, 2}, {1, 1, 2}},
        std::vector<Launch>{{0, 0, 2}, {0, 0, 2}, {1, 0, 2}},
        std::vector<Launch>{{0, 0, 2}, {1, 0, 3}}, std::vector<Launch>{{0, 0, 2}, {2, 0, 2}}}) {
    launches = wrong;
    CHECK_THAT(refused(program), ContainsSubstring("an order of launches"));
  }
  launches = {{1, 0, 1}, {0, 0, 2}, {1, 1, 2}};
  CHECK(refused(program).empty());
  program.sequences[0].calls.stored()[1].waits = {{.task = 0, .of_call = 0, .of_task = 1}};
  CHECK_THAT(refused(program), ContainsSubstring("otherwise call 1 at task 0"));
}

TEST_CASE("a participant that does not come is missed") {
  const Task sum = collective("sum");
  CHECK_THAT(refused(program_of({{sum, sum}, {sum}}, {{0, 1}})),
             ContainsSubstring("as number 1 of an iteration, and nothing on device 1"));
  CHECK_THAT(refused(program_of({{kernel("k")}, {sum}}, {{0, 1}})),
             ContainsSubstring("nothing on device 0 as number 0"));
  // A device that belongs to the communicator but does not know it; one that knows none.
  Program program = program_of({{sum}, {sum}}, {{0, 1}});
  program.devices[1].groups[0] = -1;
  CHECK_THAT(refused(program),
             ContainsSubstring("device 1 to be of a communicator for sum of work"));
  program.blocks[1].tasks.clear();
  CHECK_THAT(refused(program), ContainsSubstring("device 1, which does not know it"));
}

TEST_CASE("sends that cross are a cycle, since they are rendezvous") {
  const auto transfer = [](const std::string& name, Stream stream, int group) {
    return collective(name, Kind::send, stream, group);
  };
  // Each waits for its send to end before it receives.
  Task late_0 = transfer("receive y", Stream::receive_backward, 1);
  late_0.waits = {0};
  Task late_1 = transfer("receive x", Stream::receive_forward, 0);
  late_1.waits = {0};
  const Program crossed = program_of({{transfer("send x", Stream::send_forward, 0), late_0},
                                      {transfer("send y", Stream::send_backward, 1), late_1}},
                                     {{0, 1}, {1, 0}});
  CHECK(
      refused(crossed) ==
      "expected devices that do not wait for each other for ever, found on device 0 send x of work "
      "in F(stage 0, micro-batch 0) before receive y of work in F(stage 0, micro-batch 0); on "
      "device 1 send y of work in F(stage 1, micro-batch 0) before receive x of work in F(stage 1, "
      "micro-batch 0)");
  // Posted side by side they meet.
  Program posted = crossed;
  for (Block& block : posted.blocks) block.tasks[1].waits.clear();
  CHECK(refused(posted).empty());
  // On one stream that is no queue of transfers they do not.
  for (Block& block : posted.blocks) {
    for (Task& task : block.tasks) task.stream = Stream::communication;
  }
  CHECK_THAT(refused(posted), ContainsSubstring("before receive y"));
}

TEST_CASE("what is received is what was sent") {
  // Two micro-batches of equal size, received in the other order than they are sent.
  Program program = program_of({{collective("send", Kind::send, Stream::send_forward)},
                                {collective("receive", Kind::send, Stream::receive_forward)}},
                               {{0, 1}});
  for (Sequence& sequence : program.sequences) {
    sequence.calls.stored().push_back(sequence.calls.stored()[0]);
    sequence.calls.stored()[1].cell.micro_batch = 1;
  }
  CHECK(refused(program).empty());
  std::swap(program.sequences[1].calls.stored()[0], program.sequences[1].calls.stored()[1]);
  CHECK_THAT(refused(program),
             ContainsSubstring("device 1 (receive of work in F(stage 1, micro-batch 1))"));
}

TEST_CASE("collectives of one communicator run in order, on whatever streams") {
  // Device 0 sums x after it has received y; device 1 sends y after the second sum. On streams of
  // their own the sums could change places; NCCL runs those of a communicator one after another.
  const auto sum = [](Stream stream, int group) {
    return collective("sum", Kind::all_reduce, stream, group);
  };
  Task late = sum(Stream::communication, 0);
  late.waits = {0};
  Task y = collective("y", Kind::send, Stream::send_forward, 1);
  y.waits = {1};
  const auto program = [&](int group_of_second) {
    const Task second = sum(Stream::gradient_communication, group_of_second);
    return program_of({{collective("y", Kind::send, Stream::receive_forward, 1), late, second},
                       {sum(Stream::communication, 0), second, y}},
                      {{0, 1}, {1, 0}, {0, 1}});
  };
  CHECK(refused(program(2)).empty());
  CHECK_THAT(refused(program(0)),
             ContainsSubstring("on device 0 y of work in F(stage 0, micro-batch 0) before"));
}

TEST_CASE("cells begin in the order in which messages come for them") {
  // Device 0 sends micro-batches 0 and 1, and device 1, which receives them so, runs 1 first.
  const auto program = [](int first, int second) {
    Program p = program_of({{collective("send", Kind::send, Stream::send_forward)},
                            {collective("receive", Kind::send, Stream::receive_forward)},
                            {kernel("k")}},
                           {{0, 1}});
    p.devices.pop_back();
    p.sequences.pop_back();
    p.segment_tensors.resize(1);
    const auto call = [](int block, int segment, int stage, int micro_batch) {
      return StoredCall{
          .block = block, .segment = segment, .cell = {.stage = stage, .micro_batch = micro_batch}};
    };
    p.sequences[0].calls = {call(0, -1, 0, 0), call(0, -1, 0, 1)};
    p.sequences[1].calls = {call(1, -1, 1, 0), call(1, -1, 1, 1), call(2, 0, 1, first),
                            call(2, 0, 1, second)};
    return p;
  };
  CHECK(refused(program(0, 1)).empty());
  CHECK(refused(program(1, 0)) ==
        "expected a stage to take messages in the order in which they are sent, as NCCL matches "
        "them: an op-order with F(stage 1, micro-batch 0) before F(stage 1, micro-batch 1), or one "
        "that sends them the other way round, found device 0 at send of work in F(stage 0, "
        "micro-batch 0) before that for F(stage 1, micro-batch 1), and device 1 runs F(stage 1, "
        "micro-batch 1) before F(stage 1, micro-batch 0)");
}

TEST_CASE("devices of one sequence may send to each other what no order of calls allows") {
  // A ring of equal devices: each sends to the next by one group and receives by another, so that
  // calls with devices as one contradict each other, and devices do not.
  const std::vector<Task> tasks = {collective("send", Kind::send, Stream::send_forward, 0),
                                   collective("receive", Kind::send, Stream::receive_forward, 1)};
  Program program = program_of({tasks}, {});
  program.communicators = {{{0, 1}}, {{1, 2}}, {{2, 0}}};
  program.devices.assign(3, {.sequence = 0, .groups = {}});
  for (int d = 0; d < 3; ++d) program.devices[d].groups = {d, (d + 2) % 3};
  CHECK(refused(program).empty());
  // Who receives only after it has sent closes the ring.
  program.blocks[0].tasks[1].waits = {0};
  CHECK_THAT(refused(program), ContainsSubstring("on device 2 send of work"));
}

TEST_CASE("waits around a circle of devices and streams are refused") {
  // Device 0 sums gradients after its activations, device 1 the other way round.
  const auto device = [](bool activations_first) {
    std::vector<Task> tasks = {
        collective("activations"),
        collective("gradients", Kind::all_reduce, Stream::gradient_communication, 1)};
    if (!activations_first) std::swap(tasks[0], tasks[1]);
    tasks.insert(tasks.begin() + 1, kernel("between", {0}));
    tasks[2].waits = {1};
    return tasks;
  };
  CHECK(refused(program_of({device(true), device(true)}, {{0, 1}, {0, 1}})).empty());
  const std::string text = refused(program_of({device(true), device(false)}, {{0, 1}, {0, 1}}));
  CHECK_THAT(text, ContainsSubstring("on device 0 activations of work in F(stage 0, micro-batch 0) "
                                     "before gradients of work in F(stage 0, micro-batch 0)"));
  CHECK_THAT(text, ContainsSubstring("on device 1 gradients of work in F(stage 1, micro-batch 0) "
                                     "before activations of work in F(stage 1, micro-batch 0)"));
}

TEST_CASE("a circle through the rounds of overlapping iterations is refused") {
  // Device 0 sends x in the round of its iteration, and before it receives y of the same iteration.
  // Device 1 answers in the same round, or a round before the question.
  const auto program = [](int lag_of_question, int lag_of_answer) {
    Program p = program_of({{}, {}}, {{0, 1}, {1, 0}});
    const Task question = collective("question", Kind::send, Stream::communication, 0);
    const Task answer = collective("answer", Kind::send, Stream::communication, 1);
    p.blocks = {{"ask", {}, {question}}, {"reply", {}, {answer}}};
    p.sequences[0].calls = {{.block = 0, .segment = -1}, {.block = 1, .segment = -1}};
    p.sequences[1].calls = {{.block = 0, .segment = -1, .lag = lag_of_question},
                            {.block = 1, .segment = -1, .lag = lag_of_answer}};
    p.lag = std::max(lag_of_question, lag_of_answer);
    return p;
  };
  CHECK(refused(program(0, 0)).empty());
  CHECK(refused(program(1, 1)).empty());
  CHECK_THAT(refused(program(0, 1)), ContainsSubstring("question of ask"));
  CHECK_THAT(refused(program(1, 0)), ContainsSubstring("of iteration"));
}

TEST_CASE("waits are for earlier tasks that exist") {
  CHECK(refused(program_of({{kernel("a"), kernel("b", {0})}}, {})).empty());
  CHECK(refused(program_of({{kernel("a", {1}), kernel("b")}}, {})) ==
        "expected a of work to wait for earlier tasks of its block, found a wait for b of work");
  CHECK_THAT(refused(program_of({{kernel("a", {2})}}, {})), ContainsSubstring("which is missing"));
  Program program = program_of({{kernel("a")}}, {});
  program.sequences[0].calls.stored().push_back(program.sequences[0].calls.stored()[0]);
  program.sequences[0].calls.stored()[0].waits = {{.task = 0, .of_call = 1, .of_task = 0}};
  CHECK_THAT(refused(program), ContainsSubstring("task 0 of call 1, which comes later"));
  program.sequences[0].calls.stored()[0].waits.clear();
  program.sequences[0].calls.stored()[1].waits = {{.task = 0, .of_call = 0, .of_task = 3}};
  CHECK_THAT(refused(program), ContainsSubstring("task 3 of call 0, which is missing"));
}

TEST_CASE("residents live from a task to a later one of the same iteration") {
  const auto with_span = [](TaskOfCall first, TaskOfCall last, int lag = 0) {
    Program program = program_of({{kernel("a"), kernel("b")}}, {});
    program.sequences[0].residents = {{Category::gradients, 4_B, Resident::Span{first, last}}};
    program.lag = lag;
    return refused(program);
  };
  CHECK(with_span({0, 0}, {0, 1}).empty());
  CHECK(with_span({0, 1}, {0, 1}).empty());
  CHECK_THAT(with_span({0, 1}, {0, 0}), ContainsSubstring("call 0 task 1 to call 0 task 0"));
  CHECK_THAT(with_span({0, 0}, {0, 2}), ContainsSubstring("residents that live from one task"));
  CHECK_THAT(with_span({0, 0}, {1, 0}), ContainsSubstring("residents that live from one task"));
  CHECK_THAT(with_span({0, 0}, {0, 1}, 1), ContainsSubstring("residents that live from one task"));
}

TEST_CASE("residents that live on until the next iteration begin with a task") {
  Program program = program_of({{kernel("a")}}, {});
  program.sequences[0].residents = {{.category = Category::temporaries, .bytes = 4_B}};
  Resident& resident = program.sequences[0].residents.front();
  resident.until_next = true;
  CHECK_THAT(refused(program), ContainsSubstring("begins with no task"));
  resident.span = Resident::Span{{0, 0}, {0, 0}};
  CHECK(refused(program).empty());
}

TEST_CASE("buffers are written before they are read, and freed once") {
  const auto with_buffer = [](const std::vector<int>& allocated, const std::vector<int>& writes,
                              const std::vector<int>& reads, const std::vector<int>& freed) {
    Task first = kernel("first");
    first.allocates = allocated;
    first.writes = writes;
    Task second = kernel("second");
    second.reads = reads;
    second.frees = freed;
    Program program = program_of({{first, second}}, {});
    program.blocks[0].slots = {{.name = "x", .tensor = 0, .bytes = 1_B}};
    return program;
  };
  CHECK(refused(with_buffer({0}, {0}, {0}, {0})).empty());
  CHECK(refused(with_buffer({}, {}, {0}, {})) ==
        "expected buffer x to be alive when it is read, found otherwise at second of work in "
        "F(stage 0, micro-batch 0)");
  CHECK_THAT(refused(with_buffer({0}, {}, {0}, {0})),
             ContainsSubstring("x to be written before it is read"));
  CHECK_THAT(refused(with_buffer({0, 0}, {0}, {0}, {0})),
             ContainsSubstring("x to be allocated once"));
  CHECK_THAT(refused(with_buffer({0}, {0}, {0}, {0, 0})),
             ContainsSubstring("x to be alive when it is freed"));
  CHECK_THAT(refused(with_buffer({0}, {0}, {0}, {})), ContainsSubstring("to be freed"));
}

TEST_CASE("what a call has freed is not there for the calls after it") {
  // One call makes a buffer, the next frees it, and a third one reads or frees it again.
  const auto then = [](const Task& last) {
    Task makes = kernel("makes");
    makes.allocates = makes.writes = {0};
    Task frees = kernel("frees");
    frees.frees = {0};
    Program program = program_of({{makes}}, {});
    program.blocks.push_back({.name = "more", .tasks = {frees}});
    program.blocks.push_back({.name = "last", .tasks = {last}});
    for (Block& block : program.blocks) block.slots = {{.name = "x", .tensor = 0, .bytes = 1_B}};
    for (const int block : {1, 2}) program.sequences[0].calls.stored().push_back({.block = block});
    return refused(program);
  };
  Task last = kernel("last");
  CHECK(then(last).empty());
  last.reads = {0};
  CHECK_THAT(then(last), ContainsSubstring("x to be alive when it is read"));
  last.reads = {};
  last.frees = {0};
  CHECK_THAT(then(last), ContainsSubstring("x to be alive when it is freed"));
  last.frees = {};
  last.allocates = last.writes = {0};
  CHECK_THAT(then(last), ContainsSubstring("to be freed when nothing needs them any more, found x "
                                           "alive at the end, from last in F(stage 0"));
}

TEST_CASE("whatever lowering makes of a strategy can run") {
  const model::Graph graph = model::gpt(lowering::small_gpt);
  for (const lowering::Variant& variant : lowering::variants()) {
    INFO(variant.strategy << ", " << variant.micro_batches << " micro-batches");
    CHECK(refused(lowering::lowered(graph, variant.strategy, variant.micro_batches)) == "");
  }
}

TEST_CASE("whatever lowering makes of a schedule can run") {
  for (const strategies::Schedule& schedule : strategies::schedules()) {
    model::GptConfig config = lowering::small_gpt;
    config.layers = 8;
    model::Graph graph = model::gpt(config);
    if (schedule.name == "3f1b") graph.forward_repeats = 3;
    const std::string chunks = schedule.chunks == 0 ? ", \"chunks\": 2" : "";
    for (const std::string& more : {std::string(), std::string(", \"data\": 2"),
                                    std::string(", \"tensor\": 2, \"recompute\": \"full\"")}) {
      const std::string strategy =
          "{\"pipeline\": 4, \"schedule\": \"" + schedule.name + "\"" + chunks + more + "}";
      INFO(strategy);
      CHECK(refused(lowering::lowered(graph, strategy, 8)) == "");
    }
  }
}

}  // namespace stratagem::program::check_test
