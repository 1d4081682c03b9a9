// Lowers segments in the order in which borders become known; a key of everything that matters
// finds equal ones.
#include "strategies/lower/blocks.hpp"

#include <utility>

namespace stratagem::strategies {
namespace {

using model::TensorId;

std::string text_of(const std::map<int, Border>& borders) {
  std::string text;
  for (const auto& [place, border] : borders) {
    text += "@" + std::to_string(place) + "c" + std::to_string(static_cast<int>(border.category));
    for (const AxisRole& role : border.layout) text += "," + std::to_string(role.dim);
  }
  return text;
}

}  // namespace

Blocks::Blocks(const Plan& plan, const cost::Stack& stack, const Stages& stages, Groups& groups,
               Program& program)
    : plan_(plan), stack_(stack), stages_(stages), groups_(groups), program_(program) {
  const auto segments = static_cast<int>(stages.facts().size());
  forward_.resize(segments);
  backward_.resize(segments);
  for (int segment = 0; segment < segments; ++segment) lower_forward_of(segment);
  for (int segment = segments - 1; segment >= 0; --segment) lower_backward_of(segment);
}

const NumberedBlock& Blocks::shared(const std::string& key,
                                    const std::function<LoweredBlock()>& lower) {
  std::unique_ptr<NumberedBlock>& block = known_[key];
  if (!block) {
    block = std::make_unique<NumberedBlock>(NumberedBlock{-1, lower()});
    block->id = add(block->lowered.block);
  }
  return *block;
}

int Blocks::add(Block block) {
  program_.blocks.push_back(std::move(block));
  return static_cast<int>(program_.blocks.size()) - 1;
}

BlockContext Blocks::context(int segment) const {
  return {plan_, stack_, stages_.grid_of_segment(segment), groups_, stages_.facts(segment)};
}

std::map<int, Border> Blocks::borders_of(const SegmentFacts& facts,
                                         const std::vector<TensorId>& tensors) const {
  std::map<int, Border> borders;
  for (const TensorId tensor : tensors) borders[facts.place.at(tensor)] = borders_.at(tensor);
  return borders;
}

/// As what the segment that reads an activation counts it.
Category Blocks::category_for_reader(TensorId activation) const {
  const int reader = stages_.reader(activation);
  if (plan_.recomputes(reader)) return Category::checkpoints;
  return stages_.facts(reader).kept.contains(activation) ? Category::activations
                                                         : Category::temporaries;
}

void Blocks::lower_forward_of(int segment) {
  const SegmentFacts& facts = stages_.facts(segment);
  const std::map<int, Border> in = borders_of(facts, facts.activations_in);
  std::string key =
      "F" + structure_key(plan_, stages_.grid_of_segment(segment), facts) + text_of(in);
  std::map<int, Category> out;
  for (const TensorId tensor : facts.activations_out) {
    // What leaves for another stage is only passing through here.
    const bool sent = stages_.of(stages_.reader(tensor)) != stages_.of(segment);
    const Category category = sent ? Category::temporaries : category_for_reader(tensor);
    out[facts.place.at(tensor)] = category;
    key += "o" + std::to_string(static_cast<int>(category));
  }
  forward_[segment] = &shared(key, [&] { return lower_forward(context(segment), in, out); });
  for (const TensorId tensor : facts.activations_out) {
    borders_[tensor] = forward_[segment]->lowered.out.at(facts.place.at(tensor));
    borders_[tensor].category = category_for_reader(tensor);
  }
}

/// What the forward pass left for the backward pass: a recomputed segment's inputs, or all that
/// gradients read.
std::map<int, Border> Blocks::kept_for_backward(int segment) const {
  const SegmentFacts& facts = stages_.facts(segment);
  std::map<int, Border> kept;
  for (const TensorId tensor : facts.activations_in) {
    const bool needed = plan_.recomputes(segment) || facts.kept.contains(tensor);
    if (needed) kept[facts.place.at(tensor)] = borders_.at(tensor);
  }
  if (plan_.recomputes(segment)) return kept;
  const std::map<int, Border>& out = forward_[segment]->lowered.out;
  for (const TensorId tensor : facts.kept) {
    const auto found = out.find(facts.place.at(tensor));
    if (found != out.end()) kept.insert(*found);
  }
  return kept;
}

void Blocks::lower_backward_of(int segment) {
  const SegmentFacts& facts = stages_.facts(segment);
  const std::map<int, Border> kept = kept_for_backward(segment);
  const std::map<int, Border> in = borders_of(facts, facts.gradients_in);
  const std::string key = "B" + structure_key(plan_, stages_.grid_of_segment(segment), facts) +
                          text_of(kept) + text_of(in);
  backward_[segment] = &shared(key, [&] { return lower_backward(context(segment), kept, in); });
  for (const TensorId tensor : facts.gradients_out) {
    borders_[tensor] = backward_[segment]->lowered.out.at(facts.place.at(tensor));
  }
}

}  // namespace stratagem::strategies
