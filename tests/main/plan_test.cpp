// A strategy explained is a plan file, and the plan file simulates as the strategy did.
#include "base/json_reader.hpp"
#include "tests/json_schema.hpp"
#include "tests/main/executable.hpp"
#include "tests/sanitized.hpp"

using namespace stratagem;

namespace {

/// A scenario with one run of eight layers; `training` and `how`, a strategy or a plan, are
/// members.
std::string scenario(const std::string& gpus, const std::string& global_batch,
                     const std::string& how) {
  const std::string shipped = std::filesystem::absolute("scenarios").string();
  return R"({
  "question": "Does the plan do what the strategy does?",
  "runs": [{
    "name": "one",
    "model": {"family": "gpt", "layers": 8, "hidden": 64, "heads": 4, "sequence": 32,)"
         R"( "vocabulary": 128},
    "cluster": {"preset": "dgx-2", "gpus": )" +
         gpus + R"(},
    "profile": ")" +
         shipped + R"(/profiles/v100-sxm3.json",
    "stack": ")" +
         shipped + R"(/stacks/megatron-2019.json",
    "training": {"global_batch": )" +
         global_batch + R"(, "micro_batch": 1, "precision": "fp16", "optimizer": "adam"},
    )" + how +
         "\n  }]\n}\n";
}

/// The report without what the run was asked for.
std::string without_settings(const std::string& report) {
  const std::size_t begin = report.find("\"resolved\"");
  const std::size_t end = report.find("\"status\"");
  REQUIRE(begin < end);
  return report.substr(0, begin) + report.substr(end);
}

const std::string outputs = "--json out.json --trace trace.json --program program.txt";

/// Simulates a strategy, explains it as a plan, simulates that, and compares all that is written.
void round_trip(const std::string& gpus, const std::string& global_batch,
                const std::string& strategy) {
  INFO(strategy);
  const TemporaryFolder folder;
  folder.write("a.json", scenario(gpus, global_batch, "\"strategy\": " + strategy));
  REQUIRE(run("simulate a.json " + outputs, folder).exit == 0);
  const std::string report = without_settings(folder.read("out.json"));
  const std::string trace = folder.read("trace.json");
  const std::string program = folder.read("program.txt");
  REQUIRE(run("explain a.json --as-plan p.json", folder).exit == 0);
  const std::string plan = folder.read("p.json");
  CHECK_NOTHROW(
      check_schema((folder.path() / "p.json").string(), "scenarios/schema/plan.schema.json"));

  folder.write("a.json", scenario(gpus, global_batch, "\"plan\": \"p.json\""));
  const Ran ran = run("simulate a.json " + outputs, folder);
  INFO(ran.err);
  REQUIRE(ran.exit == 0);
  CHECK(without_settings(folder.read("out.json")) == report);
  CHECK(folder.read("trace.json") == trace);
  CHECK(folder.read("program.txt") == program);
  REQUIRE(run("explain a.json --as-plan again.json", folder).exit == 0);
  CHECK(folder.read("again.json") == plan);
}

}  // namespace

TEST_CASE("a strategy written as a plan gives the same report, trace and program") {
  round_trip("1", "4", "{}");
  if (sanitized) return;
  round_trip("4", "8", R"({"tensor": 4})");
  round_trip("4", "8", R"({"data": 4})");
  round_trip("4", "8", R"({"data": 4, "overlap_gradients": true, "bucket": "100 KB"})");
  round_trip("2", "8", R"({"tensor": 2, "recompute": "full"})");
  round_trip("8", "8", R"({"tensor": 2, "data": 2, "pipeline": 2,
                           "coshard": {"attention": 2, "mlp": 4}})");
  round_trip("8", "8", R"({"tensor": 2, "data": 2, "pipeline": 2, "recompute": "full",
                           "overlap_gradients": true, "bucket": "0.5 MiB"})");
}

TEST_CASE("a pipeline written as a plan gives the same report, trace and program") {
  const std::vector<std::string> schedules = {
      "gpipe",        "1f1b",   "interleaved", "zb-h1",     "zb-h2",
      "zb-v",         "v-half", "v-min",       "chimera",   "dualpipe",
      "dualpipe-v",   "hanayo", "bpipe",       "pipedream", "pipedream-vertical",
      "pipedream-2bw"};
  for (std::size_t i = 0; i < schedules.size(); i += stride(4))
    round_trip("4", "8", R"({"pipeline": 4, "schedule": ")" + schedules[i] + "\"}");
  round_trip("8", "16", R"({"pipeline": 4, "data": 2, "schedule": "dualpipe"})");
  round_trip("4", "8", R"({"pipeline": 2, "tensor": 2, "layers_per_stage": [5, 3]})");
}

TEST_CASE("explain says what a strategy splits, places and orders") {
  const TemporaryFolder folder;
  folder.write("a.json", scenario("8", "8", R"("strategy": {"tensor": 2, "pipeline": 4})"));
  const std::string text = run("explain a.json --run one", folder).out;
  for (const std::string part :
       {"one: 178 operators on 8 devices, 4 stages, 8 micro-batches of 1 sample\n",
        "stage 3    layers.{6,7}, head", "devices 6 to 7\n",
        "op-trans   layers.*.attention.projection, layers.*.mlp.fc2  dim k, parts 2, axis tensor\n",
        "device 2*i\n", "op-order   F(i, m+ofst) before B(i, m)", "let ofst = S-1-i\n"}) {
    INFO(text);
    CHECK_THAT(text, ContainsSubstring(part));
  }
  CHECK(run("explain a.json --run two", folder).exit == 2);
}

TEST_CASE("a plan of the scenario's own hides the strategy of its defaults") {
  const TemporaryFolder folder;
  folder.write("p.json", R"p({"primitives": [{"op-order": ["B(i, m)", "F(i, m+1)"]}]})p");
  const std::string scenario =
      with(with(small_scenario(), R"("cluster": {"gpus": 1}, "strategy": {"recompute": "full"})",
                R"("cluster": {"gpus": 1}, "plan": "p.json")"),
           R"("training": {)", R"("strategy": {"data": 4}, "training": {)");
  folder.write("a.json", with(scenario, R"("data": 2, )", ""));
  const Ran ran = run("simulate a.json --json out.json", folder);
  INFO(ran.err);
  CHECK(ran.exit == 1);  // "four" has tensor and, from the defaults, data
  CHECK_THAT(ran.err,
             StartsWith("a.json: /runs/1/strategy: expected 8 GPUs for tensor 2 x data 4, or"));
}

TEST_CASE("a model written as data gives the same report, and errors that say where it is wrong") {
  const TemporaryFolder folder;
  folder.write("a.json", scenario("4", "8", R"("strategy": {"tensor": 2, "pipeline": 2})"));
  REQUIRE(run("simulate a.json --json out.json", folder).exit == 0);
  const std::string report = without_settings(folder.read("out.json"));
  REQUIRE(run("explain a.json --as-model m.json", folder).exit == 0);
  std::string text = folder.read("a.json");
  const std::size_t at = text.find("\"model\": {"), end = text.find('}', at);
  REQUIRE(end != std::string::npos);
  text.replace(at, end + 1 - at, R"("model": {"family": "operators", "file": "m.json"})");
  folder.write("a.json", text);
  const Ran ran = run("simulate a.json --json out.json", folder);
  INFO(ran.err);
  REQUIRE(ran.exit == 0);
  CHECK(without_settings(folder.read("out.json")) == report);
  std::string file = folder.read("m.json");
  file.replace(file.find("\"gelu\""), 6, "\"gelo\"");
  folder.write("m.json", file);
  const Ran wrong = run("simulate a.json", folder);
  CHECK(wrong.exit == 1);
  CHECK_THAT(wrong.err,
             ContainsSubstring("m.json: /segments/1/operators/") &&
                 ContainsSubstring("/kind: expected a known word (did you mean \"gelu\"?)"));
}

TEST_CASE("`order` writes a plan that simulates as it says, and says where there is none") {
  const TemporaryFolder folder;
  const std::string strategy = R"("strategy": {"pipeline": 4, "schedule": "gpipe"})";
  folder.write("a.json", scenario("4", "16", strategy));
  const Ran order = run("order a.json --as-plan p.json", folder);
  INFO(order.err);
  REQUIRE(order.exit == 0);
  CHECK_THAT(order.out, ContainsSubstring("and none is shorter"));
  CHECK_NOTHROW(
      check_schema((folder.path() / "p.json").string(), "scenarios/schema/plan.schema.json"));
  folder.write("b.json", scenario("4", "16", R"("plan": "p.json")"));
  REQUIRE(run("simulate b.json --json out.json", folder).exit == 0);
  const auto line = order.out.substr(order.out.find("\nfound "));
  const double told = std::stod(line.substr(line.find_first_of("0123456789")));  // s
  const JsonReader report = JsonReader::from_file((folder.path() / "out.json").string());
  const double time = report.at("runs").elements().front().at("iteration_time_s").number();
  CHECK(close(time, told, 0.005));  // three digits

  const std::string stages =
      R"~({"stages": ["embedding, layers.[0-3]", "layers.[4-7], head"], "primitives": )~"
      R"~([{"op-assign": "stage(i)", "device": "i"}, {"op-order": ["B(i, m)", "F(i, m)"]}]})~";
  folder.write("p.json", stages);
  folder.write("b.json", scenario("2", "16", R"("plan": "p.json")"));
  const Ran none = run("order b.json --as-plan none.json", folder);
  CHECK(none.exit == 3);
  CHECK_THAT(none.out, ContainsSubstring("contradict"));
  CHECK_FALSE(folder.has("none.json"));
}
