// The scenario of nanotron's runs holds the rows of its file, and nanotron's division of layers.
#include <fstream>
#include <map>
#include <sstream>

#include "base/json_reader.hpp"
#include "tests/catch.hpp"

using namespace stratagem;

namespace {

using Row = std::vector<std::string>;

/// By name of the run: its model, degrees, ZeRO stage, micro-batch and layers; of measured ones
/// tokens/s and GiB.
std::map<std::string, Row> rows(const std::string& name_of_file = "nanotron") {
  std::ifstream file("scenarios/records/" + name_of_file + ".csv");
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

/// How nanotron divides a model: layers of every stage, and the stage of the head. A stage is full
/// once what it and those before it compute is more than their share; the head counts as much as
/// its product (models/base.py of nanotron 67c5ebb6, build_model).
struct Division {
  std::vector<int> layers;
  int head = 0;
};

Division division_of(const Row& row) {
  const bool small = row[0] == "1B";
  const std::int64_t hidden = small ? 2048 : 4096, width = small ? 8192 : 14336;
  const std::int64_t layer = 4 * hidden * hidden + 3 * hidden * width, head = 131072 * hidden;
  const int layers = small ? 16 : 32, stages = std::stoi(row[3]);
  Division result{std::vector<int>(static_cast<std::size_t>(stages))};
  std::int64_t so_far = 0;
  for (int l = 0; l < layers; ++l) {
    ++result.layers[static_cast<std::size_t>(result.head)];
    so_far += layer;
    if (so_far * stages > (layers * layer + head) * (result.head + 1)) ++result.head;
  }
  return result;
}

std::string text_of(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : " ") + std::to_string(number);
  return text;
}

/// Model and plan of a run are those of its row.
void check_plan(const JsonReader& run, const Row& row) {
  CHECK(run.at("model").at("layers").dump() == (row[0] == "1B" ? "16" : "32"));
  CHECK(degree(run, "tensor", "1") == row[1]);
  CHECK(degree(run, "data", "1") == row[2]);
  CHECK(degree(run, "pipeline", "1") == row[3]);
  CHECK(degree(run, "zero", "0") == row[4]);
  CHECK(run.at("training").at("micro_batch").dump() == row[5]);
  const int ranks = std::stoi(row[1]) * std::stoi(row[2]) * std::stoi(row[3]);
  CHECK(run.at("cluster").at("gpus").dump() == std::to_string(ranks));
  CHECK(run.at("model").at("hidden").dump() == (row[0] == "1B" ? "2048" : "4096"));
  CHECK(run.at("model").at("tied").boolean() == (row[0] == "1B"));
  const bool reduces_beside = row[4] == "0" && row[2] != "1";
  CHECK(run.at("strategy").has("overlap_gradients") == reduces_beside);
}

/// The group of the runs on so many servers of eight GPUs.
std::string group_of(int servers) {
  const std::string range = servers == 1   ? "1 server"
                            : servers <= 8 ? "2 to 8 servers"
                                           : std::to_string(servers) + " servers";
  return "Ultra-Scale playbook (nanotron, H100), " + range;
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
    check_plan(run, row);
    const int ranks = std::stoi(row[1]) * std::stoi(row[2]) * std::stoi(row[3]);
    CHECK(run.at("group").text() == group_of(ranks / 8));
    const JsonReader measured = run.at("measured");
    CHECK(measured.at("fits").at("value").boolean());
    const double seconds = std::stod(measured.at("iteration_time").at("value").text());
    CHECK(std::abs(seconds * std::stod(row[7]) / (256 * 4096) - 1) < 1e-4);
    CHECK(measured.at("peak_allocated").at("value").text() == row[8] + " GiB");
    fitted += measured.at("iteration_time").has("fitted") ? 1 : 0;
    ++runs;
  }
  CHECK(runs == 261);
  CHECK(fitted == 3);  // of 41 on one server
}

TEST_CASE("crashed runs of nanotron are the rows of their file, and none of them was measured") {
  const std::map<std::string, Row> crashed = rows("nanotron_crashed"), measured = rows();
  int runs = 0;
  for (const JsonReader& run :
       JsonReader::from_file("scenarios/published/nanotron_crashed.json").at("runs").elements()) {
    const std::string name = run.at("name").text();
    INFO(name);
    CHECK(!measured.contains(name));
    check_plan(run, crashed.at(name));
    CHECK(!run.at("measured").at("fits").at("value").boolean());
    ++runs;
  }
  CHECK(runs == std::ssize(crashed));
}

TEST_CASE("nanotron's stages have the layers that its rule gives them") {
  for (const char* file : {"nanotron", "nanotron_crashed"}) {
    for (const auto& [name, row] : rows(file)) {
      INFO(name);
      CHECK(text_of(division_of(row).layers) == row[6]);
    }
  }
}

TEST_CASE("the rows that are no runs have a last stage with neither layers nor head") {
  std::map<std::string, Row> left = rows();
  for (const JsonReader& run :
       JsonReader::from_file("scenarios/published/nanotron.json").at("runs").elements()) {
    const Row& row = left.at(run.at("name").text());
    const int stages = std::stoi(row[3]);
    CHECK(division_of(row).head == stages - 1);
    if (stages > 1) {
      std::string layers = row[6];
      std::ranges::replace(layers, ' ', ',');
      CHECK(run.at("strategy").at("layers_per_stage").dump() == "[" + layers + "]");
    }
    left.erase(run.at("name").text());
  }
  CHECK(left.size() == 22);
  for (const auto& [name, row] : left) CHECK(division_of(row).head < std::stoi(row[3]) - 1);
}
