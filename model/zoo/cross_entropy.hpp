// The cross-entropy of a classification, in parts.
#pragma once

#include <string>

#include "model/builder.hpp"

namespace stratagem::model {

/// What the loss and its operators are called, and its labels.
struct LossNames {
  std::string loss = "loss";
  std::string labels = "labels";
};

/// Adds the loss of every place, in fp32: log of the sum of exp(logits) less the label's logit.
/// `places` are the dimensions of the labels ("b s"), `classes` the one that logits have besides
/// ("vocabulary"). In parts, so that divided classes need only scalars from the other ranks:
/// maximum, sum of exponentials and the label's logit of every place.
TensorId cross_entropy(Builder& build, TensorId logits, const std::string& places,
                       const std::string& classes, const LossNames& names = {});

/// The same without exponentials in memory: what computes the loss leaves the gradient of the
/// logits in their type, in place of what the backward pass would read (Transformer Engine's
/// parallel cross-entropy, pytorch/triton/cross_entropy.py). There it overwrites the logits, here
/// both are live for that moment.
TensorId fused_cross_entropy(Builder& build, TensorId logits, const std::string& places,
                             const std::string& classes, const LossNames& names = {});

}  // namespace stratagem::model
