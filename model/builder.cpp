// Adds tensors and operators under segment names; the backward pass is derived in
// differentiate.cpp.
#include "model/builder.hpp"

#include <utility>

#include "base/input_error.hpp"

namespace stratagem::model {

Builder::Builder(std::string name) { graph_.name = std::move(name); }

void Builder::begin_segment(const std::string& name) {
  graph_.segments.push_back({.name = name, .forward = {}, .backward = {}, .optimizer = {}});
  prefix_ = name + ".";
}

TensorId Builder::tensor(const std::string& name, std::vector<std::int64_t> shape, DataType type,
                         Role role, double filled) {
  double elements = 1;
  for (const std::int64_t size : shape) elements *= static_cast<double>(size);
  if (elements > 1e15) {  // sizes in bytes are whole numbers of a double, too
    throw InputError("", "", "tensors of at most 1e15 elements", prefix_ + name);
  }
  const bool trainable = !is_given(role) && role != Role::mask && role != Role::statistic;
  graph_.tensors.push_back({.name = prefix_ + name,
                            .shape = std::move(shape),
                            .type = type,
                            .role = role,
                            .requires_grad = trainable,
                            .filled = filled});
  return static_cast<TensorId>(graph_.tensors.size()) - 1;
}

TensorId Builder::parameter(const std::string& name, std::vector<std::int64_t> shape,
                            DataType type) {
  return tensor(name, std::move(shape), type, Role::parameter);
}

OpId Builder::add(OpKind kind, const std::string& name, const std::string& annotation,
                  std::vector<TensorId> inputs, std::vector<TensorId> outputs, Combine combine) {
  expects(!graph_.segments.empty(), "a segment is begun before operators are added");
  Operator op{.name = prefix_ + name,
              .kind = kind,
              .pass = Pass::forward,
              .annotation = parse_annotation(annotation),
              .inputs = std::move(inputs),
              .outputs = std::move(outputs),
              .segment = static_cast<int>(graph_.segments.size()) - 1,
              .forward = -1,
              .combine = combine};
  expects(op.inputs.size() == op.annotation->inputs.size(), "an annotation names every input");
  expects(op.outputs.size() == op.annotation->outputs.size(), "an annotation names every output");
  graph_.operators.push_back(std::move(op));
  const OpId id = static_cast<OpId>(graph_.operators.size()) - 1;
  graph_.segments.back().forward.push_back(id);
  return id;
}

void Builder::set_window(OpId attention, std::int64_t window) {
  graph_.operators[attention].window = window;
}

void Builder::set_documents(OpId attention, std::vector<std::int64_t> lengths) {
  graph_.operators[attention].documents = std::move(lengths);
}

void Builder::set_cached(OpId attention, std::int64_t tokens) {
  graph_.operators[attention].cached = tokens;
}

void Builder::set_image(OpId op, ImageWindows image) { graph_.operators[op].image = image; }

Graph Builder::finish(TensorId loss) && {
  differentiate(graph_, loss);
  return std::move(graph_);
}

}  // namespace stratagem::model
