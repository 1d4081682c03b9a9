// HTML reports as a browser draws them: nothing goes wrong there, and their figures are those of
// the JSON.
#include <map>
#include <numeric>
#include <regex>
#include <vector>

#include "base/json_reader.hpp"
#include "tests/main/executable.hpp"

namespace stratagem {
namespace {

/// A page when its scripts have run.
struct Shown {
  std::string elements;  ///< as HTML
  std::string said;      ///< lines of the console
  /// By key, the figures in cells of tables, in the order of the page.
  std::map<std::string, std::vector<std::string>> figures;
};

/// The browser draws on a virtual clock, so nothing depends on the machine's speed.
std::string in_browser(const TemporaryFolder& folder, const std::string& page,
                       const std::string& act) {
  const std::string command =
      "cd '" + folder.path().string() +
      "' && HOME=. " STRATAGEM_BROWSER
      " --no-sandbox --disable-gpu --enable-logging=stderr --virtual-time-budget=4000"
      " --window-size=1300,2600 " +
      act + " 'file://" + (folder.path() / page).string() + "' >out 2>err";
  REQUIRE(std::system(command.c_str()) == 0);
  return folder.read("out");
}

Shown shown(const TemporaryFolder& folder, const std::string& page) {
  Shown result{.elements = in_browser(folder, page, "--dump-dom")};
  std::istringstream lines(folder.read("err"));
  for (std::string line; std::getline(lines, line);) {
    if (line.find("CONSOLE") != std::string::npos) result.said += line + "\n";
  }
  const std::regex cell(R"re(data-key="([^"]*)" data-value="([^"]*)")re");
  for (std::sregex_iterator at(result.elements.begin(), result.elements.end(), cell), end;
       at != end; ++at)
    result.figures[(*at)[1]].push_back((*at)[2]);
  std::filesystem::create_directories(STRATAGEM_SCREENSHOTS);
  const std::string picture =
      (std::filesystem::path(STRATAGEM_SCREENSHOTS) / page).replace_extension(".png").string();
  in_browser(folder, page, "--screenshot='" + picture + "'");
  CHECK(std::filesystem::file_size(picture) > 10'000);
  return result;
}

void check_figures(const Shown& page, const std::vector<JsonReader>& rows,
                   const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    CAPTURE(key);
    const auto found = page.figures.find(key);
    REQUIRE(found != page.figures.end());
    REQUIRE(found->second.size() == rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      CHECK(std::stod(found->second[i]) == rows[i].at(key).number());
  }
}

/// Two stages of a GPT that fits, and one that does not.
std::string piped_scenario() {
  return with(small_scenario(), R"("strategy": {"recompute": "full"}},)",
              R"("strategy": {"recompute": "full"}},
    {"name": "piped", "cluster": {"gpus": 2}, "strategy": {"pipeline": 2}},
    {"name": "too <large> & \"quoted\"</script>", "cluster": {"gpus": 1},
     "model": {"hidden": 16384, "layers": 40}},
    {"name": "refused", "cluster": {"gpus": 1}, "strategy": {"pipeline": 2}},)");
}

TEST_CASE("a report of runs shows the JSON's figures") {
  const TemporaryFolder folder;
  folder.write("a.json", piped_scenario());
  const Ran ran = run("simulate a.json --no-remedies --report runs.html --json runs.json", folder);
  REQUIRE(ran.exit == 1);  // one run is refused
  const Shown page = shown(folder, "runs.html");
  CHECK(page.said.empty());
  std::vector<JsonReader> runs =
      JsonReader::from_file((folder.path() / "runs.json").string()).at("runs").elements();
  REQUIRE(runs.size() == 5);
  CHECK_THAT(page.elements, ContainsSubstring("too &lt;large&gt; &amp; \"quoted\"&lt;/script&gt;"));
  CHECK_THAT(page.elements, ContainsSubstring("class=\"bad\" title=\"needs "));
  std::erase_if(runs, [](const JsonReader& one) { return !one.has("iteration_time_s"); });
  REQUIRE(runs.size() == 4);
  check_figures(page, runs, {"peak_used_bytes"});
  std::erase_if(runs, [](const JsonReader& one) { return one.at("status").text() != "ok"; });
  REQUIRE(runs.size() == 3);
  check_figures(
      page, runs,
      {"iteration_time_s", "tokens_per_s", "mfu", "bubble_fraction", "exposed_communication_s"});
}

TEST_CASE("a report draws every cell") {
  const TemporaryFolder folder;
  std::string text = with(small_scenario(), "\"baseline\": \"alone\",\n", "");
  text.replace(text.find("  \"runs\""), std::string::npos,
               R"("runs": [{"name": "one", "cluster": {"gpus": 1}}]})");
  folder.write("a.json", text);
  REQUIRE(run("simulate a.json --report cells.html", folder).exit == 0);
  // Four micro-batches forward and backward, and a step.
  CHECK_THAT(shown(folder, "cells.html").elements, ContainsSubstring("data-bars=\"9\""));
}

TEST_CASE("a report of a search shows the best plans and how all were answered") {
  const TemporaryFolder folder;
  std::string text = small_scenario();
  text.replace(text.find("  \"runs\""), std::string::npos,
               R"("search": {"tensor": [1, 2], "pipeline": [1, 2], "zero": [0], "micro_batch": [2],
                  "recompute": ["none"], "schedule": ["1f1b"], "sequence_parallel": [false]}})");
  text = with(text, "\"baseline\": \"alone\",\n", "");
  folder.write("a.json", text);
  REQUIRE(run("search a.json --report found.html --json found.json", folder).exit == 0);
  const Shown page = shown(folder, "found.html");
  CHECK(page.said.empty());
  const JsonReader found = JsonReader::from_file((folder.path() / "found.json").string());
  check_figures(page, found.at("best").elements(),
                {"iteration_time_s", "tokens_per_s", "peak_used_bytes", "bubble_fraction"});
  std::vector<std::int64_t> counts;
  for (const std::string& one : page.figures.at("count")) counts.push_back(std::stoll(one));
  CHECK(counts.front() == found.at("combinations").whole_number());
  CHECK(std::accumulate(counts.begin() + 1, counts.end(), std::int64_t{0}) == counts.front());
}

TEST_CASE("a report of measurements shows their errors") {
  const TemporaryFolder folder;
  folder.write("a.json", with(small_scenario(), R"("strategy": {"recompute": "full"}})",
                              R"("strategy": {"recompute": "full"}, "measured": {"iteration_time":
                       {"value": "250 ms", "provenance": "published", "source": "a test"}}})"));
  REQUIRE(run("validate a.json --report errors.html --json errors.json", folder).exit == 0);
  const Shown page = shown(folder, "errors.html");
  CHECK(page.said.empty());
  const JsonReader all = JsonReader::from_file((folder.path() / "errors.json").string());
  const JsonReader group = all.at("groups").elements().front();
  check_figures(page, group.at("figures").elements(), {"measured", "predicted", "error"});
  check_figures(page, group.at("statistics").elements(), {"median_error", "count"});
}

}  // namespace
}  // namespace stratagem
