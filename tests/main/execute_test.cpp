// `stratagem execute` as users run it.
#include <algorithm>
#include <string>

#include "tests/catch.hpp"
#include "tests/main/executable.hpp"

namespace stratagem {
namespace {

TEST_CASE("a run of one device is executed alone and agrees with itself") {
  const TemporaryFolder folder;
  folder.write("small.json", small_scenario());
  const Ran finished = run("execute small.json --run alone --steps 2 --json out.json", folder);
  CAPTURE(finished.err);
  CHECK(finished.exit == 0);
  CHECK(finished.out.find("one device: agrees") != std::string::npos);
  CHECK(finished.out.find("measured") != std::string::npos);
  CHECK(folder.read("out.json").find("\"agrees\": true") != std::string::npos);
}

TEST_CASE("ranks in one process are checked, not timed") {
  const TemporaryFolder folder;
  folder.write("small.json", small_scenario());
  const Ran finished = run("execute small.json --run four --in-process --precision fp64", folder);
  CAPTURE(finished.err);
  CHECK(finished.exit == 0);
  CHECK(finished.out.find("four: 4 ranks, fp64") != std::string::npos);
  CHECK(finished.out.find("one device: agrees") != std::string::npos);
  CHECK(finished.out.find("iteration:") == std::string::npos);
}

TEST_CASE("what cannot be executed is refused in one line before anything starts") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& text, const std::string& options, int code,
                           const std::string& because) {
    folder.write("small.json", text);
    const Ran finished = run("execute small.json " + options, folder);
    CAPTURE(finished.err);
    CHECK(finished.exit == code);
    CHECK(finished.err.find(because) != std::string::npos);
    CHECK(std::count(finished.err.begin(), finished.err.end(), '\n') == 1);
  };
  refused(small_scenario(), "--run four", 1, "expected 4 ranks");
  refused(small_scenario(), "--run nobody", 2, "no run named");
  refused(small_scenario(), "--backend cuda", 2, "--backend");
  refused(small_scenario(), "--precision fp16", 2, "--precision");
  refused(with(small_scenario(), R"("optimizer": "adam")", R"("optimizer": "sgd")"), "", 1,
          "/training/optimizer");
  refused(with(small_scenario(), R"("recompute": "full")", R"("swap": 1)"), "--run alone", 1,
          "copy out");
}

}  // namespace
}  // namespace stratagem
