// Activations in flight at their highest, in bytes, through the simulator: Korthikanti et al.,
// arXiv:2205.05198, section 4 and table 3, and every pipeline schedule's micro-batches in flight.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "model/builder.hpp"
#include "tests/catch.hpp"
#include "tests/sim/unit_chain.hpp"

namespace stratagem::sim {
namespace {

using program::Category;

constexpr double GiB = 1024.0 * 1024 * 1024;

double of(const ByCategory& bytes, Category category) {
  return bytes[static_cast<std::size_t>(category)].value;
}

/// A model of the paper with its degrees, and the first stage's bytes with tensor parallelism, with
/// sequence parallelism, with selective recomputation too, and with full recomputation, in GiB to
/// two digits (bytes of a layer x L x (1 + (p - 1)/(pv)), section 4.2.3).
struct Published {
  std::string name;
  std::int64_t heads, hidden, layers;
  int pipeline, chunks, batch;
  std::vector<double> gib;
};

model::GptConfig config_of(const Published& model) {
  return {.layers = model.layers,
          .hidden = model.hidden,
          .heads = model.heads,
          .sequence = 2048,
          .vocabulary = 51200,
          .batch = model.batch,
          .tied = false};
}

/// The four variants of the table.
const std::vector<std::string>& variants() {
  static const std::vector<std::string> all = {
      "", R"(, "sequence_parallel": true)",
      R"(, "sequence_parallel": true, "recompute": "selective")", R"(, "recompute": "full")"};
  return all;
}

double layer_bytes(const Published& model, std::size_t variant) {
  const double t = 8;
  const double sbh = 2048.0 * model.batch * static_cast<double>(model.hidden);
  const double core =
      5.0 * static_cast<double>(model.heads) * 2048 / static_cast<double>(model.hidden);
  if (variant == 0) return sbh * (10 + 24 / t + core / t);
  if (variant == 1) return sbh * (34 + core) / t;
  if (variant == 2) return sbh * 34 / t;
  return 2 * sbh;
}

/// What a device of the first stage keeps at most of layers. The embeddings stand apart where there
/// are other ranks, else the mask of their dropout, sbh bytes, is taken out: the paper counts it
/// apart (section 4.3). With full recomputation only checkpoints are counted, without what the one
/// layer that runs again keeps meanwhile. Never counted: two numbers for every token and norm
/// (statistics).
double first_stage(const Published& model, std::size_t variant) {
  const int p = model.pipeline;
  std::string strategy = R"({"tensor": 8, "pipeline": )" + std::to_string(p) + variants()[variant];
  if (p > 1) strategy += R"(, "embedding": )" + std::to_string(p - 1);
  if (model.chunks > 1)
    strategy += R"(, "schedule": "interleaved", "chunks": )" + std::to_string(model.chunks);
  const program::Program program =
      UnitPipeline::lowered(strategy + "}", model::gpt(config_of(model)), 2 * p);
  const auto devices = static_cast<int>(program.devices.size());
  const Folding folding = fold(program, instant_cluster(devices), ideal_network(), true);
  const Prices prices =
      price(program, [](const program::Task&) { return Price{.device = {unit}}; });
  const Timeline timeline = run(program, folding, prices, 1);
  std::size_t first = 0;
  while (timeline.actors[first].sequence != program.devices.front().sequence) ++first;
  const MemoryPeak peak = memory_peak(program, timeline, first);
  const double checkpoints = of(peak.highest, Category::checkpoints);
  if (variant == 3) return checkpoints;
  const double sbh = 2048.0 * model.batch * static_cast<double>(model.hidden);
  const double mask = p > 1 ? 0 : sbh / (variant == 0 ? 1 : 8);
  return of(peak.highest, Category::activations) + checkpoints - mask;
}

/// With selective recomputation the peak is inside the first backward cell, which the paper's sum
/// is not: the attention's core, 5as/h sbh/t, is there again, and of its layer's bytes are gone the
/// MLP's and the projection's input, 24 sbh/t:
///   mlp.dropout.mask 1, mlp.gelu.out 8, mlp.fc1.out 8, mlp_norm.out 2, attention.residual.out 2,
///   attention.output_dropout.mask 1, attention.merged 2.
double again(const Published& model, std::size_t variant) {
  if (variant != 2) return 0;
  const double tokens = 2048.0 * model.batch;
  return tokens / 8 *
         (5.0 * 2048 * static_cast<double>(model.heads) - 24 * static_cast<double>(model.hidden));
}

/// What the last segment keeps where it stands on the first stage, too: 4sbh(1 + V/h), section 4.3.
/// Without sequence parallelism only the logits are divided.
double head(const Published& model, std::size_t variant) {
  if (model.pipeline > 1 || variant == 3) return 0;
  const model::GptConfig config = config_of(model);
  const double tokens = 2048.0 * model.batch;
  return 4 * tokens *
         (static_cast<double>(config.hidden) / (variant == 0 ? 1 : 8) +
          static_cast<double>(config.vocabulary) / 8);
}

/// Equal layers that each keep one tensor that they compute, 128 bytes, between two segments that
/// keep nothing. What a stage receives, perhaps ahead of its cell, is not kept.
model::Graph even_chain(int layers, int repeats) {
  using model::OpKind;
  using model::Role;
  model::Builder build("chain");
  const std::vector<std::int64_t> shape = {4, 2, 8};
  const auto type = model::DataType::fp16;
  const model::TensorId input = build.tensor("input", shape, type, Role::input);
  model::TensorId x = input;
  const auto add = [&](OpKind kind, const std::string& name, const std::string& annotation,
                       const std::vector<std::int64_t>& weight) {
    const model::TensorId w = build.parameter(name + ".weight", weight, type);
    const model::TensorId y = build.tensor(name + ".out", shape, type, Role::activation);
    build.add(kind, name, annotation, {x, w}, {y});
    x = y;
  };
  const std::string shift = "b s n, n -> b s n";
  build.begin_segment("input");
  add(OpKind::bias_add, "shift", shift, {8});
  for (int i = 0; i < layers; ++i) {
    build.begin_segment("layers." + std::to_string(i));
    add(OpKind::bias_add, "shift", shift, {8});
    add(OpKind::contraction, "product", "b s k+, n k+ -> b s n", {8, 8});
  }
  build.begin_segment("output");
  const model::TensorId y = build.tensor("sum", shape, type, Role::activation);
  build.add(OpKind::add, "double", "b s n, b s n -> b s n", {x, x}, {y});
  x = y;
  model::Graph graph = std::move(build).finish(x);
  graph.forward_repeats = repeats;
  if (repeats > 1) graph.recycled = {{x, input}};
  return graph;
}

/// A schedule's closed form for the (stage, micro-batch) pairs that a rank holds at once.
struct InFlight {
  int chunks = 1;      ///< stages on a rank
  bool bound = false;  ///< at most so many
  int (*of)(int p, int m, int rank);
};

const std::map<std::string, InFlight>& closed_forms() {
  constexpr auto left = [](int p, int m, int rank) { return std::min(m, p - rank); };
  constexpr auto interlaced = [](int p, int m, int rank) {
    return std::min(m, (p + 1) / 2 + p - rank - (rank + 1) / 2);
  };
  static const std::map<std::string, InFlight> forms = {
      {"gpipe", {1, false, [](int, int m, int) { return m; }}},
      {"1f1b", {1, false, left}},
      {"3f1b", {1, false, left}},
      {"interlaced", {1, false, interlaced}},
      {"pipedream", {1, false, left}},
      {"pipedream-vertical", {1, false, left}},
      {"pipedream-2bw", {1, false, left}},
      {"interleaved",
       {2, false, [](int p, int m, int r) { return std::min(2 * m, 2 * (p - 1 - r) + p + 1); }}},
      {"combined-1f1b",
       {2, false, [](int p, int m, int r) { return std::min(2 * m, 2 * (p - 1 - r) + p + 2); }}},
      {"zb-h1", {1, false, [](int p, int, int) { return p; }}},
      {"zb-h2", {1, false, [](int p, int, int) { return 2 * p - 1; }}},
      {"zb-v", {2, true, [](int p, int, int) { return 2 * p; }}},
      {"v-half", {2, true, [](int p, int, int) { return 2 * ((p + 2) / 2); }}},
      {"v-min", {2, true, [](int p, int, int) { return 2 * ((p + 4) / 3); }}},
      {"chimera", {1, true, [](int p, int, int) { return p; }}},
      {"dualpipe", {1, true, [](int p, int, int) { return p + 1; }}},
      {"dualpipe-v", {2, true, [](int p, int, int) { return 2 * p + 1; }}},
      {"bpipe", {1, true, [](int p, int, int) { return (p + 3) / 2; }}},
      {"hanayo", {2, true, [](int p, int, int) { return 2 * p; }}},
  };
  return forms;
}

}  // namespace

TEST_CASE("a rank keeps its schedule's micro-batches in flight times what its stage keeps") {
  const int p = 4;
  for (const strategies::Schedule& schedule : strategies::schedules()) {
    const InFlight& form = closed_forms().at(schedule.name);
    for (const int m : {8, 12}) {
      for (const int layers : {1, 3}) {
        INFO(schedule.name << " m=" << m << " layers of a stage " << layers);
        const model::Graph graph =
            even_chain(p * form.chunks * layers, schedule.name == "3f1b" ? 3 : 1);
        const UnitPipeline played(
            UnitPipeline::lowered(R"({"pipeline": 4, "schedule": ")" + schedule.name + "\"}", graph,
                                  m),
            {1, 1, 1}, 12);
        int most = 0;
        for (int rank = 0; rank < p; ++rank) {
          INFO("rank " << rank);
          const MemoryPeak peak = memory_peak(played.program, played.timeline, rank);
          const double kept = of(peak.highest, Category::activations) / (layers * 128.0);
          // What BPipe lends is at home or away; a guest leaves at the instant at which another
          // comes.
          const int held = schedule.name == "bpipe" ? static_cast<int>(kept)
                           : schedule.spreads_ends  ? played.in_flight(rank, 1, p)
                                                    : played.in_flight(rank);
          CHECK(kept == held);
          most = std::max(most, held);
          const int expected = form.of(p, m, rank);
          CHECK((form.bound ? held <= expected : held == expected));
        }
        if (form.bound && schedule.name != "hanayo") CHECK(most == form.of(p, m, 0));
      }
    }
  }
}

TEST_CASE("gradients on their way to shards take room for two buckets, however long the model") {
  // ZeRO-R's constant-size buffers, Rajbhandari et al., section 6.2: one bucket fills up while
  // another is reduced. A bucket is full once it has `bucket` bytes, and a layer's gradients are
  // there at once.
  const auto gpt_of = [](std::int64_t layers) {
    return model::gpt({.layers = layers,
                       .hidden = 64,
                       .heads = 8,
                       .sequence = 16,
                       .vocabulary = 128,
                       .batch = 2,
                       .tied = false});
  };
  const auto highest = [&](std::int64_t layers, const std::string& bucket, int buffers = 0) {
    const program::Program program =
        UnitPipeline::lowered(R"({"data": 2, "zero": 2, "gradient_buffers": )" +
                                  std::to_string(buffers) + R"(, "bucket": ")" + bucket + "\"}",
                              gpt_of(layers), 2);
    const Folding folding = fold(program, instant_cluster(2), ideal_network(), false);
    const Prices prices =
        price(program, [](const program::Task&) { return Price{.device = {unit}}; });
    const Timeline timeline = run(program, folding, prices, 1);
    return of(memory_peak(program, timeline, 0).highest, Category::whole_gradients);
  };
  const double layer = 2 * (12.0 * 64 * 64 + 13 * 64);
  for (const int kib : {8, 64, 256}) {
    INFO(kib);
    const std::string bucket = std::to_string(kib) + " KiB";
    const double most = highest(12, bucket);
    CHECK(most <= 2 * (kib * 1024 + layer));
    CHECK(most >= layer);
    CHECK(highest(24, bucket) == most);
    // Buffers of a bucket's size are there whole, whatever is in them.
    for (const int buffers : {1, 2}) CHECK(highest(12, bucket, buffers) == buffers * kib * 1024);
  }
  // Not one for each cell of a schedule that has several under way.
  for (const std::string schedule : {"1f1b", "zb-h1", "interleaved"}) {
    INFO(schedule);
    const program::Program program = UnitPipeline::lowered(
        R"({"data": 2, "pipeline": 2, "zero": 2, "gradient_buffers": 2, "bucket": "1 MiB",
            "schedule": ")" +
            schedule + "\"}",
        gpt_of(4), 4);
    for (const program::Sequence& sequence : program.sequences) {
      const auto buffers = std::ranges::count(sequence.residents, Category::whole_gradients,
                                              &program::Resident::category);
      CHECK(buffers == 2);
    }
  }
  // One bucket for all of them grows with the model.
  CHECK(highest(24, "1 GB") - highest(12, "1 GB") == 12 * layer);
}

TEST_CASE("the first stage keeps the published activations of models of 22B to 1T parameters") {
  const std::vector<Published> models = {
      {"22B", 64, 6144, 48, 1, 1, 4, {59.25, 39.56, 9.56, 4.50}},
      {"GPT-3 175B", 96, 12288, 96, 8, 3, 1, {66.84, 41.41, 12.35, 5.81}},
      {"530B", 128, 20480, 105, 35, 3, 1, {114.02, 66.51, 23.08, 10.86}},
      {"1T", 160, 25600, 128, 64, 1, 1, {131.25, 76.56, 26.56, 12.50}}};
  for (const Published& model : models) {
    for (std::size_t variant = 0; variant < variants().size(); ++variant) {
      INFO(model.name << variants()[variant]);
      const double p = model.pipeline;
      const double in_flight = model.chunks > 1 ? 1 + (p - 1) / (p * model.chunks) : 1;
      const double expected =
          static_cast<double>(model.layers) * in_flight * layer_bytes(model, variant);
      const double more = std::max(again(model, variant), head(model, variant));
      CHECK(std::abs(expected / GiB - model.gib[variant]) <= 0.005 + 1e-9);
      CHECK(close(first_stage(model, variant), expected + more, 1e-14));
    }
  }
}

}  // namespace stratagem::sim
