// Names of profiles and stacks, and what the program tells of itself.
#include <algorithm>

#include "tests/main/executable.hpp"

namespace stratagem {
namespace {

/// The small scenario with names in place of paths.
std::string by_name() {
  const std::string shipped = std::filesystem::absolute("scenarios").string();
  return with(with(small_scenario(), shipped + "/profiles/v100-sxm3.json", "v100-sxm3"),
              shipped + "/stacks/megatron-2019.json", "megatron-2019");
}

TEST_CASE("a scenario anywhere finds profiles and stacks by name") {
  const TemporaryFolder folder;
  folder.write("a.json", by_name());
  const Ran ran = run("simulate a.json --json a.out", folder);
  CHECK(ran.err.empty());
  REQUIRE(ran.exit == 0);
  // The same answer as by path.
  folder.write("b.json", small_scenario());
  REQUIRE(run("simulate b.json --json b.out", folder).exit == 0);
  const std::string time = "\"iteration_time_s\": ";
  const auto first = [&](const std::string& text) {
    return text.substr(text.find(time), text.find('\n', text.find(time)) - text.find(time));
  };
  CHECK(first(folder.read("a.out")) == first(folder.read("b.out")));
}

TEST_CASE("a stack of one's own may be based on one of the library") {
  const TemporaryFolder folder;
  folder.write("a.json", with(by_name(), "\"megatron-2019\"", "\"mine\""));
  std::filesystem::create_directories(folder.path() / "stacks");
  const std::string mine = R"({"name": "mine", "source": "x", "base": ")";
  folder.write("stacks/mine.json", mine + "megatron-2019\"}");
  CHECK(run("simulate a.json", folder).exit == 0);
  folder.write("stacks/mine.json", mine + "megatron-2091\"}");
  CHECK_THAT(run("simulate a.json", folder).err,
             ContainsSubstring("/base: expected the name of a stack beside this one or in the "
                               "library, found megatron-2091"));
}

TEST_CASE("plans that a search writes name what stands in the library, as the search does") {
  const TemporaryFolder folder;
  folder.write("a.json", R"({"question": "?", "defaults": {
    "model": {"family": "gpt", "layers": 2, "hidden": 64, "heads": 4, "sequence": 32,
      "vocabulary": 64},
    "cluster": {"preset": "dgx-1v", "gpus": 2}, "profile": "v100-sxm3", "stack": "megatron-2019",
    "training": {"global_batch": 4, "micro_batch": 2, "precision": "fp16",
      "optimizer": "adam"}},
    "search": {"tensor": [1, 2]}})");
  REQUIRE(run("search a.json --plans out/b.json --best 1", folder).exit == 0);
  CHECK(run("simulate out/b.json", folder).exit == 0);
}

TEST_CASE("the library is the folder that one names, behind what is beside the scenario") {
  const TemporaryFolder folder;
  folder.write("a.json", by_name());
  std::filesystem::create_directories(folder.path() / "mine" / "profiles");
  std::filesystem::create_directories(folder.path() / "mine" / "stacks");
  CHECK_THAT(run("--library mine simulate a.json", folder).err,
             ContainsSubstring("a folder profiles beside the scenario, or in mine"));
  for (const char* name : {"profiles/v100-sxm3.json", "stacks/megatron-2019.json"})
    std::filesystem::copy(std::filesystem::path("scenarios") / name, folder.path() / "mine" / name);
  CHECK(run("--library mine simulate a.json", folder).exit == 0);
  CHECK(run("simulate a.json", folder, "STRATAGEM_LIBRARY=mine ").exit == 0);
  CHECK(run("simulate a.json", folder, "STRATAGEM_LIBRARY=no ").exit == 1);
  CHECK(run("--library no simulate a.json", folder).exit == 1);
  CHECK(run("--library", folder).exit == 2);
  std::filesystem::create_directories(folder.path() / "profiles");
  folder.write("profiles/v100-sxm3.json", "{}");
  CHECK_THAT(run("simulate a.json", folder).err, ContainsSubstring("profiles/v100-sxm3.json: "));
}

TEST_CASE("list names what a scenario may name") {
  const TemporaryFolder folder;
  CHECK_THAT(run("list", folder).out, ContainsSubstring("stratagem list profiles"));
  const std::string profiles = run("list profiles", folder).out;
  CHECK_THAT(profiles, ContainsSubstring("v100-sxm3 "));
  CHECK_THAT(profiles, ContainsSubstring("34.36 GB"));
  CHECK_THAT(run("list models", folder).out, ContainsSubstring("llama-2-70b"));
  CHECK_THAT(run("list clusters", folder).out, ContainsSubstring("dgx-a100"));
  const Ran slip = run("list profile", folder);
  CHECK(slip.exit == 2);
  CHECK_THAT(slip.err, ContainsSubstring("did you mean \"profiles\"?"));
}

TEST_CASE("a slip in a command is answered by the nearest one, and --version by a version") {
  const TemporaryFolder folder;
  CHECK_THAT(run("simulat a.json", folder).err, ContainsSubstring("did you mean \"simulate\"?"));
  CHECK_THAT(run("frobnicate", folder).err, ContainsSubstring("see stratagem --help"));
  const Ran version = run("--version", folder);
  CHECK(version.exit == 0);
  CHECK_THAT(version.out, ContainsSubstring("stratagem 0."));
}

TEST_CASE("settings of the command line change the runs") {
  const TemporaryFolder folder;
  folder.write("a.json", small_scenario());
  const Ran ran = run("simulate a.json --grid micro_batch=1,2 --set optimizer=sgd", folder);
  REQUIRE(ran.exit == 0);
  CHECK_THAT(ran.out, ContainsSubstring("alone, micro_batch 2"));
  // One run alone, or what a grid makes of it.
  const std::string alone = run("simulate a.json --run four --columns idle", folder).out;
  CHECK(std::ranges::count(alone, '\n') == 2);
  const std::string grid =
      run("simulate a.json --run four --grid micro_batch=1,2 --columns idle", folder).out;
  CHECK(std::ranges::count(grid, '\n') == 3);
  const Ran slip = run("simulate a.json --set precision=float16", folder);
  CHECK(slip.exit == 1);
  CHECK_THAT(slip.err, ContainsSubstring("did you mean \"fp16\"?"));
}

}  // namespace
}  // namespace stratagem
