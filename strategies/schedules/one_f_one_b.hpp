// 1F1B, which other schedules begin with.
#pragma once

#include <vector>

#include "strategies/plan/plan.hpp"

namespace stratagem::strategies {

void order_one_f_one_b(Plan& plan);

/// How many forward cells every copy of a stage runs ahead of its backward cells in 1F1B:
/// floor((n - 1 - copies in stages before) / copies of the stage), n being all copies of all
/// stages; with one of each S-1-i. So copies x (warm-up + 1) micro-batches are in flight, as few as
/// give one to every copy of this and of all later stages. Source: Narayanan et al., PipeDream,
/// SOSP 2019, section 3.2; the number is that of its runtime (num_warmup_minibatches).
int warm_up(const std::vector<int>& copies, int stage);

}  // namespace stratagem::strategies
