// `simulate --program FOLDER --expanded`: the programs of all runs, to compare versions by.
#include "tests/main/executable.hpp"

namespace stratagem {
namespace {

/// Besides those of the small scenario, one that no plan can be made of.
std::string with_refused() {
  return with(small_scenario(), "\n  ]",
              R"(, {"name": "a b/3", "strategy": {"tensor": 3, "data": 1}} ])");
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t number = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++number;
  return number;
}

TEST_CASE("simulate --expanded writes the program of every run, or why there is none, untimed") {
  const TemporaryFolder folder;
  folder.write("a.json", with_refused());
  const Ran ran = run("simulate a.json --program out/deep --expanded", folder);
  CHECK(ran.exit == 1);
  CHECK(ran.out == "wrote out/deep/alone.txt\nwrote out/deep/four.txt\nwrote out/deep/a_b_3.txt\n");
  CHECK_THAT(ran.err, ContainsSubstring("a.json: /runs/2"));
  const std::string refused = folder.read("out/deep/a_b_3.txt");
  CHECK_THAT(refused, StartsWith("refused: a.json: /runs/2"));
  CHECK(count(refused, "\n") == 1);
  // 8 samples, 2 at a time, on one GPU: 4 micro-batches; on two times two: 2.
  const std::string alone = folder.read("out/deep/alone.txt");
  CHECK(count(alone, "\n  F layers.1 in F(") == 4);
  CHECK(count(alone, "\nsequence of ranks 0\n") == 1);
  const std::string four = folder.read("out/deep/four.txt");
  CHECK(count(four, "\n  F layers.1 in F(") == 2);
  CHECK(count(four, "\nsequence of ranks 0-3\n") == 1);
}

TEST_CASE("simulate --expanded spells out the loops that --program alone writes") {
  const TemporaryFolder folder;
  folder.write("a.json", small_scenario());
  REQUIRE(run("simulate a.json --program four.txt --run four", folder).exit == 0);
  const Ran one = run("simulate a.json --program out --expanded --run four", folder);
  CHECK(one.exit == 0);
  // Two micro-batches: each call of a loop is there twice.
  const std::string loops = folder.read("four.txt"), calls = folder.read("out/four.txt");
  CHECK(count(loops, "\n  loop m = 0..1\n") == 1);
  CHECK(count(loops, "\n    F layers.1 in F(stage 0, micro-batch m)") == 1);
  CHECK(count(calls, "loop") == 0);
  CHECK(count(calls, "\n  F layers.1 in F(stage 0, micro-batch 0)") == 1);
  CHECK(count(calls, "\n  F layers.1 in F(stage 0, micro-batch 1)") == 1);
  const auto blocks = [](const std::string& text) { return text.substr(0, text.find("sequence")); };
  CHECK(blocks(loops) == blocks(calls));
  CHECK(!folder.has("out/alone.txt"));
}

TEST_CASE("simulate --expanded goes with --program, and with nothing that needs a simulation") {
  const TemporaryFolder folder;
  folder.write("a.json", small_scenario());
  CHECK(run("simulate a.json --expanded", folder).exit == 2);
  for (const std::string option :
       {"--json out.json", "--trace out.json", "--memory", "--accuracy"}) {
    INFO(option);
    const Ran ran = run("simulate a.json --program out --expanded " + option, folder);
    CHECK(ran.exit == 2);
    CHECK_THAT(ran.err, ContainsSubstring("needs a simulation"));
    CHECK(!folder.has("out"));
  }
  folder.write("taken", "a file");
  const Ran taken = run("simulate a.json --program taken --expanded", folder);
  CHECK(taken.exit == 1);
  CHECK_THAT(taken.err, ContainsSubstring("taken/alone.txt"));
}

}  // namespace
}  // namespace stratagem
