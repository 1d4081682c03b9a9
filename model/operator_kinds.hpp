// The table of operator kinds: rules of their gradients, kinds of kernels in profiles, and names in
// stacks.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/graph.hpp"

namespace stratagem::model {

/// An operand of a forward operator, or what comes back for one of its outputs.
struct OperandOf {
  enum class Side : std::uint8_t { input, output, returned };
  Side side = Side::input;
  int place = 0;  ///< -1: all of them, in order
};

/// The gradient of an input. None where the operator lacks an operand that is named here, or the
/// input.
struct GradientRule {
  int of = 0;  ///< input
  /// What the operator that computes it reads. None: it is the output's gradient itself or, of an
  /// input that lacks some of the output's dimensions, the sum over these.
  std::vector<OperandOf> reads = {};
  std::string_view kind = {};             ///< of that operator; "": as the forward one
  std::optional<OperandOf> left_in = {};  ///< the forward operator has left it there
};

/// What operands a kind takes, for whoever reads a model's file.
struct OperandForm {
  std::string_view counts;   ///< how many it reads and writes, "1-2>1"; "": no model says it
  bool keeps_shape = false;  ///< its first result has the dimensions of its first operand
  bool whole_rows = false;   ///< it needs the last dimension of that operand whole
  bool sums = false;         ///< over what its result lacks: parts have partial results
  bool takes_whole = false;  ///< it needs whole what its result lacks
  bool of_image = false;     ///< it knows windows of an image
};

/// Costs, the lowering and the backward pass read the row. Their code names the few kinds that
/// differ in more than a row says, such as contractions, casts, embeddings and attention.
struct OperatorKind {
  std::string_view name;
  std::string_view kernel;           ///< one of cost::kernel_kind_names
  std::string_view gradient_kernel;  ///< the same for its gradients
  /// Its operators of which stacks may say something. F: forward, B: gradients of activations, W:
  /// gradients of weights.
  std::string_view passes;
  OperandForm operands;
  std::vector<GradientRule> gradients = {};
  std::string_view in_stacks = {};  ///< the kind by whose name stacks call it; "": its own
};

/// By OpKind. A kind that only the table has is found by its name.
const std::vector<OperatorKind>& operator_kinds();
inline const OperatorKind& row_of(OpKind kind) {
  return operator_kinds()[static_cast<std::size_t>(kind)];
}

/// Expects that there is one.
OpKind operator_named(std::string_view name);

/// Names of operators in stacks: a kind, with ".B" or ".W" for what computes its gradients.
std::string stack_name(const Operator& op);
/// All of these of some passes, which are written as in OperatorKind.
std::vector<std::string> stack_names(std::string_view of_passes = "FBW");

}  // namespace stratagem::model
