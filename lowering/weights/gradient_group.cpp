// Compares the terms of a gradient that each device computes.
#include "lowering/weights/gradient_group.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::lowering {
namespace {

/// What an operator of a copy adds; of a regular stage all operators of a segment together.
using Term = std::tuple<int, int, placement::ValuePart>;
using Terms = std::set<Term>;

void add(Terms& terms, int copy, int op, const placement::Mask& mask, const placement::Mask& held,
         const std::string& gradient, int device) {
  if (mask.ranges != held.ranges) {
    throw InputError("", "",
                     "gradient " + gradient + " on device " + std::to_string(device) +
                         " to be of the part of the parameter that the device holds",
                     "");
  }
  terms.emplace(copy, op, mask.value);
}

/// What a block adds to a gradient, by the device at a position of a replica.
void add_terms(std::map<int, Terms>& terms, const NumberedBlock& block, const Replica& replica,
               int position, int place, int segment, const model::Tensor& gradient,
               const Holding& holding) {
  const std::vector<int> at = replica.grid.coordinates(position);
  const int device = replica.grid.device(at);
  const LoweredBlock& lowered = block.on(replica.copy, position).lowered;
  const auto layout = lowered.gradients.find(place);
  if (layout != lowered.gradients.end()) {
    add(terms[device], replica.copy, -1 - segment,
        mask_at(layout->second, gradient.shape, replica.grid.sizes(), at), holding.masks.at(device),
        gradient.name, device);
  }
  const auto masks = lowered.gradient_masks.find(place);
  if (masks == lowered.gradient_masks.end()) return;
  for (const auto& [op, mask] : masks->second)
    add(terms[device], replica.copy, op, mask, holding.masks.at(device), gradient.name, device);
}

/// By device that holds the parameter.
std::map<int, Terms> terms_by_device(const strategies::Plan& plan, const Stages& stages,
                                     const Blocks& blocks, const Holding& holding,
                                     model::TensorId gradient) {
  const model::Tensor& tensor = plan.graph().tensors[gradient];
  std::map<int, Terms> terms;
  for (const int index : holding.replicas) {
    const Replica& replica = stages.replicas()[index];
    for (const int segment : plan.stages[replica.stage]) {
      const auto place = stages.facts(segment).place.find(gradient);
      if (place == stages.facts(segment).place.end()) continue;
      for (const NumberedBlock* block : blocks.with_weights(segment)) {
        for (int i = 0; i < replica.grid.count(); ++i)
          add_terms(terms, *block, replica, i, place->second, segment, tensor, holding);
      }
    }
  }
  return terms;
}

/// Does every term belong to one set only, and is every set there equally often?
bool form_replicas(const std::map<Terms, std::vector<int>>& devices) {
  std::set<Term> seen;
  for (const auto& [terms, list] : devices) {
    if (list.size() != devices.begin()->second.size()) return false;
    for (const Term& term : terms) {
      if (!seen.insert(term).second) return false;
    }
  }
  return true;
}

}  // namespace

std::vector<int> gradient_group(const strategies::Plan& plan, const Stages& stages,
                                const Blocks& blocks, const Holding& holding,
                                model::TensorId gradient, int device) {
  std::map<Terms, std::vector<int>> alike;  // devices, ascending
  std::vector<int> all;
  for (const auto& [one, terms] : terms_by_device(plan, stages, blocks, holding, gradient)) {
    if (holding.masks.at(one) != holding.masks.at(device)) continue;
    alike[terms].push_back(one);
    all.push_back(one);
  }
  if (alike.size() < 2) return {device};
  if (!form_replicas(alike)) return all;
  std::size_t replica = 0;
  for (const auto& [terms, list] : alike) {
    const auto found = std::ranges::find(list, device);
    if (found != list.end()) replica = static_cast<std::size_t>(found - list.begin());
  }
  std::vector<int> group;
  group.reserve(alike.size());
  for (const auto& [terms, list] : alike) group.push_back(list[replica]);
  std::ranges::sort(group);
  return group;
}

}  // namespace stratagem::lowering
