// Checks with valijson, and says where the first mistake is.
#include "tests/json_schema.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "base/json_text.hpp"
#include "base/shortened.hpp"

namespace stratagem {
namespace {

// valijson reads nlohmann's sorted values only; the reader has already found every mistake of the
// text.
nlohmann::json parse(const std::string& file) {
  return nlohmann::json::parse(JsonReader::from_file(file).dump());
}

}  // namespace

void check_schema(const std::string& file, const std::string& schema_file) {
  const nlohmann::json document = parse(file);
  const nlohmann::json schema_document = parse(schema_file);
  valijson::Schema schema;
  try {
    valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(schema_document), schema);
  } catch (const std::exception& error) {
    throw InputError(schema_file, "", "a JSON schema (draft 7)", error.what());
  }
  valijson::Validator validator;
  valijson::ValidationResults results;
  if (validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(document), &results))
    return;

  // valijson reports a mistake first where it stands, then once more for every value around it.
  valijson::ValidationResults::Error first;
  results.popError(first);
  std::string path;
  for (std::size_t i = 1; i < first.context.size(); ++i) {  // "<root>", "[runs]", "[0]"
    const std::string& step = first.context[i];
    path = child_path(path, std::string_view(step).substr(1, step.size() - 2));
  }
  const nlohmann::json::json_pointer pointer(path);
  const std::string found =
      document.contains(pointer) ? shortened(document.at(pointer).dump(), longest_echo) : "";
  throw InputError(file, path, "what " + schema_file + " allows (" + first.description + ")",
                   found);
}

}  // namespace stratagem
