// The derived backward pass: which operators it has, in which order, and that they are the
// gradients.
#include <map>
#include <random>
#include <set>

#include "model/builder.hpp"
#include "model/zoo/gpt.hpp"
#include "tests/catch.hpp"

namespace stratagem::model::differentiate_test {

namespace {

constexpr GptConfig small{
    .layers = 3, .hidden = 8, .heads = 2, .sequence = 4, .vocabulary = 10, .batch = 2};

TensorId tensor_named(const Graph& graph, const std::string& name) {
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    if (graph.tensors[id].name == name) return static_cast<TensorId>(id);
  }
  FAIL("no tensor " << name);
  return -1;
}

/// The graph of a GPT in which only the parameters that `trained` accepts are trained.
template <typename Accepts>
Graph gpt_training(const Accepts& trained) {
  Graph graph = forward_pass(gpt(small));
  for (Tensor& tensor : graph.tensors) {
    if (tensor.role == Role::parameter) tensor.requires_grad = trained(tensor.name);
  }
  differentiate(graph, tensor_named(graph, "head.loss"));
  return graph;
}

std::vector<const Operator*> backward_of(const Graph& graph, OpId forward, Pass pass) {
  std::vector<const Operator*> result;
  for (const Operator& op : graph.operators) {
    if (op.forward == forward && op.pass == pass && op.kind != OpKind::gradient_sum)
      result.push_back(&op);
  }
  return result;
}

/// By what index values an identifier may take: its size in any tensor that names it.
using Sizes = std::map<std::string, std::int64_t>;
using Values = std::map<TensorId, std::vector<double>>;

Sizes sizes_of(const Graph& graph, const Operator& op) {
  Sizes sizes;
  const auto collect = [&](const std::vector<TensorId>& tensors,
                           const std::vector<std::vector<Term>>& terms) {
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      for (std::size_t d = 0; d < terms[t].size(); ++d) {
        sizes[terms[t][d].identifiers.front()] = graph.tensors[tensors[t]].shape[d];
      }
    }
  };
  collect(op.inputs, op.annotation->inputs);
  collect(op.outputs, op.annotation->outputs);
  return sizes;
}

std::size_t offset(const std::vector<Term>& terms, const Sizes& sizes, const Sizes& index) {
  std::size_t result = 0;
  for (const Term& term : terms) {
    const std::string& name = term.identifiers.front();
    result = result * static_cast<std::size_t>(sizes.at(name)) +
             static_cast<std::size_t>(index.at(name));
  }
  return result;
}

/// What the annotation of a contraction says, by visiting every combination of indices (Einstein's
/// summation).
std::vector<double> contracted(const Graph& graph, const Operator& op, const Values& values) {
  const Sizes sizes = sizes_of(graph, op);
  std::vector<double> result(static_cast<std::size_t>(element_count(graph.tensors[op.outputs[0]])),
                             0);
  Sizes index;
  for (const auto& [name, size] : sizes) index[name] = 0;
  for (bool more = true; more;) {
    double product = 1;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      product *= values.at(op.inputs[i])[offset(op.annotation->inputs[i], sizes, index)];
    }
    result[offset(op.annotation->outputs[0], sizes, index)] += product;
    more = false;
    for (auto& [name, i] : index) {
      if (++i < sizes.at(name)) {
        more = true;
        break;
      }
      i = 0;
    }
  }
  return result;
}

}  // namespace

TEST_CASE("every weight product has exactly one input gradient and one weight gradient") {
  const Graph graph = gpt(small);
  int products = 0;
  for (OpId id = 0; id < static_cast<OpId>(graph.operators.size()); ++id) {
    const Operator& op = graph.operators[id];
    if (op.kind != OpKind::contraction || op.pass != Pass::forward) continue;
    if (graph.tensors[op.inputs[1]].role != Role::parameter) continue;
    INFO(op.name);
    ++products;
    const auto input_gradients = backward_of(graph, id, Pass::input_gradient);
    const auto weight_gradients = backward_of(graph, id, Pass::weight_gradient);
    REQUIRE(input_gradients.size() == 1);
    REQUIRE(weight_gradients.size() == 1);
    CHECK(input_gradients[0]->kind == OpKind::contraction);
    CHECK(weight_gradients[0]->kind == OpKind::contraction);
    CHECK(weight_gradients[0]->outputs[0] == graph.gradient_of[op.inputs[1]]);
  }
  CHECK(products == 4 * 3 + 1);  // QKV, projection and two of the MLP in 3 layers; the logits
}

TEST_CASE("scores and context have two input gradients and no weight gradient") {
  const Graph graph = gpt(small);
  int products = 0;
  for (OpId id = 0; id < static_cast<OpId>(graph.operators.size()); ++id) {
    const Operator& op = graph.operators[id];
    if (op.kind != OpKind::contraction || op.pass != Pass::forward) continue;
    if (graph.tensors[op.inputs[1]].role == Role::parameter) continue;
    INFO(op.name);
    ++products;
    CHECK(backward_of(graph, id, Pass::input_gradient).size() == 2);
    CHECK(backward_of(graph, id, Pass::weight_gradient).empty());
  }
  CHECK(products == 2 * 3);
}

TEST_CASE("derived products are the gradients of the product, number by number") {
  // y is linear in each operand: with L = sum of g * y, the gradient of L by element i of an
  // operand is L where the operand is 1 at i and 0 elsewhere.
  const Graph graph = gpt(small);
  std::mt19937 engine(7);
  std::uniform_int_distribution<int> digit(-3, 3);  // small whole numbers: sums are exact
  Values values;
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    auto& elements = values[static_cast<TensorId>(id)];
    elements.resize(static_cast<std::size_t>(element_count(graph.tensors[id])));
    for (double& element : elements) element = digit(engine);
  }
  int checked = 0;
  for (const Operator& op : graph.operators) {
    const bool first_layer = op.name.find("layers.0.") == 0;
    if (op.kind != OpKind::contraction || op.pass == Pass::forward || !first_layer) continue;
    INFO(op.name << ": " << op.annotation->text);
    const Operator& forward = graph.operators[op.forward];
    const std::vector<double> gradient = contracted(graph, op, values);
    const TensorId upstream = op.inputs[0];
    // Which operand this is the gradient of: the other one is read.
    const std::size_t i = forward.inputs[0] == op.inputs[1] ? 1 : 0;
    REQUIRE(forward.inputs[1 - i] == op.inputs[1]);
    std::vector<double> expected(gradient.size());
    Values probe = values;
    for (std::size_t e = 0; e < expected.size(); ++e) {
      std::vector<double> unit(expected.size(), 0);
      unit[e] = 1;
      probe[forward.inputs[i]] = unit;
      const std::vector<double> y = contracted(graph, forward, probe);
      for (std::size_t k = 0; k < y.size(); ++k) expected[e] += values.at(upstream)[k] * y[k];
    }
    CHECK(gradient == expected);
    ++checked;
  }
  CHECK(checked == 4 * 2 + 2 * 2);
}

TEST_CASE("a gradient has the shape and type of what it is the gradient of") {
  const Graph graph = gpt(small);
  REQUIRE(graph.gradient_of.size() == graph.tensors.size());
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    if (graph.gradient_of[id] < 0) continue;
    INFO(graph.tensors[id].name);
    CHECK(graph.tensors[graph.gradient_of[id]].shape == graph.tensors[id].shape);
    CHECK(graph.tensors[graph.gradient_of[id]].type == graph.tensors[id].type);
  }
}

TEST_CASE("every annotation names each dimension of its operands, with one size per identifier") {
  const Graph graph =
      gpt({.layers = 1, .hidden = 30, .heads = 3, .sequence = 7, .vocabulary = 11, .batch = 2});
  for (const Operator& op : graph.operators) {
    INFO(op.name << ": " << op.annotation->text);
    Sizes sizes;
    const auto check = [&](const std::vector<TensorId>& tensors,
                           const std::vector<std::vector<Term>>& terms) {
      REQUIRE(tensors.size() == terms.size());
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        const std::vector<std::int64_t>& shape = graph.tensors[tensors[t]].shape;
        REQUIRE(shape.size() == terms[t].size());
        for (std::size_t d = 0; d < shape.size(); ++d) {
          if (terms[t][d].identifiers.size() > 1)
            continue;  // a fused dimension holds several sizes
          const auto known = sizes.emplace(terms[t][d].identifiers.front(), shape[d]).first;
          CHECK(known->second == shape[d]);
        }
      }
    };
    check(op.inputs, op.annotation->inputs);
    check(op.outputs, op.annotation->outputs);
  }
}

TEST_CASE("tokens, labels, masks and statistics have no gradient") {
  const Graph graph = gpt(small);
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    const Role role = graph.tensors[id].role;
    if (role != Role::input && role != Role::mask && role != Role::statistic) continue;
    INFO(graph.tensors[id].name);
    CHECK(graph.gradient_of[id] == -1);
  }
}

TEST_CASE("every parameter has exactly one optimizer step, which reads its gradient") {
  const Graph graph = gpt(small);
  std::map<TensorId, int> steps;
  for (const Operator& op : graph.operators) {
    if (op.pass != Pass::optimizer) continue;
    CHECK(op.kind == OpKind::optimizer_step);
    CHECK(op.inputs == std::vector<TensorId>{graph.gradient_of[op.outputs[0]], op.outputs[0]});
    ++steps[op.outputs[0]];
  }
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    INFO(graph.tensors[id].name);
    CHECK(steps[static_cast<TensorId>(id)] == (graph.tensors[id].role == Role::parameter ? 1 : 0));
  }
}

TEST_CASE("the tied token table has two weight gradient operators and one gradient") {
  const Graph graph = gpt(small);
  const TensorId words = tensor_named(graph, "embedding.words");
  std::set<std::string> writers;
  for (const Operator& op : graph.operators) {
    if (op.outputs[0] == graph.gradient_of[words]) writers.insert(op.name);
  }
  CHECK(writers == std::set<std::string>{"embedding.lookup.W", "head.logits.W"});
}

TEST_CASE("what both branches of a residual return is added once per norm of a layer") {
  // x feeds the norm and the residual sum; nothing else of a GPT has two differentiable consumers.
  const Graph graph = gpt(small);
  std::multiset<std::string> sums;
  for (const Operator& op : graph.operators) {
    if (op.kind == OpKind::gradient_sum) sums.insert(op.name);
  }
  std::multiset<std::string> expected;
  for (const std::string layer : {"layers.0", "layers.1", "layers.2"}) {
    expected.insert(layer + ".input_norm.sum");
    expected.insert(layer + ".mlp_norm.sum");
  }
  CHECK(sums == expected);
}

TEST_CASE("k consumers of one tensor need k - 1 sums of gradients") {
  for (int consumers = 1; consumers <= 5; ++consumers) {
    Builder build("fan");
    build.begin_segment("only");
    const TensorId weight = build.parameter("weight", {4}, DataType::fp16);
    const TensorId input = build.tensor("input", {2, 4}, DataType::fp16, Role::input);
    TensorId sum = build.tensor("x", {2, 4}, DataType::fp16, Role::activation);
    const TensorId x = sum;
    build.add(OpKind::bias_add, "x", "b n, n -> b n", {input, weight}, {x});
    for (int i = 0; i < consumers; ++i) {
      const std::string name = std::to_string(i);
      const TensorId bent = build.tensor("bent" + name, {2, 4}, DataType::fp16, Role::activation);
      build.add(OpKind::gelu, "gelu" + name, "b n -> b n", {x}, {bent});
      if (i == 0) {
        sum = bent;
        continue;
      }
      const TensorId next = build.tensor("sum" + name, {2, 4}, DataType::fp16, Role::activation);
      build.add(OpKind::add, "add" + name, "b n, b n -> b n", {sum, bent}, {next});
      sum = next;
    }
    const Graph graph = std::move(build).finish(sum);
    INFO(consumers);
    int sums = 0;
    int gelus = 0;
    for (const Operator& op : graph.operators) {
      if (op.kind == OpKind::gradient_sum) ++sums;
      if (op.kind == OpKind::gelu && op.pass == Pass::input_gradient) ++gelus;
    }
    CHECK(sums == consumers - 1);
    CHECK(gelus == consumers);
  }
}

TEST_CASE("operators stand in an order in which they can run") {
  const Graph graph = gpt(small);
  std::set<TensorId> written;
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    const Role role = graph.tensors[id].role;
    if (role == Role::parameter || role == Role::input) written.insert(static_cast<TensorId>(id));
  }
  const auto run = [&](const Operator& op, std::set<TensorId>& ready) {
    INFO(op.name);
    for (const TensorId id : op.inputs) {
      INFO(graph.tensors[id].name);
      CHECK(ready.count(id) == 1);
    }
    ready.insert(op.outputs.begin(), op.outputs.end());
  };
  std::set<TensorId> ready = written;
  for (const Operator& op : graph.operators) run(op, ready);

  // As well segment by segment: forward, then backward from the last segment, then the steps.
  ready = written;
  for (const Segment& segment : graph.segments) {
    for (const OpId id : segment.forward) run(graph.operators[id], ready);
  }
  for (auto segment = graph.segments.rbegin(); segment != graph.segments.rend(); ++segment) {
    for (const OpId id : segment->backward) run(graph.operators[id], ready);
  }
  for (const Segment& segment : graph.segments) {
    for (const OpId id : segment.optimizer) run(graph.operators[id], ready);
  }
}

TEST_CASE("every operator is listed once, in the list of its pass of its segment") {
  const Graph graph = gpt(small);
  std::map<OpId, int> listed;
  for (std::size_t s = 0; s < graph.segments.size(); ++s) {
    const auto check = [&](const std::vector<OpId>& ops, const std::set<Pass>& passes) {
      for (const OpId id : ops) {
        CHECK(graph.operators[id].segment == static_cast<int>(s));
        CHECK(passes.count(graph.operators[id].pass) == 1);
        ++listed[id];
      }
    };
    check(graph.segments[s].forward, {Pass::forward});
    check(graph.segments[s].backward, {Pass::input_gradient, Pass::weight_gradient});
    check(graph.segments[s].optimizer, {Pass::optimizer});
  }
  CHECK(listed.size() == graph.operators.size());
  for (const auto& [id, times] : listed) CHECK(times == 1);
}

TEST_CASE("no two operators have the same name") {
  const Graph graph = gpt(small);
  std::set<std::string> names;
  for (const Operator& op : graph.operators) {
    INFO(op.name);
    CHECK(names.insert(op.name).second);
  }
}

TEST_CASE("a frozen parameter has no weight gradient and no step, but its input gradient stays") {
  const Graph graph =
      gpt_training([](const std::string& name) { return name != "layers.1.mlp.fc1.weight"; });
  const TensorId frozen = tensor_named(graph, "layers.1.mlp.fc1.weight");
  CHECK(graph.gradient_of[frozen] == -1);
  int steps = 0;
  std::set<std::string> derived;
  for (const Operator& op : graph.operators) {
    if (op.pass == Pass::optimizer) ++steps;
    if (op.name.find("layers.1.mlp.fc1.") == 0 && op.pass != Pass::optimizer)
      derived.insert(op.name);
  }
  CHECK(steps == 12 * 3 + 4 - 1);
  CHECK(derived == std::set<std::string>{"layers.1.mlp.fc1.B", "layers.1.mlp.fc1.bias_add",
                                         "layers.1.mlp.fc1.bias_add.W"});
}

TEST_CASE("gradients go back no further than the first trained parameter needs") {
  // Only the final norm is trained: the logits' and the loss's input gradients, the two gradients
  // of the norm's own parameters, two steps; no layer has a backward operator.
  const Graph graph = gpt_training(
      [](const std::string& name) { return name.find("final_norm") != std::string::npos; });
  std::set<std::string> derived;
  for (const Operator& op : graph.operators) {
    if (op.pass != Pass::forward) derived.insert(op.name);
  }
  CHECK(derived == std::set<std::string>{"head.loss.B", "head.logits.B", "head.final_norm.W",
                                         "head.final_norm.W2", "head.final_norm.scale.step",
                                         "head.final_norm.shift.step"});
}

TEST_CASE("a model of frozen parameters has no backward pass") {
  const Graph graph = gpt_training([](const std::string&) { return false; });
  for (const Operator& op : graph.operators) {
    INFO(op.name);
    CHECK(op.pass == Pass::forward);
  }
}

TEST_CASE("differentiating the forward half again gives the same graph") {
  const Graph once = gpt(small);
  const Graph again = gpt_training([](const std::string&) { return true; });
  REQUIRE(once.operators.size() == again.operators.size());
  REQUIRE(once.tensors.size() == again.tensors.size());
  for (std::size_t id = 0; id < once.operators.size(); ++id) {
    CHECK(once.operators[id].name == again.operators[id].name);
    CHECK(once.operators[id].annotation->text == again.operators[id].annotation->text);
    CHECK(once.operators[id].inputs == again.operators[id].inputs);
    CHECK(once.operators[id].outputs == again.operators[id].outputs);
  }
}

}  // namespace stratagem::model::differentiate_test
