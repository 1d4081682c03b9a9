// The activation formulas of Korthikanti et al., arXiv:2205.05198, table 2, to the byte, for every
// combination of tensor ranks, sequence parallelism and recomputation; and what they are made of.
#include <map>
#include <string>

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::lowering::activation_formulas_test {

using program::Category;

namespace {

/// Shapes of the paper's table 3 (22B, 175B, 530B, 1T), two layers of each.
std::map<std::string, model::GptConfig> published_shapes() {
  std::map<std::string, model::GptConfig> shapes;
  const auto add = [&](const std::string& name, int heads, int hidden, int batch) {
    shapes[name] = {.layers = 2,
                    .hidden = hidden,
                    .heads = heads,
                    .sequence = 2048,
                    .vocabulary = 51200,
                    .batch = batch};
  };
  add("22B", 64, 6144, 4);
  add("175B", 96, 12288, 1);
  add("530B", 128, 20480, 1);
  add("1T", 160, 25600, 1);
  return shapes;
}

struct Shape {
  double sbh;
  double core;  ///< 5as^2b, that is 5as/h of sbh
};

Shape shape_of(const model::GptConfig& c) {
  const auto sb = static_cast<double>(c.sequence * c.batch);
  return {sb * static_cast<double>(c.hidden), 5 * sb * static_cast<double>(c.heads * c.sequence)};
}

/// Bytes of a layer: table 2. Full recomputation keeps 2sbh, which sequence parallelism or
/// partition_checkpoints divide.
double published(const Shape& shape, double t, bool sequence, const std::string& recompute) {
  const double core = recompute == "none" ? shape.core : 0;
  if (recompute == "full") return shape.sbh * 2 / (sequence ? t : 1);
  return (sequence ? shape.sbh / t * 34 : shape.sbh * (10 + 24 / t)) + core / t;
}

/// What the first layer's forward block leaves behind but for the statistics of its norms, which
/// the paper neglects: two numbers for a token.
double kept(const model::Graph& graph, const std::string& strategy) {
  const program::Program program = lowered(graph, strategy);
  const program::Block& block = block_of(program, 1, placement::CellPass::forward);
  return (left_by(block, Category::activations) + left_by(block, Category::checkpoints)).value;
}

}  // namespace

TEST_CASE(
    "bytes of a layer are the paper's for all combinations of t, sequence and recomputation") {
  for (const auto& [name, config] : published_shapes()) {
    const model::Graph graph = model::gpt(config);
    const Shape shape = shape_of(config);
    for (const int t : {1, 2, 8}) {
      for (const bool sequence : {false, true}) {
        for (const std::string recompute : {"none", "selective", "full"}) {
          INFO(name << ", t = " << t << ", sequence " << sequence << ", " << recompute);
          const std::string strategy =
              R"({"tensor": )" + std::to_string(t) + R"(, "sequence_parallel": )" +
              (sequence ? "true" : "false") + R"(, "recompute": ")" + recompute + "\"}";
          CHECK(kept(graph, strategy) == published(shape, t, sequence, recompute));
        }
      }
    }
  }
}

TEST_CASE("34sbh + 5as^2b is what Megatron-LM stores, tensor by tensor") {
  // Section 4.1: attention 11sbh + 5as^2b, MLP 19sbh, norms 4sbh; masks of dropout take a byte an
  // element, all else two. Nothing differs but in whose name it is kept: a layer's input (2sbh, of
  // its first norm) is its predecessor's output, so mlp.residual.out is the next layer's. A fused
  // dropout and residual sum keeps the same mask.
  const model::GptConfig config = published_shapes().at("175B");
  const auto [sbh, core] = shape_of(config);
  const program::Program program = lowered(model::gpt(config), "{}");
  const program::Block& block = block_of(program, 1, placement::CellPass::forward);
  std::map<std::string, double> left;
  for (const program::Task& task : block.tasks) {
    for (const int slot : task.allocates)
      left[block.slots[slot].name] += block.slots[slot].bytes.value;
    for (const int slot : task.frees) left[block.slots[slot].name] -= block.slots[slot].bytes.value;
  }
  std::map<std::string, double> kept;
  for (const program::Slot& slot : block.slots) {
    if (slot.category == Category::activations && left[slot.name] > 0)
      kept[slot.name] = left[slot.name];
  }
  const std::map<std::string, double> attention = {{"input_norm.out", 2 * sbh},  // QKV's input
                                                   {"attention.q", 2 * sbh},
                                                   {"attention.k", 2 * sbh},
                                                   {"attention.v", 2 * sbh},
                                                   {"attention.probabilities", core * 2 / 5},
                                                   {"attention.dropout.mask", core / 5},
                                                   {"attention.dropout.out", core * 2 / 5},
                                                   {"attention.merged", 2 * sbh},
                                                   {"attention.output_dropout.mask", sbh}};
  const std::map<std::string, double> mlp = {{"mlp_norm.out", 2 * sbh},  // fc1's input
                                             {"mlp.fc1.out", 8 * sbh},
                                             {"mlp.gelu.out", 8 * sbh},
                                             {"mlp.dropout.mask", sbh}};
  const std::map<std::string, double> norms = {{"attention.residual.out", 2 * sbh},
                                               {"mlp.residual.out", 2 * sbh}};
  const auto sum = [](const std::map<std::string, double>& tensors) {
    double bytes = 0;
    for (const auto& [name, size] : tensors) bytes += size;
    return bytes;
  };
  CHECK(sum(attention) == 11 * sbh + core);
  CHECK(sum(mlp) == 19 * sbh);
  CHECK(sum(norms) == 4 * sbh);
  std::map<std::string, double> all = attention;
  all.insert(mlp.begin(), mlp.end());
  all.insert(norms.begin(), norms.end());
  CHECK(kept == all);
}

}  // namespace stratagem::lowering::activation_formulas_test
