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
  for (const char* arguments : {"--help", "simulate --help", "search --help", "validate --help",
                                "topology --help", "calibrate --help"}) {
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
  is_usage("simulate a.json --jsn out.json", "no option --jsn (did you mean --json?)");
  is_usage("simulate a.json --wheels=4", "no option --wheels; --help lists them");
  is_usage("simulate a.json b.json", "b.json");
  is_usage("simulate a.json --trace t.json --run five", "no run named \"five\" in a.json");
  is_usage("simulate a.json --trace t.json --run fuor", "did you mean \"four\"?");
  is_usage("simulate a.json --run fuor", "did you mean \"four\"?");
  is_usage("simulate a.json --jobs 0", "--jobs: expected at least 1, found 0");
  is_usage("simulate a.json --jobs 1.5", "--jobs: expected a whole number, found 1.5");
  is_usage("simulate a.json --price 1,8", "--price: expected a number, as 2.5, found 1,8");
  is_usage("simulate a.json --price much", "--price: expected a number, as 2.5, found much");
  is_usage("options wheels", "part: expected one of strategy, model, rules, search, gpt");
  is_usage("validate", "missing scenarios");
  is_usage("validate a.json --figure time", "--figure: expected one of iteration_time");
  is_usage("validate a.json", "no run of a.json says what was \"measured\"");
  is_usage("search a.json --for tim", "--for: expected one of time, cost, memory (did you mean");
  is_usage("completion tcsh", "shell: expected one of bash, zsh, fish");
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
  is_usage("calibrate measure --backend abacus -o m.json",
           "--backend: expected one of cpu, cuda, found abacus");
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
  const std::string measured = R"("name": "four", "measured": {"iteration_time": {"value": "1 s",)"
                               R"( "provenance": "published", "source": "x"},
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
  CHECK(wrong.err == "a: fits: expected at most 0 wrong verdicts, found 1\n");
  // One run that did not fit is predicted to; of runs that did there is none.
  CHECK_THAT(wrong.out, ContainsSubstring("| a | 1 | 0 | 1 | 0 | 0 of 1 | - |"));
  folder.write("all/validate.json", R"({"wrong_verdicts": {}})");
  const Ran written = run("validate all", folder);
  CHECK(written.exit == 3);
  CHECK_THAT(written.err, ContainsSubstring("a: fits: expected at most 0 wrong verdicts, found 1"));
  folder.write("all/validate.json", R"({"wrong_verdicts": {"a": 1}})");
  CHECK(run("validate all", folder).exit == 0);
  CHECK(run("validate all --wrong 1 --summary", folder).exit == 0);
}

TEST_CASE("lost standard output is an error of every command, told in one line") {
  const TemporaryFolder folder;
  folder.write("a.json", small_scenario());
  const std::string measured = R"("name": "four", "measured": {"iteration_time": {"value": "1 s",)"
                               R"( "provenance": "published", "source": "x"}},)";
  folder.write("m.json", with(small_scenario(), "\"name\": \"four\",", measured));
  REQUIRE(run("simulate a.json --json p.json --trace t.json", folder).exit == 0);
  REQUIRE(run("execute a.json --steps 1 --trace e.json", folder).exit == 0);
  const std::string profiles = std::filesystem::absolute("scenarios/profiles").string();
  for (const std::string& arguments :
       {std::string("--help"), std::string("simulate --help"), std::string("simulate a.json"),
        std::string("simulate a.json --json -"), std::string("simulate a.json --json /dev/full"),
        std::string("validate m.json"), std::string("execute a.json --steps 1"),
        std::string("compare t.json e.json"), std::string("explain a.json"),
        std::string("topology show dgx-2"), std::string("topology export dgx-2 -o x.json"),
        "calibrate report --markdown " + profiles}) {
    INFO(arguments);
    const Ran ran = run(arguments, folder, "", ">/dev/full");
    CHECK(ran.exit == 1);
    CHECK_THAT(
        ran.err,
        ContainsSubstring("expected a file that can be written, found No space left on device\n"));
    if (!arguments.ends_with("-")) CHECK(std::ranges::count(ran.err, '\n') == 1);
  }
  CHECK(run("--help", folder, "", ">&-").exit == 1);  // there is none
}

TEST_CASE("an output named - or /dev/stdout is standard output, and the table makes room for it") {
  const TemporaryFolder folder;
  folder.write("a.json", small_scenario());
  const Ran plain = run("simulate a.json --json file.json", folder);
  for (const char* name : {"-", "/dev/stdout", "/dev/fd/1"}) {
    INFO(name);
    const Ran ran = run(std::string("simulate a.json --json ") + name, folder);
    CHECK(ran.exit == 0);
    CHECK(ran.out == folder.read("file.json"));
    CHECK(ran.err + "\nwrote file.json\n" == plain.out);
    CHECK(!folder.has("-"));
    run(std::string("simulate a.json --json ") + name, folder, "", "| cat >piped");
    CHECK(folder.read("piped") == folder.read("file.json"));
  }
  for (const std::string option : {"--trace", "--program"}) {
    REQUIRE(run("simulate a.json " + option + " file", folder).exit == 0);
    CHECK(run("simulate a.json " + option + " -", folder).out == folder.read("file"));
  }
  REQUIRE(run("topology export dgx-2 -o node.json", folder).exit == 0);
  CHECK(run("topology export dgx-2 -o -", folder).out == folder.read("node.json"));
  REQUIRE(run("explain a.json --as-plan plan.json", folder).exit == 0);
  CHECK(run("explain a.json --as-plan -", folder).out == folder.read("plan.json"));
  const Ran executed = run("execute a.json --steps 0 --json -", folder);
  CHECK_THAT(executed.out, StartsWith("{"));
  CHECK_THAT(executed.err, ContainsSubstring("one device: agrees"));
  CHECK(!folder.has("-"));
}

TEST_CASE("two outputs on standard output, and a file that is gone on with, are refused") {
  const TemporaryFolder folder;
  folder.write("a.json", small_scenario());
  const Ran both = run("simulate a.json --json - --trace /dev/stdout", folder);
  CHECK(both.exit == 1);
  CHECK_THAT(both.err, StartsWith("/dev/stdout: expected a file of its own for every output"));
  is_usage("calibrate measure --quick -o -", "--output is a file here, not standard output");
}

TEST_CASE("a pipe is written, and not opened before that") {
  const TemporaryFolder folder;
  folder.write("a.json", small_scenario());
  REQUIRE(run("simulate a.json --json file.json", folder).exit == 0);
  const std::string made = "mkfifo pipe && (cat pipe >piped &) ; ";
  CHECK(run("simulate a.json --json pipe && sleep 0.2", folder, made).exit == 0);
  CHECK(folder.read("piped") == folder.read("file.json"));
}

TEST_CASE("an output that cannot be written is named") {
  const TemporaryFolder folder;
  folder.write("a.json", small_scenario());
  const Ran ran = run("simulate a.json --json a.json/out.json", folder);
  CHECK(ran.exit == 1);
  CHECK(ran.err == "a.json/out.json: expected a file that can be written\n");
}
