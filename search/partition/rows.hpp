// A run's model as rows of layers, and what each takes of a device: what is divided into stages.
#pragma once

#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "study/least_times.hpp"
#include "study/scenario.hpp"

namespace stratagem::search {

/// A layer with what cannot be parted from it, or an end of the model.
struct Row {
  int layers = 1;  ///< 0 of an end of the model
  /// The passes of a micro-batch on a device, with the collectives that they wait for, as if these
  /// had all links to themselves.
  study::Picoseconds time = 0;
  /// Parameters, gradients and states; of parameters as many versions as a stage keeps at most.
  Bytes at_steps;
  Bytes gradients;  ///< among these
  Bytes leaves;     ///< of a micro-batch, from its forward pass to its backward pass
  Bytes rises;      ///< what a pass needs besides, while it runs
  Bytes passes_on;  ///< what the next row reads
};

struct Rows {
  std::vector<Row> rows;
  std::vector<int> in_flight;  ///< by stage: the most micro-batches that have left something there
  Bytes room;                  ///< of a device, for all of the above
  int micro_batches = 1;
};

/// Rows of a run whose strategy divides its model into stages, as that strategy divides each of
/// them: measured on a plan with equally many layers in each stage, as far as that goes. Throws
/// InputError where stages have no device each to themselves, where their cells are not all alike,
/// and what plan_of throws.
Rows rows_of(const study::Run& run);

/// What rows `from` to `to` - 1 need of a device's memory while so many micro-batches wait.
Bytes needs(const std::vector<Row>& rows, int from, int to, int in_flight);

/// "embedding, layers 0-5", "layer 6", "head".
std::string words(const std::vector<Row>& rows, int from, int to);
/// How many layers rows `from` to `to` - 1 have.
int layers(const std::vector<Row>& rows, int from, int to);

}  // namespace stratagem::search
