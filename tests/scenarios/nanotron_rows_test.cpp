// The scenario of nanotron's runs holds the rows of its file, and nanotron's own division of layers.
#include <fstream>
#include <map>
#include <sstream>

#include "base/json_reader.hpp"
#include "tests/catch.hpp"

using namespace stratagem;

namespace {

using Row = std::vector<std::string>;

/// By name of the run: its model, degrees, ZeRO stage, micro-batch, layers, tokens/s and GiB.
std::map<std::string, Row> rows() {
  std::ifstream file("scenarios/records/nanotron.csv");
  std::map<std::string, Row> result;
  for (std::string line; std::getline(file, line);) {
    if (line.front() == '#' || line.starts_with("run,")) continue;
    std::istringstream cells(line);
    std::string name;
    std::getline(cells, name, ',');
    for (std::string cell; std::getline(cells, cell, ',');) result[name].push_back(cell);
  }
  return result;
}

std::string degree(const JsonReader& run, const char* key, const std::string& otherwise) {
  const auto value = run.at("strategy").find(key);
  return value ? value->dump() : otherwise;
}

/// A stage is full once what it and those before it compute is more than their share; the head
/// counts as much as its product (models/base.py of nanotron 67c5ebb6, build_model).
std::vector<int> layers_of_stages(std::int64_t layers, std::int64_t layer, std::int64_t head,
                                  int stages) {
  std::vector<int> result(static_cast<std::size_t>(stages));
  const std::int64_t all = layers * layer + head;
  std::int64_t so_far = 0;
  std::size_t stage = 0;
  for (std::int64_t l = 0; l < layers; ++l) {
    ++result[stage];
    so_far += layer;
    if (so_far * stages > all * static_cast<std::int64_t>(stage + 1)) ++stage;
  }
  return result;
}

std::string text_of(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : " ") + std::to_string(number);
  return text;
}

}  // namespace

TEST_CASE("nanotron's runs have the plans, times and memory of their rows") {
  const std::map<std::string, Row> printed = rows();
  CHECK(printed.size() == 283);
  int runs = 0, fitted = 0;
  for (const JsonReader& run :
       JsonReader::from_file("scenarios/published/nanotron.json").at("runs").elements()) {
    const std::string name = run.at("name").text();
    INFO(name);
    const Row& row = printed.at(name);
    CHECK(run.at("model").at("layers").dump() == (row[0] == "1B" ? "16" : "32"));
    CHECK(degree(run, "tensor", "1") == row[1]);
    CHECK(degree(run, "data", "1") == row[2]);
    CHECK(degree(run, "pipeline", "1") == row[3]);
    CHECK(degree(run, "zero", "0") == row[4]);
    CHECK(run.at("training").at("micro_batch").dump() == row[5]);
    const JsonReader measured = run.at("measured");
    const double seconds = std::stod(measured.at("iteration_time").at("value").text());
    CHECK(std::abs(seconds * std::stod(row[7]) / (256 * 4096) - 1) < 1e-4);
    CHECK(measured.at("peak_allocated").at("value").text() == row[8] + " GiB");
    fitted += measured.at("iteration_time").has("fitted") ? 1 : 0;
    ++runs;
  }
  CHECK(runs == 265);
  CHECK(fitted == 3);  // of 41 on one server
}

TEST_CASE("nanotron's stages have the layers that its rule gives them") {
  const std::int64_t vocabulary = 131072;
  for (const auto& [name, row] : rows()) {
    INFO(name);
    const bool small = row[0] == "1B";
    const std::int64_t hidden = small ? 2048 : 4096, width = small ? 8192 : 14336;
    const auto layers = layers_of_stages(small ? 16 : 32, 4 * hidden * hidden + 3 * hidden * width,
                                         vocabulary * hidden, std::stoi(row[3]));
    CHECK(text_of(layers) == row[6]);
  }
}

TEST_CASE("rows of nanotron that are no runs have a stage without layers before the last") {
  std::map<std::string, Row> left = rows();
  for (const JsonReader& run :
       JsonReader::from_file("scenarios/published/nanotron.json").at("runs").elements()) {
    if (std::stoi(degree(run, "pipeline", "1")) > 1) {
      const std::string layers = run.at("strategy").at("layers_per_stage").dump();
      std::string spaced = left.at(run.at("name").text())[6];
      std::ranges::replace(spaced, ' ', ',');
      CHECK(layers == "[" + spaced + "]");
    }
    left.erase(run.at("name").text());
  }
  for (const auto& [name, row] : left) CHECK(row[6].find(" 0 ") != std::string::npos);
}
