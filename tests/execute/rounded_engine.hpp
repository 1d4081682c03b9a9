// What a GPU does in types of two bytes, on the processor: operands widened, results rounded.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "execute/host_engine.hpp"
#include "kernels/half.hpp"

namespace stratagem::execute {

/// Operators are those of fp32, their operands and results rounded to T; statistics, losses and the
/// optimizer's states stay fp32. Sums of gradients over micro-batches are rounded, too.
template <typename T>
class RoundedEngine final : public HostMemory<T> {
 public:
  void apply(const Application<T>& a) override {
    Application<float> wide{.graph = a.graph,
                            .op = a.op,
                            .inputs = {},
                            .outputs = {},
                            .random = a.random,
                            .dropout = a.dropout,
                            .loss_weight = a.loss_weight};
    for (const Shared<T>& input : a.inputs) wide.inputs.push_back(widened(*input));
    for (const Shared<T>& output : a.outputs) wide.outputs.push_back(widened(*output));
    execute::apply(wide);
    for (std::size_t i = 0; i < a.outputs.size(); ++i) narrow(*wide.outputs[i], *a.outputs[i]);
  }

  void step(const Step<T>& step) override {
    const std::vector<float> gradient(step.gradient.begin(), step.gradient.end());
    if (step.first) std::ranges::copy(step.parameter, step.main.begin());
    kernels::adam<float>(step.settings, gradient, step.main, step.momentum, step.variance);
    for (std::size_t i = 0; i < step.main.size(); ++i)
      step.parameter[i] = static_cast<T>(step.main[i]);
  }

 private:
  static Shared<float> widened(const Value<T>& value) {
    auto result = std::make_shared<Value<float>>();
    result->region = value.region;
    result->bytes = value.bytes;
    result->numbers = value.numbers;
    result->data = value.wide.empty() ? Elements<float>(value.data.size()) : value.wide;
    if (value.wide.empty()) std::ranges::copy(value.data, result->data.begin());
    return result;
  }

  static void narrow(const Value<float>& from, const Value<T>& to) {
    std::ranges::copy(from.bytes, to.bytes.begin());
    if (!to.wide.empty()) {
      std::ranges::copy(from.data, to.wide.begin());
    } else {
      std::ranges::transform(from.data, to.data.begin(),
                             [](float number) { return static_cast<T>(number); });
    }
  }
};

}  // namespace stratagem::execute
