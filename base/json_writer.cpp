// JSON out: nlohmann's ordered value, with a writer of our own for the shortest doubles.
#include "base/json_writer.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem {
namespace {

using nlohmann::ordered_json;

void write_double(double value, std::string& out) {
  if (!std::isfinite(value)) {
    out += "null";  // JSON has no infinity
    return;
  }
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  out.append(buffer.data(), end.ptr);
}

std::string quoted(const std::string& text) {
  return ordered_json(text).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

void write(const ordered_json& value, int indent, std::size_t depth, std::string& out) {
  const auto new_line = [&](std::size_t levels) {
    if (indent >= 0) out.append("\n").append(static_cast<std::size_t>(indent) * levels, ' ');
  };
  if (value.is_number_float()) {
    write_double(value.get<double>(), out);
  } else if (value.is_string()) {
    out += quoted(value.get_ref<const std::string&>());
  } else if (value.is_object() && !value.empty()) {
    out += '{';
    bool first = true;
    for (const auto& [key, member] : value.items()) {
      if (!first) out += ',';
      first = false;
      new_line(depth + 1);
      out += quoted(key) + (indent >= 0 ? ": " : ":");
      write(member, indent, depth + 1, out);
    }
    new_line(depth);
    out += '}';
  } else if (value.is_array() && !value.empty()) {
    out += '[';
    bool first = true;
    for (const ordered_json& element : value) {
      if (!first) out += ',';
      first = false;
      new_line(depth + 1);
      write(element, indent, depth + 1, out);
    }
    new_line(depth);
    out += ']';
  } else {
    out += value.dump();
  }
}

}  // namespace

struct Json::Value {
  ordered_json json;
};

Json::Json() : value_(std::make_unique<Value>()) {}
Json::Json(bool value) : Json() { value_->json = value; }
Json::Json(double value) : Json() { value_->json = value; }
Json::Json(int value) : Json() { value_->json = value; }
Json::Json(std::int64_t value) : Json() { value_->json = value; }
Json::Json(std::string_view value) : Json() { value_->json = std::string(value); }
Json::Json(const std::string& value) : Json() { value_->json = value; }
Json::Json(const char* value) : Json() { value_->json = value; }

Json::Json(const Json& other) : value_(std::make_unique<Value>(*other.value_)) {}
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) {
  if (this != &other) value_ = std::make_unique<Value>(*other.value_);
  return *this;
}
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

Json Json::object() {
  Json result;
  result.value_->json = ordered_json::object();
  return result;
}

Json Json::array() {
  Json result;
  result.value_->json = ordered_json::array();
  return result;
}

Json& Json::set(std::string_view key, Json value) {
  ordered_json& json = value_->json;
  expects(json.is_null() || json.is_object(), "Json::set adds a member to an object");
  json[std::string(key)] = std::move(value.value_->json);
  return *this;
}

Json& Json::push(Json value) {
  ordered_json& json = value_->json;
  expects(json.is_null() || json.is_array(), "Json::push appends to an array");
  json.push_back(std::move(value.value_->json));
  return *this;
}

std::string Json::text(int indent) const {
  std::string out;
  write(value_->json, indent, 0, out);
  return out;
}

}  // namespace stratagem
