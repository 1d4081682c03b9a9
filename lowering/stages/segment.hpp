// Facts about one segment: a table of its tensors, what crosses its borders, what it keeps.
#pragma once

#include <boost/container/flat_map.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "placement/grid.hpp"
#include "strategies/plan/plan.hpp"

namespace stratagem::lowering {

/// Facts about one segment that follow from the graph alone. Tensors are named by their place in
/// `tensors`, so that segments of the same structure (the layers of a model) have equal facts.
struct SegmentFacts {
  int segment = 0;
  /// In order of first appearance: forward, then backward operators.
  std::vector<model::TensorId> tensors;
  boost::container::flat_map<model::TensorId, int> place;  ///< the inverse
  /// Among forward, then backward operators.
  boost::container::flat_map<model::OpId, int> place_of_operator;
  /// Computed by earlier segments, read by forward operators here.
  std::vector<model::TensorId> activations_in;
  /// Computed here, read by forward operators of later segments.
  std::vector<model::TensorId> activations_out;
  /// Computed by later segments (or given), read by backward operators.
  std::vector<model::TensorId> gradients_in;
  std::vector<model::TensorId> gradients_out;  ///< gradients of activations_in
  std::set<model::TensorId> kept;              ///< activations that backward operators here read

  /// What runs in B and in W where the two are split. A weight gradient of a gradient that leaves
  /// the segment runs in B, since that gradient's next reader frees it.
  std::vector<model::OpId> input_gradients;
  std::vector<model::OpId> weight_gradients;
  std::set<model::TensorId> read_by_input;   ///< activations and gradients that B reads
  std::set<model::TensorId> read_by_weight;  ///< that W reads
};

std::vector<SegmentFacts> segment_facts(const model::Graph& graph);

/// The key of a block: the structure of the segment's operators on their grid and its family of
/// groups, without names of segments or numbers of devices. Segments with equal keys have equal
/// blocks.
std::string structure_key(const strategies::Plan& plan, const placement::Grid& grid, int family,
                          const SegmentFacts& facts);

/// "attention.qkv" for operator "layers.12.attention.qkv" of segment "layers.12".
std::string_view name_within(const model::Graph& graph, const model::Operator& op);

}  // namespace stratagem::lowering
