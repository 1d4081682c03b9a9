// Names what has no name, looks up the cluster's GPU, and lists the keys that are missing.
#include "study/reading/what_follows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/json_copy.hpp"
#include "base/json_writer.hpp"
#include "base/malformed_input.hpp"
#include "study/reading/cluster_choice.hpp"

namespace stratagem::study {
namespace {

/// A run that simulates, for whoever lacks a part of it.
const char* const example = R"({"model": "llama-3-8b", "cluster": {"preset": "dgx-h100", "gpus": 8},
    "stack": "megatron-core-te", "training": {"global_batch": 512, "micro_batch": 1,
    "precision": "bf16", "optimizer": "adam"}})";

/// The keys of `wanted` that an object lacks, with their values.
Json missing(const JsonReader& object, const JsonReader& wanted) {
  Json keys = Json::object();
  for (const std::string& key : wanted.keys())
    if (!object.has(key)) keys.set(key, copy_of(wanted.at(key)));
  return keys;
}

/// Has an object a key that `wanted` has not?
bool says_more(const JsonReader& object, const JsonReader& wanted) {
  const JsonReader copy = JsonReader::from_text(object.dump(), object.file());
  return std::ranges::any_of(copy.keys(), [&](const std::string& key) { return !wanted.has(key); });
}

}  // namespace

std::string question_of(const JsonReader& scenario) {
  if (const auto question = scenario.find("question")) return question->text();
  return std::filesystem::path(scenario.file()).stem().string();
}

JsonReader named_by_place(const JsonReader& run, std::size_t place) {
  if (run.has("name")) return run;
  const Json name = Json::object().set("name", fmt::format("run {}", place + 1));
  return run.over(JsonReader::from_text(name.text(), run.file(), run.path()));
}

JsonReader with_profile_of_gpu(const JsonReader& run) {
  const auto cluster = run.find("cluster");
  if (run.has("profile") || !cluster || !cluster->is_object()) return run;
  if (!cluster->has("preset") && !cluster->has("node")) return run;
  const Json follows = Json::object().set("profile", gpu_of(*cluster));
  return run.over(JsonReader::from_text(follows.text(), run.file(), run.path()));
}

void check_complete(const JsonReader& run) {
  const JsonReader wanted = JsonReader::from_text(example, "example");
  Json keys = missing(run, wanted);
  if (const auto training = run.find("training");
      training && training->is_object() && !says_more(*training, wanted.at("training"))) {
    const Json lacking = missing(*training, wanted.at("training"));
    if (lacking.text() != "{}") keys.set("training", lacking);
  }
  if (keys.text() == "{}") return;
  throw MalformedInput(run.file(), run.path(),
                       "also, here or in \"defaults\", " + keys.text() +
                           " (`stratagem list` shows what else may stand in it)",
                       "no such keys");
}

}  // namespace stratagem::study
