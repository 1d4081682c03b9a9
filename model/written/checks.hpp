// What a kind of operator wants of its operands, where a model's file says them.
#pragma once

#include <string>
#include <vector>

#include "model/graph.hpp"
#include "model/written/form.hpp"

namespace stratagem::model {

/// Operands of a written operator, as its annotation names them.
struct WrittenOperands {
  const WrittenOperator& op;
  const Annotation& annotation;
  std::vector<const Tensor*> inputs;
  std::vector<const Tensor*> outputs;
  std::string path;  ///< of the operator in the file
};

/// Throws InputError for dimensions whose sizes or marks, for types and for keys that the kind does
/// not take.
void check_operands(const WrittenOperands& operands);

}  // namespace stratagem::model
