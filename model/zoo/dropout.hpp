// Dropout, as models add it.
#pragma once

#include <string>

#include "model/builder.hpp"

namespace stratagem::model {

/// Drops elements of `x`, whose dimensions the annotation names `dims`, such as "b s h"; the
/// result. The mask has a byte for each element.
TensorId dropout(Builder& build, const std::string& name, TensorId x, const std::string& dims,
                 OpKind kind = OpKind::dropout);

}  // namespace stratagem::model
