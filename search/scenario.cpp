// Reads scenarios: defaults under every run, presets and files by name, sizes checked against each other.
#include "search/scenario.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <utility>

#include "base/input_error.hpp"
#include "model/zoo/all.hpp"
#include "topology/presets.hpp"

namespace stratagem::search {
namespace {

template <typename Table>
std::vector<std::string> names(const Table& table) {
  std::vector<std::string> result;
  std::ranges::transform(table, std::back_inserter(result), [](const auto& entry) { return entry.name; });
  return result;
}

model::DataType data_type(const std::string& precision) {
  return precision == "fp16" ? model::DataType::fp16 : precision == "bf16" ? model::DataType::bf16 : model::DataType::fp32;
}

/// `{"preset": P, "gpus": n}` (as many nodes as n GPUs need) or `{"preset": P, "nodes": n}` (all their GPUs).
struct ClusterChoice {
  topology::Cluster cluster;
  int gpus;
};

ClusterChoice read_cluster(const JsonReader& reader) {
  const std::string name = reader.at("preset").one_of(names(topology::presets()));
  const auto preset = std::ranges::find(topology::presets(), name, &topology::Preset::name);
  const auto gpus = reader.find("gpus");
  const auto nodes = reader.find("nodes");
  if (!gpus && !nodes) reader.fail("the key \"gpus\" or the key \"nodes\"");
  const int per_node = preset->build(1).gpus_per_node();
  const int wanted = gpus ? static_cast<int>(gpus->at_least(1)) : static_cast<int>(nodes->at_least(1)) * per_node;
  const int needed = (wanted + per_node - 1) / per_node;
  if (gpus && nodes && needed > nodes->at_least(1)) {
    gpus->fail("at most the " + std::to_string(nodes->at_least(1) * per_node) + " GPUs of the nodes");
  }
  return {preset->build(nodes ? static_cast<int>(nodes->at_least(1)) : needed), wanted};
}

std::string beside(const std::string& scenario_file, const std::string& folder, const std::string& name) {
  return (std::filesystem::path(scenario_file).parent_path() / folder / (name + ".json")).string();
}

/// A profile or stack by name, or by path where the name ends in ".json".
std::string file_of(const JsonReader& reader, const std::string& folder) {
  const std::string name = reader.text();
  const std::string file = name.ends_with(".json") ? name : beside(reader.file(), folder, name);
  if (!std::filesystem::exists(file)) reader.fail("a file " + file, "none");
  return file;
}

/// A figure with the unit that its name asks for.
double read_figure(const std::string& name, const JsonReader& value) {
  if (name == "iteration_time") return value.quantity<Seconds>().value;
  if (name == "tflops_per_gpu") return value.quantity<FlopsPerSecond>().value / 1e12;
  return value.number();
}

const std::vector<std::string>& figure_names() {
  static const std::vector<std::string> known = {"iteration_time", "tflops_per_gpu", "scaling_efficiency", "speedup"};
  return known;
}

std::vector<Measured> read_measured(const JsonReader& reader) {
  std::vector<Measured> result;
  for (const std::string& key : reader.keys()) {
    const JsonReader figure = reader.at(key);
    if (std::ranges::find(figure_names(), key) == figure_names().end()) {
      figure.fail("no such figure; known are iteration_time, tflops_per_gpu, scaling_efficiency, speedup");
    }
    const std::string provenance = figure.at("provenance").one_of({"published", "from memory", "measured"});
    result.push_back({key, read_figure(key, figure.at("value")), provenance != "from memory", figure.at("source").text()});
  }
  return result;
}

std::vector<Expectation> read_expectations(const JsonReader& reader) {
  std::vector<Expectation> result;
  for (const std::string& key : reader.keys()) {
    const JsonReader bound = reader.at(key);
    Expectation expectation{.name = key, .at_least = -1e300, .at_most = 1e300, .because = {}};
    if (key == "fits") {
      const bool fits = bound.at("value").boolean();
      expectation.at_least = expectation.at_most = fits ? 1 : 0;
    } else if (std::ranges::find(figure_names(), key) == figure_names().end()) {
      bound.fail("no such figure; known are fits, iteration_time, tflops_per_gpu, scaling_efficiency, speedup");
    }
    if (const auto least = bound.find("at_least")) expectation.at_least = read_figure(key, *least);
    if (const auto most = bound.find("at_most")) expectation.at_most = read_figure(key, *most);
    expectation.because = bound.at("because").text();
    result.push_back(std::move(expectation));
  }
  return result;
}

/// The sizes of a batch must fit each other: global = data ranks * micro-batch * micro-batches.
void read_batch(Run& run, const JsonReader& training) {
  run.global_batch = static_cast<int>(training.at("global_batch").at_least(1));
  run.micro_batch = static_cast<int>(training.at("micro_batch").at_least(1));
  const int per_step = run.micro_batch * run.options.data;
  if (run.global_batch % per_step != 0) {
    training.at("global_batch").fail("a multiple of micro_batch x data = " + std::to_string(per_step));
  }
  run.micro_batches = run.global_batch / per_step;
}

/// Two levels of settings, as they were read.
Json resolved(const JsonReader& reader) {
  Json result = Json::object();
  for (const char* key : {"model", "cluster", "training", "strategy"}) {
    Json part = Json::object();
    const JsonReader object = reader.at(key);
    for (const std::string& name : object.keys()) {
      const JsonReader value = object.at(name);
      if (value.is_number()) part.set(name, value.number());
      else if (value.is_string()) part.set(name, value.text());
      else part.set(name, value.boolean());
    }
    result.set(key, part);
  }
  return result.set("profile", reader.at("profile").text()).set("stack", reader.at("stack").text());
}

Run read_run(const JsonReader& reader, const std::string& baseline) {
  const JsonReader training = reader.at("training");
  const JsonReader strategy = reader.at("strategy");
  const strategies::Options options = strategies::read_options(strategy);
  ClusterChoice choice = read_cluster(reader.at("cluster"));
  if (options.devices() != choice.gpus) {
    strategy.fail("tensor x pipeline x data = the cluster's " + std::to_string(choice.gpus) + " GPUs",
                  std::to_string(options.devices()));
  }
  Run run{.name = reader.at("name").text(),
          .baseline = baseline,
          .cluster = std::move(choice.cluster),
          .profile = cost::read_profile(file_of(reader.at("profile"), "profiles")),
          .stack = cost::read_stack(file_of(reader.at("stack"), "stacks")),
          .options = options,
          .strategy = strategy};
  read_batch(run, training);
  const JsonReader model = reader.at("model");
  const std::string family_name = model.at("family").one_of(names(model::families()));
  const auto family = std::ranges::find(model::families(), family_name, &model::Family::name);
  run.precision = training.at("precision").one_of({"fp16", "bf16", "fp32"});
  if (!run.profile.peak.contains(run.precision) || !run.profile.gemm.contains(run.precision)) {
    training.at("precision").fail("a precision that profile " + run.profile.name + " has constants for");
  }
  run.graph = family->build(model, std::int64_t{run.micro_batch} * options.data, data_type(run.precision));
  run.sequence = model.at("sequence").at_least(1);
  static_cast<void>(training.at("optimizer").one_of({"adam"}));
  if (const auto group = reader.find("group")) run.compares = group->text();
  if (const auto relative = reader.find("baseline")) run.baseline = relative->text();
  if (const auto assumed = reader.find("assumed")) run.assumed = assumed->text();
  if (const auto measured = reader.find("measured")) run.measured = read_measured(*measured);
  if (const auto expect = reader.find("expect")) run.expect = read_expectations(*expect);
  run.resolved = resolved(reader);
  reader.finish();
  return run;
}

void check_names(const std::vector<Run>& runs, const JsonReader& list) {
  std::set<std::string> seen;
  for (const Run& run : runs) {
    if (!seen.insert(run.name).second) list.fail("runs with different names", run.name);
  }
  for (const Run& run : runs) {
    if (!run.baseline.empty() && !seen.contains(run.baseline)) list.fail("a run named as the baseline", run.baseline);
  }
}

}  // namespace

Scenario read_scenario(const std::string& file) {
  const JsonReader reader = JsonReader::from_file(file);
  Scenario scenario{.file = file, .question = reader.at("question").text(), .runs = {}};
  const std::string baseline = reader.find("baseline") ? reader.at("baseline").text() : "";
  const JsonReader runs = reader.at("runs");
  const JsonReader defaults = reader.at("defaults");
  for (const JsonReader& run : runs.elements()) scenario.runs.push_back(read_run(run.over(defaults), baseline));
  if (scenario.runs.empty()) runs.fail("at least one run");
  check_names(scenario.runs, runs);
  reader.finish();
  return scenario;
}

}  // namespace stratagem::search
