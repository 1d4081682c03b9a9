// Whether what runs keep on a server's drives fits there, what is told of it, and what is refused.
#include "topology/drives.hpp"

#include <algorithm>

#include "report/memory_table.hpp"
#include "report/report.hpp"
#include "study/remedies.hpp"
#include "study/results.hpp"
#include "study/simulate.hpp"
#include "tests/report/offloaded.hpp"

using namespace stratagem;
using study::Outcome;

namespace {

/// On four GPUs whose ranks divide everything.
study::Scenario scenario(const std::string& cluster, const std::string& offload) {
  return offloaded(cluster, R"({"data": 4, "zero": 3, "offload": )" + offload + "}");
}

std::string dgx_2(const std::string& more) {
  return R"({"preset": "dgx-2", "gpus": 4)" + more + "}";
}

const std::string states = R"({"optimizer": "drives"})";
const std::string all = R"({"optimizer": "drives", "parameters": "drives"})";

/// 2 layers of 12 h^2 + 13 h, a norm of 2 h, and tables of 128 + 32 rows.
constexpr double parameters = 2 * (12 * 64 * 64 + 13 * 64) + 2 * 64 + (128 + 32) * 64;

}  // namespace

TEST_CASE("a run fits if a server's drives have the room, and lacks what they do not have") {
  const study::Scenario roomy = scenario(dgx_2(""), states);
  const Outcome fits = study::simulate(roomy.runs[0], {}).outcome;
  CHECK(fits.status == Outcome::Status::ok);
  REQUIRE(fits.drives.size() == 1);
  CHECK(fits.drives[0].peak.total.value == 12 * parameters);
  CHECK(fits.drives_shortfall == Bytes{});
  const study::Scenario tight =
      scenario(dgx_2(R"(, "drives": {"count": 2, "capacity": "500 KB"})"), all);
  const Outcome short_of = study::simulate(tight.runs[0], {}).outcome;
  CHECK(short_of.status == Outcome::Status::out_of_memory);
  CHECK(short_of.gpu_shortfall == Bytes{});
  CHECK(short_of.host_shortfall == Bytes{});
  CHECK(short_of.drives_shortfall.value == 14 * parameters - 1e6);
  CHECK_THAT(short_of.reason, ContainsSubstring(" on drives, a server has 1 MB"));
}

TEST_CASE("tables and reports tell what lies on drives, and that their rates are assumed") {
  const study::Scenario one = scenario(dgx_2(""), all);
  const std::vector<Outcome> outcomes = {study::simulate(one.runs[0], {}).outcome};
  const std::vector<study::Result> results = study::compare(one, outcomes);
  CHECK_THAT(report::memory_table(results), ContainsSubstring("on drives"));
  CHECK_THAT(report::memory_table(results), ContainsSubstring("of 30.72 TB free"));
  const std::string json = report::to_json(one, results).text();
  CHECK(json.find("\"drives_bytes\"") != std::string::npos);
  CHECK(json.find("\"drives_shortfall_bytes\"") != std::string::npos);
  CHECK(outcomes[0].weakest.provenance == cost::Provenance::assumed);
  CHECK(outcomes[0].weakest.cluster == std::vector<std::string>{"/drives"});
  const study::Scenario memory = scenario(dgx_2(""), R"("optimizer")");
  const Outcome without = study::simulate(memory.runs[0], {}).outcome;
  CHECK(without.drives.empty());
  CHECK(without.weakest.cluster.empty());
}

// 16 bytes a parameter are 1.765 MB; with three of the four segments staged at once it takes 1.641
// MB.
TEST_CASE("what does not fit the host's memory is offered its drives") {
  const study::Scenario little =
      scenario(dgx_2(R"(, "host_memory": "1700 KB")"), R"("parameters")");
  CHECK(study::simulate(little.runs[0], {}).outcome.host_shortfall > Bytes{});
  const auto found = study::remedies(little.runs[0], 9);
  CHECK(std::ranges::any_of(found, [](const study::Remedy& remedy) {
    return remedy.change.find("\"drives\"") != std::string::npos;
  }));
}

TEST_CASE("drives are refused where a cluster has none, with the path") {
  for (const auto& [cluster, offload, path] :
       {std::tuple(std::string(R"({"preset": "pcie-v100", "gpus": 4})"), states, "optimizer"),
        std::tuple(dgx_2(R"(, "drives": {"count": 0})"), all, "parameters"),
        std::tuple(dgx_2(R"(, "drives": {"count": 0})"),
                   std::string(R"({"optimizer": "memory", "parameters": "drives"})"),
                   "parameters")}) {
    const study::Scenario one = scenario(cluster, offload);
    try {
      study::simulate(one.runs[0], {});
      FAIL("not refused");
    } catch (const InputError& error) {
      CHECK(error.path == std::string("/runs/0/strategy/offload/") + path);
      CHECK_THAT(error.expected, StartsWith("a cluster whose servers have drives"));
    }
  }
}
