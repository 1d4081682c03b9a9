// Compares what ranks compute under a plan with what one device computes.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "execute/interpreter.hpp"

namespace stratagem::execute {

/// A program with the graph of its plan, which may have divided operators of the model.
struct Runnable {
  const program::Program& program;
  const model::Graph& graph;
};

struct Agreement {
  /// |x - y| / |y|, of the losses of all iterations, and of the gradient of the parameter where it
  /// is largest, in the first one; infinite where a part of a gradient is missing.
  double losses = std::numeric_limits<double>::infinity();
  double gradients = std::numeric_limits<double>::infinity();
  std::string worst;                   ///< that parameter
  std::vector<double> trained_losses;  ///< of the plan
  std::size_t parameters = 0;          ///< compared
};

/// What is expected: 1e-9 in fp64; in fp32 1e-5 of gradients, and 1e-4 of losses, since steps carry
/// differences of rounding on; 2e-2 of both in types of two bytes.
template <typename T>
bool agrees(const Agreement& agreement);

/// Makes this rank's engine.
template <typename T>
using MakeEngine = std::function<std::unique_ptr<Engine<T>>()>;

/// Trains for some iterations under a plan, on all ranks, and on the processor of rank 0 alone as
/// one device, from the same seed; what has two bytes under the plan is fp32 there. Called on all
/// ranks; all get the answer.
template <typename T>
Agreement compare(const Runnable& plan, const Runnable& one_device, const Settings& settings,
                  kernels::Communicator& world, int iterations, const MakeEngine<T>& make_engine);

}  // namespace stratagem::execute
