// Times of single transformer layers, beside those that others measured.
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem {

namespace {

/// A line of scenarios/records/sailor_layers.csv.
struct Layer {
  std::string profile, precision;
  int hidden = 0, heads = 0, sequence = 0, micro_batch = 0, tensor = 0;
  Seconds measured;  ///< forward and backward pass
  bool fitted = false;
};

std::vector<Layer> read_layers() {
  std::vector<Layer> layers;
  std::ifstream file("scenarios/records/sailor_layers.csv");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with('#') || line.starts_with("profile")) continue;
    std::istringstream words(line);
    const auto word = [&] {
      std::string text;
      std::getline(words, text, ',');
      return text;
    };
    Layer layer{.profile = word()};
    layer.hidden = std::stoi(word());
    layer.heads = std::stoi(word());
    layer.sequence = std::stoi(word());
    layer.precision = word();
    layer.micro_batch = std::stoi(word());
    layer.tensor = std::stoi(word());
    layer.measured = Seconds{(std::stod(word()) + std::stod(word())) / 1000};
    layer.fitted = word() == "1";
    layers.push_back(layer);
  }
  return layers;
}

std::string cluster_of(const Layer& layer) {
  const std::string gpus = ", \"gpus\": " + std::to_string(layer.tensor) + "}";
  if (layer.profile.starts_with("gh200"))
    return "{\"node\": \"" +
           std::filesystem::absolute("scenarios/nodes/clariden-gh200.json").string() + '"' + gpus;
  return std::string(R"({"preset": ")") +
         (layer.profile.starts_with("a100") ? "dgx-a100" : "dgx-1v") + '"' + gpus;
}

/// So many layers and micro-batches of them.
std::string run_of(const Layer& layer, int layers, int micro_batches) {
  const std::string shipped = std::filesystem::absolute("scenarios").string();
  std::ostringstream text;
  text << R"({"name": "l)" << layers << "m" << micro_batches
       << R"(", "model": {"family": "gpt", "dropout": false, "tied": false, "activation": ")"
       << (layer.hidden == 2560 ? "gelu" : "relu") << R"(", "layers": )" << layers
       << ", \"hidden\": " << layer.hidden << ", \"heads\": " << layer.heads
       << ", \"sequence\": " << layer.sequence
       << ", \"vocabulary\": 1024}, \"cluster\": " << cluster_of(layer) << ", \"profile\": \""
       << shipped << "/profiles/" << layer.profile << ".json\", \"stack\": \"" << shipped
       << "/stacks/megatron-deepspeed-fp32.json\""
       << R"(, "training": {"optimizer": "adam", "precision": ")" << layer.precision
       << R"(", "micro_batch": )" << layer.micro_batch
       << ", \"global_batch\": " << micro_batches * layer.micro_batch
       << R"(}, "strategy": {"tensor": )" << layer.tensor << "}}";
  return text.str();
}

/// Of a layer's forward and backward pass: what two more layers take in one more micro-batch.
Seconds predicted(const Layer& layer) {
  const TemporaryFolder folder;
  std::string runs;
  for (const auto& [layers, micro_batches] : {std::pair{2, 1}, {2, 2}, {4, 1}, {4, 2}})
    runs += (runs.empty() ? "" : ",\n") + run_of(layer, layers, micro_batches);
  folder.write("layer.json",
               R"({"question": "how long does a layer take?", "runs": [)" + runs + "]}");
  std::map<std::string, Seconds> times;
  for (const study::Run& run : study::read_scenario((folder.path() / "layer.json").string()).runs)
    times[run.name] = study::simulate(run, {}).outcome.metrics->iteration_time;
  return 0.5 * ((times["l4m2"] - times["l4m1"]) - (times["l2m2"] - times["l2m1"]));
}

}  // namespace

TEST_CASE("layers take the time that was measured, also on a GPU of which no layer was fitted to") {
  struct Errors {
    double sum = 0, worst = 0;
    int count = 0;
  };
  std::map<std::string, Errors> by_profile;
  Errors fitted;
  for (const Layer& layer : read_layers()) {
    const double error = predicted(layer) / layer.measured - 1;
    INFO(layer.profile << " hidden " << layer.hidden << " micro-batch " << layer.micro_batch
                       << " tensor " << layer.tensor << ": " << error);
    Errors& errors = layer.fitted ? fitted : by_profile[layer.profile];
    errors.sum += std::abs(error);
    errors.worst = std::max(errors.worst, std::abs(error));
    ++errors.count;
  }
  CHECK(fitted.count == 23);
  CHECK(fitted.sum / fitted.count < 0.06);
  // Hosts bind the smallest: 1 sample on 4 ranks.
  const std::map<std::string, Errors> bounds = {{"v100-sxm2", {0.06, 0.18}},
                                                {"a100-sxm4-40gb", {0.09, 0.35}},
                                                {"a100-sxm4-80gb", {0.12, 0.35}},
                                                {"gh200-96gb", {0.12, 0.7}}};
  REQUIRE(by_profile.size() == bounds.size());
  std::ifstream page("docs/records/accuracy-groups.md");
  const std::string shown{std::istreambuf_iterator<char>(page), {}};
  for (const auto& [profile, errors] : by_profile) {
    INFO(profile << ": " << errors.count << " layers, mean error " << errors.sum / errors.count
                 << ", worst " << errors.worst);
    CHECK(errors.sum / errors.count < bounds.at(profile).sum);
    CHECK(errors.worst < bounds.at(profile).worst);
    CHECK_THAT(shown, ContainsSubstring(fmt::format("| `{}` | {} | {:.1f} % | {:.0f} % |", profile,
                                                    errors.count, 100 * errors.sum / errors.count,
                                                    100 * errors.worst)));
  }
}

}  // namespace stratagem
