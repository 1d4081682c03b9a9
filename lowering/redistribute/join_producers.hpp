// Several masks that one device produces become one, where together they are one.
#pragma once

#include <vector>

#include "lowering/redistribute/steps.hpp"

namespace stratagem::lowering {

struct JoinedProducers {
  std::vector<Piece> pieces;
  std::vector<Step> steps;  ///< local ones that make the joined masks
};

/// Joins a device's masks where they are disjoint and make up one mask (box and value), unless the
/// sum would hide a part of the value that a consumer wants, or would overlap only partly with what
/// another device produces. So partial sums are made before anything is sent, and layouts with one
/// piece per device are recognised. Source: nnScaler, local_producer_fusion in graph/gener/gen.py.
JoinedProducers join_producers(const std::vector<Piece>& producers,
                               const std::vector<Piece>& consumers);

}  // namespace stratagem::lowering
