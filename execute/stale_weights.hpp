// The reference run for plans without a flush: one device that reads equally old weights.
#pragma once

#include "model/graph.hpp"
#include "program/program.hpp"

namespace stratagem::execute {

/// The program of one device, with room for the versions of the weights that another program of the
/// same model reads, and with calls that read them: every segment of a micro-batch those that it
/// reads there. Itself where that program has a flush. What it computes is then
///   w(t+1) = w(t) - step(mean over micro-batches m of the gradient at w_s(max(0, t - behind(s,
///       m))))
/// for the weights w_s of every segment s. Source: Narayanan et al., PipeDream, SOSP 2019, section
/// 3.3. Which versions those are is the plan's word: tests hold it to the papers.
program::Program reading_as(const program::Program& plan, program::Program one_device,
                            const model::Graph& graph);

}  // namespace stratagem::execute
