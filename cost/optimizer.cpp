// The table of optimizers, and sizes by its fields.
#include "cost/optimizer.hpp"

#include <algorithm>
#include <cmath>

#include "base/input_error.hpp"

namespace stratagem::cost {
namespace {

/// Elements of the sums of rows and of columns; of a vector its own.
double sums(const std::vector<std::int64_t>& shape) {
  const std::size_t n = shape.size();
  double outer = 1;
  for (std::size_t d = 0; d + 2 < n; ++d) outer *= static_cast<double>(shape[d]);
  if (n == 0) return 1;
  if (n == 1) return static_cast<double>(shape[0]);
  return outer * static_cast<double>(shape[n - 2] + shape[n - 1]);
}

}  // namespace

const std::vector<Optimizer>& optimizers() {
  // 8 bits: Dettmers et al., 8-bit Optimizers via Block-wise Quantization, ICLR 2022, section 2:
  // blocks of 2,048 elements; tensors of fewer than 4,096 stay in 32 bits (bitsandbytes,
  // min_8bit_size; its later versions have blocks of 256).
  const auto in_8_bits = [](const char* name) {
    return OptimizerState{.name = name, .element = 1_B, .block = 2048, .smallest = 4096};
  };
  // Shazeer, Stern, Adafactor, ICML 2018, algorithm 4: the sums of squares by rows and columns,
  // then the size of the whole update (which clips it) and of the weights (which scales it), then
  // the step.
  const OptimizerState sums_of_squares{.name = "variance", .factored = true};
  static const std::vector<Optimizer> table = {
      {"adam", "momentum and variance", {{.name = "momentum"}, {.name = "variance"}}},
      {"adamw",
       "the same, with weights that decay by themselves",
       {{.name = "momentum"}, {.name = "variance"}}},
      {"sgd", "stochastic gradient descent: nothing", {}},
      {"momentum", "SGD with momentum", {{.name = "momentum"}}},
      {"adafactor", "variance of rows and columns, no momentum", {sums_of_squares}, 3, 2},
      {"adafactor-momentum",
       "variance of rows and columns, momentum",
       {{.name = "momentum"}, sums_of_squares},
       3,
       2},
      {"adam-8bit",
       "momentum and variance in 8 bits, a scale for every 2,048 elements",
       {in_8_bits("momentum"), in_8_bits("variance")}},
      {"none", "nothing is trained: forward passes alone", {}, 0, 0},
  };
  return table;
}

const Optimizer& optimizer_named(const std::string& name) {
  const auto found = std::ranges::find(optimizers(), name, &Optimizer::name);
  expects(found != optimizers().end(), "an optimizer is one of the table");
  return *found;
}

bool trains(const Optimizer& optimizer) { return optimizer.passes > 0; }

bool is_factored(const Optimizer& optimizer) {
  return std::ranges::any_of(optimizer.states, &OptimizerState::factored);
}

Bytes state_bytes(const OptimizerState& state, const Stepped& tensor) {
  if (state.factored) return sums(tensor.shape) * state.element;
  if (tensor.elements < static_cast<double>(state.smallest)) return tensor.elements * 4_B;
  Bytes scales;
  if (state.block > 0) scales = std::ceil(tensor.elements / static_cast<double>(state.block)) * 4_B;
  return tensor.elements * state.element + scales;
}

Bytes master_bytes(const Precision& precision, const Stepped& tensor) {
  const bool master = precision.master_copy && tensor.type != model::DataType::fp32;
  return master ? tensor.elements * 4_B : Bytes{};
}

Bytes step_traffic(const Training& training, const Stepped& tensor) {
  const Optimizer& optimizer = training.optimizer;
  const Bytes master = master_bytes(training.precision, tensor);
  const Bytes weights = tensor.elements * model::size_of(tensor.type);
  const Bytes gradient = tensor.elements * model::size_of(training.precision.gradients);
  Bytes traffic = optimizer.passes * gradient;
  if (master > Bytes{}) {
    traffic += (optimizer.weight_reads + 1) * master + weights;
  } else {
    traffic += (optimizer.weight_reads + 1) * weights;
  }
  for (const OptimizerState& state : optimizer.states) traffic += 2 * state_bytes(state, tensor);
  return traffic;
}

}  // namespace stratagem::cost
