// The parts of an operator wherever they stand: their devices, and the masks that each reads and
// writes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "placement/mask.hpp"
#include "strategies/plan/plan.hpp"

namespace stratagem::lowering {

/// What every op-trans made of one operator of one copy: parts in row-major order of the axes.
struct OperatorParts {
  std::vector<int> devices;            ///< by part
  std::vector<int> sizes;              ///< of the axes
  std::vector<std::string> dims;       ///< that they divide; "" replicates
  std::vector<std::int64_t> elements;  ///< of the dimension, as the forward operator sees it
};

/// Of a backward operator the parts of its forward operator. Where the plan gives no list, axes are
/// ordered from the largest stride to the smallest, as in a grid. Throws InputError where a part
/// has no device, or two have one.
OperatorParts parts_of(const strategies::Plan& plan, model::OpId op, int copy);

/// What a part sees of the i-th input or output. Parts of a reduction leave parts of the value.
/// Throws InputError where the tensor has to divide evenly and does not.
placement::Mask input_mask(const strategies::Plan& plan, model::OpId op, std::size_t i,
                           const OperatorParts& parts, std::size_t part);
placement::Mask output_mask(const strategies::Plan& plan, model::OpId op, std::size_t i,
                            const OperatorParts& parts, std::size_t part);

/// The devices of all forward operators of some segments, ascending: those of an irregular stage.
/// The devices of another copy are in the order of the devices of copy 0 whose parts they have;
/// throws InputError if the copies do not correspond.
std::vector<int> devices_of(const strategies::Plan& plan, const std::vector<int>& segments,
                            int copy);

/// The same for plans that divide and place an operator alike.
std::string key_of(const OperatorParts& parts);

}  // namespace stratagem::lowering
