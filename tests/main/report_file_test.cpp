// HTML reports as files: all that they need is in them.
#include "tests/main/executable.hpp"

namespace stratagem {
namespace {

TEST_CASE("a report needs no network, and is the same each time") {
  const TemporaryFolder folder;
  folder.write("a.json", small_scenario());
  REQUIRE(run("simulate a.json --report one.html", folder).exit == 0);
  REQUIRE(run("simulate a.json --report two.html --jobs=1", folder).exit == 0);
  const std::string page = folder.read("one.html");
  CHECK(page == folder.read("two.html"));
  for (const char* elsewhere :
       {"src=\"", "<link", "@import", "fetch(", "XMLHttpRequest", "url(", "WebSocket"})
    CHECK(page.find(elsewhere) == std::string::npos);
}

}  // namespace
}  // namespace stratagem
