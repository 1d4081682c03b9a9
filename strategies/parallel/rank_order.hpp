// The kinds of ranks that a device has, how many of each there are, and which stand next to each
// other.
#pragma once

#include <string>
#include <vector>

#include "strategies/parallel/options.hpp"

namespace stratagem::strategies {

/// The kinds of ranks of all strategies, innermost first unless the user says another order: those
/// that divide last stand next to each other, and stages, which exchange the least, outermost.
std::vector<std::string> rank_kinds();
/// The keys that say how many: "tensor x context x ...".
std::string rank_keys();

/// All kinds of ranks in the order of these options, innermost first.
std::vector<std::string> order_of_ranks(const Options& options);
/// By how much ranks of a kind multiply the devices, as their strategy says.
int size_of(const Options& options, const std::string& kind);
/// Devices from one rank of a kind to the next: the sizes of all kinds inside it.
int stride_of(const Options& options, const std::string& kind);
/// The kinds of which there are several ranks: "tensor 8 x pipeline 4"; "data 1" if there are none.
std::string degrees_of(const Options& options);
/// The sizes of all kinds, multiplied.
int devices_of(const Options& options);

}  // namespace stratagem::strategies
