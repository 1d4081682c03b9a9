// Finds the rules that hold for a record, and merges what they say.
#include "calibrate/import/record_rules.hpp"

#include <algorithm>

namespace stratagem::calibrate {
namespace {

/// "model.layers" of a record; nothing where it is not there.
std::optional<JsonReader> find_path(const JsonReader& record, const std::string& path) {
  const std::size_t dot = path.find('.');
  const auto here = record.find(path.substr(0, dot));
  if (!here || dot == std::string::npos) return here;
  return here->is_object() ? find_path(*here, path.substr(dot + 1)) : std::nullopt;
}

/// A condition is a value, a list of values, {"contains": text}, or null for what is not there.
bool holds(const JsonReader& condition, const std::optional<JsonReader>& value) {
  if (condition.is_null()) return !value;
  if (condition.is_array()) {
    const std::vector<JsonReader> any = condition.elements();
    return std::ranges::any_of(any, [&](const JsonReader& one) { return holds(one, value); });
  }
  if (condition.is_object()) {
    const std::string part = condition.at("contains").text();
    return value && value->is_string() && value->text().find(part) != std::string::npos;
  }
  return value && value->dump() == condition.dump();
}

bool applies(const JsonReader& rule, const JsonReader& record) {
  const auto when = rule.find("when");
  if (!when) return true;
  const std::vector<std::string> paths = when->keys();
  return std::ranges::all_of(paths, [&](const std::string& path) {
    return holds(when->at(path), find_path(record, path));
  });
}

/// `rule` in front of what was there before.
void put_before(std::optional<JsonReader>& target, const std::optional<JsonReader>& rule) {
  if (rule) target = target ? rule->over(*target) : *rule;
}

void apply(Ruling& ruling, const JsonReader& rule) {
  put_before(ruling.facts, rule.find("facts"));
  put_before(ruling.run, rule.find("run"));
  if (const auto memory = rule.find("memory")) {
    ruling.memory = MemoryFigure{
        .name = memory->at("figure").one_of({"peak_allocated", "peak_reserved", "peak_used"}),
        .unit = memory->at("unit").one_of({"GB", "GiB"})};
    if (const auto fitted = memory->find("fitted")) ruling.memory->fitted = fitted->boolean();
    if (const auto device = memory->find("device"))
      ruling.memory->device = static_cast<int>(device->at_least(0));
    ruling.assumed.push_back(memory->at("because").text());
  }
  if (const auto throughput = rule.find("throughput")) {
    ruling.throughput = Throughput{
        .figure = throughput->at("figure").one_of(
            {"tflops_per_gpu", "samples_per_s", "samples_per_s_per_gpu", "tokens_per_s_per_gpu"})};
    if (const auto count = throughput->find("count")) {
      if (ruling.throughput->figure != "tflops_per_gpu") count->fail("only of tflops_per_gpu");
      ruling.throughput->of_model = count->one_of({"model", "hardware"}) == "model";
    }
    if (const auto fitted = throughput->find("fitted"))
      ruling.throughput->fitted = fitted->boolean();
    throughput->at("because").skip();  // for the reader
  }
  if (const auto multiple = rule.find("vocabulary_multiple"))
    ruling.vocabulary_multiple = multiple->at_least(1);
  if (const auto stages = rule.find("stages")) ruling.stages = stages->one_of({"layers", "ends"});
  if (const auto assumed = rule.find("assumed")) ruling.assumed.push_back(assumed->text());
  if (const auto out = rule.find("left_out")) {
    ruling.absent = out->at("absent").one_of({"model", "framework", "facts", "measurement"});
    ruling.reason = out->at("reason").text();
  }
}

}  // namespace

Ruling ruling(const JsonReader& group_rules, const JsonReader& record) {
  Ruling result;
  for (const JsonReader& rule : group_rules.elements()) {
    for (const char* key : {"when", "facts", "run", "memory", "throughput", "vocabulary_multiple",
                            "stages", "assumed", "left_out", "because"}) {
      // Known, whether it serves this record or not.
      if (const auto value = rule.find(key)) value->skip();
    }
    if (applies(rule, record)) apply(result, rule);
  }
  return result;
}

}  // namespace stratagem::calibrate
