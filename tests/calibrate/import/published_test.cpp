// Records of published runs become the shipped scenarios, by rules that do what they say.
#include "calibrate/import/published.hpp"

#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "base/json_writer.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem::calibrate {
namespace {

const std::string records_file = "scenarios/records/published.json";
const std::string rules_file = "scenarios/records/published.rules.json";
const std::string folder_of_scenarios = "scenarios/published";

std::string contents(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string record(const std::string& model, const std::string& plan, const std::string& measured) {
  return R"({"id": "one", "group": "G", "source": "a paper", "confidence": "read",
      "value_origin": "printed",
    "hardware": {"gpu": "A", "gpus": 24}, "model": {)" +
         model + R"(}, "parallel": {)" + plan + R"(}, "measured": {)" + measured + "}}";
}

const std::string model = R"("layers": 70, "hidden": 64, "heads": 4, "seq": 32, "vocab": 1000)";
const std::string plan =
    R"("tp": 2, "pp": 12, "dp": 1, "micro_batch": 1, "global_batch": 4, "zero": 1)";

std::string with_rules(const std::string& rules) {
  return R"({"schema": 1, "groups": [{"group": "G", "file": "g.json", "question": "?", "rules": [
    {"run": {"cluster": {"preset": "dgx-2"}, "profile": "p", "stack": "s"}})" +
         rules + "]}]}";
}

/// What one record becomes.
ImportedRecords imported(const std::string& of_record, const std::string& rules) {
  const TemporaryFolder folder;
  folder.write("records.json", R"({"records": [)" + of_record + "]}");
  folder.write("rules.json", with_rules(rules));
  return import_records((folder.path() / "records.json").string(),
                        (folder.path() / "rules.json").string());
}

JsonReader run_of(const ImportedRecords& records) {
  return JsonReader::from_text(records.scenarios.at(0).text, "g.json").at("runs").elements().at(0);
}

std::string refusal(const std::string& of_record, const std::string& rules) {
  try {
    imported(of_record, rules);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the shipped scenarios are what the importer makes of the shipped records") {
  const ImportedRecords records = import_records(records_file, rules_file);
  // Those that others write: scripts/megatron_tests one of them.
  std::set<std::string> files = {
      "validate.json",     "vtrain.json",           "vtrain_single.json",    "nanotron.json",
      "pytorch_h100.json", "nanotron_crashed.json", "megatron_lm_tests.json"};
  for (const ImportedScenario& scenario : records.scenarios) {
    INFO(scenario.file);
    CHECK(contents(std::filesystem::path(folder_of_scenarios) / scenario.file) == scenario.text);
    files.insert(scenario.file);
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder_of_scenarios))
    CHECK(files.contains(entry.path().filename().string()));
}

/// A value of a run, or what all runs have.
std::string of_run(const JsonReader& scenario, const JsonReader& run, const char* object,
                   const char* key) {
  if (run.at(object).has(key)) return run.at(object).at(key).dump();
  return scenario.at("defaults").at(object).at(key).dump();
}

/// The sizes, plan and milliseconds of a run, in the order of vTrain's columns.
std::vector<double> vtrain_row(const JsonReader& scenario, const JsonReader& run) {
  std::vector<double> row;
  for (const auto& [object, key] :
       std::vector<std::pair<const char*, const char*>>{{"cluster", "gpus"},
                                                        {"training", "global_batch"},
                                                        {"training", "micro_batch"},
                                                        {"model", "hidden"},
                                                        {"model", "heads"},
                                                        {"model", "layers"},
                                                        {"model", "sequence"},
                                                        {"strategy", "tensor"},
                                                        {"strategy", "data"},
                                                        {"strategy", "pipeline"}})
    row.push_back(std::stod(of_run(scenario, run, object, key)));
  const std::string time = run.at("measured").at("iteration_time").at("value").text();
  row.push_back(time.ends_with(" ms") ? std::stod(time) : 1e3 * std::stod(time));
  return row;
}

/// Of a table of vTrain, without the columns before the number of GPUs.
std::vector<std::vector<double>> vtrain_rows(const std::string& table, std::size_t columns_before) {
  std::ifstream file(table);
  std::vector<std::vector<double>> rows;
  for (std::string line; std::getline(file, line);) {
    if (std::isdigit(static_cast<unsigned char>(line.front())) == 0) continue;
    std::istringstream cells(line);
    std::vector<double> row;
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(std::stod(cell));
    rows.emplace_back(row.begin() + static_cast<std::ptrdiff_t>(columns_before), row.end());
  }
  return rows;
}

void check_vtrain(const std::string& file, const std::vector<std::vector<double>>& rows) {
  const auto scenario = JsonReader::from_file(file);
  const std::vector<JsonReader> runs = scenario.at("runs").elements();
  REQUIRE(runs.size() == rows.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    INFO(runs[i].at("name").text());
    const std::vector<double> row = vtrain_row(scenario, runs[i]);
    REQUIRE(row.size() == rows[i].size());
    for (std::size_t column = 0; column < row.size(); ++column)
      CHECK(close(row[column], rows[i][column], 1e-9));
    const std::int64_t multiple = 128 * runs[i].at("strategy").at("tensor").whole_number();
    const std::int64_t vocabulary = runs[i].at("model").at("vocabulary").whole_number();
    CHECK(vocabulary % multiple == 0);
    CHECK((vocabulary >= 50257 && vocabulary < 50257 + multiple));
  }
}

TEST_CASE(
    "vTrain's scenarios have the rows of its files, and the vocabulary that Megatron-LM pads") {
  const auto several = vtrain_rows("scenarios/records/vtrain_multi_node.csv", 1);
  CHECK(several.size() == 54);
  check_vtrain("scenarios/published/vtrain.json", several);
  const auto one = vtrain_rows("scenarios/records/vtrain_single_node.csv", 0);
  CHECK(one.size() == 720);
  check_vtrain("scenarios/published/vtrain_single.json", one);
}

/// Layers of 1,024, one sample a micro-batch, one stage; one tensor rank, or two and one data rank.
bool waits_for_host(const JsonReader& run) {
  const auto is = [&](const char* object, const char* key, std::int64_t number) {
    return run.at(object).at(key).whole_number() == number;
  };
  const bool few_ranks =
      is("strategy", "tensor", 1) || (is("strategy", "tensor", 2) && is("strategy", "data", 1));
  return few_ranks && is("model", "hidden", 1024) && is("training", "micro_batch", 1) &&
         is("strategy", "pipeline", 1);
}

TEST_CASE(
    "of vTrain's runs on one server a tenth at most is fitted, those whose GPUs wait for their "
    "hosts") {
  const auto scenario = JsonReader::from_file("scenarios/published/vtrain_single.json");
  std::size_t fitted = 0, runs = 0;
  for (const JsonReader& run : scenario.at("runs").elements()) {
    const JsonReader time = run.at("measured").at("iteration_time");
    const bool counts_as_fitted = time.has("fitted") && time.at("fitted").boolean();
    CHECK(counts_as_fitted == waits_for_host(run));
    if (counts_as_fitted) ++fitted;
    ++runs;
  }
  CHECK(fitted == 33);
  CHECK(10 * fitted <= runs);
}

TEST_CASE("every record is a run or is left out with a reason") {
  const ImportedRecords records = import_records(records_file, rules_file);
  std::size_t runs = 0;
  for (const ImportedScenario& scenario : records.scenarios)
    runs += static_cast<std::size_t>(scenario.runs);
  const auto all = JsonReader::from_file(records_file).at("records").elements();
  CHECK(runs + records.left_out.size() == all.size());
  CHECK(runs >= 150);
  CHECK(records.scenarios.size() >= 8);
  for (const LeftOut& record : records.left_out) CHECK(!record.reason.empty());
}

TEST_CASE("layers are divided as DeepSpeed divides them") {
  const auto stages = [](const std::string& of_model, const std::string& rule) {
    const JsonReader strategy =
        run_of(imported(record(of_model, plan, R"("fits": true)"), rule)).at("strategy");
    return strategy.has("layers_per_stage") ? strategy.at("layers_per_stage").dump() : "";
  };
  const auto layers = [](int n) { return with(model, "70", std::to_string(n)); };
  // chronicles-prequel.md: of 78 layers in 12 stages the last has one, all others have seven.
  CHECK(stages(layers(78), "") == "[7,7,7,7,7,7,7,7,7,7,7,1]");
  CHECK(stages(layers(72), "").empty());
  // Ibid.: 70 layers and the two embeddings are six for each of 12.
  CHECK(stages(layers(70), R"(, {"stages": "ends"})") == "[5,6,6,6,6,6,6,6,6,6,6,5]");
}

TEST_CASE("a record's plan, batch and figures are said in a scenario's words") {
  const std::string more = R"x("tp": 2, "pp": 4, "dp": 3, "num_micro_batches": 5, "micro_batch": 2,
    "zero": "2 and more", "recompute": "full (default)", "schedule": "ZB-2p",
      "precision": "bf16/fp16", "offload": "CPU")x";
  const JsonReader run = run_of(
      imported(record(with(model, "70", "8"), more, R"("peak_mem_gb": 12.5, "iteration_s": 3)"),
               R"(, {"vocabulary_multiple": 128, "memory": {"figure": "peak_used", "unit": "GiB",)"
               R"( "because": "so"}})"));
  CHECK(run.at("model").dump() ==
        R"({"family":"gpt","layers":8,"hidden":64,"heads":4,"sequence":32,"vocabulary":1024})");
  CHECK(run.at("training").dump() ==
        R"({"global_batch":30,"micro_batch":2,"precision":"bf16","optimizer":"adam"})");
  CHECK(run.at("strategy").dump() ==
        R"({"tensor":2,"data":3,"pipeline":4,"schedule":"zb-h2","recompute":"full","zero":2,)"
        R"("offload":"optimizer"})");
  CHECK(run.at("assumed").text() == "so");
  const JsonReader measured = run.at("measured");
  CHECK(measured.at("peak_used").at("value").text() == "12.5 GiB");
  CHECK(measured.at("iteration_time").at("value").text() == "3 s");
  CHECK_FALSE(measured.has("fits"));                    // a verdict is what a source states
  CHECK_FALSE(measured.at("peak_used").has("device"));  // it is the fullest one's
}

TEST_CASE("a rule says which figure tells how fast a record ran that has no time") {
  const auto measured = [](const std::string& figures, const std::string& rule) {
    return run_of(imported(record(model, plan, figures),
                           R"(, {"throughput": {"figure": ")" + rule + R"(", "because": "so"}})"))
        .at("measured");
  };
  // 24 GPUs, 4 samples an iteration.
  CHECK(
      measured(R"("samples_per_s": 8)", "samples_per_s").at("iteration_time").at("value").text() ==
      "0.5 s");
  CHECK(measured(R"("samples_per_s_per_gpu": 0.25)", "samples_per_s_per_gpu")
            .at("iteration_time")
            .at("value")
            .text() == "0.666667 s");
  CHECK(measured(R"("tokens_per_s_per_gpu": 16)", "tokens_per_s_per_gpu")  // of 32 a sample
            .at("iteration_time")
            .at("value")
            .text() == "0.333333 s");
  CHECK(measured(R"("tflops_per_gpu": 39)", "tflops_per_gpu")
            .at("tflops_per_gpu")
            .at("value")
            .text() == "39 TFLOP/s");
  const auto counted = [&](const std::string& figure, const std::string& count) {
    return run_of(imported(record(model, plan, "\"" + figure + "\": 39"),
                           R"(, {"throughput": {"figure": ")" + figure + R"(", "count": ")" +
                               count + R"(", "because": "so"}})"))
        .at("measured");
  };
  CHECK(counted("tflops_per_gpu", "model").at("model_tflops_per_gpu").at("value").text() ==
        "39 TFLOP/s");
  CHECK(counted("tflops_per_gpu", "hardware").has("tflops_per_gpu"));
  CHECK_THROWS_WITH(counted("samples_per_s", "model"), ContainsSubstring("only of tflops_per_gpu"));
  const JsonReader fitted = run_of(imported(
      record(model, plan, R"("samples_per_s": 8)"),
      R"(, {"throughput": {"figure": "samples_per_s", "fitted": true, "because": "so"}})"));
  CHECK(fitted.at("measured").at("iteration_time").at("fitted").boolean());
  CHECK_FALSE(fitted.has("assumed"));
  CHECK_THROWS_WITH(measured(R"("tflops_per_gpu": 0)", "tflops_per_gpu"),
                    ContainsSubstring("a number above 0"));
  CHECK_THROWS_WITH(measured(R"("tokens_per_s": 7)", "samples_per_s"),
                    ContainsSubstring("a time, a memory or a verdict"));
  CHECK(measured(R"("fits": true)", "samples_per_s").keys() == std::vector<std::string>{"fits"});
  CHECK_THROWS_WITH(imported(record(model, plan, R"("tokens_per_s": 7)"), ""),
                    ContainsSubstring("a time, a memory or a verdict"));
  const JsonReader both = measured(R"("tflops_per_gpu": 39, "iteration_s": 3)", "tflops_per_gpu");
  CHECK(both.at("iteration_time").at("value").text() == "3 s");
  CHECK_FALSE(both.has("tflops_per_gpu"));
}

TEST_CASE("a rule says on which device memory was measured") {
  const JsonReader run = run_of(imported(
      record(model, plan, R"("peak_mem_gb": 12.5)"),
      R"(, {"memory": {"figure": "peak_used", "unit": "GB", "device": 3, "because": "so"}})"));
  CHECK(run.at("measured").at("peak_used").at("device").whole_number() == 3);
}

TEST_CASE("a record with heads of keys of their own is a Llama, and a width of the MLP is said") {
  const std::string shared = with(model, "70", "8") + R"(, "kv_heads": 2, "ffn": 176)";
  CHECK(run_of(imported(record(shared, plan, R"("fits": true)"), "")).at("model").dump() ==
        R"({"family":"llama","layers":8,"hidden":64,"heads":4,"sequence":32,"vocabulary":1000,)"
        R"("kv_heads":2,"intermediate":176})");
  const std::string wide = with(model, "70", "8") + R"(, "ffn": 176)";
  CHECK(run_of(imported(record(wide, plan, R"("fits": true)"), "")).at("model").dump() ==
        R"({"family":"gpt","layers":8,"hidden":64,"heads":4,"sequence":32,"vocabulary":1000,)"
        R"("intermediate":176})");
}

TEST_CASE("rules hold where their conditions do, and later ones go before earlier ones") {
  const std::string some = record(model, plan, R"("fits": false)");
  const auto stack = [&](const std::string& when) {
    return run_of(imported(some, R"(, {"when": {)" + when + R"(}, "run": {"stack": "other"}})"))
        .at("stack")
        .text();
  };
  CHECK(stack(R"("model.layers": 70)") == "other");
  CHECK(stack(R"("model.layers": 71)") == "s");
  CHECK(stack(R"("model.layers": [69, 70], "parallel.tp": 2)") == "other");
  CHECK(stack(R"("source": {"contains": "paper"})") == "other");
  CHECK(stack(R"("source": {"contains": "thesis"})") == "s");
  CHECK(stack(R"("parallel.local_batch": null)") == "other");
  CHECK(stack(R"("parallel.tp": null)") == "s");
  const ImportedRecords out =
      imported(some, R"(, {"left_out": {"absent": "model", "reason": "no such model"}})");
  CHECK(out.scenarios.empty());
  REQUIRE(out.left_out.size() == 1);
  CHECK(out.left_out[0].reason == "no such model");
  CHECK(run_of(imported(some, R"(, {"facts": {"model": {"layers": 24}}})"))
            .at("model")
            .at("layers")
            .whole_number() == 24);
}

TEST_CASE("records that contradict themselves, and rules that say nothing, are refused") {
  CHECK(refusal(record(model, with(plan, "\"dp\": 1", "\"dp\": 2"), R"("fits": true)"), "")
            .find("the 24 GPUs, found 48") != std::string::npos);
  CHECK(refusal(record(model, R"("tp": 2, "pp": 12)", R"("fits": true)"), "").find("micro_batch") !=
        std::string::npos);
  CHECK(refusal(record(model, plan, R"("peak_mem_gb": 1)"), "").find("which figure of memory") !=
        std::string::npos);
  CHECK(refusal(record(model, plan, R"("fits": true)"), R"(, {"wen": {}})").find("wen") !=
        std::string::npos);
}

}  // namespace stratagem::calibrate
