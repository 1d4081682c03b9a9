// {"keep": "parameters", "divided": ["data"], "where": "host", "ahead": 1}: where what has several
// uses waits between them; of activations {"keep": "activations", "of": "layers.[0-7]", ...} or
// {"keep": "activations", "cells": "F(0, 2) F(0, 5)", "where": 3}.
#include <algorithm>
#include <map>
#include <utility>

#include "base/input_error.hpp"
#include "strategies/language/chain.hpp"
#include "strategies/language/primitives/all.hpp"
#include "strategies/language/summary.hpp"

namespace stratagem::strategies {
namespace {

/// As Keep::What and Keep::Between count them.
const std::vector<std::string> subjects = {"parameters", "gradients", "states", "activations",
                                           "checkpoints"};
const std::vector<std::string> gaps = {"passes", "micro-batches", "iterations"};
const std::map<std::string, Keep::Where> places = {
    {"peers", Keep::Where::peers}, {"host", Keep::Where::host}, {"drives", Keep::Where::drives}};

template <typename Enum>
Enum one_of(const JsonReader& reader, const std::vector<std::string>& names) {
  const auto found = std::ranges::find(names, reader.one_of(names));
  return static_cast<Enum>(found - names.begin());
}

/// "peers", "host", "drives", or the number of a stage.
void read_place(Keep& rule, const JsonReader& where, int stages) {
  if (where.is_number()) {
    rule.where = Keep::Where::stage;
    rule.stage = static_cast<int>(where.between(0, stages - 1));
    return;
  }
  rule.where = places.at(where.one_of({"peers", "host", "drives"}));
}

Field place_field(const Keep& rule) {
  if (rule.where == Keep::Where::stage)
    return {"where", Json(rule.stage), "on stage " + std::to_string(rule.stage)};
  const auto named = [&](const auto& place) { return place.second == rule.where; };
  const std::string name = std::ranges::find_if(places, named)->first;
  return {"where", Json(name), "on the " + name};
}

std::vector<Field> fields_of(const Keep& rule) {
  std::vector<Field> fields;
  if (rule.between != Keep::Between::passes)
    fields.push_back(field("between", gaps[static_cast<int>(rule.between)]));
  if (!rule.divided.empty()) fields.push_back(list_field("divided", rule.divided));
  if (rule.where != Keep::Where::device) fields.push_back(place_field(rule));
  if (rule.ahead) fields.push_back(field("ahead", *rule.ahead));
  if (rule.at_least > 0) fields.push_back(field("at least", rule.at_least));
  return fields;
}

/// Whose activations, as a field before all others; cells of different stages one by one.
Field subject_of(const Keep& rule, const Plan& plan) {
  if (!rule.cells.empty()) {
    Chain cells;
    for (const auto& [stage, micro_batch] : rule.cells)
      cells.cells.push_back({.stage = stage, .micro_batch = micro_batch});
    const ChainText text = text_of(cells, plan.extent());
    return {"cells", Json(text.whole), "of " + text.abbreviated};
  }
  return field("of", selector_of_segments(plan.graph(), rule.segments));
}

/// Adds the forward cells that a text names to a rule. Throws InputError for other passes, which
/// leave nothing, and for cells of the stage that the rule names.
void read_cells(Keep& rule, const JsonReader& subject, const Extent& extent) {
  if (extent.slices > 1 || extent.repeats > 1)
    subject.fail("whole micro-batches and one forward pass where cells have rules");
  const Chain cells = parse_chain(subject.text(), extent, subject.path());
  if (cells.cells.empty() || !cells.together.empty()) subject.fail("cells with blanks between");
  for (const placement::Cell& cell : cells.cells) {
    if (cell.pass != placement::CellPass::forward)
      subject.fail("forward cells such as \"F(0, 2)\"", to_text(cell));
    if (rule.where == Keep::Where::stage && cell.stage == rule.stage)
      subject.fail("cells of other stages than the one that takes in", to_text(cell));
    rule.cells.emplace_back(cell.stage, cell.micro_batch);
  }
}

}  // namespace

void read_keep(PlanBuilder& builder, const JsonReader& reader) {
  Plan& plan = builder.plan();
  Keep rule{.what = one_of<Keep::What>(reader.at("keep"), subjects)};
  if (const auto between = reader.find("between"))
    rule.between = one_of<Keep::Between>(*between, gaps);
  if (const auto where = reader.find("where"))
    read_place(rule, *where, static_cast<int>(plan.stages.size()));
  if (const auto axes = reader.find("divided")) rule.divided = read_axis_names(builder, *axes);
  if (const auto ahead = reader.find("ahead"))
    rule.ahead = static_cast<int>(ahead->between(0, 1'000));
  if (const auto least = reader.find("at least"))
    rule.at_least = static_cast<int>(least->between(0, 1'000'000'000));
  if (const auto segments = reader.find("of")) rule.segments = builder.segments(*segments);
  if (const auto cells = reader.find("cells")) read_cells(rule, *cells, plan.extent());
  try {
    plan.residency.keep(std::move(rule));
  } catch (const InputError& error) {
    throw InputError("", reader.path() + error.path, error.expected, error.found);
  }
}

std::vector<Primitive> write_keeps(const Plan& plan) {
  std::vector<Primitive> result;
  for (const Keep& rule : plan.residency.rules()) {
    std::vector<Field> fields = fields_of(rule);
    if (rule.what == Keep::What::activations) fields.insert(fields.begin(), subject_of(rule, plan));
    result.push_back(primitive("keep", subjects[static_cast<int>(rule.what)], std::move(fields)));
  }
  return result;
}

}  // namespace stratagem::strategies
