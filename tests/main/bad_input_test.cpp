// Whatever a user can get wrong: one line that says where and what; exit 1; nothing written.
#include "tests/main/executable.hpp"

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

}  // namespace

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
  std::filesystem::copy(profiles + "/v100-sxm3.json", folder.path() / "profiles/v100-sxm3.json");
  refuses(folder, with(small_scenario(), profiles + "/v100-sxm3.json", "v100-sxm9"),
          "/defaults/profile", {"did you mean \"v100-sxm3\"?", "found \"v100-sxm9\""});
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
  CHECK(ran.err.find("p.json: /collective: expected the key \"nvlink_efficiency\", found only ") ==
        0);
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

TEST_CASE("a missing key is named with the keys that are there") {
  refuses(with(small_scenario(), "\"name\": \"four\", ", ""), "/runs/1", {"the key \"name\""});
  refuses(with(small_scenario(), "\"question\"", "\"baseline2\""), "", {"the key \"question\""});
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
      R"("name": "four", "measured": {"iteration_time": {"value": "39 TFLOP/s", "provenance": "measured", "source": "us"}},)";
  refuses(with(small_scenario(), "\"name\": \"four\",", measured),
          "/runs/1/measured/iteration_time/value", {"a time such as", "found \"39 TFLOP/s\""});
}

TEST_CASE("zero, negative, broken and absurd sizes are refused") {
  const auto size = [](const std::string& key, const std::string& was, const std::string& path) {
    for (const std::string value : {"0", "-1", "1.5", "\"8\""}) {
      refuses(with(small_scenario(), "\"" + key + "\": " + was, "\"" + key + "\": " + value), path,
              {"a whole number >= 1", "found " + value});
    }
  };
  size("layers", "2", "/defaults/model/layers");
  size("global_batch", "8", "/defaults/training/global_batch");
  size("micro_batch", "2", "/defaults/training/micro_batch");
  size("gpus", "4", "/defaults/cluster/gpus");
  size("tensor", "2", "/runs/1/strategy/tensor");
  refuses(with(small_scenario(), "\"gpus\": 4", "\"gpus\": 4294967300"), "/defaults/cluster/gpus",
          {"at most 1000000"});
  refuses(with(small_scenario(), "\"micro_batch\": 2", "\"micro_batch\": 4294967298"),
          "/defaults/training/micro_batch", {"at most 1000000"});
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

TEST_CASE("a precision that the GPU has no constants for is refused") {
  refuses(with(small_scenario(), "\"fp16\"", "\"bf16\""), "/defaults/training/precision",
          {"profile v100-sxm3 has constants for", "found \"bf16\""});
  refuses(with(small_scenario(), "\"fp16\"", "\"fp8\""), "/defaults/training/precision",
          {"profile v100-sxm3 has constants for", "found \"fp8\""});
}

TEST_CASE("a precision that the facts of a stack do not hold for is refused") {
  refuses(with(small_scenario(), "\"fp16\"", "\"fp32\""), "/defaults/training/precision",
          {"stack megatron-2019 hold for", "found \"fp32\""});
}

TEST_CASE("an optimizer that ZeRO cannot divide is refused") {
  refuses(with(with(small_scenario(), "\"adam\"", "\"adafactor\""), "\"bucket\": \"25 MiB\"",
               "\"bucket\": \"25 MiB\", \"zero\": 1"),
          "/runs/1/strategy/zero", {"keeps something of every element", "found adafactor"});
}

TEST_CASE("a run that is a second of its name is refused") {
  refuses(with(small_scenario(), "\"four\"", "\"alone\""), "/runs/1/name",
          {"a name that no run before it has"});
}

TEST_CASE("a run without a name is refused") {
  refuses(with(small_scenario(), "\"four\"", "\"\""), "/runs/1/name", {"a name"});
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
  refuses(with(small_scenario(), "\"data\": 2", "\"data\": 3"), "/runs/1/strategy",
          {"tensor x context x dap x pipeline x data = the cluster's 4 GPUs", "found 6"});
}

TEST_CASE("more GPUs than the nodes have are refused") {
  refuses(with(small_scenario(), "\"gpus\": 4", "\"gpus\": 17, \"nodes\": 1"),
          "/defaults/cluster/gpus", {"at most the 16 GPUs", "found 17"});
}

TEST_CASE("a batch that does not divide is refused, naming the run") {
  refuses(with(small_scenario(), "\"global_batch\": 8", "\"global_batch\": 6"),
          "/defaults/training/global_batch",
          {"a multiple of micro_batch x data = 4", "\"four\"", "found 6"});
}

TEST_CASE("sizes and times that cannot be counted are refused") {
  const std::string large = with(small_scenario(), "\"sequence\": 32", "\"sequence\": 10000000");
  refuses(with(large, "\"heads\": 4", "\"heads\": 64"), "/defaults/model",
          {"tensors of at most 1e15 elements"});
}

TEST_CASE("heads that do not divide the hidden size are refused") {
  refuses(with(small_scenario(), "\"heads\": 4", "\"heads\": 5"), "/defaults/model/heads",
          {"a divisor of hidden, 64"});
}

TEST_CASE("heads that do not divide among the tensor ranks are refused") {
  refuses(with(small_scenario(), "\"heads\": 4", "\"heads\": 1"), "/runs/1/strategy/tensor",
          {"divide into 2", "found 1"});
}

TEST_CASE("a vocabulary that does not divide among the tensor ranks is refused") {
  refuses(with(small_scenario(), "\"vocabulary\": 128", "\"vocabulary\": 129"),
          "/runs/1/strategy/tensor", {"divide into 2", "found 129"});
}

TEST_CASE("layers that do not divide among the stages are refused") {
  refuses(with(with(small_scenario(), "\"data\": 2", "\"pipeline\": 2"), "\"layers\": 2",
               "\"layers\": 3"),
          "/runs/1/strategy/pipeline", {"a divisor of the model's 3 layers", "found 2"});
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
