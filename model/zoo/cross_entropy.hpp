// The cross-entropy of a classification, in parts.
#pragma once

#include <string>

#include "model/builder.hpp"

namespace stratagem::model {

/// Adds the loss of every place, in fp32: log of the sum of exp(logits) less the label's logit.
/// `places` are the dimensions of the labels ("b s"), `classes` the one that logits have besides
/// ("vocabulary"). In parts, so that divided classes need only scalars from the other ranks:
/// maximum, sum of exponentials and the label's logit of every place.
TensorId cross_entropy(Builder& build, TensorId logits, const std::string& places,
                       const std::string& classes);

}  // namespace stratagem::model
