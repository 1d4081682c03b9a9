// Reading and writing of constants.
#include "cost/constant.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/input_error.hpp"
#include "base/quantity_text.hpp"

namespace stratagem::cost {
namespace {

template <typename Q>
constexpr auto units = std::array<std::string_view, 0>{};
template <>
constexpr auto units<Seconds> = std::array<std::string_view, 5>{"us", "ms", "s", "ns", "ps"};
template <>
constexpr auto units<Bytes> =
    std::array<std::string_view, 7>{"GB", "GiB", "MB", "MiB", "KiB", "KB", "B"};
template <>
constexpr auto units<BytesPerSecond> = std::array<std::string_view, 3>{"GB/s", "MB/s", "B/s"};
template <>
constexpr auto units<FlopsPerSecond> =
    std::array<std::string_view, 3>{"TFLOP/s", "GFLOP/s", "FLOP/s"};

}  // namespace

template <typename Q>
std::string exact_text(Q quantity) {
  const auto reads_back = [quantity](const std::string& text) {
    const auto back = parse_quantity<Q>(text);
    return back && std::abs(back->value - quantity.value) <= 4e-16 * std::abs(quantity.value);
  };
  if constexpr (std::is_same_v<Q, Seconds>) {
    if (reads_back(to_text(quantity))) return to_text(quantity);
  }
  std::string best;
  for (const std::string_view unit : units<Q>) {
    const Q one = *parse_quantity<Q>("1 " + std::string(unit));
    for (const double number : {quantity / one, std::round(quantity / one * 1e6) / 1e6}) {
      const std::string text = Json(number).text() + " " + std::string(unit);
      if (reads_back(text) && (best.empty() || text.size() < best.size())) best = text;
    }
  }
  expects(!best.empty(), "every finite quantity has a text that reads back the same");
  return best;
}

Constant<double> read_share(const JsonReader& json) {
  auto share = read_constant<double>(json);
  if (!(share.value > 0 && share.value <= 1)) {
    json.at("value").fail("a share of more than 0 and at most 1", json.at("value").dump());
  }
  return share;
}

template <typename T>
Constant<T> read_positive(const JsonReader& json) {
  auto constant = read_constant<T>(json);
  if (!(constant.value > T{}))
    json.at("value").fail("a value of more than 0", json.at("value").dump());
  return constant;
}

template <typename T>
Constant<T> read_not_negative(const JsonReader& json) {
  auto constant = read_constant<T>(json);
  if (constant.value < T{}) json.at("value").fail("a value of at least 0", json.at("value").dump());
  return constant;
}

std::string to_text(Provenance provenance) {
  switch (provenance) {
    case Provenance::measured:
      return "measured";
    case Provenance::published:
      return "published";
    case Provenance::fitted:
      return "fitted";
    case Provenance::datasheet:
      return "datasheet";
    case Provenance::assumed:
      return "assumed";
  }
  throw BrokenPromise("a provenance is one of its enumerators");
}

Provenance read_provenance(const JsonReader& json) {
  std::vector<std::string> words;
  words.reserve(provenances.size());
  for (const Provenance provenance : provenances) words.push_back(to_text(provenance));
  const auto found = std::ranges::find(words, json.one_of(words));
  return provenances.at(static_cast<std::size_t>(found - words.begin()));
}

template <typename T>
Constant<T> read_constant(const JsonReader& json) {
  Constant<T> constant;
  if constexpr (std::is_same_v<T, double>) {
    constant.value = json.at("value").number();
  } else {
    constant.value = json.at("value").quantity<T>();
  }
  constant.provenance = read_provenance(json.at("provenance"));
  constant.source = json.at("source").text();
  if (constant.source.empty()) json.at("source").fail("where the value comes from", "\"\"");
  if (const auto error = json.find("error")) constant.error = error->number();
  return constant;
}

template <typename T>
Json to_json(const Constant<T>& constant) {
  Json json = Json::object();
  if constexpr (std::is_same_v<T, double>) {
    json.set("value", constant.value);
  } else {
    json.set("value", exact_text(constant.value));
  }
  json.set("provenance", to_text(constant.provenance)).set("source", constant.source);
  if (constant.error != 0) json.set("error", constant.error);
  return json;
}

template Constant<double> read_constant(const JsonReader&);
template Constant<Seconds> read_constant(const JsonReader&);
template Constant<Bytes> read_constant(const JsonReader&);
template Constant<BytesPerSecond> read_constant(const JsonReader&);
template Constant<FlopsPerSecond> read_constant(const JsonReader&);
template Json to_json(const Constant<double>&);
template Json to_json(const Constant<Seconds>&);
template Json to_json(const Constant<Bytes>&);
template Json to_json(const Constant<BytesPerSecond>&);
template Json to_json(const Constant<FlopsPerSecond>&);

template std::string exact_text(Bytes);
template std::string exact_text(Seconds);
template Constant<double> read_positive(const JsonReader&);
template Constant<double> read_not_negative(const JsonReader&);
template Constant<Seconds> read_positive(const JsonReader&);
template Constant<Seconds> read_not_negative(const JsonReader&);
template Constant<Bytes> read_positive(const JsonReader&);
template Constant<Bytes> read_not_negative(const JsonReader&);
template Constant<BytesPerSecond> read_positive(const JsonReader&);
template Constant<BytesPerSecond> read_not_negative(const JsonReader&);
template Constant<FlopsPerSecond> read_positive(const JsonReader&);
template Constant<FlopsPerSecond> read_not_negative(const JsonReader&);

}  // namespace stratagem::cost
