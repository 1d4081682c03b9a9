// What lowering knows of one segment: a table of its tensors, what crosses its borders, what it
// keeps.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "strategies/lower/grid.hpp"
#include "strategies/plan.hpp"

namespace stratagem::strategies {

/// Facts about one segment that follow from the graph alone. Tensors are named by their place in
/// `tensors`, so that segments of the same structure (the layers of a model) have equal facts.
struct SegmentFacts {
  int segment = 0;
  std::vector<model::TensorId>
      tensors;  ///< in order of first appearance: forward, then backward operators
  std::map<model::TensorId, int> place;  ///< the inverse
  std::vector<model::TensorId>
      activations_in;  ///< computed by earlier segments, read by forward operators here
  std::vector<model::TensorId>
      activations_out;  ///< computed here, read by forward operators of later segments
  std::vector<model::TensorId>
      gradients_in;  ///< computed by later segments (or given), read by backward operators
  std::vector<model::TensorId> gradients_out;  ///< gradients of activations_in
  std::set<model::TensorId> kept;              ///< activations that backward operators here read
};

std::vector<SegmentFacts> segment_facts(const model::Graph& graph);

/// Same key, same block: the structure of the segment's operators on their grid, without any name
/// of a segment.
std::string structure_key(const Plan& plan, const Grid& grid, const SegmentFacts& facts);

/// "attention.qkv" for operator "layers.12.attention.qkv" of segment "layers.12".
std::string name_within(const model::Graph& graph, const model::Operator& op);

}  // namespace stratagem::strategies
