// Builds JSON in a fixed order, so that the same values always give the same bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace stratagem {

/// A JSON value under construction: null until it is set, or until a member or element is added.
/// A value in every sense: a copy, and what set and push take, share nothing with the original.
/// Members keep the order in which they were added; infinities become null. Numbers print in the
/// shortest form that reads back the same.
class Json {
 public:
  Json();
  Json(bool value);
  Json(double value);
  Json(int value);
  Json(std::int64_t value);
  Json(std::string_view value);
  Json(const std::string& value);
  Json(const char* value);
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();
  static Json object();
  static Json array();

  /// Adds a member to an object; returns *this so that members can be chained.
  Json& set(std::string_view key, Json value);
  /// Appends to an array; returns *this.
  Json& push(Json value);

  /// indent < 0: one line; otherwise so many blanks a level. Ends without a newline.
  [[nodiscard]] std::string text(int indent = -1) const;

 private:
  struct Value;
  std::unique_ptr<Value> value_;
};

}  // namespace stratagem
