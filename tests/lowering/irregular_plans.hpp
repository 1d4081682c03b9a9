// Plans whose operators stand in different numbers of parts on lists of devices.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "model/builder.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::lowering {

/// Operators of one segment in a row: a shift of the input, then a matrix product each of h by h
/// elements; x is (rows, h).
inline model::Graph product_chain(int products, std::int64_t rows = 12, std::int64_t h = 8) {
  using model::OpKind;
  using model::Role;
  model::Builder build("chain");
  build.begin_segment("all");
  const model::TensorId input =
      build.tensor("input", {rows, h}, model::DataType::fp16, Role::input);
  const model::TensorId shift = build.parameter("shift", {h}, model::DataType::fp16);
  model::TensorId x = build.tensor("shifted", {rows, h}, model::DataType::fp16, Role::activation);
  build.add(OpKind::bias_add, "shift", "r n, n -> r n", {input, shift}, {x});
  for (int i = 0; i < products; ++i) {
    const std::string name = "product" + std::to_string(i);
    const model::TensorId weight = build.parameter(name + ".weight", {h, h}, model::DataType::fp16);
    const model::TensorId y =
        build.tensor(name + ".out", {rows, h}, model::DataType::fp16, Role::activation);
    build.add(OpKind::contraction, name, "r k+, n k+ -> r n", {x, weight}, {y});
    x = y;
  }
  return std::move(build).finish(x);
}

/// Divides an operator over a list of devices; unequal parts are allowed.
inline void divide(strategies::Plan& plan, const std::string& name, const std::string& dim,
                   const std::vector<int>& devices) {
  const model::OpId op = operator_named(plan.graph(), name);
  plan.trans(op, {.dim = dim, .parts = static_cast<int>(devices.size()), .uneven = true});
  plan.assign(op, devices);
}

/// The same plan, with the device of every part in a list.
inline strategies::Plan with_lists(strategies::Plan plan) {
  for (const model::OpId op : plan.operators()) {
    const strategies::Plan::Placement placement = plan.placement(op);
    for (int copy = 0; copy < plan.copies_of(op); ++copy) {
      std::vector<int> devices = {placement.first_devices[copy]};
      for (const placement::Axis& axis : placement.axes) {
        std::vector<int> finer;
        for (const int device : devices) {
          for (int i = 0; i < axis.size; ++i) finer.push_back(device + i * axis.stride);
        }
        devices = std::move(finer);
      }
      plan.assign(op, devices, copy);
    }
  }
  return plan;
}

/// Three products on {0,1,2,3} by rows, {0,2} by columns, {1,2,3} by rows in unequal parts; the
/// shift on {3}.
inline strategies::Plan four_two_three(const model::Graph& graph) {
  strategies::Plan plan(graph);
  divide(plan, "all.shift", "", {3});
  divide(plan, "all.product0", "r", {0, 1, 2, 3});
  divide(plan, "all.product1", "n", {0, 2});
  divide(plan, "all.product2", "r", {1, 2, 3});
  return plan;
}

/// A GPT of which the words are divided unevenly over as many devices as given; everything else is
/// on device 0.
inline strategies::Plan uneven_words(const model::Graph& graph, int devices) {
  strategies::Plan plan(graph);
  std::vector<int> all;
  for (int device = 0; device < devices; ++device) all.push_back(device);
  const model::TensorId table =
      graph.operators[operator_named(graph, "embedding.lookup")].inputs[1];
  for (const model::OpId id : plan.operators()) {
    const model::Operator& op = graph.operators[id];
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      if (op.inputs[i] == table)
        divide(plan, op.name, op.annotation->inputs[i][0].identifiers.front(), all);
    }
  }
  return plan;
}

/// The dimensions that an operator lets be divided, and "" to replicate it.
inline std::vector<std::string> choices(const model::Operator& op) {
  std::set<std::string> names = {""};
  for (const auto* side : {&op.annotation->inputs, &op.annotation->outputs}) {
    for (const std::vector<model::Term>& terms : *side) {
      for (const model::Term& term : terms) {
        if (model::may_split(*op.annotation, term.identifiers.front()))
          names.insert(term.identifiers.front());
      }
    }
  }
  return {names.begin(), names.end()};
}

/// Every operator divided along one or two dimensions at random, over devices at random.
inline strategies::Plan random_plan(const model::Graph& graph, int devices, unsigned seed) {
  std::mt19937 engine(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(engine() % n); };
  strategies::Plan plan(graph);
  std::vector<int> all(devices);
  std::iota(all.begin(), all.end(), 0);
  for (const model::OpId op : plan.operators()) {
    int parts = 1;
    std::set<std::string> with_inner;
    for (std::size_t level = below(3); level > 0; --level) {
      const std::vector<std::string> dims = choices(graph.operators[op]);
      const std::string& dim = dims[below(dims.size())];
      const std::int64_t size = strategies::size_of_dimension(graph, graph.operators[op], dim);
      const int n = 1 + static_cast<int>(below(static_cast<std::size_t>(devices / parts)));
      if (!dim.empty() && n * parts > size) continue;
      const bool inner = engine() % 2 == 0 && with_inner.insert(dim).second;
      plan.trans(op, {.dim = dim, .parts = n, .uneven = true, .inner = inner});
      parts *= n;
    }
    for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[below(i)]);
    plan.assign(op, {all.begin(), all.begin() + parts});
  }
  return plan;
}

/// Each stage has one segment; recomputation and a split backward pass at random.
inline strategies::Plan random_pipeline(const model::Graph& graph, int devices, unsigned seed) {
  strategies::Plan plan = random_plan(graph, devices, seed);
  plan.stages.clear();
  for (int segment = 0; segment < static_cast<int>(graph.segments.size()); ++segment) {
    plan.stages.push_back({segment});
    if ((seed + static_cast<unsigned>(segment)) % 3 == 0)
      plan.recompute(graph.segments[segment].forward);
    if (seed % 2 == 0) continue;
    plan.split_backward(segment, 0);
    if (segment > 0)
      plan.order({segment, 0, placement::CellPass::weight},
                 {segment - 1, 0, placement::CellPass::backward});
  }
  return plan;
}

/// Two layers, sizes of which many do not divide by the numbers of parts, one use of every
/// parameter.
inline constexpr model::GptConfig tiny_gpt{.layers = 2,
                                           .hidden = 12,
                                           .heads = 6,
                                           .sequence = 7,
                                           .vocabulary = 17,
                                           .batch = 5,
                                           .tied = false};

}  // namespace stratagem::lowering
