// `stratagem list`: what may be named in a scenario, a line each.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/quantity_text.hpp"
#include "commands/all.hpp"
#include "commands/arguments.hpp"
#include "cost/optimizer.hpp"
#include "cost/precision.hpp"
#include "cost/profile.hpp"
#include "cost/stack.hpp"
#include "model/zoo/all.hpp"
#include "model/zoo/presets.hpp"
#include "report/columns.hpp"
#include "report/wrapped.hpp"
#include "strategies/parallel/all.hpp"
#include "strategies/schedules/all.hpp"
#include "study/library.hpp"
#include "topology/presets.hpp"

namespace stratagem::commands {
namespace {

std::string in_library(const std::string& folder, const std::string& name) {
  return (study::library() / folder / (name + ".json")).string();
}

/// Adds how many constants of a file have each provenance.
void count_provenances(const JsonReader& json, std::map<std::string, int>& counts) {
  if (json.is_array()) {
    for (const JsonReader& element : json.elements()) count_provenances(element, counts);
  }
  if (!json.is_object()) return;
  for (const std::string& key : json.keys()) {
    if (key == "provenance") ++counts[json.at(key).text()];
    count_provenances(json.at(key), counts);
  }
}

/// "12 measured, 3 assumed"
std::string provenances_of(const std::string& file) {
  std::map<std::string, int> counts;
  count_provenances(JsonReader::from_file(file), counts);
  std::vector<std::string> parts;
  for (const cost::Provenance one : cost::provenances) {
    const std::string name = cost::to_text(one);
    if (counts.contains(name)) parts.push_back(fmt::format("{} {}", counts.at(name), name));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string profiles() {
  std::vector<report::Column> columns = {{.heading = "profile", .left = true},
                                         {"memory"},
                                         {"bandwidth"},
                                         {.heading = "precisions", .left = true},
                                         {.heading = "constants", .left = true}};
  for (const std::string& name : study::names_in_library("profiles")) {
    const std::string file = in_library("profiles", name);
    const cost::Profile profile = cost::read_profile(file);
    std::vector<std::string> types;
    for (const auto& [type, peak] : profile.peak) types.push_back(type);
    report::add_row(
        columns, {name, to_text(profile.memory.size.value), to_text(profile.memory.bandwidth.value),
                  fmt::format("{}", fmt::join(types, " ")), provenances_of(file)});
  }
  return report::text_of(columns);
}

std::string stacks() {
  std::vector<report::Column> columns = {{.heading = "stack", .left = true},
                                         {.heading = "NCCL", .left = true},
                                         {"slowdown"},
                                         {.heading = "known as", .left = true},
                                         {"products"},
                                         {.heading = "facts hold for", .left = true}};
  for (const std::string& name : study::names_in_library("stacks")) {
    const cost::Stack stack = cost::read_stack(in_library("stacks", name));
    report::add_row(
        columns,
        {name, stack.nccl.empty() ? "-" : stack.nccl, fmt::format("{:.3f}", stack.slowdown.value),
         cost::to_text(stack.slowdown.provenance),
         stack.product_slowdown ? fmt::format("{:.3f}", stack.product_slowdown->value) : "-",
         stack.precisions.empty() ? "any precision"
                                  : fmt::format("{}", fmt::join(stack.precisions, " "))});
  }
  return report::text_of(columns) +
         "\nslowdown: device time of a framework's own kernels over the profile's; "
         "products: that of products\nand fused attention\n";
}

/// A line for each entry with a name and a summary.
template <typename Table>
std::string summaries(const Table& table) {
  std::size_t width = 0;
  for (const auto& entry : table) width = std::max(width, std::string(entry.name).size());
  std::string text;
  for (const auto& entry : table) {
    text += report::wrapped(fmt::format("{:<{}}  {}", entry.name, width, entry.summary),
                            static_cast<int>(width) + 2);
  }
  return text;
}

std::string models() {
  return "Families (\"family\", with keys as `stratagem options FAMILY` lists them)\n\n" +
         summaries(model::families()) + "\nPublished models (\"preset\")\n\n" +
         summaries(model::presets());
}

std::string clusters() {
  std::string text = "Presets (\"preset\" of \"cluster\")\n\n" + summaries(topology::presets());
  const std::vector<std::string> nodes = study::names_in_library("nodes");
  if (nodes.empty()) return text;
  return text + fmt::format("\nServers in files (\"node\" of \"cluster\")\n\n{}\n",
                            fmt::join(nodes, "\n"));
}

std::string strategy_keys() {
  std::string text;
  for (const OptionText& option : strategies::option_texts())
    text += report::wrapped(fmt::format("{:<22} {}", option.key, option.sentence), 23);
  return text;
}

struct Listed {
  const char* name;
  const char* what;
  std::string (*text)();
};

const std::vector<Listed> all_listed = {
    {"profiles", "GPUs and processors: the constants of their kernels", &profiles},
    {"stacks", "frameworks", &stacks},
    {"models", "families and published models", &models},
    {"clusters", "servers", &clusters},
    {"strategies", "keys of a strategy", &strategy_keys},
    {"schedules", "orders of a pipeline", [] { return summaries(strategies::schedules()); }},
    {"precisions", "of training", [] { return summaries(cost::precisions()); }},
    {"optimizers", "of training", [] { return summaries(cost::optimizers()); }}};

Options list_options() {
  std::vector<std::string> names;
  for (const Listed& one : all_listed) names.emplace_back(one.name);
  Options options("stratagem list", "List what may be named in a scenario.");
  options.text("what", fmt::format("one of {}", fmt::join(names, ", ")));
  options.among(names);
  options.positional({"what"}, "WHAT");
  return options;
}

int run_list(const std::vector<std::string>& line) {
  const Arguments asked(list_options(), line);
  if (asked.helped()) return done;
  for (const Listed& one : all_listed) {
    if (!asked.has("what"))
      fmt::print("stratagem list {:<11} {}\n", one.name, one.what);
    else if (asked.text("what") == one.name)
      fmt::print("{}", one.text());
  }
  return done;
}

}  // namespace

Command list() {
  return {"list", "list GPUs, frameworks, models, servers, schedules", &list_options, &run_list};
}

}  // namespace stratagem::commands
