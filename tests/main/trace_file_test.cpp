// Traces as the program writes and reads them.
#include "tests/main/executable.hpp"

namespace stratagem {
namespace {

std::string traced(const std::string& options) {
  return "simulate a.json --no-remedies --run four " + options;
}

TEST_CASE("a trace whose name ends in .gz is packed, and read like another") {
  const TemporaryFolder folder;
  folder.write("a.json", small_scenario());
  REQUIRE(run(traced("--trace a.trace.json.gz"), folder).exit == 0);
  REQUIRE(run(traced("--trace a.trace.json"), folder).exit == 0);
  CHECK(folder.read("a.trace.json.gz").size() < folder.read("a.trace.json").size() / 5);
  CHECK(run("compare a.trace.json.gz a.trace.json", folder).exit == 0);
}

TEST_CASE("devices of a trace are those of the run, and compare needs all of them") {
  const TemporaryFolder folder;
  folder.write("a.json", small_scenario());
  REQUIRE(run(traced("--trace one.json --trace-devices 2,3"), folder).exit == 0);
  CHECK_THAT(folder.read("one.json"), ContainsSubstring("\"devices 2, 3\""));
  REQUIRE(run(traced("--trace unfolded.json --unfolded --trace-devices 2"), folder).exit == 0);
  const Ran compared = run("compare unfolded.json unfolded.json", folder);
  CHECK(compared.exit == 1);
  CHECK_THAT(compared.err, ContainsSubstring("without --trace-devices"));
  for (const char* wrong : {"4", "-1", "all", "1.5"}) {
    const Ran refused =
        run(traced("--trace no.json --trace-devices=" + std::string(wrong)), folder);
    CHECK(refused.exit == 2);
    CHECK_THAT(refused.err, ContainsSubstring("devices from 0 to 3, found " + std::string(wrong)));
  }
  CHECK_THAT(run(traced("--trace-devices=1"), folder).err, ContainsSubstring("needs --trace"));
  CHECK(!folder.has("no.json"));
}

}  // namespace
}  // namespace stratagem
