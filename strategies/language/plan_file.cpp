// Reads the parts of a plan file in order; which primitives there are is told by their table.
#include "strategies/language/plan_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/input_error.hpp"
#include "strategies/language/plan_builder.hpp"
#include "strategies/language/primitives/all.hpp"

namespace stratagem::strategies {
namespace {

/// Calls `read`; its errors that name no file or path are of `place`.
template <typename Read>
auto located(const JsonReader& place, const Read& read) {
  try {
    return read();
  } catch (const InputError& error) {
    if (!error.file.empty()) throw;
    throw InputError(place.file(), error.path.empty() ? place.path() : error.path, error.expected,
                     error.found);
  }
}

/// Every segment in one stage.
void read_stages(PlanBuilder& builder, const JsonReader& file) {
  const auto stages = file.find("stages");
  if (!stages) return;
  std::vector<std::vector<int>> result;
  std::vector<int> stage_of(builder.plan().graph().segments.size(), -1);
  for (const JsonReader& selector : stages->elements()) {
    result.push_back(builder.segments(selector));
    for (const int segment : result.back()) {
      if (stage_of[segment] >= 0) {
        selector.fail("segments that are in no other stage",
                      builder.plan().graph().segments[segment].name + ", in stage " +
                          std::to_string(stage_of[segment]) + " too");
      }
      stage_of[segment] = static_cast<int>(result.size()) - 1;
    }
  }
  const auto missing = std::ranges::find(stage_of, -1);
  if (missing != stage_of.end()) {
    stages->fail("every segment in a stage",
                 builder.plan().graph().segments[missing - stage_of.begin()].name + " in none");
  }
  builder.plan().stages = std::move(result);
}

/// One number for every stage, or a number for each, and who works on what.
void read_copies(PlanBuilder& builder, const JsonReader& file, int micro_batches) {
  const auto numbers = file.find("copies");
  const auto deal = file.find("deal");
  if (deal && !numbers) deal->fail("copies beside it");
  if (!numbers) return;
  const auto stages = builder.plan().stages.size();
  const auto number = [&](const JsonReader& one) {
    return static_cast<int>(one.between(1, micro_batches));
  };
  Copies copies;
  if (numbers->is_array()) {
    for (const JsonReader& one : numbers->elements()) copies.of_stage.push_back(number(one));
  } else {
    copies.of_stage.assign(stages, number(*numbers));
  }
  if (copies.of_stage.size() != stages) {
    numbers->fail("a number for each of the " + std::to_string(stages) + " stages",
                  std::to_string(copies.of_stage.size()));
  }
  if (deal && deal->one_of({"shares", "turns"}) == "turns") copies.deal = Deal::turns;
  located(*numbers, [&] { builder.plan().copy_stages(std::move(copies)); });
}

/// A primitive says one thing.
void check_alone(const JsonReader& primitive, const PrimitiveKind& chosen) {
  for (const PrimitiveKind& other : primitive_kinds()) {
    if (other.name != chosen.name && primitive.has(other.name))
      primitive.at(other.name).fail("no second primitive beside \"" + chosen.name + "\"");
  }
}

/// Plan files of before said "swap" and "evict" for what `keep` says of activations.
void refuse_former(const JsonReader& primitive) {
  for (const auto& [word, subject] : {std::pair("swap", "of"), std::pair("evict", "cells")}) {
    if (!primitive.has("op-trans") || !primitive.has(word)) continue;
    const JsonReader where = primitive.at(word);
    where.fail(fmt::format(
        R"({{"keep": "activations", "{}": "{}", "where": {}}}, with "ahead" for "prefetch")",
        subject, primitive.at("op-trans").text(),
        where.is_number() ? std::to_string(where.at_least(0)) : "\"" + where.text() + "\""));
  }
}

/// What a primitive is, by its name and key.
const PrimitiveKind& kind_of(const JsonReader& primitive) {
  refuse_former(primitive);
  std::string names;
  std::string keys;
  for (const PrimitiveKind& kind : primitive_kinds()) {
    const std::string quoted = "\"" + kind.name + "\"";
    if (names.find(quoted) == std::string::npos) names += (names.empty() ? "" : ", ") + quoted;
    if (!primitive.has(kind.name)) continue;
    if (kind.key.empty() || primitive.has(kind.key)) {
      check_alone(primitive, kind);
      return kind;
    }
    keys += (keys.empty() ? "\"" : ", \"") + kind.key + "\"";
  }
  if (keys.empty()) primitive.fail("a primitive with one of the keys " + names);
  primitive.fail("one of the keys " + keys + " too");
}

std::vector<JsonReader> primitives_of(const JsonReader& file) {
  return file.at("primitives").elements();
}

}  // namespace

Plan read_plan(const JsonReader& file, const model::Graph& graph, int micro_batches) {
  return read_plan(file, graph, micro_batches, primitives_of(file).size());
}

Plan read_plan(const JsonReader& file, const model::Graph& graph, int micro_batches,
               std::size_t primitives) {
  PlanBuilder builder(graph, micro_batches);
  static_cast<void>(file.find("$schema"));  // for editors
  located(file, [&] { read_stages(builder, file); });
  read_copies(builder, file, micro_batches);
  std::size_t before = 0;
  for (const JsonReader& primitive : primitives_of(file)) {
    const PrimitiveKind& kind = kind_of(primitive);
    if (before++ >= primitives && kind.read == &read_order) continue;
    located(primitive, [&] { kind.read(builder, primitive); });
    builder.plan().note_said(primitive.path());
  }
  located(file, [&] { builder.check_assigned(); });
  file.finish();
  return std::move(builder.plan());
}

int batch_ranks(const JsonReader& file, const model::Graph& given) {
  PlanBuilder builder(given, 1);
  located(file, [&] { read_stages(builder, file); });
  for (const JsonReader& primitive : primitives_of(file)) {
    if (kind_of(primitive).read == &read_colocation)
      located(primitive, [&] { read_colocation(builder, primitive); });
  }
  const model::Graph& graph = builder.plan().graph();
  std::vector<std::int64_t> ranks(graph.operators.size(), 1);
  for (const JsonReader& primitive : primitives_of(file)) {
    if (kind_of(primitive).read != &read_split || primitive.at("dim").is_null()) continue;
    if (primitive.at("dim").text() != "b") continue;
    const std::int64_t parts = primitive.at("parts").between(1, 1'000'000);
    const auto operators =
        located(primitive, [&] { return builder.operators(primitive.at("op-trans")); });
    for (const model::OpId op : operators) {
      ranks[op] *= parts;
      if (ranks[op] > 1'000'000)
        primitive.at("parts").fail("at most 1000000 parts of \"b\" in all");
    }
  }
  return static_cast<int>(std::ranges::max(ranks));
}

}  // namespace stratagem::strategies
