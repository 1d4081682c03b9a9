// Trains a small model for a few iterations on ranks of this process, and what came of it.
#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "execute/interpreter.hpp"
#include "kernels/thread_communicator.hpp"
#include "tests/strategies/lowered.hpp"

namespace stratagem::execute {

struct Trained {
  std::vector<double> losses;  ///< of every iteration
  /// By parameter's name: its whole gradient in the first iteration; NaN where no rank stepped it.
  std::map<std::string, std::vector<double>> gradients;
};

/// Writes what a rank has of a gradient into the whole one.
template <typename T>
void collect(const Value<T>& part, std::vector<double>& whole,
             const std::vector<std::int64_t>& shape) {
  const std::vector<std::int64_t> local = part.region.shape();
  for (std::int64_t i = part.region.begin; i < part.region.end; ++i) {
    std::int64_t rest = i, place = 0, stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      place += (rest % local[d] + part.region.mask.ranges[d].begin) * stride;
      rest /= local[d];
      stride *= shape[d];
    }
    whole[static_cast<std::size_t>(place)] =
        static_cast<double>(part.data[static_cast<std::size_t>(i - part.region.begin)]);
  }
}

/// A plan with what it is lowered to. The plan may have divided operators of the model: its graph is
/// what runs.
struct Planned {
  strategies::Plan plan;
  strategies::Program program;
};
inline Planned planned(const model::Graph& graph, const std::string& strategy, int micro_batches) {
  strategies::Plan plan = strategies::plan_of(graph, strategy, micro_batches);
  strategies::Program program = strategies::lower(plan, strategies::plain_stack(), {});
  return {std::move(plan), std::move(program)};
}

template <typename T>
Trained train(const model::Graph& graph, const strategies::Program& program, int micro_batches,
              int iterations = 3) {
  REQUIRE(refusal(program, graph).empty());
  Trained trained;
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    if (graph.tensors[id].role != model::Role::parameter || graph.gradient_of[id] < 0) continue;
    trained.gradients[graph.tensors[id].name].resize(
        static_cast<std::size_t>(model::element_count(graph.tensors[id])),
        std::numeric_limits<double>::quiet_NaN());
  }
  const Settings settings{.seed = 7, .micro_batches = micro_batches};
  const auto ranks = static_cast<int>(program.devices.size());
  kernels::run_ranks(ranks, [&](kernels::Communicator& world) {
    Interpreter<T> rank(program, graph, settings, world);
    for (int i = 0; i < iterations; ++i) {
      const double loss = rank.iterate([&](model::TensorId parameter, const Value<T>& gradient) {
        if (i > 0) return;
        const model::Tensor& tensor = graph.tensors[parameter];
        collect(gradient, trained.gradients.at(tensor.name), tensor.shape);
      });
      if (world.rank() == 0) trained.losses.push_back(loss);
    }
  });
  return trained;
}

template <typename T>
Trained train(const Planned& planned, int iterations = 3) {
  return train<T>(planned.plan.graph(), planned.program, planned.plan.micro_batches, iterations);
}

/// |x - y| / |y|; infinite where something is missing.
inline double distance(const std::vector<double>& x, const std::vector<double>& y) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    difference += (x[i] - y[i]) * (x[i] - y[i]);
    size += y[i] * y[i];
  }
  return std::isnan(difference) ? std::numeric_limits<double>::infinity()
                                : std::sqrt(difference / size);
}

/// The largest distance of a gradient, or of the losses, from those of another training.
inline double distance(const Trained& trained, const Trained& reference) {
  double worst = distance(trained.losses, reference.losses);
  for (const auto& [name, gradient] : reference.gradients)
    worst = std::max(worst, distance(trained.gradients.at(name), gradient));
  return worst;
}

}  // namespace stratagem::execute
