// Reads scenarios: fills in the defaults of every run, looks up names, checks sizes against each
// other.
#include "study/scenario.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>

#include "base/input_error.hpp"
#include "base/json_copy.hpp"
#include "base/malformed_input.hpp"
#include "base/memo.hpp"
#include "model/freeze.hpp"
#include "model/zoo/all.hpp"
#include "model/zoo/presets.hpp"
#include "strategies/language/plan_devices.hpp"
#include "strategies/language/plan_file.hpp"
#include "strategies/parallel/rank_order.hpp"
#include "strategies/parallel/read_options.hpp"
#include "study/figures.hpp"
#include "study/library.hpp"
#include "study/plan_of.hpp"
#include "study/reading/cluster_choice.hpp"
#include "study/reading/model_checks.hpp"
#include "study/reading/named_presets.hpp"
#include "study/reading/places.hpp"
#include "study/reading/remarks.hpp"
#include "study/reading/what_follows.hpp"
#include "study/stack_facts.hpp"
#include "study/what_if.hpp"
#include "topology/presets.hpp"

namespace stratagem::study {
namespace {

template <typename Table>
std::vector<std::string> names(const Table& table) {
  std::vector<std::string> result;
  std::ranges::transform(table, std::back_inserter(result),
                         [](const auto& entry) { return entry.name; });
  return result;
}

/// The sizes of a batch must fit each other: global = data ranks * micro-batch * micro-batches.
void read_batch(Run& run, const JsonReader& training) {
  const JsonReader global = training.at("global_batch");
  const std::string samples =
      "samples, not tokens (tokens over the sequence): a whole number from 1 to 1000000";
  if (global.is_string())
    throw MalformedInput(global.file(), global.path(), samples, global.dump());
  if (global.is_number() && global.number() > 1e6) global.fail(samples);
  run.batch.global = read_count(global);
  run.batch.micro = read_count(training.at("micro_batch"));
  const std::int64_t per_step = std::int64_t{run.batch.micro} * run.batch.ranks;
  if (run.batch.global % per_step != 0) {
    training.at("global_batch")
        .fail(std::string("a multiple of micro_batch x ") +
              (run.plan ? "the plan's data ranks" : "data") + " = " + std::to_string(per_step));
  }
  constexpr std::int64_t most = 4096;
  if (run.batch.global / per_step > most) {
    training.at("global_batch")
        .fail("at most " + std::to_string(most) + " micro-batches of " + std::to_string(per_step) +
              " samples (samples, not tokens)");
  }
  run.batch.micro_batches = static_cast<int>(run.batch.global / per_step);
}

/// Has a run a plan file? Its own plan or strategy hides what the defaults have; one layer that has
/// both is an error.
bool plan_replaces_strategy(const JsonReader& run) {
  if (!run.has("plan")) return false;
  if (!run.has("strategy")) return true;
  const JsonReader plan = run.at("plan");
  const bool own_plan = plan.path().starts_with(run.path() + "/");
  const bool own_strategy = run.at("strategy").path().starts_with(run.path() + "/");
  if (own_plan == own_strategy) plan.fail("a plan or a strategy, not both");
  return own_plan;
}

Json resolved(const JsonReader& reader) {
  Json result = Json::object();
  for (const char* key : {"model", "cluster", "training", "strategy", "what_if"}) {
    if (key == std::string("strategy") && plan_replaces_strategy(reader)) continue;
    if (reader.has(key)) result.set(key, copy_of(reader.at(key)));
  }
  if (plan_replaces_strategy(reader)) result.set("plan", reader.at("plan").text());
  return result.set("profile", reader.at("profile").text()).set("stack", reader.at("stack").text());
}

std::shared_ptr<const model::Graph> read_model(const JsonReader& reader, std::int64_t batch,
                                               const cost::Precision& types) {
  const std::string name = reader.at("family").one_of(names(model::families()));
  const auto family = std::ranges::find(model::families(), name, &model::Family::name);
  try {
    return family->build(reader, batch, {types.values, types.gradients, types.products});
  } catch (const InputError& error) {
    if (!error.file.empty()) throw;  // a graph does not know the file that it comes from
    throw InputError(reader.file(), reader.path(), error.expected, error.found);
  }
}

/// A model of which nothing is trained.
std::shared_ptr<const model::Graph> forward_only(const model::Graph& graph) {
  return std::make_shared<const model::Graph>(
      model::freeze(graph, [](const model::Tensor&) { return true; }));
}

}  // namespace

std::shared_ptr<const model::Graph> graph_of_batch(const Run& run, std::int64_t batch) {
  const JsonReader settings =
      JsonReader::from_text(run.resolved.text(), run.origin.file, run.origin.path);
  return read_model(model::with_preset(settings.at("model")), batch, cost::precision_named("fp16"));
}

namespace {

bool has_constants(const cost::Profile& profile, const cost::Precision& precision) {
  return std::ranges::all_of(std::array{precision.values, precision.products}, [&](auto type) {
    const std::string key = model::to_text(type);
    return profile.peak.contains(key) && profile.kernels.gemm.contains(key);
  });
}

/// A precision that the GPU and the framework know; who refuses one is told those that both know.
cost::Precision read_precision(const Run& run, const JsonReader& name) {
  const cost::Precision precision = cost::precision_named(name.one_of(names(cost::precisions())));
  const auto holds = [&](const cost::Precision& one) {
    return std::ranges::find(run.stack.precisions, one.name) != run.stack.precisions.end();
  };
  std::string both;
  for (const cost::Precision& one : cost::precisions()) {
    if (has_constants(run.profile, one) && holds(one))
      both += (both.empty() ? "" : ", ") + one.name;
  }
  if (both.empty()) both = "none";
  if (!has_constants(run.profile, precision)) {
    name.fail("a precision that profile " + run.profile.name + " has constants for (with stack " +
              run.stack.name + ": " + both + ")");
  }
  if (!holds(precision)) {
    name.fail("a precision that the facts of stack " + run.stack.name + " hold for (on profile " +
              run.profile.name + ": " + both + ")");
  }
  return precision;
}

void read_training(Run& run, const JsonReader& training) {
  read_batch(run, training);
  cost::Precision precision = read_precision(run, training.at("precision"));
  cost::choose_copies(precision, run.cluster.design().compute_capability);
  cost::choose_rules(run.stack, precision);
  const std::string optimizer = training.at("optimizer").one_of(names(cost::optimizers()));
  run.training = {precision, cost::optimizer_named(optimizer)};
  if (!trains(run.training.optimizer)) run.training.precision.copies = 1;  // backward reads others
  if (!trains(run.training.optimizer) && precision.gradients != precision.values)
    training.at("precision").fail("no gradients in fp32 with \"optimizer\": \"none\"");
}

/// The strategy of a run; one that says nothing is one GPU.
JsonReader strategy_of(const JsonReader& reader) {
  if (const auto strategy = reader.find("strategy")) {
    if (!plan_replaces_strategy(reader)) return *strategy;
    strategy->skip();
  }
  return JsonReader::from_text("{}", reader.file());
}

/// A run has as many GPUs as its strategy, or its plan, has use for.
void check_gpus(const Run& run, const JsonReader& reader) {
  const std::string of_cluster = "the cluster's " + std::to_string(run.gpus) + " GPUs";
  if (run.plan) {
    const int devices = strategies::device_count(plan_of(run));
    if (devices != run.gpus)
      reader.at("plan").fail("a plan for " + of_cluster, std::to_string(devices) + " devices");
  } else if (devices_of(run.options) != run.gpus) {
    strategies::refuse_gpus(run.strategy, run.gpus, run.options);
  }
}

cost::Profile read_profile(const JsonReader& name, const std::optional<cost::Profile>& instead) {
  static_cast<void>(name.text());
  if (instead) return *instead;
  using Version = std::pair<std::string, std::filesystem::file_time_type>;
  static Memo<Version, cost::Profile> known(4);
  const std::string file = file_of(name, "profiles");
  std::error_code gone;
  const auto written = std::filesystem::last_write_time(file, gone);
  return *known.of({file, written}, [&] { return cost::read_profile(file); });
}

/// A stack may stand on another one.
std::vector<std::string> files_of_stack(const std::string& file) {
  const auto base = JsonReader::from_file(file).find("base");
  if (!base) return {file};
  return {file, cost::file_of_base(file, base->text(), library() / "stacks")};
}

/// Does a step of reading a run; false if its settings cannot go together. The run is refused by
/// the first such step, and what is left of it is still read, so that a slip in writing is found
/// wherever it stands. What is wrong with the form of a file, or with another file than the
/// scenario and the plan, concerns more than this run.
bool can_be(Run& run, const std::function<void()>& step) {
  try {
    step();
    return true;
  } catch (const MalformedInput&) {
    throw;
  } catch (const InputError& error) {
    const InputError here = located(run, error);
    if (here.file != run.origin.file && !run.plan) throw;
    if (!run.refused) run.refused = here;
    return false;
  }
}

/// Something has to stand where a run has none that could be.
const topology::Cluster& any_cluster() {
  static const topology::Cluster any = topology::presets().front().build(1);
  return any;
}

/// The plan's file, and among how many ranks it divides a batch.
void read_plan(Run& run, const JsonReader& reader, const JsonReader& model) {
  run.plan = JsonReader::from_file(file_of(reader.at("plan"), "plans"));
  run.batch.ranks =
      strategies::batch_ranks(*run.plan, *read_model(model, 1, cost::precision_named("fp32")));
}

/// What the run consists of. A part that cannot be is not read to its end.
void read_parts(Run& run, const JsonReader& reader) {
  const JsonReader cluster = reader.at("cluster"), model = model::with_preset(reader.at("model")),
                   training = reader.at("training");
  const auto read = [&](const JsonReader& part, const std::function<void()>& step) {
    if (!can_be(run, step)) part.skip();
  };
  const auto check = [&] {
    if (!run.refused) can_be(run, [&] { check_gpus(run, reader); });
  };
  std::optional<int> gpus;
  read(cluster, [&] {
    ClusterChoice choice = read_cluster(cluster);
    run.cluster = std::move(choice.cluster);
    cost::choose_workspace(run.stack.memory, run.cluster.design().compute_capability);
    run.gpus = choice.gpus;
    if (!plan_replaces_strategy(reader)) gpus = choice.gpus;
  });
  read(run.strategy, [&] { run.options = strategies::read_options(run.strategy, gpus); });
  run.batch.ranks = run.options.data;
  if (plan_replaces_strategy(reader)) read(model, [&] { read_plan(run, reader, model); });
  if (!run.plan) check();
  read(training, [&] { read_training(run, training); });
  read(model, [&] {
    const std::int64_t samples = std::int64_t{std::max(1, run.batch.micro)} * run.batch.ranks;
    check_training(run, model, training);
    run.graph = read_model(model, samples, run.training.precision);
    check_passes(run, model, training);
    if (!trains(run.training.optimizer)) run.graph = forward_only(*run.graph);
    run.batch.sequence = run.graph->sample_tokens;
  });
  if (!run.refused) can_be(run, [&] { check_attention(run, model); });
  if (!run.refused && !run.plan) can_be(run, [&] { check_divided(run, model); });
  if (run.plan) check();
}

Run read_run(const JsonReader& reader, const std::string& baseline,
             const std::optional<cost::Profile>& instead = {}) {
  // All that may throw comes first: g++ 12 takes down members of an aggregate that were never made.
  check_complete(reader);
  const JsonReader strategy = strategy_of(reader);
  const std::string name = reader.at("name").text();
  const cost::Profile profile = read_profile(reader.at("profile"), instead);
  const cost::Stack stack =
      cost::read_stack(file_of(reader.at("stack"), "stacks"), library() / "stacks");
  Run run{.origin = {reader.file(), reader.path(), {reader.file()}},
          .name = name,
          .compared = {.baseline = baseline},
          .cluster = any_cluster(),
          .profile = profile,
          .stack = stack,
          .strategy = strategy,
          .gpus = 0};
  read_parts(run, reader);
  if (!run.refused) check_held_inputs(run.stack, *run.graph, file_of(reader.at("stack"), "stacks"));
  if (const auto group = reader.find("group")) run.compared.group = group->text();
  if (const auto relative = reader.find("baseline")) run.compared.baseline = relative->text();
  if (const auto assumed = reader.find("assumed")) run.compared.assumed = assumed->text();
  if (const auto measured = reader.find("measured"))
    run.compared.measured = read_measured(*measured);
  if (const auto expect = reader.find("expect")) run.compared.expect = read_expectations(*expect);
  if (const auto more = reader.find("what_if")) {
    const Factors factors = read_what_if(*more);
    if (!run.refused) suppose(run, factors);
  }
  if (!run.refused) {
    run.compared.remarks = remarks_on(run, reader);
    run.origin.files = files_named(reader, !instead);
  }
  reader.finish();
  return run;
}

void check_names(const std::vector<JsonReader>& runs, const JsonReader& scenario) {
  std::vector<std::string> seen;
  for (const JsonReader& run : runs) {
    const std::string name = run.at("name").text();
    if (std::ranges::find(seen, name) != seen.end())
      run.at("name").fail("a name that no run before it has");
    if (name.empty()) run.at("name").fail("a name");
    seen.push_back(name);
  }
  if (const auto baseline = scenario.find("baseline")) static_cast<void>(baseline->one_of(seen));
  for (const JsonReader& run : runs) {
    if (const auto baseline = run.find("baseline")) static_cast<void>(baseline->one_of(seen));
  }
}

}  // namespace

namespace {

JsonReader layered(const JsonReader& defaults, const Json& settings, const std::string& name,
                   const std::string& path) {
  const Json named = Json(settings).set("name", name);
  return with_profile_of_gpu(
      JsonReader::from_text(named.text(), defaults.file(), path).over(defaults));
}

}  // namespace

std::vector<std::string> files_named(const JsonReader& reader, bool with_profile) {
  std::vector<std::string> files = files_of_stack(file_of(reader.at("stack"), "stacks"));
  files.push_back(reader.file());
  if (with_profile) files.push_back(file_of(reader.at("profile"), "profiles"));
  const JsonReader cluster = reader.at("cluster");
  if (chosen(cluster, "preset", "node") == "node")
    files.push_back(file_of(cluster.at("node"), "nodes"));
  if (plan_replaces_strategy(reader)) files.push_back(file_of(reader.at("plan"), "plans"));
  const std::vector<std::string> of_model = model::files_of(reader.at("model"));
  files.insert(files.end(), of_model.begin(), of_model.end());
  return files;
}

Run run_over(const JsonReader& defaults, const Json& settings, const std::string& name) {
  return read_run(layered(defaults, settings, name, ""), "");
}

Run resolved_over(const JsonReader& defaults, const Json& settings, const std::string& name) {
  const JsonReader reader = layered(defaults, settings, name, "");
  Run run = read_run(reader, "");
  run.resolved = resolved(reader);
  return run;
}

Run with_settings(const Run& run, const Json& changes) {
  const JsonReader own =
      JsonReader::from_text(run.resolved.text(), run.origin.file, run.origin.path);
  const JsonReader reader = layered(own, changes, run.name, run.origin.path);
  Run changed = read_run(reader, "");
  if (changed.refused) throw InputError(*changed.refused);
  changed.resolved = resolved(reader);
  return changed;
}

namespace {

/// A run with keys that options of the command line set, which errors name.
Run read_changed(const JsonReader& reader, const std::string& baseline,
                 const std::optional<cost::Profile>& instead,
                 const std::vector<KeyValues>& changes) {
  if (changes.empty()) return read_run(reader, baseline, instead);
  const std::vector<SetKey> set = set_keys(changes);
  try {
    Run run = read_run(reader, baseline, instead);
    run.origin.set = set;
    if (run.refused) run.refused = named(run.origin, *run.refused);
    return run;
  } catch (const InputError& error) {
    throw named({reader.file(), reader.path(), {}, set}, error);
  }
}

Scenario scenario_of(const JsonReader& written, const std::optional<cost::Profile>& instead,
                     const std::vector<KeyValues>& changes) {
  check_places(written);
  const JsonReader reader = with_named_presets(written);
  const std::string& file = reader.file();
  static_cast<void>(reader.find("$schema"));  // for editors
  Scenario scenario{.file = file, .question = question_of(reader), .runs = {}};
  if (const auto space = reader.find("search")) {
    if (!reader.has("runs")) space->fail("\"runs\" beside it, or `stratagem search`");
    space->skip();
  }
  if (const auto workflows = reader.find("workflows")) {
    scenario.workflows = JsonReader::from_text(workflows->dump(), file, workflows->path());
    workflows->skip();
  }
  std::vector<JsonReader> runs = reader.at("runs").elements();
  if (runs.empty()) reader.at("runs").fail("at least one run");
  if (const auto defaults = reader.find("defaults")) {
    if (const auto name = defaults->find("name")) name->fail("a name in every run, and none here");
    for (JsonReader& run : runs) run = run.over(*defaults);
  }
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i] = named_by_place(runs[i], i);
  check_names(runs, reader);
  const std::string baseline = reader.find("baseline") ? reader.at("baseline").text() : "";
  if (!changes.empty()) {
    const std::vector<Variant> every = variants(changes);
    std::vector<JsonReader> all;
    for (const JsonReader& run : runs) {
      for (const Variant& variant : every)
        all.push_back(varied(run, variant, every.front(), baseline));
    }
    runs = std::move(all);
    check_names(runs, JsonReader::from_text("{}", file));
  }
  for (JsonReader& run : runs) {
    run = with_profile_of_gpu(run);
    scenario.runs.push_back(read_changed(run, baseline, instead, changes));
    std::ranges::copy(keys_of_no_use(scenario.runs.back(), run),
                      std::back_inserter(scenario.runs.back().compared.remarks));
    if (!change_predictions(changes)) continue;
    scenario.runs.back().compared.measured.clear();
    scenario.runs.back().compared.expect.clear();
    if (const std::string set = set_in_all(changes); !set.empty()) {
      std::string& assumed = scenario.runs.back().compared.assumed;
      assumed += (assumed.empty() ? "" : "; ") + ("set on the command line: " + set);
    }
  }
  reader.finish();
  // Only now, since listing all keys of an object marks them as known.
  for (std::size_t i = 0; i < runs.size(); ++i) scenario.runs[i].resolved = resolved(runs[i]);
  return scenario;
}

JsonReader scenario_in(const std::string& file) {
  for (const char* end : {".sh", ".yaml", ".yml", ".toml"}) {
    if (file.ends_with(end))
      throw InputError(file, "",
                       "a scenario: `stratagem import " + file + " -o scenario.json` writes one",
                       "another program's file");
  }
  return JsonReader::from_file(file);
}

}  // namespace

Scenario read_scenario(const std::string& file, const std::optional<cost::Profile>& instead) {
  return scenario_of(scenario_in(file), instead, {});
}

Scenario read_scenario(const std::string& file, const std::vector<KeyValues>& changes) {
  return scenario_of(scenario_in(file), {}, changes);
}

Scenario read_scenario(const JsonReader& scenario, const std::vector<KeyValues>& changes) {
  return scenario_of(scenario, {}, changes);
}

}  // namespace stratagem::study
