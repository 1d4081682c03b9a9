// Max-min fair rates: small networks by hand, random ones against a certificate and a naive
// implementation.
#include "sim/network.hpp"

#include <map>
#include <random>

#include "tests/catch.hpp"

namespace stratagem::sim {

namespace {

using Counts = std::vector<std::vector<std::int64_t>>;

/// Rates when so many flows of each use are added.
std::vector<BytesPerSecond> rates_when(FairShare& shares, const Counts& active) {
  for (std::size_t link = 0; link < active.size(); ++link) {
    for (std::size_t use = 0; use < active[link].size(); ++use)
      shares.add(static_cast<int>(link), static_cast<int>(use), active[link][use]);
  }
  return shares.rates();
}

/// A flow: the rate it reaches alone, and its load on links.
struct TestFlow {
  double weight = 0;
  std::map<int, double> loads;
  int copies = 1;  ///< so many flows of one class
};

struct TestNetwork {
  std::vector<double> capacities;
  std::vector<TestFlow> flows;

  [[nodiscard]] std::vector<double> rates() const {
    std::vector<BytesPerSecond> capacity;
    std::vector<BytesPerSecond> weights;
    std::vector<std::vector<LinkUse>> uses(capacities.size());
    std::vector<std::vector<std::int64_t>> active(capacities.size());
    for (const double c : capacities) capacity.push_back({c});
    for (std::size_t f = 0; f < flows.size(); ++f) {
      weights.push_back({flows[f].weight});
      for (const auto& [link, load] : flows[f].loads) {
        uses[link].push_back({.flow = static_cast<int>(f), .load = load, .count = 0});
        active[link].push_back(flows[f].copies);
      }
    }
    FairShare shares(capacity, uses, weights);
    std::vector<double> result;
    for (const BytesPerSecond rate : rates_when(shares, active)) result.push_back(rate.value);
    return result;
  }

  [[nodiscard]] double carried(int link, const std::vector<double>& rates) const {
    double sum = 0;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      const auto load = flows[f].loads.find(link);
      if (load != flows[f].loads.end()) sum += flows[f].copies * load->second * rates[f];
    }
    return sum;
  }
};

void check_rates(const TestNetwork& network, const std::vector<double>& expected) {
  const std::vector<double> rates = network.rates();
  REQUIRE(rates.size() == expected.size());
  for (std::size_t f = 0; f < rates.size(); ++f) {
    INFO("flow " << f << " has " << rates[f] << ", expected " << expected[f]);
    CHECK(close(rates[f], expected[f], 1e-12));
  }
}

/// Progressive filling, flow by flow: every flow that still rises asks each of its links how far
/// the level could go; the lowest answer of all is the next level; who can go no further stops.
std::vector<double> filled_one_by_one(const TestNetwork& network) {
  struct Single {
    const TestFlow* flow;
    double rate = -1;  ///< below 0 while it rises
  };
  std::vector<Single> singles;
  for (const TestFlow& flow : network.flows) {
    for (int copy = 0; copy < flow.copies; ++copy) singles.push_back({&flow});
  }
  const auto limit = [&](const Single& single) {
    double lowest = 1;
    for (const auto& [link, ignored] : single.flow->loads) {
      double left = network.capacities[link];
      double slope = 0;
      for (const Single& other : singles) {
        const auto load = other.flow->loads.find(link);
        if (load == other.flow->loads.end()) continue;
        if (other.rate < 0) slope += load->second * other.flow->weight;
        if (other.rate >= 0) left -= load->second * other.rate;
      }
      lowest = std::min(lowest, left / slope);
    }
    return lowest;
  };
  for (bool rising = true; rising;) {
    rising = false;
    double level = 1;
    for (const Single& single : singles) {
      if (single.rate < 0) level = std::min(level, limit(single));
    }
    std::vector<Single*> stopping;
    for (Single& single : singles) {
      if (single.rate >= 0) continue;
      rising = true;
      if (limit(single) <= level * (1 + 1e-12)) stopping.push_back(&single);
    }
    for (Single* single : stopping) single->rate = single->flow->weight * level;
  }
  std::vector<double> rates;
  for (const TestFlow& flow : network.flows) {
    rates.push_back(std::ranges::find(singles, &flow, &Single::flow)->rate);
  }
  return rates;
}

TestNetwork random_network(std::mt19937& random) {
  const auto whole = [&](int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(random);
  };
  const auto real = [&](double from, double to) {
    return std::uniform_real_distribution<double>(from, to)(random);
  };
  TestNetwork network;
  const int links = whole(1, 8);
  for (int link = 0; link < links; ++link) network.capacities.push_back(real(1, 100));
  const int flows = whole(1, 12);
  for (int f = 0; f < flows; ++f) {
    TestFlow flow{.weight = 0, .loads = {}, .copies = whole(1, 3)};
    const int parts = whole(1, links);
    for (int part = 0; part < parts; ++part) flow.loads[whole(0, links - 1)] = real(0.1, 2);
    double slowest = 0;  // alone it fills its slowest link
    for (const auto& [link, load] : flow.loads) {
      slowest = std::max(slowest, load / network.capacities[link]);
    }
    flow.weight = 1 / slowest;
    network.flows.push_back(flow);
  }
  return network;
}

}  // namespace

TEST_CASE("two equal flows halve a link") {
  check_rates({.capacities = {10}, .flows = {{10, {{0, 1}}}, {10, {{0, 1}}}}}, {5, 5});
}

TEST_CASE("parking lot: the flow over both links has its share of the slower one") {
  // Link 0 is full when 10 t + 10 t = 10: t = 1/2. Flow 2 then rises alone on link 1 to 16 - 5.
  check_rates(
      {.capacities = {10, 16}, .flows = {{10, {{0, 1}, {1, 1}}}, {10, {{0, 1}}}, {16, {{1, 1}}}}},
      {5, 5, 11});
}

TEST_CASE("shares are proportional to weights") {
  // 12 t + 6 t = 12: t = 2/3.
  check_rates({.capacities = {12}, .flows = {{12, {{0, 1}}}, {6, {{0, 1}}}}}, {8, 4});
}

TEST_CASE("a flow stops at its own weight and leaves the rest of the link") {
  // Link 1: 3 * 10 t = 10, t = 1/3. On link 0 flow 1 takes 10/3; flow 0 could have 20/3 but only
  // ever reaches 4.
  check_rates({.capacities = {10, 10},
               .flows = {{4, {{0, 1}}}, {10, {{0, 1}, {1, 1}}}, {10, {{1, 1}}}, {10, {{1, 1}}}}},
              {4, 10.0 / 3, 10.0 / 3, 10.0 / 3});
  // Without rivals every flow has its weight, whatever is left of the link.
  check_rates({.capacities = {10}, .flows = {{2, {{0, 1}}}, {3, {{0, 1}}}}}, {2, 3});
}

TEST_CASE("a flow that puts two bytes on a link per byte takes twice its rate there") {
  // 2 * 6 t + 1/2 * 24 t = 12: t = 1/2; each takes 6 of the link.
  check_rates({.capacities = {12}, .flows = {{6, {{0, 2}}}, {24, {{0, 0.5}}}}}, {3, 12});
}

TEST_CASE("three links fill one after another") {
  // Link 1 first: 6 t + 10 t + 10 t = 10, t = 5/13: flows 1, 2, 3 = 30/13, 50/13, 50/13.
  // Link 0: flow 0 = 6 - 30/13 = 48/13 (t = 8/13). Link 2: flow 4 = 40 - 50/13 = 470/13 (t =
  // 47/52).
  check_rates({.capacities = {6, 10, 40},
               .flows = {{6, {{0, 1}}},
                         {6, {{0, 1}, {1, 1}}},
                         {10, {{1, 1}}},
                         {10, {{1, 1}, {2, 1}}},
                         {40, {{2, 1}}}}},
              {48.0 / 13, 30.0 / 13, 50.0 / 13, 50.0 / 13, 470.0 / 13});
}

TEST_CASE("a class of three flows shares as three flows do") {
  // 3 * 10 t + 10 t = 10.
  check_rates({.capacities = {10}, .flows = {{10, {{0, 1}}, 3}, {10, {{0, 1}}}}}, {2.5, 2.5});
}

TEST_CASE("classes without active flows take nothing") {
  FairShare shares({{10}}, {{{.flow = 0, .load = 1}, {.flow = 1, .load = 1}}}, {{10}, {10}});
  CHECK(rates_when(shares, {{1, 0}}) == std::vector<BytesPerSecond>{{10}, {0}});
  CHECK(rates_when(shares, {{-1, 0}}) == std::vector<BytesPerSecond>{{0}, {0}});
}

TEST_CASE("one more flow on a link speeds up none of the others") {
  std::mt19937 random(4);
  std::uniform_real_distribution<double> any_load(0.1, 3);
  for (int round = 0; round < 100; ++round) {
    constexpr double capacity = 10;
    TestNetwork network{.capacities = {capacity}, .flows = {}};
    std::vector<double> before;
    for (int flows = 1; flows <= 8; ++flows) {
      const double load = any_load(random);
      network.flows.push_back({.weight = capacity / load, .loads = {{0, load}}});
      const std::vector<double> now = network.rates();
      for (std::size_t f = 0; f < before.size(); ++f) CHECK(now[f] <= before[f] * (1 + 1e-12));
      CHECK(close(network.carried(0, now), capacity, 1e-12));
      before = now;
    }
  }
}

TEST_CASE("flows that come and go have the rates of those that are there, to the last bit") {
  std::mt19937 random(11);
  const auto whole = [&](int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(random);
  };
  for (int round = 0; round < 60; ++round) {
    const int links = whole(3, 30);
    const int classes = whole(2, 40);
    std::vector<BytesPerSecond> capacities;
    std::vector<BytesPerSecond> weights;
    std::vector<std::vector<LinkUse>> uses(links);
    for (int link = 0; link < links; ++link) capacities.push_back({whole(1, 100) * 0.37});
    for (int f = 0; f < classes; ++f) {
      weights.push_back({whole(1, 50) * 0.7});
      std::map<int, double> loads;
      for (int part = whole(1, 4); part > 0; --part) loads[whole(0, links - 1)] = whole(1, 9) * 0.3;
      for (const auto& [link, load] : loads) uses[link].push_back({f, load, 0});
    }
    FairShare kept(capacities, uses, weights);
    Counts active;
    for (const auto& link : uses) active.emplace_back(link.size(), 0);
    for (int change = 0; change < 50; ++change) {
      const int flow = whole(0, classes - 1);
      const std::int64_t sign = whole(0, 1) == 0 ? 1 : -1;
      for (int link = 0; link < links; ++link) {
        for (std::size_t use = 0; use < uses[link].size(); ++use) {
          if (uses[link][use].flow != flow || active[link][use] + sign < 0) continue;
          active[link][use] += sign;
          kept.add(link, static_cast<int>(use), sign);
        }
      }
      FairShare fresh(capacities, uses, weights);
      CHECK(kept.rates() == rates_when(fresh, active));
    }
  }
}

TEST_CASE("random networks: rates are max-min fair, and as when filled flow by flow") {
  // Certificate (Bertsekas & Gallager, Data Networks, section 6.5.2): an allocation is max-min fair
  // if and only if every flow is at its own weight or has a full link on which no other flow has a
  // higher fill level.
  std::mt19937 random(20190917);
  for (int round = 0; round < 300; ++round) {
    const TestNetwork network = random_network(random);
    const std::vector<double> rates = network.rates();
    for (std::size_t link = 0; link < network.capacities.size(); ++link) {
      CHECK(network.carried(static_cast<int>(link), rates) <=
            network.capacities[link] * (1 + 1e-12));
    }
    const auto level = [&](std::size_t f) { return rates[f] / network.flows[f].weight; };
    const auto is_bottleneck = [&](int link, std::size_t f) {
      if (network.carried(link, rates) < network.capacities[link] * (1 - 1e-9)) return false;
      for (std::size_t other = 0; other < rates.size(); ++other) {
        const bool rival = network.flows[other].loads.contains(link);
        if (rival && level(other) > level(f) * (1 + 1e-9)) return false;
      }
      return true;
    };
    for (std::size_t f = 0; f < rates.size(); ++f) {
      const auto& loads = network.flows[f].loads;
      const bool at_weight = close(level(f), 1, 1e-9);
      CHECK((at_weight || std::ranges::any_of(loads, [&](const auto& part) {
               return is_bottleneck(part.first, f);
             })));
    }
    const std::vector<double> naive = filled_one_by_one(network);
    for (std::size_t f = 0; f < rates.size(); ++f) CHECK(close(rates[f], naive[f], 1e-9));
  }
}

}  // namespace stratagem::sim
