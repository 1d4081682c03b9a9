// Whatever a user can get wrong: one line that says where and what; exit 1. What is wrong with the
// form of a file ends all of it, and nothing is written; a run that cannot be is a row, and the
// others are answered.
#include "base/json_reader.hpp"
#include "tests/json_schema.hpp"
#include "tests/main/executable.hpp"
#include "tests/sanitized.hpp"

using namespace stratagem;

namespace {

/// Simulates the scenario and checks that it is refused as it should be: with one line that begins
/// with `a.json: ` and the path, and has every one of the parts.
void refuses(const TemporaryFolder& folder, const std::string& scenario, const std::string& path,
             const std::vector<std::string>& parts) {
  folder.write("a.json", scenario);
  const Ran ran =
      run("simulate a.json --json out.json --trace trace.json --program program.txt", folder);
  CHECK(ran.exit == 1);
  CHECK(ran.out.empty());
  CHECK(std::ranges::count(ran.err, '\n') == 1);
  CHECK_THAT(ran.err, StartsWith("a.json: " + (path.empty() ? "" : path + ": ") + "expected "));
  for (const std::string& part : parts) CHECK_THAT(ran.err, ContainsSubstring(part));
  for (const char* output : {"out.json", "trace.json", "program.txt"}) CHECK(!folder.has(output));
}

void refuses(const std::string& scenario, const std::string& path,
             const std::vector<std::string>& parts) {
  refuses(TemporaryFolder(), scenario, path, parts);
}

/// Simulates a scenario of which runs cannot be, and checks that they are rows that say so, in the
/// table and in the JSON, told once on standard error: with a line that begins with `a.json: ` and
/// the path, has every one of the parts, and ends with the runs.
void refuses_runs(const std::string& scenario, const std::string& path,
                  const std::vector<std::string>& parts, const std::string& runs) {
  const TemporaryFolder folder;
  folder.write("a.json", scenario);
  const Ran ran = run("simulate a.json --json out.json --no-remedies", folder);
  INFO(ran.err);
  CHECK(ran.exit == 1);
  CHECK(std::ranges::count(ran.err, '\n') == 1);
  CHECK_THAT(ran.err, StartsWith("a.json: " + path + ": expected "));
  for (const std::string& part : parts) CHECK_THAT(ran.err, ContainsSubstring(part));
  CHECK_THAT(ran.err, ContainsSubstring(" (" + runs + ")\n"));
  CHECK_THAT(ran.out, ContainsSubstring("\n  refused: " + path + ": expected "));
  CHECK_THAT(folder.read("out.json"), ContainsSubstring("\"status\": \"refused\""));
}

const std::string both = "runs \"alone\", \"four\"", four_alone = "run \"four\"";

}  // namespace

TEST_CASE("runs that cannot be are told, and the others are answered as if they were alone") {
  const TemporaryFolder folder;
  folder.write("a.json", small_scenario());
  REQUIRE(run("simulate a.json --json good.json", folder).exit == 0);
  const std::string bad = R"(
    {"name": "bad", "strategy": {"tensor": 3}},
    {"name": "no precision", "training": {"precision": "bf16"}, "strategy": {"data": 4}},
    {"name": "no cluster", "cluster": {"nodes": 1, "gpus": 17}, "strategy": {"data": 4}},
    {"name": "unlowered", "strategy": {"data": 4, "zero": 1},)"
                          R"( "training": {"optimizer": "adafactor"}},
    {"name": "alone",)";
  folder.write("a.json", with(small_scenario(), "{\"name\": \"alone\",", bad.substr(1)));
  const Ran ran = run("simulate a.json --json out.json --run four --trace t.json", folder);
  CHECK(ran.exit == 1);
  CHECK(std::ranges::count(ran.err, '\n') == 4);
  CHECK(folder.has("t.json"));
  const auto row = [&](const std::string& begin) {  // without figures
    const std::size_t at = ran.out.find("\n" + begin);
    REQUIRE(at != std::string::npos);
    const std::size_t end = ran.out.find('\n', at + 1);
    const std::string figures = ran.out.substr(at + 1 + begin.size(), end - at - 1 - begin.size());
    CHECK(figures.find_first_not_of("- ") == std::string::npos);
    return ran.out.substr(end);
  };
  CHECK_THAT(row("bad              4 "), StartsWith("\n  refused: /runs/0/strategy: "));
  CHECK_THAT(row("no cluster "), StartsWith("\n  refused: /runs/2/cluster/gpus: "));
  const auto runs = [&](const std::string& file) {
    const std::string path = (folder.path() / file).string();
    check_schema(path, "scenarios/schema/report.schema.json");
    return JsonReader::from_file(path).at("runs").elements();
  };
  const std::vector<JsonReader> good = runs("good.json"), all = runs("out.json");
  REQUIRE(all.size() == 6);
  CHECK(all[4].dump() == good[0].dump());
  CHECK(all[5].dump() == good[1].dump());
  for (int i = 0; i < 4; ++i) {
    CHECK(all[i].at("status").text() == "refused");
    CHECK_THAT(all[i].at("reason").text(), StartsWith("a.json: /"));
    CHECK(!all[i].has("iteration_time_s"));
  }
  CHECK(!all[2].has("gpus"));
}

TEST_CASE("where nothing can be, the table says nothing of constants") {
  const TemporaryFolder folder;
  folder.write("a.json", with(small_scenario(), "\"fp16\"", "\"bf16\""));
  for (const char* option : {"", " --memory", " --accuracy"}) {
    const Ran ran = run(std::string("simulate a.json") + option, folder);
    CHECK(ran.exit == 1);
    CHECK(ran.out.find("provenance") == std::string::npos);
  }
}

TEST_CASE("a refused run that was measured is told in a validation, and the others are counted") {
  const TemporaryFolder folder;
  std::string text = small_scenario();
  for (const std::string name : {"alone", "four"}) {
    text = with(text, "{\"name\": \"" + name + "\",", "{\"name\": \"" + name + R"(", "measured":
        {"iteration_time": {"value": "1 s", "provenance": "published", "source": "x"}},)");
  }
  folder.write("a.json", with(text, "\"data\": 2", "\"data\": 3"));
  for (const char* option : {"", " --summary"}) {
    const Ran ran = run(std::string("validate a.json --json out.json") + option, folder);
    CHECK(ran.exit == 1);
    CHECK(ran.err ==
          "a.json: /runs/1/strategy: expected 6 GPUs for tensor 2 x data 3, or \"data\" left out "
          "(--set data=null), which then is 2, found 4 (run \"four\")\n");
    CHECK_THAT(ran.out, ContainsSubstring("| a | iteration_time | 1 |"));
    CHECK_THAT(ran.out, ContainsSubstring("\nrefused:\n- four: a.json: /runs/1/strategy: "));
    CHECK_THAT(folder.read("out.json"), ContainsSubstring("\"run\": \"four\""));
  }
  folder.write("a.json", with(text, "\"fp16\"", "\"bf16\""));
  CHECK(run("validate a.json", folder).exit == 1);
}

TEST_CASE("a slip in writing ends all of it, also in a run that cannot be for another reason") {
  const std::string three = with(small_scenario(), "\"tensor\": 2", "\"tensor\": 3");
  refuses(with(three, "\"overlap_gradients\"", "\"overlap_gradient\""),
          "/runs/1/strategy/overlap_gradient", {"found an unknown key"});
  refuses(with(three, "\"optimizer\"", "\"optimiser\": 1, \"optimizer\""),
          "/defaults/training/optimiser", {"found an unknown key"});
  refuses(with(three, "\"layers\": 2", "\"layers\": \"2\""), "/defaults/model/layers",
          {"a whole number from 1 to 10000"});
}

TEST_CASE("what one run asks of a refused one ends in the line that says why") {
  const TemporaryFolder folder;
  folder.write("a.json", with(small_scenario(), "\"data\": 2", "\"data\": 3"));
  for (const char* command :
       {"explain a.json", "execute a.json --in-process", "topology show a.json --groups"}) {
    INFO(command);
    const Ran ran = run(std::string(command) + " --run four", folder);
    CHECK(ran.exit == 1);
    CHECK(ran.out.empty());
    CHECK(std::ranges::count(ran.err, '\n') == 1);
    CHECK_THAT(ran.err, StartsWith("a.json: /runs/1/strategy: expected "));
  }
  CHECK(run("explain a.json --run alone", folder).exit == 0);
}

// ---- files

TEST_CASE("the small scenario itself is fine") {
  const TemporaryFolder folder;
  folder.write("a.json", small_scenario());
  const Ran ran =
      run("simulate a.json --json out.json --trace trace.json --program program.txt", folder);
  CHECK(ran.exit == 0);
  CHECK(ran.err.empty());
  for (const char* output : {"out.json", "trace.json", "program.txt"}) CHECK(folder.has(output));
}

TEST_CASE("a missing scenario is named") {
  const TemporaryFolder folder;
  const Ran ran = run("simulate nowhere.json --json out.json", folder);
  CHECK(ran.exit == 1);
  CHECK(std::ranges::count(ran.err, '\n') == 1);
  CHECK_THAT(ran.err, StartsWith("nowhere.json: expected "));
  CHECK(!folder.has("out.json"));
}

TEST_CASE("broken JSON is shown with line and column") {
  refuses(with(small_scenario(), "\"baseline\":", "\"baseline\""), "",
          {"expected JSON", "line 3, column "});
}

TEST_CASE("an empty file and one that holds no object are refused") {
  refuses("", "", {"expected JSON"});
  refuses("[1, 2]\n", "", {"an object", "found [1,2]"});
}

TEST_CASE("a profile or stack that does not exist is refused, and the nearest one named") {
  const std::string profiles = std::filesystem::absolute("scenarios/profiles").string();
  refuses(with(small_scenario(), "/v100-sxm3.json", "/v100-sxm9.json"), "/defaults/profile",
          {"a file that exists", "found " + profiles + "/v100-sxm9.json"});
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "profiles");
  std::filesystem::copy(profiles + "/v100-sxm3.json", folder.path() / "profiles/my-gpu.json");
  refuses(folder, with(small_scenario(), profiles + "/v100-sxm3.json", "my-gpo"),
          "/defaults/profile", {"did you mean \"my-gpu\"?", "found \"my-gpo\""});
}

TEST_CASE("a profile without a constant is named, with the place where it should stand") {
  const TemporaryFolder folder;
  std::ifstream shipped("scenarios/profiles/v100-sxm3.json");
  const std::string profile{std::istreambuf_iterator<char>(shipped), {}};
  folder.write("p.json", with(profile, "\"nvlink_efficiency\"", "\"nvlink_inefficiency\""));
  const std::string path = std::filesystem::absolute("scenarios/profiles/v100-sxm3.json").string();
  folder.write("a.json", with(small_scenario(), path, "p.json"));
  const Ran ran = run("simulate a.json --json out.json", folder);
  CHECK(ran.exit == 1);
  CHECK_THAT(ran.err, StartsWith("p.json: /collective: expected the key \"nvlink_efficiency\" in "
                                 "place of \"nvlink_inefficiency\", found only "));
  CHECK(std::ranges::count(ran.err, '\n') == 1);
  CHECK(!folder.has("out.json"));
}

// ---- keys and values

TEST_CASE("an unknown key is refused wherever it stands, and the nearest known one named") {
  const auto unknown = [](const std::string& part, const std::string& other,
                          const std::string& path, const std::string& near) {
    refuses(with(small_scenario(), part, other), path,
            {"did you mean \"" + near + "\"?", "found an unknown key"});
  };
  unknown("\"tensor\": 2", "\"tensors\": 2", "/runs/1/strategy/tensors", "tensor");
  unknown("\"layers\": 2", "\"layers\": 2, \"layer\": 2", "/defaults/model/layer", "layers");
  unknown("\"optimizer\"", "\"optimiser\": 1, \"optimizer\"", "/defaults/training/optimiser",
          "optimizer");
  unknown("\"name\": \"four\",", "\"name\": \"four\", \"grup\": \"a\",", "/runs/1/grup", "group");
  unknown("\"gpus\": 4", "\"gpus\": 4, \"gpu\": 1", "/defaults/cluster/gpu", "gpus");
  unknown("\"baseline\"", "\"qestion\": 1, \"baseline\"", "/qestion", "question");
}

TEST_CASE("all keys that a run lacks are told in one line, with what to write") {
  refuses(R"({"runs": [{"cluster": {"preset": "dgx-2", "gpus": 1}}]})", "/runs/0",
          {"\"model\":\"llama-3-8b\"",
           "\"stack\":", "\"global_batch\":", "\"precision\":", "here or in \"defaults\""});
  refuses(with(with(small_scenario(), ", \"precision\": \"fp16\"", ""), ", \"micro_batch\": 2", ""),
          "/runs/0", {"{\"training\":{\"micro_batch\":1,\"precision\":\"bf16\"}}"});
}

TEST_CASE("a missing key is named with the keys that are there") {
  refuses(with(small_scenario(), ", \"vocabulary\": 128", ""), "/defaults/model",
          {"the key \"vocabulary\""});
}

TEST_CASE("a quantity of the wrong unit or without one is refused with an example") {
  const auto bucket = [](const std::string& value) {
    refuses(with(small_scenario(), "\"25 MiB\"", value), "/runs/1/strategy/bucket",
            {"\"32 GiB\"", "found " + value});
  };
  bucket("\"25 ms\"");
  bucket("\"25\"");
  bucket("25");
  bucket("\"-25 MiB\"");
  const std::string measured =
      R"("name": "four", "measured": {"iteration_time": {"value": "39 TFLOP/s",)"
      R"( "provenance": "measured", "source": "us"}},)";
  refuses(with(small_scenario(), "\"name\": \"four\",", measured),
          "/runs/1/measured/iteration_time/value", {"a time such as", "found \"39 TFLOP/s\""});
}

TEST_CASE("zero, negative, broken and absurd sizes are refused") {
  const auto size = [](const std::string& key, const std::string& was, const std::string& path) {
    for (const std::string value : {"0", "-1", "1.5", "\"8\""}) {
      refuses(with(small_scenario(), "\"" + key + "\": " + was, "\"" + key + "\": " + value), path,
              {"a whole number from 1 to ", "found " + value});
    }
  };
  size("layers", "2", "/defaults/model/layers");
  size("global_batch", "8", "/defaults/training/global_batch");
  size("micro_batch", "2", "/defaults/training/micro_batch");
  size("gpus", "4", "/defaults/cluster/gpus");
  size("tensor", "2", "/runs/1/strategy/tensor");
  refuses_runs(with(small_scenario(), "\"gpus\": 4", "\"gpus\": 4294967300"),
               "/defaults/cluster/gpus", {"from 1 to 1000000, found 4294967"}, four_alone);
  refuses_runs(with(small_scenario(), "\"micro_batch\": 2", "\"micro_batch\": 4294967298"),
               "/defaults/training/micro_batch", {"from 1 to 1000000, found 4294967"}, both);
}

TEST_CASE("an unknown word is refused with those that are known, and the nearest named") {
  const auto word = [](const std::string& part, const std::string& other, const std::string& path,
                       const std::string& known) {
    refuses(with(small_scenario(), part, other), path, {"one of ", known});
  };
  word("\"dgx-2\"", "\"dgx-3\"", "/defaults/cluster/preset", "dgx-2h");
  word("\"gpt\"", "\"gtp\"", "/defaults/model/family", "gpt");
  word("\"full\"", "\"ful\"", "/runs/0/strategy/recompute", "full");
  word("\"tensor\": 2,", "\"tensor\": 2, \"schedule\": \"1f1\",", "/runs/1/strategy/schedule",
       "1f1b");
  word("\"adam\"", "\"adafacto\"", "/defaults/training/optimizer", "did you mean \"adafactor\"?");
  word("\"fp16\"", "\"fp61\"", "/defaults/training/precision", "fp16");
  word("\"baseline\": \"alone\"", "\"baseline\": \"alnoe\"", "/baseline",
       "did you mean \"alone\"?)");
}

TEST_CASE("a precision that the GPU has no constants for is refused with those that there are") {
  refuses_runs(
      with(small_scenario(), "\"fp16\"", "\"bf16\""), "/defaults/training/precision",
      {"profile v100-sxm3 has constants for (with stack megatron-2019: fp16)", "found \"bf16\""},
      both);
  refuses_runs(with(small_scenario(), "\"fp16\"", "\"fp8\""), "/defaults/training/precision",
               {"profile v100-sxm3 has constants for", "found \"fp8\""}, both);
}

TEST_CASE("a precision that the facts of a stack do not hold for is refused with those that do") {
  refuses_runs(with(small_scenario(), "\"fp16\"", "\"fp32\""), "/defaults/training/precision",
               {"stack megatron-2019 hold for (on profile v100-sxm3: fp16)", "found \"fp32\""},
               both);
}

TEST_CASE("fused attention on a GPU that has no constants of it is refused with what to write") {
  const std::string llama =
      with(small_scenario(), "\"family\": \"gpt\"", "\"family\": \"llama\", \"intermediate\": 128");
  refuses_runs(llama, "/defaults/model/attention",
               {"\"attention\": \"unfused\", since profile v100-sxm3 has no constants",
                "found none, which is \"fused\""},
               both);
  refuses_runs(with(small_scenario(), "\"gpt\"", "\"gpt\", \"attention\": \"fused\""),
               "/defaults/model/attention", {"\"attention\": \"unfused\"", "found \"fused\""},
               both);
  const TemporaryFolder folder;
  folder.write("a.json", with(llama, "\"llama\"", "\"llama\", \"attention\": \"unfused\""));
  CHECK(run("simulate a.json", folder).exit == 0);
}

TEST_CASE("steps on the processors want a profile that knows how fast they are") {
  const TemporaryFolder folder;
  std::ifstream shipped("scenarios/profiles/v100-sxm3.json");
  std::string without{std::istreambuf_iterator<char>(shipped), {}};
  const std::size_t begin = without.find("\"host_memory_bandwidth\"");
  REQUIRE(begin != std::string::npos);
  without.erase(begin, without.find("},", begin) + 2 - begin);
  folder.write("p.json", without);
  const std::string path = std::filesystem::absolute("scenarios/profiles/v100-sxm3.json").string();
  const std::string text =
      with(small_scenario(), "\"recompute\": \"full\"", "\"offload\": \"optimizer\"");
  folder.write("a.json", text);
  CHECK(run("simulate a.json", folder).exit == 0);
  folder.write("a.json", with(text, path, "p.json"));
  const Ran ran = run("simulate a.json", folder);
  CHECK(ran.exit == 1);
  CHECK(ran.err ==
        "a.json: /runs/0/strategy/offload: expected a profile with host_memory_bandwidth, what "
        "optimizer steps on a server's processors reach, such as \"180 GB/s\", found profile "
        "v100-sxm3 without (run \"alone\")\n");
}

TEST_CASE("an optimizer that ZeRO cannot divide is refused") {
  refuses_runs(with(with(small_scenario(), "\"adam\"", "\"adafactor\""), "\"bucket\": \"25 MiB\"",
                    "\"bucket\": \"25 MiB\", \"zero\": 1"),
               "/runs/1/strategy/zero", {"keeps something of every element", "found adafactor"},
               four_alone);
}

TEST_CASE("a run that is a second of its name is refused") {
  refuses(with(small_scenario(), "\"four\"", "\"alone\""), "/runs/1/name",
          {"a name that no run before it has"});
}

TEST_CASE("names with control characters are refused, and shown in their JSON form") {
  refuses(with(small_scenario(), "\"four\"", R"("a\u001b[31m")"), "/runs/1/name",
          {"text without control characters", R"("a\u001b[31m")"});
  refuses(with(small_scenario(), "\"four\"", R"("a\nb")"), "/runs/1/name",
          {"text without control characters", R"("a\nb")"});
}

TEST_CASE("a run without a name is refused") {
  refuses(with(small_scenario(), "\"four\"", "\"\""), "/runs/1/name", {"a name"});
}

TEST_CASE("a name for all runs at once is refused") {
  refuses(with(small_scenario(), "\"defaults\": {", "\"defaults\": {\"name\": \"all\","),
          "/defaults/name", {"a name in every run, and none here"});
}

TEST_CASE("what is relative to a baseline is not expected where none is named") {
  const TemporaryFolder folder;
  folder.write("a.json",
               with(with(small_scenario(), "\"baseline\": \"alone\",", ""), "\"name\": \"four\",",
                    "\"name\": \"four\", \"expect\": {\"speedup\": {\"at_least\": 1, "
                    "\"because\": \"there are four\"}},"));
  const Ran ran = run("simulate a.json", folder);
  CHECK(ran.exit == 3);
  CHECK_THAT(ran.err, ContainsSubstring("nothing is predicted without a baseline"));
}

TEST_CASE("a scenario without runs is refused") {
  refuses(R"({"question": "What?", "runs": []})", "/runs", {"at least one run"});
}

TEST_CASE("a measured or expected figure that nobody computes is refused, and the nearest named") {
  const auto four = [](const std::string& more) {
    return with(small_scenario(), "\"name\": \"four\",", "\"name\": \"four\", " + more + ",");
  };
  refuses(
      four(R"("measured": {"speed_up": {"value": 2, "provenance": "measured", "source": "us"}})"),
      "/runs/1/measured/speed_up", {"did you mean \"speedup\"?"});
  refuses(four(R"("expect": {"speed_up": {"at_least": 2, "because": "so"}})"),
          "/runs/1/expect/speed_up", {"did you mean \"speedup\"?"});
  refuses(four(R"("expect": {"speedup": {"because": "so"}})"), "/runs/1/expect/speedup",
          {"\"at_least\""});
}

// ---- sizes that do not fit each other

TEST_CASE("a product of degrees other than the number of GPUs is refused") {
  refuses_runs(
      with(small_scenario(), "\"data\": 2", "\"data\": 3"), "/runs/1/strategy",
      {"6 GPUs for tensor 2 x data 3, or \"data\" left out (--set data=null), which then is 2",
       "found 4"},
      four_alone);
  // Where data ranks follow from the others, no other key is to blame.
  refuses_runs(with(small_scenario(), "\"data\": 2", "\"pipeline\": 3, \"expert\": 2"),
               "/runs/1/strategy", {"a multiple of 6 GPUs for tensor 2 x pipeline 3", "found 4"},
               four_alone);
}

TEST_CASE("more GPUs than the nodes have are refused") {
  refuses_runs(with(small_scenario(), "\"gpus\": 4", "\"gpus\": 17, \"nodes\": 1"),
               "/defaults/cluster/gpus", {"at most the 16 GPUs", "found 17"}, four_alone);
}

TEST_CASE("a batch that does not divide is refused, naming the run") {
  refuses_runs(with(small_scenario(), "\"global_batch\": 8", "\"global_batch\": 6"),
               "/defaults/training/global_batch",
               {"a multiple of micro_batch x data = 4", "found 6"}, four_alone);
}

TEST_CASE("sizes and times that cannot be counted are refused") {
  const std::string large = with(small_scenario(), "\"sequence\": 32", "\"sequence\": 10000000");
  refuses_runs(with(large, "\"heads\": 4", "\"heads\": 64"), "/defaults/model",
               {"tensors of at most 1e15 elements"}, both);
}

TEST_CASE("heads that do not divide the hidden size are refused") {
  refuses_runs(with(small_scenario(), "\"heads\": 4", "\"heads\": 5"), "/defaults/model/heads",
               {"a divisor of hidden, 64"}, both);
}

TEST_CASE("heads that do not divide among the tensor ranks are refused") {
  refuses_runs(with(small_scenario(), "\"heads\": 4", "\"heads\": 1"), "/runs/1/strategy/tensor",
               {"divide into 2", "found 1"}, four_alone);
}

TEST_CASE("a vocabulary that does not divide among the tensor ranks is refused") {
  refuses_runs(with(small_scenario(), "\"vocabulary\": 128", "\"vocabulary\": 129"),
               "/runs/1/strategy/tensor", {"divide into 2", "found 129"}, four_alone);
}

TEST_CASE("layers that do not divide among the stages are refused") {
  refuses_runs(with(with(small_scenario(), "\"data\": 2", "\"pipeline\": 2"), "\"layers\": 2",
                    "\"layers\": 3"),
               "/runs/1/strategy/pipeline", {"a divisor of the model's 3 layers", "found 2 stages"},
               four_alone);
}

TEST_CASE("runs beyond what can be simulated are refused with what they would need, at once") {
  if (sanitized) return;  // the graph alone takes a gigabyte
  refuses_runs(with(small_scenario(), "\"cluster\": {\"gpus\": 1}",
                    R"("cluster": {"gpus": 1}, "model": {"layers": 10000})"),
               "/runs/0/strategy", {"at most 2.4 GB to simulate", "10002 segments"},
               "run \"alone\"");
}

TEST_CASE("constants that no machine has are refused where they stand") {
  const auto bucket = [](const std::string& value, const std::string& bounds) {
    refuses(with(small_scenario(), "\"25 MiB\"", value), "/runs/1/strategy/bucket",
            {bounds, "found " + value});
  };
  bucket("\"1e300 MiB\"", "a size of at most 1e6 TB");
  bucket("\"-0 MiB\"", "\"32 GiB\"");
  const std::string measured =
      R"("name": "four", "measured": {"iteration_time": {"value": "1e20 s",)"
      R"( "provenance": "measured", "source": "us"}},)";
  refuses(with(small_scenario(), "\"name\": \"four\",", measured),
          "/runs/1/measured/iteration_time/value", {"a time of at most 1e6 s", "found \"1e20 s\""});
}

// ---- what is read

TEST_CASE("what has no end is not read, and what is long is not echoed whole") {
  const TemporaryFolder folder;
  for (const std::string command :
       {"simulate /dev/zero", "validate /dev/zero", "execute /dev/zero", "explain /dev/zero",
        "compare /dev/zero /dev/zero", "topology import /dev/zero -o x.json",
        "calibrate fit /dev/zero", "calibrate report --markdown /dev/zero"}) {
    INFO(command);
    const Ran ran = run(command, folder);
    CHECK(ran.exit == 1);
    CHECK(ran.err == "/dev/zero: expected a file that can be read, found a device\n");
  }
  const std::string three_megabytes(3'000'000, 'x');
  folder.write("a.json", with(small_scenario(), "\"tensor\": 2", '"' + three_megabytes + "\": 2"));
  const Ran key = run("simulate a.json", folder);
  CHECK(key.exit == 1);
  CHECK(key.err.size() < 5000);
  CHECK_THAT(key.err, ContainsSubstring("more bytes)"));
  folder.write("a.json", with(small_scenario(), "\"gpt\"", '"' + three_megabytes + '"'));
  CHECK(run("simulate a.json", folder).err.size() < 5000);
  folder.write("a.json", three_megabytes);
  CHECK(run("simulate a.json", folder).err.size() < 5000);
  folder.write("a.json", small_scenario());
  const Ran piped = run("simulate /dev/stdin <a.json", folder);
  CHECK(piped.exit == 0);
}

// ---- measuring

TEST_CASE(
    "a check of what is no profile of this processor is refused before anything is measured") {
  const TemporaryFolder folder;
  const std::string gpu = std::filesystem::absolute("scenarios/profiles/v100-sxm2.json").string();
  const Ran ran = run("calibrate check " + gpu + " --json out.json", folder);
  CHECK(ran.exit == 1);
  CHECK(ran.out.empty());
  CHECK(std::ranges::count(ran.err, '\n') == 1);
  CHECK_THAT(ran.err, StartsWith(gpu + ": /gpu: expected "));
  CHECK(!folder.has("out.json"));
}

TEST_CASE("a scenario to measure for that cannot be read is named, and nothing is measured") {
  const TemporaryFolder folder;
  const Ran ran = run("calibrate measure --quick --for nowhere.json -o out.json", folder);
  CHECK(ran.exit == 1);
  CHECK(std::ranges::count(ran.err, '\n') == 1);
  CHECK_THAT(ran.err, StartsWith("nowhere.json: expected "));
  CHECK(!folder.has("out.json"));
}
