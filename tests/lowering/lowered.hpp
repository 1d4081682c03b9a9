// Plans and programs for tests: a GPT, a strategy as a scenario writes it, and what to ask of the
// result.
#pragma once

#include <algorithm>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/input_error.hpp"
#include "lowering/lower.hpp"
#include "model/zoo/gpt.hpp"
#include "program/program_text.hpp"
#include "strategies/parallel/all.hpp"
#include "strategies/parallel/read_options.hpp"

namespace stratagem::lowering {

/// Small sizes, no two of which are equal or multiply to another, so that no size stands in for
/// another by chance.
inline constexpr model::GptConfig small_gpt{
    .layers = 4, .hidden = 48, .heads = 8, .sequence = 20, .vocabulary = 112, .batch = 12};

/// One kernel per operator, and nothing besides what optimizers need.
inline cost::Stack plain_stack() {
  cost::Stack stack;
  stack.name = "plain";
  return stack;
}

/// `strategy` is the object of a scenario, such as {"tensor": 2}.
inline strategies::Plan plan_of(const model::Graph& graph, const std::string& strategy,
                                int micro_batches = 1) {
  const JsonReader file = JsonReader::from_text("{\"strategy\": " + strategy + "}", "test.json");
  const JsonReader reader = file.at("strategy");
  return compose(graph, micro_batches, strategies::read_options(reader), reader);
}

inline program::Program lowered(const model::Graph& graph, const std::string& strategy,
                                int micro_batches = 1, const cost::Training& training = {}) {
  return lower(plan_of(graph, strategy, micro_batches), plain_stack(), training);
}

/// What kernels compute in one iteration but for what they compute again.
inline Flops flops_once(program::Program program) {
  for (program::Block& block : program.blocks) {
    for (program::Task& task : block.tasks) {
      auto* kernel = std::get_if<cost::Kernel>(&task.work);
      if (kernel != nullptr && task.recomputed) kernel->flops = {};
    }
  }
  return hardware_flops(program);
}

inline const program::Collective* collective_of(const program::Task& task) {
  return std::get_if<program::Collective>(&task.work);
}
inline bool steps(const program::Task& task) {
  const auto* kernel = std::get_if<cost::Kernel>(&task.work);
  return kernel != nullptr && kernel->kind == cost::KernelKind::optimizer;
}
/// Does a call belong to the end of the iteration: gradients' reductions and steps, which are of no
/// cell?
inline bool ends_iteration(const program::Program& program, const program::Call& call) {
  for (const program::Task& task : program.blocks[call.block].tasks) {
    if (steps(task) || task.stream == program::Stream::gradient_communication) return true;
  }
  return false;
}

/// The first block that a sequence runs for a pass of a segment.
inline const program::Block& block_of(const program::Program& program, int segment,
                                      placement::CellPass pass, int sequence = 0) {
  for (const program::Call& call : program.sequences[sequence].calls) {
    if (call.segment == segment && call.cell.pass == pass && !ends_iteration(program, call)) {
      return program.blocks[call.block];
    }
  }
  throw std::out_of_range("no call of that segment and pass");
}

inline model::OpId operator_named(const model::Graph& graph, const std::string& name) {
  const auto found = std::ranges::find(graph.operators, name, &model::Operator::name);
  if (found == graph.operators.end()) throw std::out_of_range("no operator " + name);
  return static_cast<model::OpId>(found - graph.operators.begin());
}

/// Collectives on some streams of a block; those that the next computation waits for.
inline std::vector<program::Collective> collectives(const program::Block& block,
                                                    const std::set<program::Stream>& streams = {
                                                        program::Stream::communication,
                                                        program::Stream::exchange}) {
  std::vector<program::Collective> result;
  for (const program::Task& task : block.tasks) {
    if (streams.contains(task.stream) && collective_of(task) != nullptr)
      result.push_back(*collective_of(task));
  }
  return result;
}

/// Collectives of one stream in the order in which a sequence issues them.
inline std::vector<program::Collective> collectives(const program::Program& program, int sequence,
                                                    program::Stream stream) {
  std::vector<program::Collective> result;
  for (const program::Call& call : program.sequences[sequence].calls) {
    for (const program::Collective& one : collectives(program.blocks[call.block], {stream}))
      result.push_back(one);
  }
  return result;
}

/// "F0 F1 B0 B1": the cells of a sequence, each once though several calls make it up.
inline std::string cells_of(const program::Program& program, int sequence) {
  std::string text;
  std::string last;
  for (const program::Call& call : program.sequences[sequence].calls) {
    if (call.segment < 0 || ends_iteration(program, call)) continue;
    const std::string cell = to_text(call.cell.pass) + std::to_string(call.cell.micro_batch);
    if (cell != last) text += (text.empty() ? "" : " ") + cell;
    last = cell;
  }
  return text;
}

/// Bytes of a category that a block leaves behind: allocated less freed.
inline Bytes left_by(const program::Block& block, program::Category category) {
  Bytes bytes;
  for (const program::Task& task : block.tasks) {
    for (const int slot : task.allocates) {
      if (block.slots[slot].category == category) bytes += block.slots[slot].bytes;
    }
    for (const int slot : task.frees) {
      if (block.slots[slot].category == category) bytes -= block.slots[slot].bytes;
    }
  }
  return bytes;
}

/// Bytes of a category that live from iteration to iteration, on the device or on its host.
inline Bytes resident(const program::Sequence& sequence, program::Category category,
                      program::Residence residence = program::Residence::device) {
  Bytes bytes;
  for (const program::Resident& one : sequence.residents) {
    if (one.category == category && one.place == residence) bytes += one.bytes;
  }
  return bytes;
}

/// The message of the InputError that an action throws, "" if it throws none.
template <typename Action>
std::string refusal(const Action& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace stratagem::lowering
