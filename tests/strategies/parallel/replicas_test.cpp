// Stages in several copies that take turns (PipeDream's 1F1B-RR), and copies with shares of their
// own.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "strategies/language/plan_file.hpp"
#include "strategies/language/plan_text.hpp"
#include "strategies/parallel/rank_order.hpp"
#include "strategies/parallel/read_options.hpp"
#include "strategies/schedules/one_f_one_b.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/copy_numbers.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/lowering/replay.hpp"

namespace stratagem::strategies::replicas_test {

using lowering::cells_of;
using lowering::collectives;
using lowering::lower;
using lowering::lowered;
using lowering::plain_stack;
using lowering::refusal;
using program::Collective;
using program::Device;
using program::Program;
using program::Stream;

namespace {

std::string strategy(const Numbers& copies, const std::string& schedule,
                     const std::string& more = "") {
  return "{\"pipeline\": " + std::to_string(copies.size()) + ", \"schedule\": \"" + schedule +
         "\", \"replicas_per_stage\": " + list(copies) + more + "}";
}

/// As many layers as stages, so that every number of stages divides them.
model::Graph gpt_of(std::size_t layers, bool tied = false) {
  model::GptConfig config = lowering::small_gpt;
  config.layers = static_cast<std::int64_t>(layers);
  config.tied = tied;
  return model::gpt(config);
}

/// The device of a copy of a stage, where each has one: side by side, stage after stage.
int device_of(const Numbers& copies, int stage, int copy) {
  return std::accumulate(copies.begin(), copies.begin() + stage, copy);
}

Numbers warm_ups(const Numbers& copies) {
  Numbers result;
  for (std::size_t stage = 0; stage < copies.size(); ++stage)
    result.push_back(warm_up(copies, static_cast<int>(stage)));
  return result;
}

/// Numbers of copies with one, some and many of a stage, rising and falling.
const std::vector<Numbers>& shapes() {
  static const std::vector<Numbers> all = {{2, 1},    {1, 2},    {2, 1, 1},    {1, 2, 1}, {1, 1, 2},
                                           {3, 2},    {2, 3},    {4, 2, 1},    {1, 2, 4}, {3},
                                           {2, 2, 2}, {3, 1, 2}, {1, 3, 2, 1}, {5, 1}};
  return all;
}

std::string chained(const std::string& cells, int stage) {
  std::string text;
  for (const char c : cells) {
    if (c == ' ') continue;
    const bool pass = c == 'F' || c == 'B';
    if (pass) text += text.empty() ? "" : ") ";
    text += c;
    if (pass) text += "(" + std::to_string(stage) + ",";
  }
  return "{\"op-order\": \"" + text + ")\"}";
}

/// Two stages, the first in two copies; cells in the given orders: of copy 0, copy 1 and stage 1.
std::string two_one(const std::string& deal, const std::vector<std::string>& orders) {
  return R"~({"stages": ["embedding, layers.0", "layers.1, head"], "copies": [2, 1], "deal": ")~" +
         deal + R"~(", "primitives": [
    {"op-assign": "stage(i)", "device": "2*i"},
    {"op-assign": "stage(0)", "device": 1, "copy": 1}, )~" +
         chained(orders[0], 0) + ", " + chained(orders[1], 0) + ", " + chained(orders[2], 1) + "]}";
}

Plan plan_from(const model::Graph& graph, const std::string& text, int micro_batches) {
  return read_plan(JsonReader::from_text(text, "plan.json"), graph, micro_batches);
}

}  // namespace

TEST_CASE("copies warm up with floor((n - 1 - copies before) / copies) micro-batches") {
  // Of PipeDream's configurations (Narayanan et al., SOSP 2019; recalled): 15-1 for VGG-16, and
  // 2-1, with which the paper explains 1F1B-RR, both with two micro-batches a replica in flight;
  // straight pipelines as 1F1B.
  CHECK(warm_ups({15, 1}) == Numbers{1, 0});
  CHECK(warm_ups({2, 1}) == Numbers{1, 0});
  CHECK(warm_ups({1, 1, 1, 1}) == Numbers{3, 2, 1, 0});
  CHECK(warm_ups({2, 1, 1}) == Numbers{1, 1, 0});
  CHECK(warm_ups({1, 2, 1}) == Numbers{3, 1, 0});
  CHECK(warm_ups({9, 5, 1, 1}) == Numbers{1, 1, 1, 0});
  CHECK(warm_ups({7, 3, 4}) == Numbers{1, 2, 0});
  CHECK(warm_ups({16}) == Numbers{0});
  for (const Numbers& copies : shapes()) {
    // In flight, copies x (warm-up + 1), are as few as give one to each copy from here on.
    int left = std::accumulate(copies.begin(), copies.end(), 0);
    for (std::size_t stage = 0; stage < copies.size(); ++stage) {
      const int n = copies[stage];
      const int in_flight = n * (warm_up(copies, static_cast<int>(stage)) + 1);
      CHECK((left <= in_flight && in_flight < left + n));
      left -= n;
    }
  }
}

TEST_CASE(
    "micro-batch m runs on copy m mod r of every stage, and copies alternate after their warm-up") {
  for (const Numbers& copies : shapes()) {
    const model::Graph graph = gpt_of(copies.size());
    for (const int m : {common_multiple(copies), 3 * common_multiple(copies)}) {
      INFO(list(copies) << ", " << m << " micro-batches");
      const Program program = lowered(graph, strategy(copies, "1f1b"), m);
      for (int stage = 0; stage < static_cast<int>(copies.size()); ++stage) {
        const int n = copies[stage];
        const int ahead = std::min(m / n, warm_up(copies, stage));
        for (int copy = 0; copy < n; ++copy) {
          std::string expected;
          const auto add = [&](const char* pass, int turn) {
            expected += (expected.empty() ? "" : " ") + (pass + std::to_string(turn * n + copy));
          };
          for (int i = 0; i < ahead; ++i) add("F", i);
          for (int i = 0; i < m / n; ++i) {
            if (i + ahead < m / n) add("F", i + ahead);
            add("B", i);
          }
          CHECK(cells_of(program, program.devices[device_of(copies, stage, copy)].sequence) ==
                expected);
        }
      }
    }
  }
}

TEST_CASE("1F1B-RR on 2-1-1, written out") {
  const Program program = lowered(gpt_of(3), strategy({2, 1, 1}, "1f1b"), 8);
  CHECK(cells_of(program, 0) == "F0 F2 B0 F4 B2 F6 B4 B6");
  CHECK(cells_of(program, 1) == "F1 F3 B1 F5 B3 F7 B5 B7");
  CHECK(cells_of(program, 2) == "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7");
  CHECK(cells_of(program, 3) == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7");
}

TEST_CASE("one copy of every stage is the pipeline without copies") {
  const model::Graph graph = gpt_of(4, true);
  for (const std::string schedule : {"1f1b", "pipedream", "pipedream-vertical", "pipedream-2bw"}) {
    const std::string plain = "{\"pipeline\": 4, \"schedule\": \"" + schedule + "\"}";
    const std::string without = to_text(lowered(graph, plain, 8));
    CHECK(to_text(lowered(graph, strategy({1, 1, 1, 1}, schedule), 8)) == without);
    Plan plan = lowering::plan_of(graph, plain, 8);
    for (const Deal deal : {Deal::shares, Deal::turns}) {
      plan.copy_stages({.of_stage = {1, 1, 1, 1}, .deal = deal});
      CHECK(to_text(lower(plan, plain_stack())) == without);
    }
  }
}

TEST_CASE("each micro-batch is sent between the two copies that work on it") {
  for (const std::string schedule : {"1f1b", "pipedream"}) {
    for (const Numbers& copies : shapes()) {
      INFO(schedule << " " << list(copies));
      const model::Graph graph = gpt_of(copies.size());
      const int m = 2 * common_multiple(copies);
      const Program program = lowered(graph, strategy(copies, schedule), m);
      std::multiset<std::tuple<Stream, int, int>> found;  // with the micro-batch and the device
      for (std::size_t d = 0; d < program.devices.size(); ++d) {
        const Device& device = program.devices[d];
        for (const program::Call& call : program.sequences[device.sequence].calls) {
          for (const program::Task& task : program.blocks[call.block].tasks) {
            if (!transfers(task.stream)) continue;
            const int mb = call.cell.micro_batch;
            found.emplace(task.stream, mb, static_cast<int>(d));
            const int at = call.cell.stage;
            const bool sends =
                task.stream == Stream::send_forward || task.stream == Stream::send_backward;
            const bool forward =
                task.stream == Stream::send_forward || task.stream == Stream::receive_forward;
            const int other = at + (sends == forward ? 1 : -1);
            const auto here = device_of(copies, at, mb % copies[at]);
            const auto there = device_of(copies, other, mb % copies[other]);
            CHECK(here == static_cast<int>(d));
            CHECK(
                program.communicators[device.groups[lowering::collective_of(task)->group]].ranks ==
                (sends ? Numbers{here, there} : Numbers{there, here}));
          }
        }
      }
      // Both ends of each message, both ways, once an iteration.
      CHECK(found.size() == 4 * m * (copies.size() - 1));
      CHECK(std::set(found.begin(), found.end()).size() == found.size());
    }
  }
}

TEST_CASE("copies of a stage sum the gradients of all their parameters, and nobody else does") {
  for (const std::string more : {"", R"(, "overlap_gradients": true, "bucket": "1 B")"}) {
    for (const Numbers& copies : shapes()) {
      INFO(list(copies) << more);
      const model::Graph graph = gpt_of(copies.size());
      const Program program =
          lowered(graph, strategy(copies, "pipedream", more), common_multiple(copies));
      for (int stage = 0; stage < static_cast<int>(copies.size()); ++stage) {
        Numbers ranks;
        for (int copy = 0; copy < copies[stage]; ++copy)
          ranks.push_back(device_of(copies, stage, copy));
        for (const int d : ranks) {
          const Device& device = program.devices[d];
          Bytes sum;
          for (const Collective& one :
               collectives(program, device.sequence, Stream::gradient_communication)) {
            CHECK(one.kind == cost::CollectiveKind::all_reduce);
            CHECK(program.communicators[device.groups[one.group]].ranks == ranks);
            sum += one.payload;
          }
          const Bytes gradients =
              lowering::resident(program.sequences[device.sequence], program::Category::gradients);
          CHECK(sum == (ranks.size() > 1 ? gradients : 0_B));
        }
      }
    }
  }
}

TEST_CASE("a table on the first and the last stage is summed over the copies of both") {
  const Program program = lowered(gpt_of(3, true), strategy({2, 1, 3}, "1f1b"), 6);
  for (const int d : {0, 1, 3, 4, 5}) {
    const Device& device = program.devices[d];
    bool found = false;
    for (const Collective& one :
         collectives(program, device.sequence, Stream::gradient_communication)) {
      if (program.communicators[device.groups[one.group]].ranks == Numbers{0, 1, 3, 4, 5}) {
        CHECK(one.payload == 112.0 * 48 * 2_B);
        found = true;
      }
    }
    CHECK(found);
  }
  CHECK(collectives(program, program.devices[2].sequence, Stream::gradient_communication).empty());
}

TEST_CASE("devices are tensor ranks, then data ranks, then copies of a stage, then stages") {
  const model::Graph graph = gpt_of(3);
  const std::string text = strategy({2, 1, 3}, "1f1b", R"(, "tensor": 2, "data": 3)");
  CHECK(devices_of(read_options(JsonReader::from_text(text, "test.json"))) == 2 * 3 * 6);
  const Plan plan = lowering::plan_of(graph, text, 6);
  CHECK(plan.placement(graph.segments[1].forward.front()).first_devices == Numbers{0, 6});
  CHECK(plan.placement(graph.segments[2].forward.front()).first_devices == Numbers{12});
  CHECK(plan.placement(graph.segments[3].forward.front()).first_devices == Numbers{18, 24, 30});
  CHECK(lower(plan, plain_stack()).devices.size() == 36);
}

TEST_CASE("what replicas cannot be combined with is refused in one line") {
  const model::Graph graph = gpt_of(4);
  const auto refused = [&](const Numbers& copies, const std::string& schedule,
                           const std::string& more = "", int micro_batches = 4) {
    return refusal([&] { lowered(graph, strategy(copies, schedule, more), micro_batches); });
  };
  const std::string key = "test.json: /strategy/replicas_per_stage: expected ";
  CHECK(refused({2, 1, 1}, "1f1b", ", \"layers_per_stage\": [2, 1, 1]").empty());
  CHECK_THAT(refused({2, 1, 1, 1}, "zb-h1"), StartsWith(key));
  CHECK_THAT(refused({2, 1, 1, 1}, "chimera"), ContainsSubstring("pipedream"));
  CHECK_THAT(refused({2, 1, 1, 1}, "1f1b", ", \"embedding\": 0"), StartsWith(key));
  CHECK_THAT(refused({2, 1, 1, 1}, "1f1b", ", \"head\": \"all\""), StartsWith(key));
  CHECK_THAT(refused({2, 1, 1, 1}, "1f1b", ", \"ranks_per_device\": 2"), StartsWith(key));
  // Each copy has equally many micro-batches of an iteration.
  CHECK_THAT(refused({2, 1, 1, 1}, "pipedream", "", 3), ContainsSubstring("3 for 2 copies"));
  CHECK_THAT(refused({1, 4}, "1f1b", "", 6), ContainsSubstring("6 for 4 copies"));
  const auto read = [](const std::string& text) {
    return refusal([&] { read_options(JsonReader::from_text(text, "test.json")); });
  };
  CHECK(read(R"({"pipeline": 3, "replicas_per_stage": [2, 1]})") ==
        "test.json: /replicas_per_stage: expected a number for each of the 3 stages, found 2");
  CHECK_THAT(read(R"({"pipeline": 2, "replicas_per_stage": [0, 1]})"),
             StartsWith("test.json: /replicas_per_stage/0: "));
  CHECK_THAT(read(R"({"pipeline": 2, "replicas_per_stage": [999999, 999999]})"),
             StartsWith("test.json: /replicas_per_stage: "));
}

TEST_CASE("copies with shares of their own may be of different numbers, too") {
  // Three micro-batches of 4 on copies of 2 and 1: m on copy m * 2 / 4.
  const model::Graph graph = gpt_of(2);
  const Plan plan = plan_from(
      graph, two_one("shares", {"F0 F1 B0 B1", "F2 F3 B2 B3", "F0 B0 F1 B1 F2 B2 F3 B3"}), 4);
  const Program program = lower(plan, plain_stack());
  lowering::check_program(graph, program);
  CHECK(cells_of(program, 0) == "F0 F1 B0 B1");
  CHECK(cells_of(program, 1) == "F2 F3 B2 B3");
  const std::string text = file_text(plan);
  CHECK_THAT(text, ContainsSubstring("\"copies\": [2, 1],\n"));
  CHECK_THAT(text, !ContainsSubstring("deal"));
  CHECK(to_text(lower(plan_from(graph, text, 4), plain_stack())) == to_text(program));
}

TEST_CASE("plan files refuse numbers of copies that do not fit") {
  const model::Graph graph = gpt_of(2);
  const std::vector<std::string> orders = {"F0 B0", "F1 B1", "F0 B0 F1 B1"};
  const auto refused = [&](const std::string& from, const std::string& to, int micro_batches = 2) {
    std::string text = two_one("turns", orders);
    text.replace(text.find(from), from.size(), to);
    return refusal([&] { lower(plan_from(graph, text, micro_batches), plain_stack()); });
  };
  CHECK(refused("[2, 1]", "[2, 1]").empty());
  CHECK_THAT(refused("[2, 1]", "[2, 1, 1]"), StartsWith("plan.json: /copies: "));
  CHECK_THAT(refused("[2, 1]", "[2, 3]"), StartsWith("plan.json: /copies/1: "));
  CHECK_THAT(refused("[2, 1]", "[2, 1]", 3), StartsWith("plan.json: /copies: "));
  CHECK_THAT(refused("\"turns\"", "\"dice\""), StartsWith("plan.json: /deal: "));
  CHECK_THAT(refused("\"copies\": [2, 1], ", ""), StartsWith("plan.json: /deal: "));
  CHECK_THAT(refused("\"copy\": 1", "\"copy\": 2"), StartsWith("plan.json: /primitives/1/copy: "));
  CHECK_THAT(
      refused(R"~("stage(0)", "device": 1, "copy": 1)~", R"~("**", "device": 1, "copy": 1)~"),
      StartsWith("plan.json: /primitives/1: expected a copy of layers.1."));
  CHECK_THAT(refused(R"~({"op-assign": "stage(0)", "device": 1, "copy": 1},)~", ""),
             ContainsSubstring("op-assign of copy 1 of embedding."));
}

TEST_CASE("orders that wait for each other through the copies' all-reduce are refused") {
  // Without a warm-up copies wait for B before the next F, and stage 1 wants F of the next
  // micro-batch before B. Cells alone allow that: micro-batch 2 may begin on copy 0 when B0 is
  // done, and end the wait of B1. But the update of copy 0 after B0 needs the gradients of B1.
  const model::Graph graph = gpt_of(2);
  const auto with_warm_up = [&](int ahead) {
    const std::string n = std::to_string(2 * ahead);
    const std::string file = R"~({"stages": ["embedding, layers.0", "layers.1, head"],
      "copies": [2, 1], "deal": "turns", "primitives": [
      {"op-assign": "stage(i)", "device": "2*i"},
      {"op-assign": "stage(0)", "device": 1, "copy": 1},
      {"op-order": "updates", "flush": false},
      {"op-order": ["F(0, m)", "F(0, m+2)"]}, {"op-order": ["B(0, m)", "B(0, m+2)"]},
      {"op-order": ["F(0, m+)~" +
                             n +
                             R"~()", "B(0, m)"]},
      {"op-order": ["B(0, m)", "F(0, m+2+)~" +
                             n + R"~()"]},
      {"op-order": ["F(1, m)", "F(1, m+1)"]}, {"op-order": ["B(1, m)", "B(1, m+1)"]},
      {"op-order": ["F(1, m+1)", "B(1, m)"]}, {"op-order": ["B(1, m)", "F(1, m+2)"]}]})~";
    return refusal([&] { lower(plan_from(graph, file, 2), plain_stack()); });
  };
  CHECK_THAT(with_warm_up(0), ContainsSubstring("reduce gradients"));
  CHECK(with_warm_up(1).empty());
}

TEST_CASE("copies whose reader stands on another grid are redistributed pair by pair") {
  // Stage 0 whole, in copies on devices 0 and 1; stage 1 divided along the batch over 2 and 3.
  const model::Graph graph = gpt_of(2);
  const Plan plan = plan_from(graph, R"~({"stages": ["embedding, layers.0", "layers.1, head"],
      "copies": [2, 1], "deal": "turns", "primitives": [
      {"op-trans": "layers.1.**, head.**", "dim": "b", "parts": 2, "axis": "data"},
      {"op-assign": "layers.1.**, head.**", "axis": "data", "stride": 1},
      {"op-assign": "stage(i)", "device": "2*i"},
      {"op-assign": "stage(0)", "device": 1, "copy": 1},
      {"op-order": "F(0,0) F(0,2) B(0,0) B(0,2)"}, {"op-order": "F(0,1) F(0,3) B(0,1) B(0,3)"},
      {"op-order": ["F(1, m)", "B(1, m)"]}, {"op-order": ["B(1, m)", "F(1, m+1)"]}]})~",
                              4);
  const Program program = lower(plan, plain_stack());
  lowering::check_program(graph, program);
  std::map<Numbers, int> sent;  // by ranks, as devices of stage 1 receive
  for (const int d : {2, 3}) {
    const Device& device = program.devices[d];
    for (const Collective& one : collectives(program, device.sequence, Stream::receive_forward))
      ++sent[program.communicators[device.groups[one.group]].ranks];
  }
  CHECK(sent == std::map<Numbers, int>{{{0, 2}, 2}, {{0, 3}, 2}, {{1, 2}, 2}, {{1, 3}, 2}});
}

}  // namespace stratagem::strategies::replicas_test
