// Whether what runs keep on a server's processors fits there, and what is said where nobody knows.
#include "report/memory_table.hpp"
#include "report/report.hpp"
#include "study/results.hpp"
#include "study/simulate.hpp"
#include "tests/report/offloaded.hpp"

using namespace stratagem;
using study::Outcome;

namespace {

const std::string optimizer_there = R"({"data": 4, "zero": 2, "offload": "optimizer"})";

/// 14 bytes a parameter. 2 layers of 12 h^2 + 13 h, a norm of 2 h, and tables of 128 + 32 rows.
constexpr double needed = 14 * (2 * (12 * 64 * 64 + 13 * 64) + 2 * 64 + (128 + 32) * 64);

std::string cluster_with(const std::string& memory) {
  return R"({"preset": "dgx-2", "gpus": 4, "host_memory": ")" + memory + "\"}";
}

}  // namespace

TEST_CASE(
    "a run fits if its servers' processors have the memory, and lacks what they do not have") {
  const study::Scenario enough = offloaded(cluster_with("1545 KB"), optimizer_there);
  const Outcome fits = study::simulate(enough.runs[0], {}).outcome;
  REQUIRE(fits.hosts.size() == 1);
  CHECK(fits.hosts[0].peak.total.value == needed);
  CHECK(fits.status == Outcome::Status::ok);  // 1,544,704 bytes
  const study::Scenario little = offloaded(cluster_with("1 MB"), optimizer_there);
  const Outcome short_of = study::simulate(little.runs[0], {}).outcome;
  CHECK(short_of.status == Outcome::Status::out_of_memory);
  CHECK(short_of.gpu_shortfall == Bytes{});
  CHECK(short_of.host_shortfall.value == needed - 1e6);
  CHECK_THAT(short_of.reason,
             ContainsSubstring("of the memory of its processors, a server has 1 MB"));
}

// 1,544,704 bytes are 95 % of 1,626,004.2.
TEST_CASE(
    "a run that leaves less than a twentieth of a memory is marked, one that leaves more is not") {
  const auto tight = [](const std::string& memory) {
    const study::Scenario scenario = offloaded(cluster_with(memory), optimizer_there);
    const std::vector<study::Result> results =
        study::compare(scenario, {study::simulate(scenario.runs[0], {}).outcome});
    const std::string table = report::table(scenario, results);
    const bool marked = table.find("\n  tight: 1.545 MB of the memory of its processors of the ") !=
                        std::string::npos;
    CHECK(marked == (table.find("\ntight: less than 5 %") != std::string::npos));
    CHECK_THAT(report::to_json(scenario, results).text(),
               ContainsSubstring(marked ? "\"tight\":true" : "\"tight\":false"));
    return marked;
  };
  CHECK(tight("1626 KB"));
  CHECK(!tight("1627 KB"));
  CHECK(!tight("1 MB"));  // does not fit at all
}

TEST_CASE("where nobody says how much memory processors have, nothing is judged and that is said") {
  const study::Scenario scenario =
      offloaded(R"({"preset": "pcie-v100", "gpus": 4})", optimizer_there);
  const study::Run& run = scenario.runs[0];
  CHECK_FALSE(run.cluster.design().host_memory);
  const std::vector<study::Outcome> outcomes = {study::simulate(run, {}).outcome};
  CHECK(outcomes[0].status == Outcome::Status::ok);
  CHECK(outcomes[0].hosts[0].peak.total.value == needed);
  const std::vector<study::Result> results = study::compare(scenario, outcomes);
  CHECK_THAT(report::memory_table(results),
             ContainsSubstring("how much memory a server's processors have is not known"));
  const std::string json = report::to_json(scenario, results).text();
  CHECK(json.find("host_memory_bytes") == std::string::npos);
  CHECK(json.find("\"servers\"") != std::string::npos);
}

TEST_CASE("offloading and swapping to servers without memory is refused, with the path") {
  for (const auto& [strategy, path] :
       {std::pair(optimizer_there, "/runs/0/strategy/offload"),
        std::pair(std::string(R"({"data": 4, "swap": 2})"), "/runs/0/strategy/swap")}) {
    const study::Scenario scenario = offloaded(cluster_with("0 B"), strategy);
    try {
      study::simulate(scenario.runs[0], {});
      FAIL("not refused");
    } catch (const InputError& error) {
      CHECK(error.path == path);
      CHECK(error.expected == "a cluster whose servers have memory of their processors");
    }
  }
  const study::Scenario plain = offloaded(cluster_with("0 B"), R"({"data": 4})");
  const Outcome outcome = study::simulate(plain.runs[0], {}).outcome;
  CHECK(outcome.status == Outcome::Status::ok);
  for (const auto& host : outcome.hosts) CHECK(host.peak.total == 0_B);
}
