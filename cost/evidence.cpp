// Evidence as profiles hold it.
#include "cost/evidence.hpp"

#include <cmath>
#include <cstdint>

namespace stratagem::cost {
namespace {

Range read_range(const JsonReader& json) {
  const auto ends = json.elements();
  if (ends.size() != 2) json.fail("the least and the most that was measured", json.dump());
  const Range range{.least = ends[0].number(), .most = ends[1].number()};
  if (!(range.least > 0)) ends[0].fail("a number of more than 0", ends[0].dump());
  if (range.most < range.least) ends[1].fail("at least " + ends[0].dump(), ends[1].dump());
  return range;
}

/// Counts of operations and bytes are whole, and shorter so.
Json number(double value) {
  constexpr double exact = 9e15;
  if (value < exact && value == std::floor(value)) return static_cast<std::int64_t>(value);
  return value;
}

Json to_json(const Range& range) {
  return Json::array().push(number(range.least)).push(number(range.most));
}

double read_error(const JsonReader& json) {
  const double error = json.number();
  if (error < 0) json.fail("an error of at least 0", json.dump());
  return error;
}

Errors read_errors(const JsonReader& json) {
  return {.points = static_cast<std::size_t>(json.at("points").at_least(1)),
          .median = read_error(json.at("median")),
          .p90 = read_error(json.at("p90")),
          .p95 = read_error(json.at("p95")),
          .worst = read_error(json.at("worst"))};
}

Json to_json(const Errors& errors) {
  return Json::object()
      .set("points", static_cast<std::int64_t>(errors.points))
      .set("median", errors.median)
      .set("p90", errors.p90)
      .set("p95", errors.p95)
      .set("worst", errors.worst);
}

Compared read_compared(const JsonReader& json, const char* key) {
  Compared compared;
  const auto found = json.find(key);
  if (!found) return compared;
  compared.fit = read_errors(*found);
  if (const auto constant = found->find("constant")) compared.constant = read_errors(*constant);
  return compared;
}

void set(Json& json, const char* key, const Compared& compared) {
  if (compared.fit.points == 0) return;
  Json errors = to_json(compared.fit);
  if (compared.constant.points > 0) errors.set("constant", to_json(compared.constant));
  json.set(key, errors);
}

}  // namespace

Evidence read_evidence(const JsonReader& json, Fitted what) {
  Evidence evidence{.of = json.at("of").text(),
                    .source = json.at("source").text(),
                    .another_architecture = json.at("another_architecture").boolean(),
                    .parameters = static_cast<int>(json.at("parameters").at_least(1)),
                    .families = static_cast<std::size_t>(json.at("families").at_least(1)),
                    .size = read_range(json.at("size")),
                    .smallest = {},
                    .ranks = {},
                    .all = read_compared(json, "all"),
                    .large = {},
                    .small = {},
                    .decades = {}};
  if (what == Fitted::products) {
    evidence.large = read_compared(json, "large");
    evidence.small = read_compared(json, "small");
    if (const auto smallest = json.find("smallest")) evidence.smallest = read_range(*smallest);
  } else if (what == Fitted::collectives) {
    if (const auto ranks = json.find("ranks")) evidence.ranks = read_range(*ranks);
  }
  if (const auto decades = json.find("decades")) {
    for (const JsonReader& decade : decades->elements())
      evidence.decades[static_cast<int>(decade.at("power").between(-1, 30))] = read_errors(decade);
  }
  return evidence;
}

Json to_json(const Evidence& evidence) {
  Json json = Json::object();
  json.set("of", evidence.of)
      .set("source", evidence.source)
      .set("another_architecture", evidence.another_architecture)
      .set("parameters", evidence.parameters)
      .set("families", static_cast<std::int64_t>(evidence.families))
      .set("size", to_json(evidence.size));
  if (evidence.smallest) json.set("smallest", to_json(*evidence.smallest));
  if (evidence.ranks) json.set("ranks", to_json(*evidence.ranks));
  set(json, "all", evidence.all);
  set(json, "large", evidence.large);
  set(json, "small", evidence.small);
  Json decades = Json::array();
  for (const auto& [power, errors] : evidence.decades)
    decades.push(to_json(errors).set("power", power));
  if (!evidence.decades.empty()) json.set("decades", decades);
  return json;
}

}  // namespace stratagem::cost
