// `stratagem options`: what may be written in a part of a scenario or a stack.
#include "base/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "commands/all.hpp"
#include "commands/arguments.hpp"
#include "cost/rule_kinds.hpp"
#include "model/written/form.hpp"
#include "model/zoo/all.hpp"
#include "search/space.hpp"
#include "strategies/parallel/all.hpp"

namespace stratagem::commands {
namespace {

std::string table_of(const std::vector<OptionText>& options) {
  return "| key | values | default | |\n|---|---|---|---|\n" + rows_of(options);
}

struct Part {
  std::string name;
  Json schema;
  std::string table;
};

std::vector<Part> parts() {
  const std::vector<OptionText> strategy = strategies::option_texts();
  const std::string devices =
      "Degrees of parallelism and options; their product is the number of GPUs.";
  std::vector<Part> all = {{"strategy", schema_of(strategy, devices), table_of(strategy)},
                           {"model", model::schema_of_models(), ""},
                           {"rules", cost::schema_of_rules(), cost::table_of_rules()},
                           {"search", search::schema_of_search(), search::table_of_search()}};
  for (const model::Family& family : model::families()) {
    const std::string table = table_of(family.options);
    all[1].table += "`" + family.name + "`: " + family.summary + "\n\n" + table + "\n";
    all.push_back({family.name, schema_of(family.options, family.summary), table});
  }
  const auto file = model::written_options();
  const std::vector<OptionText> keys(file.begin(), file.end());
  all.push_back({"model-file", schema_of(keys, "A model as data."), table_of(keys)});
  return all;
}

Options options_options() {
  std::vector<std::string> names;
  for (const Part& part : parts()) names.push_back(part.name);
  Options options(
      "stratagem options",
      "List what may be written in a part of a scenario, or in the rules of a stack, with "
      "defaults, in Markdown.");
  options.text("part", fmt::format("one of {}", fmt::join(names, ", ")));
  options.among(names);
  options.flag("schema", "print its JSON schema instead");
  options.positional({"part"}, "PART");
  return options;
}

int run_options(const std::vector<std::string>& line) {
  const Arguments asked(options_options(), line);
  if (asked.helped()) return done;
  const std::vector<Part> known = parts();
  const auto part = std::ranges::find(known, asked.required("part"), &Part::name);
  fmt::print("{}", asked.has("schema") ? part->schema.text(2) + "\n" : part->table);
  return done;
}

}  // namespace

Command options() {
  return {"options", "list what may be written in a strategy, a model or a stack", &options_options,
          &run_options};
}

}  // namespace stratagem::commands
