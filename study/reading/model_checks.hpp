// Refusals of models that a run's GPU, framework or tensor ranks cannot run.
#pragma once

#include "base/json_reader.hpp"
#include "study/run.hpp"

namespace stratagem::study {

/// Fused attention needs a GPU that has been seen to run it. Throws InputError.
void check_attention(const Run& run, const JsonReader& model);

/// Keys of a model that do not go with what is trained, before the model is built: nothing is
/// trained through a cache, and a reward model compares answers that stand in one micro-batch.
/// Throws InputError.
void check_training(const Run& run, const JsonReader& model, const JsonReader& training);

/// Of a model that is there: what is not trained drops nothing and has no use for keys of a
/// strategy that act on backward passes or steps alone. Ranks that divide tokens are refused where
/// the head reads one token. Throws InputError.
void check_passes(const Run& run, const JsonReader& model, const JsonReader& training);

/// Tensor ranks divide keys and values, which frameworks copy where there are fewer, and expert
/// ranks the experts. Throws InputError at the key of the ranks.
void check_divided(const Run& run, const JsonReader& model);

}  // namespace stratagem::study
