// Optimizers: what they keep of every tensor of parameters, and what a step moves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "cost/precision.hpp"

namespace stratagem::cost {

/// One thing that an optimizer keeps of every tensor of parameters.
struct OptimizerState {
  std::string name;
  /// Only the sums of rows and of columns are kept of a matrix; of a tensor of more dimensions
  /// those of all its matrices, which the last two dimensions are; every element of a vector.
  bool factored = false;
  Bytes element = 4_B;
  std::int64_t block = 0;     ///< elements that share a scale in fp32; 0: there are no scales
  std::int64_t smallest = 0;  ///< a tensor of fewer elements keeps 4 B of each, without scales
};

/// One optimizer. Its figures are of a step in as few passes over memory as its formula allows;
/// what a framework adds is a fact of the stack.
struct Optimizer {
  std::string name;
  std::string summary;
  std::vector<OptimizerState> states;
  int passes = 1;        ///< over the gradient, each of which needs the one before it
  int weight_reads = 1;  ///< passes that read the weights
};

/// All of them, in the order in which --help lists them.
const std::vector<Optimizer>& optimizers();

/// The entry of that name; expects that there is one.
const Optimizer& optimizer_named(const std::string& name);

/// Does it step any weights? Without steps there is no backward pass.
bool trains(const Optimizer& optimizer);

/// Does it keep anything of rows and columns, which runs of elements do not have?
bool is_factored(const Optimizer& optimizer);

/// How weights are kept and stepped.
struct Training {
  Precision precision = precision_named("fp16");
  Optimizer optimizer = optimizer_named("adam");
};

/// The part of a parameter tensor that one device steps: all elements that it has, or, where ranks
/// divide the step, a run of them.
struct Stepped {
  std::vector<std::int64_t> shape;  ///< of what the device has of the tensor
  double elements = 0;              ///< that it steps
  model::DataType type = model::DataType::fp16;
};

/// Bytes of one state of a tensor. A factored one expects all elements of the shape.
Bytes state_bytes(const OptimizerState& state, const Stepped& tensor);

/// Bytes of the fp32 copy that the optimizer steps; none where there is none, or where the weights
/// are in fp32 themselves.
Bytes master_bytes(const Precision& precision, const Stepped& tensor);

/// The bytes that a step of a tensor reads and writes: the gradient, every state, and the weights,
/// or their master copy plus one write of the weights. With Adam in fp16 28 bytes a parameter.
Bytes step_traffic(const Training& training, const Stepped& tensor);

}  // namespace stratagem::cost
