// Reads the strategy object; every key has one place here.
#include "strategies/parallel/options.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "strategies/parallel/all.hpp"

namespace stratagem::strategies {

int Options::chunks_of(const Schedule& of) const {
  return of.chunks > 0 ? of.chunks : chunks > 0 ? chunks : 2;
}

namespace {

/// One number for attention and MLP, or an object with one for each.
void read_coshard(const JsonReader& reader, CoShard& coshard) {
  const auto value = reader.find("coshard");
  const auto parts = [](const JsonReader& number) {
    return static_cast<int>(number.between(1, 1'000'000));
  };
  if (value && value->is_object()) {
    if (const auto attention = value->find("attention")) coshard.attention = parts(*attention);
    if (const auto mlp = value->find("mlp")) coshard.mlp = parts(*mlp);
  } else if (value) {
    coshard.attention = coshard.mlp = parts(*value);
  }
  if (const auto layers = reader.find("coshard_layers")) {
    if (!value) layers->fail("coshard beside it");
    coshard.layers = parts(*layers);
  }
}

/// Nothing for `usual`, all_ranks for "all", else the number of a rank.
std::optional<int> read_end(const JsonReader& reader, const std::string& usual, int ranks) {
  if (reader.is_number()) return static_cast<int>(reader.between(0, ranks - 1));
  if (reader.one_of({usual, "all"}) == usual) return std::nullopt;
  return Options::all_ranks;
}

std::optional<std::vector<int>> ranks_of(const std::optional<int>& end, int ranks) {
  if (!end) return std::nullopt;
  if (*end != Options::all_ranks) return std::vector<int>{*end};
  std::vector<int> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

void read_degree(const JsonReader& reader, const char* key, int& target) {
  if (const auto value = reader.find(key)) target = static_cast<int>(value->between(1, 1'000'000));
}

void read_degrees(const JsonReader& reader, Options& options) {
  read_degree(reader, "tensor", options.tensor);
  read_degree(reader, "context", options.context);
  read_degree(reader, "dap", options.dap);
  read_degree(reader, "pipeline", options.pipeline);
  read_degree(reader, "data", options.data);
  read_degree(reader, "expert", options.expert);
  if (options.data % options.expert != 0)
    reader.at("expert").fail("a divisor of data, " + std::to_string(options.data));
  const double all =
      1.0 * options.tensor * options.context * options.dap * options.pipeline * options.data;
  if (all > 1'000'000) reader.fail("tensor x context x dap x pipeline x data of at most 1000000");
}

/// A word, or an object that says more: {"every": k}, {"layers": n, "method": "block" | "uniform"}
/// with the words of Megatron-LM's --recompute-method, or {"operators": [...]}.
void read_recompute_options(const JsonReader& reader, Options& options) {
  const auto count = [](const JsonReader& number) {
    return static_cast<int>(number.between(1, 1'000'000));
  };
  if (!reader.is_object()) {
    options.recompute = reader.one_of({"none", "selective", "full"});
    return;
  }
  RecomputeOptions& again = options.recomputed;
  options.recompute = "full";
  if (const auto every = reader.find("every")) {
    again.together = count(*every);
  } else if (const auto operators = reader.find("operators")) {
    options.recompute = "operators";
    for (const JsonReader& pattern : operators->elements())
      again.operators.push_back(pattern.text());
    if (again.operators.empty()) operators->fail("a pattern at least");
  } else if (const auto layers = reader.find("layers")) {
    const bool block = reader.at("method").one_of({"block", "uniform"}) == "block";
    (block ? again.layers : again.together) = count(*layers);
  } else {
    reader.fail("one of the keys \"every\", \"layers\" and \"operators\"");
  }
  reader.finish();
}

/// What operators divide besides the degrees, and what runs again.
void read_operators(const JsonReader& reader, Options& options) {
  if (const auto sequence = reader.find("sequence_parallel"))
    options.sequence_parallel = sequence->boolean();
  if (const auto operators = reader.find("operators")) {
    for (const std::string& pattern : operators->keys())
      options.operators.emplace_back(pattern, operators->at(pattern).text());
  }
  if (const auto recompute = reader.find("recompute")) read_recompute_options(*recompute, options);
  if (const auto divided = reader.find("partition_checkpoints")) {
    options.partition_checkpoints = divided->boolean();
    if (options.partition_checkpoints && options.recompute == "none")
      divided->fail("recompute beside it, which has checkpoints");
  }
  read_coshard(reader, options.coshard);
}

void read_schedule(const JsonReader& reader, Options& options) {
  if (const auto schedule = reader.find("schedule")) {
    std::vector<std::string> names;
    std::ranges::transform(schedules(), std::back_inserter(names), &Schedule::name);
    options.schedule = schedule->one_of(names);
  }
  if (const auto chunks = reader.find("chunks")) {
    options.chunks = static_cast<int>(chunks->between(1, 1'000));
    const Schedule& schedule = schedule_named(options.schedule);
    if (schedule.chunks > 0 && schedule.chunks != options.chunks) {
      chunks->fail(std::to_string(schedule.chunks) + " with the schedule " + schedule.name);
    }
  }
  if (const auto slices = reader.find("token_slices")) {
    for (const JsonReader& size : slices->elements())
      options.token_slices.push_back(size.between(1, 100'000'000));
  }
}

/// A number for every stage.
void read_replicas(const JsonReader& reader, Options& options) {
  for (const JsonReader& count : reader.elements())
    options.replicas_per_stage.push_back(static_cast<int>(count.between(1, 1'000'000)));
  if (static_cast<int>(options.replicas_per_stage.size()) != options.pipeline) {
    reader.fail("a number for each of the " + std::to_string(options.pipeline) + " stages",
                std::to_string(options.replicas_per_stage.size()));
  }
  const std::vector<int>& all = options.replicas_per_stage;
  const double ranks = std::accumulate(all.begin(), all.end(), 0.0);
  if (ranks * options.tensor * options.context * options.dap * options.data > 1'000'000)
    reader.fail("replicas on at most 1000000 devices");
  if (std::ranges::max(all) == 1) options.replicas_per_stage.clear();
}

/// What replicas cannot be combined with.
void check_replicas(const JsonReader& reader, const Options& options) {
  if (options.replicas_per_stage.empty()) return;
  const JsonReader replicas = reader.at("replicas_per_stage");
  if (!schedule_named(options.schedule).takes_turns) {
    std::string names;
    for (const Schedule& one : schedules()) {
      if (one.takes_turns) names += (names.empty() ? "" : ", ") + one.name;
    }
    replicas.fail("one of each stage with the schedule " + options.schedule +
                  "; replicas take turns with " + names);
  }
  if (options.embedding || options.head)
    replicas.fail("one of each stage where ends of the model stand apart");
  if (options.ranks_per_device > 1) replicas.fail("one of each stage where ranks share devices");
}

/// "tp-dp-pp", as Megatron-LM's --order: kinds that are left out have one rank.
void read_rank_order(const JsonReader& reader, Options& options) {
  const auto value = reader.find("rank_order");
  if (!value) return;
  const std::vector<std::string> known = options.rank_order;
  std::vector<std::string> order;
  std::istringstream text(value->text());
  for (std::string kind; std::getline(text, kind, '-');) {
    if (std::ranges::count(known, kind) == 0 || std::ranges::count(order, kind) > 0)
      value->fail("each of tp, cp, dap, dp and pp once at most, such as \"tp-dp-pp\"");
    order.push_back(kind);
  }
  for (const std::string& kind : known) {
    if (std::ranges::count(order, kind) > 0) continue;
    if (options.size(kind) > 1)
      value->fail(kind + " in the order, of which there are several ranks");
    order.push_back(kind);
  }
  options.rank_order = order;
}

/// Where the stages stand.
void read_stages(const JsonReader& reader, Options& options) {
  if (const auto shared = reader.find("ranks_per_device")) {
    options.ranks_per_device = static_cast<int>(shared->between(1, options.pipeline));
    if (options.pipeline % options.ranks_per_device != 0)
      shared->fail("a divisor of pipeline, " + std::to_string(options.pipeline));
  }
  if (const auto layers = reader.find("layers_per_stage")) {
    for (const JsonReader& count : layers->elements())
      options.layers_per_stage.push_back(static_cast<int>(count.between(0, 1'000'000)));
  }
  if (const auto replicas = reader.find("replicas_per_stage")) read_replicas(*replicas, options);
  if (const auto end = reader.find("embedding"))
    options.embedding = read_end(*end, "first", options.pipeline);
  if (const auto end = reader.find("head")) options.head = read_end(*end, "last", options.pipeline);
  check_replicas(reader, options);
}

/// A stage, or an object with one.
void read_zero(const JsonReader& reader, Options& options) {
  const auto value = reader.find("zero");
  if (!value) return;
  Zero& zero = options.zero;
  const bool more = value->is_object();
  zero.stage = static_cast<int>((more ? value->at("stage") : *value).between(0, 3));
  if (!more) return;
  if (const auto ranks = value->find("ranks")) {
    if (zero.stage == 0) ranks->fail("a stage above 0 beside it");
    zero.ranks = static_cast<int>(ranks->between(1, options.data));
    if (options.expert > 1) ranks->fail("experts on one rank beside it");
    if (options.data % zero.ranks != 0)
      ranks->fail("a divisor of data, " + std::to_string(options.data));
  }
  if (const auto prefetch = value->find("prefetch")) {
    if (zero.stage != 3) prefetch->fail("stage 3 beside it, which gathers parameters");
    zero.prefetch = static_cast<int>(prefetch->between(0, 1'000));
  }
  if (const auto below = value->find("whole_below")) {
    if (zero.stage != 3) below->fail("stage 3 beside it, which divides parameters");
    zero.whole_below = static_cast<int>(below->between(0, 1'000'000'000));
  }
}

/// A number of layers, or an object with one.
void read_swap_options(const JsonReader& reader, Options& options) {
  const auto value = reader.find("swap");
  if (!value) return;
  const bool more = value->is_object();
  options.swap.layers =
      static_cast<int>((more ? value->at("layers") : *value).between(0, 1'000'000));
  if (!more) return;
  if (const auto to = value->find("to"))
    options.swap.to_peer = to->one_of({"host", "peer"}) == "peer";
  if (const auto prefetch = value->find("prefetch"))
    options.swap.prefetch = static_cast<int>(prefetch->between(0, 1'000));
}

/// "memory" or "drives".
bool read_on_drives(const JsonReader& place) {
  return place.one_of({"memory", "drives"}) == "drives";
}

/// What waits on the host: a word, an object with that word, or one with a place for each part.
/// Returns what tells it.
JsonReader read_offloaded(const JsonReader& value, OffloadOptions& offload) {
  if (value.is_object() &&
      (!value.has("of") || value.has("optimizer") || value.has("parameters"))) {
    for (const char* key : {"of", "to"}) {
      if (value.has(key)) value.at(key).fail("a place for each part without it, or it alone");
    }
    const JsonReader optimizer = value.at("optimizer");  // its steps make the parameters
    const auto parameters = value.find("parameters");
    offload.optimizer = true;
    offload.states_on_drives = read_on_drives(optimizer);
    offload.parameters = parameters.has_value();
    offload.parameters_on_drives = parameters && read_on_drives(*parameters);
    return parameters ? *parameters : optimizer;
  }
  JsonReader of = value.is_object() ? value.at("of") : value;
  const std::string what = of.one_of({"none", "optimizer", "parameters"});
  offload.parameters = what == "parameters";
  offload.optimizer = what == "optimizer" || offload.parameters;
  if (!value.is_object()) return of;
  if (const auto to = value.find("to"); to && to->text() != "host")
    to->fail(
        "\"host\", or in place of both keys \"optimizer\" and \"parameters\", each \"memory\" or "
        "\"drives\"");
  return of;
}

void read_offload(const JsonReader& reader, Options& options) {
  const auto value = reader.find("offload");
  if (!value) return;
  OffloadOptions& offload = options.offload;
  const JsonReader of = read_offloaded(*value, offload);
  if (offload.optimizer && options.data * options.context > 1 && options.zero.stage == 0)
    of.fail("zero beside it, so that ranks with the same weights share their steps");
  if (offload.parameters && options.zero.stage != 3)
    of.fail("zero 3 beside parameters on the host, of which every rank fetches its share");
  if (offload.parameters && options.zero.whole_below > 0)
    of.fail("all parameters divided, zero without whole_below, where they are on the host");
  if (!value->is_object()) return;
  if (const auto delayed = value->find("delayed_update")) {
    offload.delayed_update = delayed->boolean();
    if (offload.delayed_update && (offload.parameters || !offload.optimizer))
      delayed->fail("the optimizer alone on the host, whose steps may run beside an iteration");
  }
}

/// What ZeRO divides, it reduces as it comes, by default in buckets of 5e8 elements of two bytes as
/// DeepSpeed's reduce_bucket_size has it (deepspeed.ai/docs/config-json).
void read_gradients(const JsonReader& reader, Options& options) {
  if (options.zero.stage >= 2 || options.offload.optimizer) {
    options.overlap_gradients = true;
    options.bucket = 1_GB;
  }
  if (const auto overlap = reader.find("overlap_gradients"))
    options.overlap_gradients = overlap->boolean();
  if (const auto bucket = reader.find("bucket")) {
    options.bucket = bucket->quantity<Bytes>();
    if (options.bucket->value <= 0) bucket->fail("a size above zero, such as \"25 MiB\"");
  }
  if (const auto buffers = reader.find("gradient_buffers")) {
    options.gradient_buffers = static_cast<int>(buffers->between(0, 16));
    if (options.zero.stage < 2 && !options.offload.optimizer)
      buffers->fail("zero 2 or 3, or the optimizer on the host, beside it: other gradients stay");
  }
}

}  // namespace

int Options::size(const std::string& kind) const {
  if (kind == "tp") return tensor;
  if (kind == "cp") return context;
  if (kind == "dap") return dap;
  return kind == "dp" ? data : pipeline_ranks() / ranks_per_device;
}

int Options::stride(const std::string& kind) const {
  int devices = 1;
  for (auto one = rank_order.begin(); *one != kind; ++one) devices *= size(*one);
  return devices;
}

int Options::devices() const {
  int all = 1;
  for (const std::string& kind : rank_order) all *= size(kind);
  return all;
}

Ends Options::ends(const Schedule& of) const {
  const std::optional<int> first = of.spreads_embedding ? all_ranks : embedding;
  return {.embedding = ranks_of(first, pipeline), .head = ranks_of(head, pipeline)};
}

int Options::pipeline_ranks() const {
  if (replicas_per_stage.empty()) return pipeline;
  return std::accumulate(replicas_per_stage.begin(), replicas_per_stage.end(), 0);
}

Options read_options(const JsonReader& reader) {
  Options options;
  read_degrees(reader, options);
  read_operators(reader, options);
  read_schedule(reader, options);
  read_stages(reader, options);
  read_zero(reader, options);
  read_swap_options(reader, options);
  read_offload(reader, options);
  read_gradients(reader, options);
  read_rank_order(reader, options);
  reader.finish();
  return options;
}

}  // namespace stratagem::strategies
