// The schema check: what fits passes in silence, the first misfit is named with its path.
#include "tests/json_schema.hpp"

#include <filesystem>
#include <fstream>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "tests/catch.hpp"

using namespace stratagem;

namespace {

/// A file that lasts as long as this object.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, const std::string& text)
      : path_(
            (std::filesystem::temp_directory_path() / ("stratagem_schema_test_" + name)).string()) {
    std::ofstream(path_) << text;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::filesystem::remove(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

const char* const schema_text = R"({
  "type": "object", "required": ["runs"], "additionalProperties": false,
  "properties": { "runs": { "type": "array", "items": {
    "type": "object", "required": ["name"],
      "properties": { "name": { "type": "string" } } } } } })";

}  // namespace

TEST_CASE("a file that fits its schema passes") {
  const TemporaryFile schema("fits_schema.json", schema_text);
  const TemporaryFile file("fits.json", R"({"runs": [{"name": "a"}]})");
  CHECK_NOTHROW(check_schema(file.path(), schema.path()));
}

TEST_CASE("a misfit is named with file, path and what was found") {
  const TemporaryFile schema("misfit_schema.json", schema_text);
  const TemporaryFile file("misfit.json", R"({"runs": [{"name": "a"}, {"name": 7}]})");
  try {
    check_schema(file.path(), schema.path());
    FAIL("a number passed for a string");
  } catch (const InputError& error) {
    CHECK(error.file == file.path());
    CHECK(error.path == "/runs/1/name");
    CHECK(error.found == "7");
  }
}

TEST_CASE("a missing member is reported where it is missing") {
  const TemporaryFile schema("missing_schema.json", schema_text);
  const TemporaryFile file("missing.json", R"({"runs": [{}]})");
  try {
    check_schema(file.path(), schema.path());
    FAIL("an empty run passed");
  } catch (const InputError& error) {
    CHECK(error.path == "/runs/0");
    CHECK_THAT(error.expected, ContainsSubstring("name"));
  }
}

TEST_CASE("a schema that is none is an error in the schema's file") {
  const TemporaryFile schema("none_schema.json", R"({"type": 7})");
  const TemporaryFile file("any.json", "{}");
  try {
    check_schema(file.path(), schema.path());
    FAIL("the schema passed");
  } catch (const InputError& error) {
    CHECK(error.file == schema.path());
  }
}
