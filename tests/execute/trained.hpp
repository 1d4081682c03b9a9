// Trains a small model for a few iterations on ranks of this process, and what came of it.
#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "execute/interpreter.hpp"
#include "kernels/ranks/thread_communicator.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::execute {

struct Trained {
  std::vector<double> losses;  ///< of every iteration
  /// By parameter of the model: its whole gradient in the first iteration; NaN where no rank
  /// stepped it.
  std::map<model::TensorId, std::vector<double>> gradients;
};

/// Writes what a rank has of a gradient into that of the whole parameter.
template <typename T>
void collect(const Value<T>& part, const model::Origin& origin, Trained& trained) {
  const auto elements = std::accumulate(origin.shape.begin(), origin.shape.end(), std::int64_t{1},
                                        std::multiplies<>());
  std::vector<double>& whole =
      trained.gradients
          .try_emplace(origin.tensor, elements, std::numeric_limits<double>::quiet_NaN())
          .first->second;
  const std::vector<std::int64_t> at = places(origin, part.region);
  for (std::size_t i = 0; i < at.size(); ++i)
    whole[static_cast<std::size_t>(at[i])] = static_cast<double>(part.data[i]);
}

inline const model::Graph& four_layers() {
  static const model::Graph graph = model::gpt({.layers = 4,
                                                .hidden = 16,
                                                .heads = 4,
                                                .sequence = 8,
                                                .vocabulary = 24,
                                                .batch = 4,
                                                .tied = false});
  return graph;
}

/// A plan with what it is lowered to. The plan may have divided operators of the model: its graph
/// is what runs.
struct Planned {
  strategies::Plan plan;
  program::Program program;
};
inline Planned planned(const model::Graph& graph, const std::string& strategy, int micro_batches) {
  strategies::Plan plan = lowering::plan_of(graph, strategy, micro_batches);
  program::Program program = lowering::lower(plan, lowering::plain_stack(), {});
  return {std::move(plan), std::move(program)};
}

template <typename T>
Trained train(const model::Graph& graph, const program::Program& program, int micro_batches,
              int iterations = 3) {
  REQUIRE(refusal(program, graph).empty());
  Trained trained;
  const Settings settings{.seed = 7, .micro_batches = micro_batches};
  const auto ranks = static_cast<int>(program.devices.size());
  kernels::run_ranks(ranks, [&](kernels::Communicator& world) {
    Interpreter<T> rank(program, graph, settings, world);
    for (int i = 0; i < iterations; ++i) {
      const double loss = rank.iterate([&](model::TensorId parameter, const Value<T>& gradient) {
        if (i > 0) return;
        collect(gradient, model::origin_of(graph.tensors[parameter], parameter), trained);
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

/// How far the worst element is off, over the root mean square of all; infinite where something is
/// missing.
inline double distance(const std::vector<double>& x, const std::vector<double>& y) {
  double worst = 0, squares = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double difference = std::abs(x[i] - y[i]);
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, difference);
    squares += y[i] * y[i];
  }
  return squares == 0 ? std::numeric_limits<double>::infinity()
                      : worst / std::sqrt(squares / static_cast<double>(y.size()));
}

/// The largest distance of a gradient, or of the losses, from those of another training.
inline double distance(const Trained& trained, const Trained& reference) {
  REQUIRE(!reference.gradients.empty());
  double worst = distance(trained.losses, reference.losses);
  for (const auto& [parameter, gradient] : reference.gradients) {
    const auto found = trained.gradients.find(parameter);
    if (found == trained.gradients.end()) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, distance(found->second, gradient));
  }
  return worst;
}

}  // namespace stratagem::execute
