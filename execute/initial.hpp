// The initial values of training, by position: element i of a tensor is the same number on every
// rank.
#pragma once

#include <cstdint>

#include "execute/value.hpp"
#include "model/graph.hpp"

namespace stratagem::execute {

/// Weights of the part of a parameter that a value is to have: scales of norms about 1, other
/// vectors and tables about 0, and matrices by Glorot and Bengio's rule, Understanding the
/// difficulty of training deep feedforward neural networks, AISTATS 2010: uniform within sqrt(6 /
/// (in + out)).
template <typename T>
void initialize(const model::Graph& graph, model::TensorId parameter, std::uint64_t seed,
                Value<T>& value);

/// A part of an input of one micro-batch. Samples are random sequences of sequence + 1 tokens, of
/// which the model reads the first and is to predict the last. The gradient of the loss is
/// `loss_weight`. Features, such as an image, are numbers in [-1, 1).
template <typename T>
Shared<T> input(const model::Graph& graph, model::TensorId tensor, const Region& region,
                std::uint64_t seed, std::uint64_t micro_batch, double loss_weight);

}  // namespace stratagem::execute
