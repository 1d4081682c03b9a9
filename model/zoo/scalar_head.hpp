// Heads that predict numbers: values of tokens, and rewards of answers.
#pragma once

#include <cstdint>

#include "model/builder.hpp"

namespace stratagem::model {

/// A number of every token of (batch, sequence, hidden), and its loss against the return that was
/// observed, the square of their difference. PPO clips it, which takes no kernel of another size.
/// Returns the losses (batch, sequence, 1). Source: Schulman et al., Proximal Policy Optimization,
/// arXiv:1707.06347, section 5.
TensorId loss_of_values(Builder& build, TensorId x);

/// A number of every sample, at its last token, and of each `answers` samples side by side the loss
///
///     -1 / C(K, 2) * sum over pairs of log sigmoid(preferred - other)
///
/// Answers are sorted, the preferred one first. Returns the losses (batch / answers). Source:
/// Ouyang et al., InstructGPT, arXiv:2203.02155, section 3.5, equation 1.
TensorId loss_of_rewards(Builder& build, TensorId x, std::int64_t answers);

/// The rows of the last token: (batch, sequence, hidden) becomes (batch, hidden).
TensorId last_token(Builder& build, TensorId x);

}  // namespace stratagem::model
