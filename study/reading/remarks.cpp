// Compares what a run says with what acts.
#include "study/reading/remarks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/zoo/presets.hpp"
#include "strategies/parallel/all.hpp"

namespace stratagem::study {
namespace {

/// A profile of another GPU than the cluster's is the user's choice, but no silent one.
void note_foreign_profile(const Run& run, std::vector<std::string>& remarks) {
  const std::string& own = run.cluster.design().gpu;
  if (run.profile.name == own) return;
  remarks.push_back("profile " + run.profile.name + " stands in for the cluster's " + own);
}

/// Servers that `"nodes"` asks for and no rank runs on change nothing but the network's size.
void note_idle_servers(const Run& run, std::vector<std::string>& remarks) {
  const int per_node = run.cluster.design().ranks();
  const int idle = run.cluster.nodes() - (run.gpus + per_node - 1) / per_node;
  if (idle > 0)
    remarks.push_back(fmt::format("{} of {} servers have nothing to do, since the run has {} ranks",
                                  idle, run.cluster.nodes(), run.gpus));
}

bool is_own(const JsonReader& value, const JsonReader& reader) {
  return value.path().starts_with(reader.path() + "/");
}

/// Sizes of the defaults go over those of a preset that a run names.
void note_changed_preset(const JsonReader& reader, std::vector<std::string>& remarks) {
  const JsonReader model = reader.at("model");
  const auto named = model.find("preset");
  if (!named || !is_own(*named, reader)) return;
  const auto preset = std::ranges::find(model::presets(), named->text(), &model::Preset::name);
  std::vector<std::string> changed;
  const JsonReader given = JsonReader::from_text(preset->keys, "preset");
  for (const std::string& key : given.keys()) {
    const auto value = model.find(key);
    if (value && !is_own(*value, reader) && value->dump() != given.at(key).dump())
      changed.push_back(key);
  }
  if (!changed.empty())
    remarks.push_back(fmt::format("{} of the defaults, not of preset {}", fmt::join(changed, ", "),
                                  named->text()));
}

}  // namespace

std::vector<std::string> remarks_on(const Run& run, const JsonReader& reader) {
  std::vector<std::string> remarks = run.compared.remarks;
  note_changed_preset(reader, remarks);
  note_foreign_profile(run, remarks);
  note_idle_servers(run, remarks);
  return remarks;
}

std::vector<std::string> keys_of_no_use(const Run& run, const JsonReader& reader) {
  std::vector<std::string> remarks;
  const auto strategy = reader.find("strategy");
  if (!strategy || run.plan || run.refused) return {};
  for (const strategies::Strategy& one : strategies::all()) {
    for (const Option<strategies::Options>& option : one.options) {
      const auto value = strategy->find(option.key);
      if (!value || !is_own(*value, reader)) continue;
      std::string said = value->dump();
      std::erase(said, '"');
      const bool acts = option.acts == nullptr || option.acts(run.options);
      if (!acts && said != option.usual && said != "false" && said != "0")
        remarks.push_back("\"" + option.key + "\" is of no use beside the other keys");
    }
  }
  return remarks;
}

}  // namespace stratagem::study
