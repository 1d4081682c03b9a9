// Fills buckets in the order of the backward pass.
#include "strategies/lower/gradients.hpp"

#include <algorithm>
#include <set>

#include "base/input_error.hpp"

namespace stratagem::strategies {
namespace {

using model::TensorId;

/// The gradient of one parameter when its last weight-gradient operator has run.
struct Completed {
  TensorId gradient;
  int segment;
  int task;
  Layout layout;
};

/// In the order of the backward pass of a stage.
std::vector<Completed> completed_gradients(const std::vector<int>& segments, const Stages& stages,
                                           const Blocks& blocks) {
  std::vector<Completed> result;
  std::set<TensorId> seen;
  for (const int segment :
       segments) {  // a tied parameter is complete after its first segment, run last
    std::vector<Completed> here;
    const LoweredBlock& lowered = blocks.backward(segment).lowered;
    for (const auto& [place, layout] : lowered.gradients) {
      const TensorId gradient = stages.facts(segment).tensors[place];
      if (!seen.insert(gradient).second) continue;
      here.push_back({gradient, segment, lowered.last_writer.at(place), layout});
    }
    std::ranges::sort(here, std::greater<>(), &Completed::task);
    result.insert(result.end(), here.begin(), here.end());
  }
  std::ranges::reverse(result);
  return result;
}

std::vector<int> reduced_axes(const Completed& gradient, const Layout& parameter,
                              const std::string& name) {
  std::vector<int> axes;
  for (std::size_t axis = 0; axis < gradient.layout.size(); ++axis) {
    const AxisRole role = gradient.layout[axis];
    if (role == parameter[axis]) continue;
    if (role.dim != AxisRole::partial || parameter[axis].dim != AxisRole::replica) {
      throw InputError(
          "", "",
          "the gradient of " + name + " to lie as the parameter does, or to be partial sums", "");
    }
    axes.push_back(static_cast<int>(axis));
  }
  return axes;
}

}  // namespace

ParameterLayouts parameter_layouts(const Plan& plan, const Stages& stages, const Blocks& blocks,
                                   int stage) {
  ParameterLayouts result;
  for (const int segment : plan.stages[stage]) {
    for (const auto& [place, layout] : blocks.forward(segment).lowered.parameters) {
      const TensorId parameter = stages.facts(segment).tensors[place];
      const auto [found, fresh] = result.emplace(parameter, layout);
      if (!fresh && found->second != layout) {
        throw InputError("", "",
                         "every operator to see the same part of parameter " +
                             plan.graph().tensors[parameter].name,
                         "");
      }
    }
  }
  return result;
}

std::vector<Bucket> gradient_buckets(const Plan& plan, const Stages& stages, const Blocks& blocks,
                                     int stage) {
  const model::Graph& graph = plan.graph();
  std::map<TensorId, Layout> by_gradient;
  for (const auto& [parameter, layout] : parameter_layouts(plan, stages, blocks, stage)) {
    by_gradient.emplace(graph.gradient_of[parameter], layout);
  }
  std::vector<Bucket> closed;
  std::map<std::vector<int>, Bucket> open;
  for (const Completed& gradient : completed_gradients(plan.stages[stage], stages, blocks)) {
    const model::Tensor& tensor = graph.tensors[gradient.gradient];
    const std::vector<int> axes =
        reduced_axes(gradient, by_gradient.at(gradient.gradient), tensor.name);
    if (axes.empty()) continue;
    Bucket& bucket = open[axes];
    bucket.after = gradient.segment;
    bucket.axes = axes;
    bucket.gradients.push_back(gradient.gradient);
    bucket.sizes.push_back(local_bytes(tensor, gradient.layout, stages.grid(stage)));
    bucket.bytes += bucket.sizes.back();
    if (plan.gradients.bucket && bucket.bytes >= *plan.gradients.bucket) {
      closed.push_back(bucket);
      open.erase(axes);
    }
  }
  for (auto& [axes, bucket] : open) closed.push_back(bucket);
  return closed;
}

}  // namespace stratagem::strategies
