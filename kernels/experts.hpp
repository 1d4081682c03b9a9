// Mixtures of experts: which slots tokens take, and rows on their way to slots and back.
#pragma once

#include <cstdint>

#include "kernels/operand.hpp"

namespace stratagem::kernels {

/// Every expert has `capacity` slots for each sample. A slot's number is expert * capacity + its
/// place among those of its expert and sample; experts count from `first_expert` on, those that are
/// here. Operands are dense: slots (samples, tokens, choices), rows (samples, tokens, width),
/// weights (samples, tokens, experts), contents (experts, samples, capacity, width).
struct ExpertSlots {
  std::int64_t samples = 0;
  std::int64_t tokens = 0;   ///< of a sample
  std::int64_t choices = 0;  ///< experts that every token is sent to
  std::int64_t experts = 0;
  std::int64_t capacity = 0;
  std::int64_t first_expert = 0;
};

/// Every token's slots at the experts that its weights are largest of, the largest one first; -1
/// where an expert has none left. All first choices of a sample come before all second ones, each
/// in the order of tokens. Expects all experts. Lepikhin et al., GShard, arXiv:2006.16668,
/// algorithm 1, without chance.
template <typename T>
void choose_slots(const ExpertSlots& shape, In<T> weights, Out<T> slots);

/// Contents of slots: their token's row, times its weight for the expert unless `weights` is empty;
/// zero where no token is.
template <typename T>
void to_slots(const ExpertSlots& shape, In<T> slots, In<T> rows, In<T> weights, Out<T> contents);

/// Rows of tokens: the sum over their slots that are here, times weights unless there are none.
template <typename T>
void from_slots(const ExpertSlots& shape, In<T> slots, In<T> contents, In<T> weights, Out<T> rows);

/// Gradients of the weights of from_slots: for a token's experts the product of its row of `drows`
/// with its slot's content, for others zero.
template <typename T>
void slot_weights_gradient(const ExpertSlots& shape, In<T> slots, In<T> drows, In<T> contents,
                           Out<T> dweights);

}  // namespace stratagem::kernels
