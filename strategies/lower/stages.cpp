// Checks that stages stand on disjoint, equal grids that fill the devices, and that activations
// cross one border.
#include "strategies/lower/stages.hpp"

#include <map>
#include <string>

#include "base/input_error.hpp"

namespace stratagem::strategies {

Stages::Stages(const Plan& plan) : facts_(segment_facts(plan.graph())) {
  place_segments(plan);
  place_devices();
  check_borders(plan.graph());
}

void Stages::place_segments(const Plan& plan) {
  of_segment_.assign(facts_.size(), -1);
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
    grids_.push_back(grid_of(plan, plan.stages[stage]));
    for (const int segment : plan.stages[stage]) of_segment_[segment] = static_cast<int>(stage);
    if (grids_.back().sizes() != grids_.front().sizes()) {
      throw InputError("", "/strategy", "stages with equal grids of devices", "");
    }
  }
}

void Stages::place_devices() {
  std::map<int, int> stage_of;
  for (std::size_t stage = 0; stage < grids_.size(); ++stage) {
    for (int i = 0; i < grids_[stage].count(); ++i) {
      const int device = grids_[stage].device(grids_[stage].coordinates(i));
      if (!stage_of.emplace(device, static_cast<int>(stage)).second) {
        throw InputError("", "/strategy", "one part of one stage on each device",
                         "two on device " + std::to_string(device));
      }
    }
  }
  for (const auto& [device, stage] : stage_of) {
    if (device != static_cast<int>(of_device_.size())) {
      throw InputError("", "/strategy",
                       "a part of the plan on device " + std::to_string(of_device_.size()), "none");
    }
    of_device_.push_back(stage);
  }
}

void Stages::check_borders(const model::Graph& graph) {
  for (const SegmentFacts& facts : facts_) {
    for (const model::TensorId tensor : facts.activations_out) producer_[tensor] = facts.segment;
  }
  for (const SegmentFacts& facts : facts_) {
    for (const model::TensorId tensor : facts.activations_in) {
      const std::string& name = graph.tensors[tensor].name;
      if (!reader_.emplace(tensor, facts.segment).second) {
        throw InputError("", "/model", "every activation to be read by one segment besides its own",
                         name);
      }
      const int distance = of(facts.segment) - of(producer(tensor));
      if (distance < 0 || distance > 1) {
        throw InputError("", "/strategy", "activations to cross from a stage to the next only",
                         name);
      }
    }
  }
}

}  // namespace stratagem::strategies
