// JSON out: order, shortest numbers, value semantics.
#include "base/json_writer.hpp"

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "tests/catch.hpp"

using stratagem::Json;
using stratagem::JsonReader;

TEST_CASE("members keep the order in which they were added") {
  Json json;
  json.set("zebra", 1).set("ant", 2).set("zebra", 3);
  CHECK(json.text() == R"({"zebra":3,"ant":2})");
}

TEST_CASE("every kind of value prints as JSON") {
  Json json = Json::array();
  json.push(Json())
      .push(true)
      .push(-7)
      .push(std::int64_t{1} << 60)
      .push("a\"b\n")
      .push(std::string("c"));
  json.push(Json::object()).push(Json::array());
  CHECK(json.text() == R"([null,true,-7,1152921504606846976,"a\"b\n","c",{},[]])");
}

TEST_CASE("doubles print in the shortest form that reads back the same") {
  CHECK(Json(0.1).text() == "0.1");
  CHECK(Json(2.0).text() == "2");
  CHECK(Json(1.0 / 3.0).text() == "0.3333333333333333");
  CHECK(Json(5e-324).text() == "5e-324");
  CHECK(Json(1e22).text() == "1e+22");
  const double values[] = {0.1 + 0.2, 1.7976931348623157e308, 4.35, 9007199254740993.0};
  for (const double value : values) {
    CHECK(JsonReader::from_text(Json(value).text(), "test").number() == value);
  }
}

TEST_CASE("JSON has no infinity and gets null") {
  CHECK(Json(1.0 / 0.0).text() == "null");
  CHECK(Json(std::nan("")).text() == "null");
}

TEST_CASE("indented text has one member a line") {
  Json json;
  json.set("a", 1).set("b", Json().push(1).push(2)).set("c", Json::object());
  CHECK(json.text(2) == "{\n  \"a\": 1,\n  \"b\": [\n    1,\n    2\n  ],\n  \"c\": {}\n}");
}

TEST_CASE("what was added does not change with the original, nor a copy with its source") {
  Json inner;
  inner.set("n", 1);
  Json outer;
  outer.set("inner", inner);
  inner.set("n", 2);
  CHECK(outer.text() == R"({"inner":{"n":1}})");
  Json copy = outer;
  copy.set("more", true);
  CHECK(outer.text() == R"({"inner":{"n":1}})");
  outer = copy;
  CHECK(outer.text() == R"({"inner":{"n":1},"more":true})");
}

TEST_CASE("a number is neither an object nor an array") {
  CHECK_THROWS_AS(Json(1).set("a", 1), stratagem::BrokenPromise);
  CHECK_THROWS_AS(Json::object().push(1), stratagem::BrokenPromise);
}
