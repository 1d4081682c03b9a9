// A run's model as rows of layers, and what each takes of a device: what is divided into stages.
#pragma once

#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "study/least_times.hpp"
#include "study/run.hpp"

namespace stratagem::search {

/// A layer with what cannot be parted from it, an end of the model, or several of these in a row.
struct Row {
  int layers = 1;  ///< 0 of an end of the model
  /// The passes of a micro-batch on a device, with the collectives that they wait for, as if these
  /// had all links to themselves.
  study::Picoseconds time = 0;
  Bytes at_steps;    ///< parameters, gradients and states
  Bytes parameters;  ///< among these
  Bytes gradients;   ///< likewise
  Bytes leaves;      ///< of a micro-batch, from its forward pass to its backward pass
  Bytes waits;       ///< likewise, from there to a weight pass of its own
  Bytes rises;       ///< what a pass needs besides, while it runs
  Bytes passes_on;   ///< what the next row reads
};

/// Micro-batches whose next pass on a stage is the backward pass, or a weight pass of its own.
struct InFlight {
  int backward = 0;
  int weight = 0;
  friend bool operator==(const InFlight&, const InFlight&) = default;
};

struct Rows {
  std::vector<Row> rows;
  /// By stage: the pairs that one iteration has at some time, without those of which another has
  /// no fewer of both.
  std::vector<std::vector<InFlight>> in_flight;
  std::vector<int> versions;  ///< by stage: of its weights, kept at once
  Bytes room;                 ///< of a device, for all of the above
  int micro_batches = 1;
  bool flush = true;  ///< do iterations follow each other? Else more is in flight
};

/// Rows of a run whose strategy divides its model into stages, as that strategy divides each of
/// them: priced in a plan with equally many layers in each stage, as far as that goes. Throws
/// InputError where stages have no device each to themselves, where their cells are not all alike,
/// and what plan_of throws.
Rows rows_of(const study::Run& run);

/// By row and row behind the last: all of these as one.
std::vector<std::vector<Row>> joined(const std::vector<Row>& rows);

/// What such rows need of a device's memory at the fullest of these times.
Bytes needs(const Row& rows, const std::vector<InFlight>& in_flight, int versions);

/// "embedding, layers 0-5", "layer 6", "head".
std::string words(const std::vector<Row>& rows, int from, int to);

}  // namespace stratagem::search
