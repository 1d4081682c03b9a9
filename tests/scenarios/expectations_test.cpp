// Every scenario of the repository is a test: its runs keep what they expect.
#include "tests/main/executable.hpp"

using namespace stratagem;

TEST_CASE("every scenario keeps its expectations") {
  const TemporaryFolder folder;
  int scenarios = 0;
  for (const auto& entry : std::filesystem::directory_iterator("scenarios")) {
    if (entry.path().extension() != ".json") continue;
    const Ran ran =
        run("simulate '" + std::filesystem::absolute(entry.path()).string() + "'", folder);
    CHECK(ran.exit == 0);
    CHECK(ran.err.empty());
    ++scenarios;
  }
  CHECK(scenarios >= 3);
}
