// The scenarios of published runs, which scripts/check validates within
// scenarios/published/validate.json.
#include <filesystem>

#include "lowering/size.hpp"
#include "study/plan_of.hpp"
#include "study/scenario.hpp"
#include "tests/catch.hpp"

namespace stratagem {

TEST_CASE("all scenarios of published runs can be read") {
  int runs = 0;
  for (const auto& entry : std::filesystem::directory_iterator("scenarios/published")) {
    if (entry.path().filename() == "validate.json") continue;
    INFO(entry.path().string());
    const study::Scenario scenario = study::read_scenario(entry.path().string());
    for (const study::Run& run : scenario.runs) {
      CHECK(!run.compared.measured.empty());
      CHECK(!run.refused);
      // None is refused for its size; most are far from it.
      const strategies::Plan plan = study::plan_of(run);
      CHECK_NOTHROW(lowering::refuse_size(plan, lowering::Stages(plan)));
      ++runs;
    }
  }
  CHECK(runs >= 150);
}

}  // namespace stratagem
