// Schedules that are a few op-orders with arithmetic, a file each. i is a stage, m a micro-batch, S
// and M say how many there are.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "strategies/plan.hpp"

namespace stratagem::strategies {

using Lets = std::vector<std::pair<std::string, std::string>>;

void gpipe(Plan& plan);
void one_f_one_b(Plan& plan);
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
