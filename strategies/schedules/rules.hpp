// Schedules that are a few op-orders with arithmetic, a file each. i is a stage, m a micro-batch, S
// and M say how many there are.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "strategies/plan/plan.hpp"

namespace stratagem::strategies {

using Lets = std::vector<std::pair<std::string, std::string>>;

void gpipe(Plan& plan);
void one_f_one_b(Plan& plan);
/// How many forward cells every copy of a stage runs ahead of its backward cells in 1F1B:
/// floor((n - 1 - copies in stages before) / copies of the stage), n being all copies of all
/// stages; with one of each S-1-i. So copies x (warm-up + 1) micro-batches are in flight, as few as
/// give one to every copy of this and of all later stages. Source: Narayanan et al., PipeDream,
/// SOSP 2019, section 3.2; the number is that of its runtime (num_warmup_minibatches).
int warm_up(const std::vector<int>& copies, int stage);
void bpipe(Plan& plan);
/// Asynchronous: no flush, every micro-batch reads the newest weights, or on every stage those that
/// were newest on the first (vertical sync).
void pipedream(Plan& plan);
void pipedream_vertical(Plan& plan);
/// Asynchronous with two versions of the weights.
void pipedream_2bw(Plan& plan);
/// Three forward passes and one backward pass.
void three_f_one_b(Plan& plan);

}  // namespace stratagem::strategies
