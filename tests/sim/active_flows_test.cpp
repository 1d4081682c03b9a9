// Flows over time: sharing, speeding up again, and every byte carried exactly once.
#include "sim/active_flows.hpp"

#include <map>
#include <random>

#include "tests/catch.hpp"
#include "tests/sim/hand_built.hpp"

namespace stratagem::sim {

namespace {

/// `count` flows that each fill the one link alone.
Folding one_link(int count, BytesPerSecond capacity) {
  HandBuilt built;
  for (int i = 0; i < count; ++i) built.add_device(0, {i});
  return on_one_link(built.program, {CollectiveKind::all_reduce}, {}, capacity);
}

}  // namespace

TEST_CASE("a flow alone takes volume over rate, rounded once") {
  const Folding folding = one_link(1, {3});
  ActiveFlows flows(folding);
  CHECK(flows.next_end() == never);
  flows.begin(0, 7, 10_B);
  flows.share(Instant{5});
  // 10/3 s = 3,333,333,333,333.33 ps
  CHECK(flows.next_end() == Instant{5 + 3'333'333'333'333});
  CHECK(flows.end_at(flows.next_end()) == std::vector<int>{7});
  CHECK(flows.next_end() == never);
}

TEST_CASE("a flow speeds up when the one it shared with has ended") {
  // 100 and 200 bytes at 1 byte per ps, together from 0: half rate until the first has its 100 at
  // 200 ps; the other has 100 left and goes on at full rate until 300 ps.
  const Folding folding = one_link(2, byte_per_picosecond);
  ActiveFlows flows(folding);
  flows.begin(0, 0, 100_B);
  flows.begin(1, 1, 200_B);
  flows.share(Instant{0});
  CHECK(flows.next_end() == Instant{200});
  CHECK(flows.end_at(Instant{200}) == std::vector<int>{0});
  flows.share(Instant{200});
  CHECK(flows.next_end() == Instant{300});
}

TEST_CASE("a flow slows down when another joins") {
  // The first has 50 of 100 bytes left at 50 ps; at half rate it ends at 150 ps. The second, 200
  // bytes, has 150 left then and ends at 300 ps.
  const Folding folding = one_link(2, byte_per_picosecond);
  ActiveFlows flows(folding);
  flows.begin(0, 0, 100_B);
  flows.share(Instant{0});
  CHECK(flows.next_end() == Instant{100});
  flows.begin(1, 1, 200_B);
  flows.share(Instant{50});
  CHECK(flows.next_end() == Instant{150});
  CHECK(flows.end_at(Instant{150}) == std::vector<int>{0});
  flows.share(Instant{150});
  CHECK(flows.next_end() == Instant{300});
}

TEST_CASE("flows that end at one instant end together, in the order in which they began") {
  const Folding folding = one_link(3, byte_per_picosecond);
  ActiveFlows flows(folding);
  flows.begin(2, 20, 100_B);
  flows.begin(0, 30, 100_B);
  flows.begin(1, 10, 100_B);
  flows.share(Instant{0});
  CHECK(flows.next_end() == Instant{300});
  CHECK(flows.end_at(Instant{300}) == std::vector<int>{20, 30, 10});
}

TEST_CASE("a volume of nothing ends at once, and so does one that no link carries") {
  const Folding folding = one_link(1, byte_per_picosecond);
  ActiveFlows flows(folding);
  flows.begin(0, 0, 0_B);
  flows.share(Instant{42});
  CHECK(flows.next_end() == Instant{42});

  Folding lonely;  // a communicator of one rank
  lonely.flows.push_back({.kind = CollectiveKind::all_reduce});
  lonely.weights = {{0}};
  ActiveFlows none(lonely);
  none.begin(0, 0, 100_B);
  none.share(Instant{42});
  CHECK(none.next_end() == Instant{42});
}

TEST_CASE("flows on no link have their own rates, beside each other") {
  Folding folding;  // as measured times of processors have them: 2 and 4 ps a byte
  folding.flows.push_back({.kind = CollectiveKind::all_reduce, .flow_class = 0});
  folding.flows.push_back({.kind = CollectiveKind::all_gather, .flow_class = 1});
  folding.weights = {{0.5e12}, {0.25e12}};
  ActiveFlows flows(folding);
  flows.begin(0, 0, 100_B);
  flows.begin(1, 1, 100_B);
  flows.share(Instant{7});
  CHECK(flows.end_at(Instant{207}) == std::vector<int>{0});
  flows.share(Instant{207});
  CHECK(flows.next_end() == Instant{407});
}

TEST_CASE("random arrivals: the integral of every flow's rate is its volume") {
  // 8 flows over 3 links with loads 1; arrivals at random instants. A fluid model beside it adds up
  // rate times time between events, with rates asked of FairShare anew.
  std::mt19937 random(7);
  std::uniform_int_distribution<std::int64_t> gap(1, 400);
  std::uniform_int_distribution<int> any_volume(1, 3000);
  for (int round = 0; round < 40; ++round) {
    Folding folding;
    folding.capacities.assign(3, byte_per_picosecond);
    folding.link_uses.resize(3);
    for (int f = 0; f < 8; ++f) {
      Flow flow{.kind = CollectiveKind::all_reduce, .communicator_class = f, .flow_class = f};
      for (const int link : {f % 3, f / 3}) {
        if (!flow.parts.empty() && flow.parts[0].link == link) continue;
        flow.parts.push_back({link, static_cast<int>(folding.link_uses[link].size()), 1});
        folding.link_uses[link].push_back({.flow = f, .load = 1, .count = 1});
      }
      folding.flows.push_back(flow);
      folding.weights.push_back(byte_per_picosecond);
    }
    FairShare shares(folding.capacities, folding.link_uses, folding.weights);
    const auto count = [&](int f, int sign) {
      for (const Flow::Part& part : folding.flows[f].parts) shares.add(part.link, part.use, sign);
    };
    ActiveFlows flows(folding);
    std::map<int, double> volume;
    std::map<int, double> carried;
    std::map<int, Instant> arrival;
    Instant next_arrival{0};
    for (int f = 0; f < 8; ++f) {
      arrival[f] = next_arrival;
      next_arrival = next_arrival + Ticks{gap(random)};
    }
    Instant now{0};
    std::size_t ended = 0;
    while (ended < 8) {
      Instant next = flows.next_end();
      for (const auto& [f, when] : arrival) {
        if (!volume.contains(f)) next = std::min(next, when);
      }
      const std::vector<BytesPerSecond> rates = shares.rates();
      for (auto& [f, bytes] : carried) bytes += (rates[f] * to_seconds(next - now)).value;
      now = next;
      for (const int f : flows.end_at(now)) {
        // Its end was rounded to a picosecond, as were the ends of up to seven flows that it shared
        // with.
        CHECK(std::abs(carried[f] - volume[f]) <= 4);
        carried.erase(f);
        count(f, -1);
        ++ended;
      }
      for (const auto& [f, when] : arrival) {
        if (volume.contains(f) || when != now) continue;
        volume[f] = any_volume(random);
        carried[f] = 0;
        flows.begin(f, f, Bytes{volume[f]});
        count(f, +1);
      }
      flows.share(now);
    }
  }
}

}  // namespace stratagem::sim
