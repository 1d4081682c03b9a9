// Exit codes: 0 done, 1 bad input (bad_input_test.cpp), 2 usage, 3 an unmet expectation.
#include "tests/main/executable.hpp"

using namespace stratagem;

namespace {

void is_usage(const std::string& arguments, const std::string& complaint) {
  const TemporaryFolder folder;
  folder.write("a.json", small_scenario());
  const Ran ran = run(arguments, folder);
  CHECK(ran.exit == 2);
  CHECK(ran.out.empty());
  CHECK(std::ranges::count(ran.err, '\n') == 1);
  CHECK_THAT(ran.err, StartsWith("stratagem: "));
  CHECK_THAT(ran.err, ContainsSubstring(complaint));
}

std::string expecting(const std::string& expectation) {
  return with(small_scenario(), "\"name\": \"four\",",
              "\"name\": \"four\", \"expect\": {" + expectation + "},");
}

}  // namespace

TEST_CASE("help is printed with exit code 0") {
  const TemporaryFolder folder;
  for (const char* arguments :
       {"--help", "simulate --help", "validate --help", "topology --help", "calibrate --help"}) {
    const Ran ran = run(arguments, folder);
    CHECK(ran.exit == 0);
    CHECK_THAT(ran.out, ContainsSubstring("stratagem"));
    CHECK(ran.err.empty());
  }
}

TEST_CASE("a command line that cannot be understood ends with exit code 2 and one line") {
  is_usage("", "which command?");
  is_usage("simulat a.json", "no command \"simulat\"");
  is_usage("simulate", "missing scenario");
  is_usage("simulate a.json --jsn out.json", "jsn");
  is_usage("simulate a.json b.json", "b.json");
  is_usage("simulate a.json --trace t.json --run five", "no run named \"five\" in a.json");
  is_usage("simulate a.json --trace t.json --run fuor", "did you mean \"four\"?");
  is_usage("validate", "missing scenarios");
  is_usage("validate a.json --figure time", "no figure \"time\"");
  is_usage("validate a.json", "nothing of this was measured");
  is_usage("calibrate import a.json --rules", "rules");
  is_usage("calibrate check", "one profile");
  is_usage("calibrate check a.json --seed 0", "--seed is a whole number of at least 1");
  is_usage("calibrate check a.json --limit -0.1", "--limit is a share of more than 0");
  is_usage("topology show dgx-3", "no preset \"dgx-3\"");
  is_usage("topology show dgx-2 --nodes 0", "at least 1");
  is_usage("topology show dgx-2 --nodes two", "two");
}

TEST_CASE("a GPU that is not there, or is none, is told in one line") {
  REQUIRE(setenv("CUDA_VISIBLE_DEVICES", "", 1) == 0);  // what CUDA takes for no GPU
  is_usage("calibrate measure --backend cuda -o m.json", "--backend cuda needs a GPU: ");
  REQUIRE(unsetenv("CUDA_VISIBLE_DEVICES") == 0);
  is_usage("calibrate measure --backend abacus -o m.json", "cpu and cuda; not \"abacus\"");
}

TEST_CASE("an expectation that is met ends with exit code 0") {
  const TemporaryFolder folder;
  folder.write("a.json", expecting(R"("fits": {"value": true, "because": "it is small"},
                                      "speedup": {"at_most": 4, "because": "four GPUs"})"));
  const Ran ran = run("simulate a.json", folder);
  CHECK(ran.exit == 0);
  CHECK(ran.err.empty());
}

TEST_CASE(
    "an expectation that is not met ends with exit code 3, after everything has been written") {
  const TemporaryFolder folder;
  folder.write("a.json", expecting(R"("fits": {"value": false, "because": "a guess"},
                                      "speedup": {"at_least": 5, "because": "a hope"})"));
  const Ran ran = run("simulate a.json --json out.json", folder);
  CHECK(ran.exit == 3);
  CHECK(folder.has("out.json"));
  CHECK(std::ranges::count(ran.err, '\n') == 2);
  CHECK_THAT(
      ran.err,
      StartsWith("a.json: /runs/1/expect/fits: expected not to fit, but it does (four: a guess)\n"
                 "a.json: /runs/1/expect/speedup: expected at least 5, predicted "));
}

TEST_CASE("validation ends with exit code 3 where a limit does not hold, else with 0") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "all");
  const std::string measured =
      R"("name": "four", "measured": {"iteration_time": {"value": "1 s", "provenance": "published", "source": "x"},
         "fits": {"value": false, "provenance": "published", "source": "x"}},)";
  folder.write("all/a.json", with(small_scenario(), "\"name\": \"four\",", measured));
  CHECK(run("validate all", folder).exit == 0);
  const Ran median = run("validate all --median 8 --json out.json", folder);
  CHECK(median.exit == 3);
  CHECK(folder.has("out.json"));
  CHECK_THAT(median.err, StartsWith("a: iteration_time: expected a median error of at most 8.0 %"));
  CHECK(run("validate all --median 100", folder).exit == 0);
  const Ran wrong = run("validate all/a.json --wrong 0 --figure fits", folder);
  CHECK(wrong.exit == 3);
  CHECK(wrong.err == "fits: expected at most 0 wrong verdicts, found 1\n");
  folder.write("all/validate.json", R"({"wrong_verdicts": 0})");
  CHECK(run("validate all", folder).exit == 3);
  CHECK(run("validate all --wrong 1 --summary", folder).exit == 0);
}

TEST_CASE("an output that cannot be written is named") {
  const TemporaryFolder folder;
  folder.write("a.json", small_scenario());
  const Ran ran = run("simulate a.json --json a.json/out.json", folder);
  CHECK(ran.exit == 1);
  CHECK(ran.err == "a.json/out.json: expected a file that can be written\n");
}
