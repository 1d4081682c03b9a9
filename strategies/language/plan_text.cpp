// Collects the primitives of every kind in the order of their table.
#include "strategies/language/plan_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "strategies/language/primitives/all.hpp"
#include "strategies/language/summary.hpp"

namespace stratagem::strategies {
namespace {

std::vector<Primitive> primitives_of(const Plan& plan) {
  std::vector<Primitive> result;
  for (const PrimitiveKind& kind : primitive_kinds()) {
    for (Primitive& one : kind.write(plan)) result.push_back(std::move(one));
  }
  return result;
}

/// A key with a list, a line for every element.
std::string list(const std::string& key, const std::vector<std::string>& elements) {
  return fmt::format("  \"{}\": [\n    {}\n  ]", key, fmt::join(elements, ",\n    "));
}

/// The keys "copies" and "deal" of a plan that has copies.
std::string copies_text(const Copies& copies) {
  if (copies.most() == 1) return "";
  const std::string numbers = copies.equal()
                                  ? std::to_string(copies.most())
                                  : fmt::format("[{}]", fmt::join(copies.of_stage, ", "));
  const std::string deal = copies.deal == Deal::turns ? "  \"deal\": \"turns\",\n" : "";
  return fmt::format("  \"copies\": {},\n{}", numbers, deal);
}

}  // namespace

std::string segments_of(const Plan& plan, int stage) {
  return selector_of_segments(plan.graph(), plan.stages[stage]);
}

std::string file_text(const Plan& plan) {
  std::vector<std::string> stages;
  stages.reserve(plan.stages.size());
  for (int stage = 0; stage < static_cast<int>(plan.stages.size()); ++stage)
    stages.push_back(Json(segments_of(plan, stage)).text());
  std::vector<std::string> primitives;
  for (const Primitive& one : primitives_of(plan)) {
    std::string members = fmt::format("\"{}\": {}", one.name, one.subject.text());
    for (const Field& field : one.fields)
      members += fmt::format(", \"{}\": {}", field.key, field.value.text());
    primitives.push_back("{" + members + "}");
  }
  return "{\n" + list("stages", stages) + ",\n" + copies_text(plan.copies()) +
         list("primitives", primitives) + "\n}\n";
}

std::string to_text(const Plan& plan) {
  constexpr std::size_t widest = 60;
  const std::vector<Primitive> primitives = primitives_of(plan);
  std::size_t width = 0;
  for (const Primitive& one : primitives) {
    if (!one.fields.empty() && one.text.size() <= widest) width = std::max(width, one.text.size());
  }
  std::string text;
  for (const Primitive& one : primitives) {
    std::string fields;
    for (const Field& field : one.fields) fields += (fields.empty() ? "  " : ", ") + field.text;
    const bool next_line = !fields.empty() && one.text.size() > widest;
    text += fmt::format("{:<9}  {:<{}}{}", one.name, one.text, fields.empty() ? 0 : width,
                        next_line ? fmt::format("\n{:<11}{:<{}}", "", "", width) : "");
    text += fields + "\n";
  }
  return text;
}

}  // namespace stratagem::strategies
