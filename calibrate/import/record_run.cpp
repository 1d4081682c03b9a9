// What a record says about model, plan, batch and measurements, in a scenario's words.
#include "calibrate/import/record_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/input_error.hpp"
#include "base/json_copy.hpp"

namespace stratagem::calibrate {
namespace {

std::int64_t rounded_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::int64_t whole(const JsonReader& object, const char* key, std::int64_t otherwise) {
  const auto value = object.find(key);
  return value && !value->is_null() ? value->at_least(0) : otherwise;
}

/// The first word: records put remarks behind it, as in "full (default of the script)".
std::string first_word(const JsonReader& object, const char* key, const std::string& otherwise) {
  const auto value = object.find(key);
  if (!value || value->is_null()) return otherwise;
  if (value->is_number()) return fmt::format("{}", value->number());
  const std::string text = value->text();
  return text.substr(0, text.find_first_of(" /"));
}

/// Degrees, as far as a record says them: data ranks have what the others leave of its GPUs.
struct Degrees {
  std::int64_t gpus, tensor, pipeline, context, data;
};

Degrees degrees_of(const JsonReader& record) {
  const JsonReader plan = record.at("parallel");
  Degrees degrees{.gpus = record.at("hardware").at("gpus").at_least(1),
                  .tensor = whole(plan, "tp", 1),
                  .pipeline = whole(plan, "pp", 1),
                  .context = whole(plan, "cp", 1),
                  .data = 1};
  const std::int64_t model = degrees.tensor * degrees.pipeline * degrees.context;
  degrees.data = whole(plan, "dp", degrees.gpus / model);
  if (model * degrees.data != degrees.gpus) {
    plan.fail("tp x pp x cp x dp = the " + std::to_string(degrees.gpus) + " GPUs",
              std::to_string(model * degrees.data));
  }
  return degrees;
}

Json model_of(const JsonReader& record, const Ruling& ruling, const Degrees& degrees) {
  const JsonReader model = record.at("model");
  const std::int64_t vocabulary =
      rounded_up(model.at("vocab").at_least(1), ruling.vocabulary_multiple * degrees.tensor);
  const auto shared = model.find("kv_heads");
  Json json = Json::object();
  json.set("family", shared ? "llama" : "gpt")
      .set("layers", model.at("layers").at_least(1))
      .set("hidden", model.at("hidden").at_least(1))
      .set("heads", model.at("heads").at_least(1))
      .set("sequence", model.at("seq").at_least(1))
      .set("vocabulary", vocabulary);
  if (shared) json.set("kv_heads", shared->at_least(1));
  if (const auto width = model.find("ffn")) json.set("intermediate", width->at_least(1));
  if (const auto experts = model.find("experts")) json.set("experts", experts->at_least(1));
  return json;
}

/// Samples of a micro-batch and of an iteration, from whichever of the five ways a record has.
struct Batch {
  std::int64_t micro, global;
};

Batch batch_of(const JsonReader& record, const Degrees& degrees) {
  const JsonReader plan = record.at("parallel");
  const std::int64_t number = whole(plan, "num_micro_batches", 0);
  std::int64_t micro = whole(plan, "micro_batch", 0);
  std::int64_t global = whole(plan, "global_batch", 0);
  if (const std::int64_t local = whole(plan, "local_batch", 0); local > 0)
    global = local * degrees.data;
  if (global == 0 && micro > 0) global = micro * degrees.data * std::max<std::int64_t>(number, 1);
  if (micro == 0 && number > 0) micro = global / degrees.data / number;
  if (micro == 0 || global == 0) plan.fail("micro_batch, and global_batch or num_micro_batches");
  return {micro, global};
}

Json training_of(const JsonReader& record, const Degrees& degrees) {
  const Batch batch = batch_of(record, degrees);
  return Json::object()
      .set("global_batch", batch.global)
      .set("micro_batch", batch.micro)
      .set("precision", first_word(record.at("parallel"), "precision", "fp16"))
      .set("optimizer", "adam");
}

/// Layers of every stage; empty where all have as many.
std::vector<std::int64_t> layers_per_stage(const JsonReader& record, const Ruling& ruling,
                                           std::int64_t stages) {
  const bool ends = ruling.stages == "ends";
  std::vector<std::int64_t> sizes;
  if (const auto said = record.at("parallel").find("layers_per_stage")) {
    for (const JsonReader& size : said->elements()) sizes.push_back(size.at_least(0));
    if (static_cast<std::int64_t>(sizes.size()) != stages)
      said->fail("as many numbers as there are stages", std::to_string(sizes.size()));
  } else {
    const std::int64_t all = record.at("model").at("layers").at_least(1) + (ends ? 2 : 0);
    const std::int64_t each = (all + stages - 1) / stages;
    for (std::int64_t s = 0; s < stages; ++s)
      sizes.push_back(std::clamp<std::int64_t>(all - s * each, 0, each));
  }
  if (ends) {
    --sizes.front();
    --sizes.back();
  }
  const bool equal = std::ranges::adjacent_find(sizes, std::not_equal_to<>()) == sizes.end();
  return equal ? std::vector<std::int64_t>{} : sizes;
}

/// A record's word for a schedule, in ours. ZB-1p and ZB-2p are found by search under the memory
/// of 1F1B and of twice that; the schedules drawn by hand with the same memory stand in for them.
std::string schedule_named(const JsonReader& schedule) {
  static const std::map<std::string, std::string> ours = {{"1F1B", "1f1b"},
                                                          {"1F1B-I", "interleaved"},
                                                          {"1F1B-interleaved", "interleaved"},
                                                          {"interleaved", "interleaved"},
                                                          {"ZB-1p", "zb-h1"},
                                                          {"ZB-2p", "zb-h2"},
                                                          {"GPipe", "gpipe"}};
  std::vector<std::string> known;
  for (const auto& [word, name] : ours) known.push_back(word);
  return ours.at(schedule.one_of(known));
}

void set_pipeline(Json& json, const JsonReader& record, const Ruling& ruling,
                  std::int64_t pipeline) {
  if (pipeline == 1) return;
  const JsonReader plan = record.at("parallel");
  std::string schedule = "1f1b";
  if (const auto said = plan.find("schedule")) schedule = schedule_named(*said);
  std::int64_t chunks = 1;
  const auto interleave = plan.find("interleave");
  if (interleave && interleave->is_number()) chunks = interleave->at_least(1);
  if (chunks > 1) schedule = "interleaved";
  json.set("pipeline", pipeline).set("schedule", schedule);
  if (schedule == "interleaved") json.set("chunks", chunks);
  Json list = Json::array();
  const auto sizes = layers_per_stage(record, ruling, pipeline * chunks);
  for (const std::int64_t size : sizes) list.push(size);
  if (!sizes.empty()) json.set("layers_per_stage", list);
}

Json strategy_of(const JsonReader& record, const Ruling& ruling, const Degrees& degrees) {
  const JsonReader plan = record.at("parallel");
  Json json = Json::object();
  if (degrees.tensor > 1) json.set("tensor", degrees.tensor);
  const auto divided = plan.find("sp");
  if (divided && divided->boolean()) json.set("sequence_parallel", true);
  // Of a framework that is not known, gathers; rules say where it is Megatron-Core.
  const std::string passed = first_word(plan, "cp_comm_type", "all_gather");
  if (degrees.context > 1) json.set(passed == "a2a" ? "ulysses" : "context", degrees.context);
  if (degrees.context > 1 && passed == "p2p") json.set("context_exchange", "ring");
  if (degrees.data > 1) json.set("data", degrees.data);
  if (const std::int64_t experts = whole(plan, "ep", 1); experts > 1) json.set("expert", experts);
  set_pipeline(json, record, ruling, degrees.pipeline);
  const std::string recompute = first_word(plan, "recompute", "none");
  if (recompute != "none") json.set("recompute", recompute);
  const std::int64_t zero = std::stoll(first_word(plan, "zero", "0"));
  if (zero > 0) json.set("zero", zero);
  if (first_word(plan, "offload", "none") != "none") json.set("offload", "optimizer");
  return json;
}

Json figure(const Json& value, const JsonReader& record) {
  const std::string how =
      record.at("value_origin").text() == "figure-reading" ? ", read off a figure by eye" : "";
  const bool read = record.at("confidence").text() == "read";
  return Json::object()
      .set("value", value)
      .set("provenance", read ? "published" : "from memory")
      .set("source", record.at("source").text() + how);
}

/// The time of an iteration, or what the rules take for how fast the record ran.
void set_speed(Json& json, const JsonReader& record, const Ruling& ruling, const Degrees& degrees) {
  const JsonReader measured = record.at("measured");
  if (const auto time = measured.find("iteration_s")) {
    json.set("iteration_time", figure(fmt::format("{} s", time->number()), record));
    return;
  }
  const auto said = ruling.throughput ? measured.find(ruling.throughput->figure) : std::nullopt;
  if (!said) return;
  if (!(said->number() > 0)) said->fail("a number above 0");
  const std::string& name = ruling.throughput->figure;
  const auto set = [&](const char* key, const std::string& value) {
    Json speed = figure(value, record);
    if (ruling.throughput->fitted) speed.set("fitted", true);
    json.set(key, speed);
  };
  if (name == "tflops_per_gpu")
    return set(ruling.throughput->of_model ? "model_tflops_per_gpu" : "tflops_per_gpu",
               fmt::format("{} TFLOP/s", said->number()));
  const double rate = said->number() *
                      (name.ends_with("_per_gpu") ? static_cast<double>(degrees.gpus) : 1) /
                      (name.starts_with("tokens") ? record.at("model").at("seq").number() : 1);
  const auto batch = static_cast<double>(batch_of(record, degrees).global);
  set("iteration_time", fmt::format("{:.6g} s", batch / rate));
}

/// What the source printed.
Json measured_of(const JsonReader& record, const Ruling& ruling, const Degrees& degrees) {
  const JsonReader measured = record.at("measured");
  Json json = Json::object();
  set_speed(json, record, ruling, degrees);
  for (const char* key :
       {"peak_mem_gb", "peak_mem_gib", "total_mem_gib", "required_mem_gb", "max_allocated_gib"}) {
    const auto memory = measured.find(key);
    if (!memory) continue;
    if (!ruling.memory) memory->fail("a rule that says which figure of memory it is");
    Json value = figure(fmt::format("{} {}", memory->number(), ruling.memory->unit), record);
    if (ruling.memory->fitted) value.set("fitted", true);
    if (ruling.memory->device) value.set("device", *ruling.memory->device);
    json.set(ruling.memory->name, value);
  }
  if (const auto fits = measured.find("fits")) json.set("fits", figure(fits->boolean(), record));
  if (json.text() == "{}")
    measured.fail("a time, a memory or a verdict, or a rule that says which figure it is");
  return json;
}

}  // namespace

std::vector<std::pair<std::string, Json>> run_of(const JsonReader& record, const Ruling& ruling) {
  const JsonReader facts = ruling.facts ? ruling.facts->over(record) : record;
  const Degrees degrees = degrees_of(facts);
  Json run = Json::object();
  run.set("model", model_of(facts, ruling, degrees))
      .set("cluster", Json::object().set("gpus", degrees.gpus))
      .set("training", training_of(facts, degrees))
      .set("strategy", strategy_of(facts, ruling, degrees));
  const JsonReader computed = JsonReader::from_text(run.text(), record.file());
  if (!ruling.run) record.fail("a rule with settings of its run");
  const JsonReader settings = ruling.run->over(computed);
  std::string assumed;
  for (const std::string& each : ruling.assumed) assumed += (assumed.empty() ? "" : "; ") + each;
  std::vector<std::pair<std::string, Json>> keys = {{"name", record.at("id").text()}};
  for (const char* key : {"model", "cluster", "profile", "stack", "training", "strategy"})
    keys.emplace_back(key, copy_of(settings.at(key)));
  if (!assumed.empty()) keys.emplace_back("assumed", assumed);
  keys.emplace_back("measured", measured_of(facts, ruling, degrees));
  return keys;
}

}  // namespace stratagem::calibrate
