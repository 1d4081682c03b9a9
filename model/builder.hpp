// Builds a graph operator by operator, then derives its backward pass and its optimizer steps.
#pragma once

#include <string>
#include <vector>

#include "model/graph.hpp"

namespace stratagem::model {

/// Adds tensors and forward operators to a graph. Names are prefixed with the current segment's.
class Builder {
 public:
  explicit Builder(std::string name);

  /// Operators added from now on belong to a new segment.
  void begin_segment(const std::string& name);

  TensorId tensor(const std::string& name, std::vector<std::int64_t> shape, DataType type,
                  Role role, double filled = 1);
  TensorId parameter(const std::string& name, std::vector<std::int64_t> shape, DataType type);
  /// Adds an operator with outputs that exist already.
  OpId add(OpKind kind, const std::string& name, const std::string& annotation,
           std::vector<TensorId> inputs, std::vector<TensorId> outputs,
           Combine combine = Combine::sum);

  /// A parameter that is not trained.
  void freeze(TensorId parameter) { graph_.tensors[parameter].requires_grad = false; }
  /// See Operator::window.
  void set_window(OpId attention, std::int64_t window);
  /// See Operator::documents.
  void set_documents(OpId attention, std::vector<std::int64_t> lengths);
  /// See Operator::cached.
  void set_cached(OpId attention, std::int64_t tokens);
  /// See Operator::image.
  void set_image(OpId op, ImageWindows image);

  [[nodiscard]] const Tensor& operator[](TensorId id) const { return graph_.tensors[id]; }

  /// Appends the backward pass of everything that leads to `loss`, and one optimizer step per
  /// parameter.
  Graph finish(TensorId loss) &&;

 private:
  Graph graph_;
  std::string prefix_;
};

/// Appends to every segment the operators that compute the gradients of its parameters and of the
/// activations that parameters before it need. Input gradients (B) and weight gradients (W) are
/// operators of their own; both exist only where a trainable tensor needs them. Residual sums and
/// bias additions pass their gradient on without an operator. Where a tensor has several consumers,
/// gradient_sum operators add what they return, each right after the backward operators of its
/// consumer, as frameworks accumulate: of many returned gradients two are alive.
void differentiate(Graph& graph, TensorId loss);

/// The graph before its backward pass was derived: forward operators and their tensors keep their
/// ids.
Graph forward_pass(Graph graph);

}  // namespace stratagem::model
