// Precisions and optimizers: bytes per parameter of every pair, and what depends on a tensor's
// shape.
#include "cost/optimizer.hpp"

#include <map>
#include <string>

#include "tests/catch.hpp"

using namespace stratagem;
using cost::Stepped;

namespace {

/// A matrix of 2,048 x 4,096 elements, all of them stepped here.
Stepped matrix(model::DataType type) {
  return {.shape = {2048, 4096}, .elements = 2048.0 * 4096, .type = type};
}

/// Bytes of all states of a tensor.
Bytes states(const std::string& optimizer, const Stepped& tensor) {
  Bytes sum;
  for (const cost::OptimizerState& state : cost::optimizer_named(optimizer).states)
    sum += cost::state_bytes(state, tensor);
  return sum;
}

}  // namespace

// Of a parameter: weights, gradient, master copy (Micikevicius et al., section 3.1; Rajbhandari et
// al., section 3.1: 2 + 2 + 12 with Adam in fp16, 4 + 4 + 8 in fp32) and states of each optimizer.
// Rows and columns of the matrix are 4 (1/2048 + 1/4096) bytes a parameter, scales of 8 bits 4/2048
// each.
TEST_CASE("weights, gradients, master copies and states take the bytes of hand formulas") {
  struct Kept {
    double weights, gradients, master;
  };
  std::map<std::string, Kept> precisions = {{"fp32", {4, 4, 0}}, {"tf32", {4, 4, 0}}};
  // In whatever type products are, weights are held in 16 bits.
  for (const std::string name :
       {"fp16", "bf16", "fp8", "fp8-current", "fp8-blocks", "mxfp8", "nvfp4"}) {
    precisions[name] = {2, 2, 4};
    precisions[name + "-fp32-gradients"] = {2, 4, 4};
  }
  constexpr double sums = 4.0 / 2048 + 4.0 / 4096;
  const std::map<std::string, double> optimizers = {{"adam", 8},
                                                    {"adamw", 8},
                                                    {"sgd", 0},
                                                    {"momentum", 4},
                                                    {"adafactor", sums},
                                                    {"adafactor-momentum", 4 + sums},
                                                    {"adam-8bit", 2 * (1 + 4.0 / 2048)},
                                                    {"none", 0}};
  CHECK(precisions.size() == cost::precisions().size());
  CHECK(optimizers.size() == cost::optimizers().size());
  for (const cost::Precision& precision : cost::precisions()) {
    INFO(precision.name);
    const Kept& kept = precisions.at(precision.name);
    const Stepped tensor = matrix(precision.values);
    CHECK(model::size_of(precision.values).value == kept.weights);
    CHECK(model::size_of(precision.gradients).value == kept.gradients);
    CHECK(cost::master_bytes(precision, tensor).value == kept.master * tensor.elements);
    // What is in fp32 beside weights of 16 bits is its own master copy.
    CHECK(cost::master_bytes(precision, matrix(model::DataType::fp32)).value == 0);
  }
  for (const cost::Optimizer& optimizer : cost::optimizers()) {
    INFO(optimizer.name);
    const Stepped tensor = matrix(model::DataType::fp16);
    CHECK(states(optimizer.name, tensor).value == optimizers.at(optimizer.name) * tensor.elements);
  }
}

// Gradient read; weights, or their master copy, read and written; 16-bit weights written besides a
// master copy; every state read and written. ZeRO-Offload counts 28 bytes for Adam in fp16.
TEST_CASE("a step moves the bytes of hand formulas") {
  const auto per_parameter = [](const std::string& precision, const std::string& optimizer) {
    const cost::Training training{cost::precision_named(precision),
                                  cost::optimizer_named(optimizer)};
    const Stepped tensor = matrix(training.precision.values);
    return cost::step_traffic(training, tensor).value / tensor.elements;
  };
  CHECK(per_parameter("fp16", "adam") == 2 + 8 + 2 + 16);
  CHECK(per_parameter("bf16", "adamw") == 2 + 8 + 2 + 16);
  CHECK(per_parameter("bf16-fp32-gradients", "adam") == 4 + 8 + 2 + 16);
  CHECK(per_parameter("fp32", "adam") == 4 + 8 + 16);
  CHECK(per_parameter("fp16", "sgd") == 2 + 8 + 2);
  CHECK(per_parameter("fp32", "sgd") == 4 + 8);
  CHECK(per_parameter("fp32", "momentum") == 4 + 8 + 8);
  CHECK(per_parameter("fp16", "adam-8bit") == 2 + 8 + 2 + 4 * (1 + 4.0 / 2048));
  // Three passes over the gradient, two of which read the weights.
  constexpr double sums = 8.0 / 2048 + 8.0 / 4096;
  CHECK(per_parameter("fp32", "adafactor") == 3 * 4 + 3 * 4 + sums);
  CHECK(per_parameter("fp16", "adafactor-momentum") == 3 * 2 + 3 * 4 + 2 + 8 + sums);
}

TEST_CASE(
    "of factored states a vector keeps every element, more than two dimensions many matrices") {
  const auto bytes = [](std::vector<std::int64_t> shape) {
    double elements = 1;
    for (const std::int64_t size : shape) elements *= static_cast<double>(size);
    return states("adafactor",
                  {.shape = std::move(shape), .elements = elements, .type = model::DataType::fp32});
  };
  CHECK(bytes({100}) == 400_B);
  CHECK(bytes({100, 7}) == 428_B);
  CHECK(bytes({3, 100, 7}) == 3 * 428_B);
  CHECK(bytes({1, 1}) == 8_B);
}

TEST_CASE("small tensors stay in 32 bits, and a block that is not full has a scale of its own") {
  const auto bytes = [](double elements) {
    return states("adam-8bit", {.shape = {}, .elements = elements}).value;
  };
  CHECK(bytes(4095) == 8 * 4095);
  CHECK(bytes(4096) == 2 * (4096 + 4 * 2));
  CHECK(bytes(4097) == 2 * (4097 + 4 * 3));
}
