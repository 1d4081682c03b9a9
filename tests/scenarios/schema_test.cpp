// The schemas: all that is shipped or written obeys them, and they know the program's words.
#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "cost/optimizer.hpp"
#include "cost/profile.hpp"
#include "model/zoo/all.hpp"
#include "model/zoo/presets.hpp"
#include "strategies/language/primitives/all.hpp"
#include "strategies/parallel/all.hpp"
#include "tests/json_schema.hpp"
#include "tests/main/executable.hpp"
#include "topology/presets.hpp"

using namespace stratagem;

namespace {

const std::string scenario_schema = "scenarios/schema/scenario.schema.json";
const std::string stack_schema = "scenarios/schema/stack.schema.json";
const std::string plan_schema = "scenarios/schema/plan.schema.json";
const std::string profile_schema = "scenarios/schema/profile.schema.json";
const std::string node_schema = "scenarios/schema/node.schema.json";
const std::string search_schema = "scenarios/schema/search_report.schema.json";
const std::string report_schema = "scenarios/schema/report.schema.json";

std::vector<std::string> json_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  REQUIRE(!files.empty());
  return files;
}

/// The words under "enum" at a place in a schema.
std::vector<std::string> words(const std::string& schema, const std::vector<std::string>& path) {
  JsonReader place = JsonReader::from_file(schema);
  for (const std::string& key : path) place = place.at(key);
  std::vector<std::string> result;
  for (const JsonReader& word : place.at("enum").elements()) result.push_back(word.text());
  return result;
}

template <typename Table>
std::vector<std::string> names(const Table& table) {
  std::vector<std::string> result;
  for (const auto& entry : table) result.push_back(entry.name);
  return result;
}

}  // namespace

TEST_CASE("every scenario, plan, profile and stack of the repository obeys its schema") {
  for (const std::string& file : json_files("scenarios"))
    CHECK_NOTHROW(check_schema(file, scenario_schema));
  for (const std::string& file : json_files("scenarios/published")) {
    if (!file.ends_with("/validate.json")) CHECK_NOTHROW(check_schema(file, scenario_schema));
  }
  for (const char* folder : {"scenarios/reference", "scenarios/gallery"}) {
    for (const std::string& file : json_files(folder))
      CHECK_NOTHROW(check_schema(file, scenario_schema));
  }
  for (const std::string& file : json_files("scenarios/nodes"))
    CHECK_NOTHROW(check_schema(file, node_schema));
  for (const std::string& file : json_files("scenarios/profiles"))
    CHECK_NOTHROW(check_schema(file, profile_schema));
  for (const std::string& file : json_files("scenarios/stacks"))
    CHECK_NOTHROW(check_schema(file, stack_schema));
  for (const std::string& file : json_files("scenarios/plans"))
    CHECK_NOTHROW(check_schema(file, plan_schema));
}

TEST_CASE("node files that the program writes obey their schema, and bad ones do not") {
  const TemporaryFolder folder;
  for (const topology::Preset& preset : topology::presets()) {
    const std::string name = preset.name + ".json";
    REQUIRE(run("topology export " + preset.name + " -o " + name, folder).exit == 0);
    CHECK_NOTHROW(check_schema((folder.path() / name).string(), node_schema));
  }
  folder.write("bad.json",
               with(folder.read("dgx-a100.json"), "\"inter_socket\"", "\"internal_socket\""));
  CHECK_THROWS_AS(check_schema((folder.path() / "bad.json").string(), node_schema), InputError);
}

TEST_CASE("what simulate writes as JSON obeys the schema of reports") {
  const TemporaryFolder folder;
  // One more run, too large for its GPU, beside an expectation and two measured figures.
  const std::string more = R"(,
    {"name": "large", "cluster": {"gpus": 1}, "model": {"layers": 24, "hidden": 4096, "heads": 32},
     "training": {"micro_batch": 1}, "strategy": {}, "group": "large ones", "assumed": "nothing",
     "measured": {"iteration_time": {"value": "1 s", "provenance": "from memory",
       "source": "nobody"},
                  "speedup": {"value": 2, "provenance": "published", "source": "nobody"},
                  "peak_allocated": {"value": "60 GB", "provenance": "measured",
                    "source": "nobody"},
                  "peak_reserved": {"value": "70 GB", "provenance": "measured", "source": "nobody"},
                  "peak_used": {"value": "80 GiB", "provenance": "measured", "source": "nobody"},
                  "fits": {"value": false, "provenance": "measured", "source": "nobody"}},
     "expect": {"fits": {"value": false, "because": "16 bytes for each of 4.8e9 parameters"},
                "peak_used": {"at_least": "76.8 GB",
                  "because": "16 bytes for each of 4.8e9 parameters"}}} ])";
  folder.write("a.json", with(small_scenario(), "\n  ]", more));
  CHECK_NOTHROW(check_schema((folder.path() / "a.json").string(), scenario_schema));
  REQUIRE(run("simulate a.json --json out.json", folder).exit == 0);
  CHECK_NOTHROW(check_schema((folder.path() / "out.json").string(), report_schema));
  CHECK_THAT(folder.read("out.json"), ContainsSubstring("out_of_memory"));
}

TEST_CASE(
    "a search's answer has its schema, and its best plans are a scenario with the same times") {
  const TemporaryFolder folder;
  const std::string keys = R"("micro_batch": [1, 2], "tensor": [1, 2], "pipeline": [1])";
  std::string text = with(small_scenario(), ", \"micro_batch\": 2", "");
  text = text.substr(0, text.find("\"runs\"")) + "\"search\": {" + keys + "}\n}\n";
  folder.write("a.json", with(text, "\"baseline\": \"alone\",", ""));
  CHECK_NOTHROW(check_schema((folder.path() / "a.json").string(), scenario_schema));
  REQUIRE(run("search a.json --json out.json --plans best/b.json --best 3 --why", folder).exit ==
          0);
  CHECK_NOTHROW(check_schema((folder.path() / "out.json").string(), search_schema));
  const std::string best = (folder.path() / "best/b.json").string();
  CHECK_NOTHROW(check_schema(best, scenario_schema));
  REQUIRE(run("simulate best/b.json --json c.json --why", folder).exit == 0);
  CHECK_NOTHROW(check_schema((folder.path() / "c.json").string(), report_schema));
  const auto of = [&](const std::string& file, const char* list) {
    std::vector<double> times;
    for (const JsonReader& one :
         JsonReader::from_file((folder.path() / file).string()).at(list).elements())
      times.push_back(one.at("iteration_time_s").number());
    return times;
  };
  CHECK(of("out.json", "best").size() == 3);
  CHECK(of("out.json", "best") == of("c.json", "runs"));
  // Why is said of the best two plans by a search, of every run by a simulation.
  const auto gains = [&](const std::string& file, const char* list, std::size_t place) {
    const auto all = JsonReader::from_file((folder.path() / file).string()).at(list).elements();
    const auto found = all.at(place).find("iteration_time_with_twice_s");
    return found ? found->dump() : "";
  };
  CHECK_THAT(gains("out.json", "best", 0), ContainsSubstring("\"network\":"));
  CHECK(gains("out.json", "best", 0) == gains("c.json", "runs", 0));
  CHECK(gains("out.json", "best", 1) == gains("c.json", "runs", 1));
  CHECK(gains("out.json", "best", 2).empty());
  // A scenario that only spans a space has nothing to simulate.
  const auto refused = run("simulate a.json", folder);
  CHECK(refused.exit == 1);
  CHECK_THAT(refused.err, ContainsSubstring("stratagem search"));
}

TEST_CASE("reports of plans, of runs without a strategy and of lists in one have their schema") {
  const TemporaryFolder folder;
  const std::string plan = std::filesystem::absolute("scenarios/own_plan.json").string();
  REQUIRE(run("simulate " + plan + " --no-remedies --json plan.json", folder).exit == 0);
  CHECK_NOTHROW(check_schema((folder.path() / "plan.json").string(), report_schema));
  const std::string more = R"(, {"name": "none", "cluster": {"gpus": 1}},
    {"name": "lists", "cluster": {"gpus": 2}, "model": {"frozen": ["layers.0.*"]},
     "strategy": {"pipeline": 2, "layers_per_stage": [1, 1]}} ])";
  folder.write("a.json", with(small_scenario(), "\n  ]", more));
  REQUIRE(run("simulate a.json --json out.json", folder).exit == 0);
  CHECK_NOTHROW(check_schema((folder.path() / "out.json").string(), report_schema));
}

TEST_CASE("what strategies may say of recomputation and swaps, the schemas and the program take") {
  const TemporaryFolder folder;
  for (const std::string strategy :
       {R"("data": 2, "recompute": {"every": 2})",
        R"("data": 2, "recompute": {"layers": 1, "method": "block"})",
        R"("data": 2, "recompute": {"layers": 2, "method": "uniform"},)"
        R"( "partition_checkpoints": true)",
        R"("data": 2, "recompute": {"operators": ["layers.*.mlp.*"]},)"
        R"( "swap": {"layers": 2, "to": "host"})",
        R"("pipeline": 2, "swap": {"layers": 1, "to": "peer", "prefetch": 0})"}) {
    INFO(strategy);
    const std::string four =
        R"({"tensor": 2, "data": 2, "overlap_gradients": true, "bucket": "25 MiB"})";
    folder.write("a.json", with(small_scenario(), four, R"({"tensor": 2, )" + strategy + "}"));
    CHECK_NOTHROW(check_schema((folder.path() / "a.json").string(), scenario_schema));
    CHECK(run("explain a.json --run four --as-plan plan.json", folder).exit == 0);
    CHECK_NOTHROW(check_schema((folder.path() / "plan.json").string(), plan_schema));
    CHECK(run("simulate a.json", folder).exit == 0);
  }
}

TEST_CASE("the schema of scenarios refuses what the program refuses") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& part, const std::string& other,
                           const std::string& path) {
    folder.write("a.json", with(small_scenario(), part, other));
    CHECK(run("simulate a.json", folder).exit == 1);
    try {
      check_schema((folder.path() / "a.json").string(), scenario_schema);
      FAIL("the schema allows " + other);
    } catch (const InputError& error) {
      CHECK_THAT(error.path, StartsWith(path));
    }
  };
  refused("\"tensor\": 2", "\"tensors\": 2", "/runs/1/strategy");
  refused("\"layers\": 2", "\"layers\": 0", "/defaults/model/layers");
  refused("\"25 MiB\"", "\"25 ms\"", "/runs/1/strategy/bucket");
  refused("\"dgx-2\"", "\"dgx-3\"", "/defaults/cluster/preset");
  refused("\"25 MiB\"}", R"("25 MiB"}, "measured": {"iteration_time": {"source": "a table"}})",
          "/runs/1/measured/iteration_time");
  refused("\"gpus\": 4", R"("gpus": 4, "fabric": {"kind": "fat_trees"})",
          "/defaults/cluster/fabric/kind");
}

TEST_CASE(
    "the schemas list the presets, models, schedules, precisions, optimizers and provenances that "
    "the "
    "program knows") {
  const auto in_scenario = [](const std::string& part, const std::string& key) {
    return words(scenario_schema, {"definitions", part, "properties", key});
  };
  CHECK(in_scenario("cluster", "preset") == names(topology::presets()));
  const std::vector<std::string> speeds = names(topology::network_speeds());
  const auto named = [](const JsonReader& place) {
    std::vector<std::string> found;
    for (const JsonReader& word : place.at("anyOf").elements().front().at("enum").elements())
      found.push_back(word.text());
    return found;
  };
  const JsonReader scenario = JsonReader::from_file(scenario_schema);
  CHECK(named(scenario.at("definitions").at("network_speed")) == speeds);
  CHECK(named(JsonReader::from_file(node_schema).at("properties").at("port")) == speeds);
  CHECK(in_scenario("model", "family") == names(model::families()));
  CHECK(in_scenario("model", "preset") == names(model::presets()));
  CHECK(in_scenario("strategy", "schedule") == names(strategies::schedules()));
  CHECK(in_scenario("training", "precision") == names(cost::precisions()));
  CHECK(in_scenario("training", "optimizer") == names(cost::optimizers()));
  CHECK(words(stack_schema, {"definitions", "precision"}) == names(cost::precisions()));
  const std::vector<std::string> provenances =
      words(stack_schema, {"definitions", "constant", "properties", "provenance"});
  for (const auto provenance : cost::provenances) {
    CHECK(std::ranges::count(provenances, cost::to_text(provenance)) == 1);
  }
}

TEST_CASE("schemas say what options declare (if not: scripts/readme)") {
  const TemporaryFolder folder;
  for (const auto& [schema, part] : {std::pair{scenario_schema, "model"},
                                     {scenario_schema, "strategy"},
                                     {stack_schema, "rules"}}) {
    const Ran said = run("options " + std::string(part) + " --schema", folder);
    CHECK(JsonReader::from_file(schema).at("definitions").at(part).dump() ==
          JsonReader::from_text(said.out, part).dump());
  }
}

TEST_CASE("the schema of plans lists the primitives that the program knows") {
  std::vector<std::string> known;
  for (const strategies::PrimitiveKind& kind : strategies::primitive_kinds())
    known.push_back(kind.name + " " + kind.key);
  std::vector<std::string> described;
  const JsonReader kinds = JsonReader::from_file(plan_schema).at("definitions");
  for (const std::string& name : kinds.keys()) {
    const std::vector<JsonReader> required = kinds.at(name).at("required").elements();
    described.push_back(required[0].text() + " " + (required.size() > 1 ? required[1].text() : ""));
    for (const std::string& key : kinds.at(name).at("properties").keys())
      CHECK(kinds.at(name).at("properties").at(key).has("description"));
  }
  std::ranges::sort(known);
  std::ranges::sort(described);
  CHECK(described == known);
}
