// The types in which a rank may hold what it has.
#pragma once

#include "kernels/half.hpp"

/// Calls a macro with each: templates over them are compiled for these.
#define STRATAGEM_FOR_HELD_TYPES(instantiate) \
  instantiate(float) instantiate(double) instantiate(kernels::Half) instantiate(kernels::BFloat16)
