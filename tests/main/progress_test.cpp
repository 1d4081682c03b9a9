// The line that says how far a command is, on a terminal that `script` makes.
#include "tests/main/executable.hpp"

namespace stratagem {
namespace {

/// What a terminal gets of `stratagem validate`, whose scenario comes so many seconds late.
std::string shown(const std::string& seconds) {
  const TemporaryFolder folder;
  folder.write("a.json", small_scenario());
  folder.write("late", "(sleep " + seconds +
                           "; cat a.json) | '" STRATAGEM_EXECUTABLE
                           "' validate /dev/stdin --median 0 2>&1 >/dev/null");
  const std::string command =
      "cd '" + folder.path().string() + "' && script -qec 'sh late' /dev/null </dev/null >said";
  CHECK(std::system(command.c_str()) != 0);
  return folder.read("said");
}

TEST_CASE("on a terminal a line says how far a command is, after a second") {
  CHECK_THAT(shown("1.3"), ContainsSubstring("reading scenarios, 1 s"));
  CHECK_THAT(shown("0"), !ContainsSubstring("reading scenarios"));
}

TEST_CASE("without a terminal no progress line is drawn") {
  const TemporaryFolder folder;
  folder.write("a.json", small_scenario());
  const std::string command = "cd '" + folder.path().string() +
                              "' && (sleep 1.3; cat a.json) | '" STRATAGEM_EXECUTABLE
                              "' validate /dev/stdin --median 0 >/dev/null 2>said";
  CHECK(std::system(command.c_str()) != 0);
  const std::string said = folder.read("said");
  CHECK_THAT(said, ContainsSubstring("says what was"));  // it came that far
  CHECK_THAT(said, !ContainsSubstring("reading scenarios"));
}

}  // namespace
}  // namespace stratagem
