// Refusals of models that a run's GPU, framework or tensor ranks cannot run.
#pragma once

#include "base/json_reader.hpp"
#include "study/run.hpp"

namespace stratagem::study {

/// Fused attention needs a GPU that has been seen to run it. Throws InputError.
void check_attention(const Run& run, const JsonReader& model);

/// Whatever is kept in caches, or drops nothing, is not trained; what is not trained drops nothing.
/// Throws InputError at the key of the model, or of the strategy that acts on backward passes alone.
void check_use(const Run& run, const JsonReader& model);

/// Tensor ranks divide keys and values, which frameworks copy where there are fewer, and expert
/// ranks the experts. Throws InputError at the key that says how many there are.
void check_divided(const Run& run, const JsonReader& model);

}  // namespace stratagem::study
