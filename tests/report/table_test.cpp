// The table for people: within 120 columns, with what it needs to be understood below it.
#include <fmt/format.h>

#include <sstream>

#include "base/quantity_text.hpp"
#include "report/figure_text.hpp"
#include "report/memory_table.hpp"
#include "report/report.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "tests/small_scenario.hpp"

using namespace stratagem;

namespace {

struct Tabulated {
  study::Scenario scenario;
  std::vector<study::Result> results;
};

/// The small scenario with two assumptions, figures of both kinds, and a run that does not fit its
/// GPU.
Tabulated tabulated() {
  const TemporaryFolder folder;
  std::string text = with(small_scenario(), "\"name\": \"four\",",
                          R"("name": "four", "group": "Parallel",
      "assumed": "the first thing, told at such length that one line of the table )"
                          R"(does not hold it all and it must be wrapped",
      "measured": {"speedup": {"value": 2, "provenance": "from memory", "source": "nobody"},
                   "iteration_time": {"value": "5 ms", "provenance": "published",
                     "source": "somebody"}},)");
  text = with(text, "\n  ]", R"(,
    {"name": "two", "group": "Parallel", "cluster": {"gpus": 2}, "strategy": {"data": 2},
      "assumed": "the second thing"},
    {"name": "large", "group": "Too large", "cluster": {"gpus": 1}, "strategy": {},
      "training": {"micro_batch": 1},
     "model": {"layers": 24, "hidden": 4096, "heads": 32}} ])");
  folder.write("a.json", text);
  Tabulated made{study::read_scenario((folder.path() / "a.json").string()), {}};
  std::vector<study::Outcome> outcomes;
  for (const study::Run& run : made.scenario.runs)
    outcomes.push_back(study::simulate(run, {}).outcome);
  // Results point to the runs, which stay where they are when the scenario moves.
  made.results = study::compare(made.scenario, std::move(outcomes));
  return made;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string line_of(const std::vector<std::string>& lines, const std::string& start) {
  const auto found =
      std::ranges::find_if(lines, [&](const std::string& line) { return line.starts_with(start); });
  REQUIRE(found != lines.end());
  return *found;
}

}  // namespace

TEST_CASE("the table keeps within 120 columns and ends no line with a blank") {
  const Tabulated made = tabulated();
  for (const std::string& line : lines_of(report::table(made.scenario, made.results))) {
    CHECK(line.size() <= 120);
    CHECK(!line.ends_with(' '));
  }
}

TEST_CASE("the table stands every figure in its column") {
  const Tabulated made = tabulated();
  const std::vector<std::string> lines = lines_of(report::table(made.scenario, made.results));
  const std::string heading = line_of(lines, "run ");
  const std::string four = line_of(lines, "four [1] ");
  for (const auto& [column, value] :
       {std::pair("time", " s"), std::pair("efficiency", " %"), std::pair("predicted", " s")}) {
    const std::size_t end = heading.find(column) + std::string(column).size();
    CHECK(four.substr(end - 2, 2) == value);
  }
  CHECK_THAT(four, ContainsSubstring(" 0.005 s "));
}

TEST_CASE("the table marks what is assumed and what is from memory, and says so below") {
  const Tabulated made = tabulated();
  const std::string table = report::table(made.scenario, made.results);
  const std::vector<std::string> lines = lines_of(table);
  line_of(lines, "two [2] ");
  CHECK_THAT(line_of(lines, "[1] assumed: "), ContainsSubstring("the first thing, told"));
  CHECK(line_of(lines, "[2] assumed: ") == "[2] assumed: the second thing");
  CHECK_THAT(table, ContainsSubstring(" 2.00 x* "));
  line_of(lines, "* recalled from memory");
}

TEST_CASE("the table marks an iteration time that did not become steady, and says so below") {
  Tabulated made = tabulated();
  const std::string steady = report::table(made.scenario, made.results);
  CHECK(steady.find('~') == std::string::npos);
  REQUIRE(made.results[2].run->name == "two");
  made.results[2].outcome.metrics->steady = false;
  const std::vector<std::string> lines = lines_of(report::table(made.scenario, made.results));
  CHECK(std::ranges::count_if(lines, [](const std::string& line) {
          return line.find('~') != std::string::npos;
        }) == 2);
  line_of(lines, "~ not steady: ");
  // The mark stands in a blank: the line is the old one otherwise.
  std::string two = line_of(lines, "two [2] ");
  CHECK_THAT(two, ContainsSubstring(" ~0."));
  two[two.find('~')] = ' ';
  CHECK(two == line_of(lines_of(steady), "two [2] "));
}

TEST_CASE("a run that does not fit shows its memory and why, and no time") {
  const Tabulated made = tabulated();
  const std::vector<std::string> lines = lines_of(report::table(made.scenario, made.results));
  const std::string large = line_of(lines, "large ");
  CHECK(large.find(" s") == std::string::npos);
  CHECK_THAT(large, ContainsSubstring(" GB"));
  CHECK_THAT(line_of(lines, "  does not run: needs "),
             ContainsSubstring("a GPU has 34.36 GB"));  // 32 GiB
}

TEST_CASE("measured memory has a line of its own that names the figure, fitting or not") {
  Tabulated made = tabulated();
  study::Result& large = made.results[3];
  REQUIRE(large.run->name == "large");
  const auto measure = [&](const std::string& name, double value) {
    std::ranges::find(large.figures, name, &study::Figure::name)->measured = value;
  };
  measure("peak_reserved", 50e9);
  measure("fits", 0);
  const std::vector<std::string> lines = lines_of(report::table(made.scenario, made.results));
  const auto name = std::ranges::find_if(
      lines, [](const std::string& line) { return line.starts_with("large "); });
  REQUIRE(lines.end() - name > 3);
  const std::size_t column = name->size();
  CHECK(name[1].find("reserved") == column - 8);
  CHECK_THAT(name[1], ContainsSubstring(" 50 GB "));
  CHECK(name[2].find("fits") == column - 4);
  CHECK(name[2].ends_with(" no            no     right"));
  CHECK_THAT(name[3], StartsWith("  does not run: "));
}

TEST_CASE("a run that does not fit says what is short, and what fills its fullest device") {
  const Tabulated made = tabulated();
  const std::string table = report::table(made.scenario, made.results);
  // 4.84e9 parameters: 2 bytes each of weights and gradients, 16 of states.
  CHECK_THAT(table, ContainsSubstring(" short; allocated: optimizer states "));
  const study::Outcome& large = made.results[3].outcome;
  CHECK_THAT(table, ContainsSubstring("\n  " + to_text(large.memory.used - 32_GiB) + " short"));
  // Of what its allocator holds, so much is no tensor's.
  const sim::DeviceMemory& fullest = sim::fullest(large.devices);
  REQUIRE(fullest.reserved > fullest.allocated);
  const std::string free = to_text(fullest.reserved - fullest.allocated);
  std::string in_one_line = table;
  std::ranges::replace(in_one_line, '\n', ' ');
  const std::size_t at = in_one_line.find("; free");
  REQUIRE(at != std::string::npos);
  CHECK_THAT(in_one_line.substr(at, 80), ContainsSubstring(free));
}

TEST_CASE("the memory table has every class of devices of every run, with its peak") {
  const Tabulated made = tabulated();
  const std::string text = report::memory_table(made.results);
  for (const study::Result& result : made.results) {
    CHECK_THAT(text, ContainsSubstring(result.run->name + "\n  device "));
    for (const sim::DeviceMemory& device : result.outcome.devices) {
      CHECK_THAT(text, ContainsSubstring(to_text(device.used())));
      CHECK_THAT(text, ContainsSubstring(device.at.substr(0, device.at.find(' '))));
    }
  }
  CHECK_THAT(text, ContainsSubstring("\n  0 and 3 like it "));
  CHECK_THAT(text, ContainsSubstring(" short of 34.36 GB\n"));
  for (const std::string& line : lines_of(text)) {
    CHECK(line.size() <= 120);
    CHECK(!line.ends_with(' '));
  }
}

TEST_CASE("the table names the weakest constants and what the stack was fitted to") {
  const Tabulated made = tabulated();
  const std::vector<std::string> lines =
      lines_of(report::table(made.scenario, made.results, report::Sources::in_full));
  const std::string weakest = cost::to_text(made.results[1].outcome.weakest.provenance);
  line_of(lines, "Weakest provenance used: " + weakest);
  line_of(lines, "Stack megatron-2019: slowdown ");
  const std::vector<std::string> brief = lines_of(report::table(made.scenario, made.results));
  CHECK_THAT(line_of(brief, "Weakest constants: " + weakest), ContainsSubstring("megatron-2019"));
  CHECK(brief.size() < lines.size());
}

TEST_CASE("where nothing was measured, the table answers: tokens, shares of time, memory") {
  Tabulated made = tabulated();
  for (study::Result& result : made.results)
    for (study::Figure& figure : result.figures) figure.measured.reset();
  const std::vector<std::string> lines = lines_of(report::table(made.scenario, made.results));
  for (const std::string& line : lines) {
    CHECK(line.size() <= 120);
    CHECK(!line.ends_with(' '));
  }
  const std::string heading = line_of(lines, "run ");
  for (const char* column : {"iteration", "tokens/s", "MFU", "exposed comm.", "idle", "memory"})
    CHECK_THAT(heading, ContainsSubstring(column));
  CHECK(heading.find("cost") == std::string::npos);  // no GPU has a price
  const study::Result& two = made.results[2];
  REQUIRE(two.run->name == "two");
  // Samples times their tokens, by the time that they take.
  const double rate = two.run->batch.global * static_cast<double>(two.run->batch.sequence) /
                      two.outcome.metrics->iteration_time.value;
  CHECK_THAT(line_of(lines, "two [2] "), ContainsSubstring(fmt::format(" {:.0f} ", rate)));
  CHECK_THAT(line_of(lines, "large "), ContainsSubstring(" GB"));
  line_of(lines, "  does not run: needs ");
  // The shares of the fastest run's iteration are all of it, but for rounding.
  std::string goes;
  const auto begin = std::ranges::find_if(
      lines, [](const std::string& line) { return line.starts_with("Fastest: "); });
  REQUIRE(lines.end() - begin > 1);
  goes = begin[0] + begin[1];
  int sum = 0;
  for (std::size_t at = goes.find(" %"); at != std::string::npos; at = goes.find(" %", at + 1))
    sum += std::stoi(goes.substr(goes.find_last_of(' ', at - 1) + 1));
  CHECK(std::abs(sum - 100) <= 2);
}

TEST_CASE("errors are points of efficiencies and percents of all else") {
  const study::Figure efficiency{.name = "scaling_efficiency", .predicted = 0.80, .measured = 0.77};
  CHECK(report::error_text(efficiency) == "+3.0 pt");
  const study::Figure speedup{.name = "speedup", .predicted = 1.5, .measured = 2.0};
  CHECK(report::error_text(speedup) == "-25.0 %");
  const study::Figure exact{.name = "speedup", .predicted = 1.9999, .measured = 2.0};
  CHECK(report::error_text(exact) == "0.0 %");  // not -0.0 %
  CHECK(report::error_text({.name = "speedup", .predicted = 2.0}).empty());
  CHECK(report::error_text({.name = "fits", .predicted = 0, .measured = 1}) == "wrong");
}

TEST_CASE("the accuracy as Markdown has a row for every measured figure") {
  const Tabulated made = tabulated();
  const std::vector<std::string> lines = lines_of(report::accuracy(made.results));
  REQUIRE(lines.size() == 4);  // heading, rule, two figures of "four"
  CHECK_THAT(lines[2], StartsWith("| four | 4 | iteration time | 0.005 s | "));
  CHECK_THAT(lines[2], ContainsSubstring("| somebody |"));
  CHECK_THAT(lines[3], ContainsSubstring("| from memory: nobody |"));
}
