// Lowers segments in the order in which the layouts at their borders become known. A key of
// everything that affects a block finds equal ones.
#include "lowering/blocks/blocks.hpp"

#include <algorithm>
#include <utility>

#include "lowering/blocks/block.hpp"
#include "lowering/stages/operands.hpp"

namespace stratagem::lowering {

using program::Category;

namespace {

using model::TensorId;

std::string text_of(const std::optional<placement::Mask>& mask) {
  if (!mask) return "-";
  std::string text = std::to_string(mask->value.index) + "/" + std::to_string(mask->value.count);
  for (const placement::Range& range : mask->ranges)
    text += "," + std::to_string(range.begin) + ":" + std::to_string(range.end);
  return text;
}

std::string text_of(const std::map<int, Border>& borders) {
  std::string text;
  for (const auto& [place, border] : borders) {
    text += "@" + std::to_string(place) + "c" + std::to_string(static_cast<int>(border.category));
    for (const placement::AxisRole& role : border.layout)
      text += (role.inner ? ",inner " : ",") + std::to_string(role.dim);
    for (const std::optional<placement::Mask>& mask : border.masks) text += ";" + text_of(mask);
  }
  return text;
}

/// The borders of those tensors that `wanted` holds.
std::map<int, Border> only(const std::map<int, Border>& borders, const SegmentFacts& facts,
                           const std::set<TensorId>& wanted) {
  std::map<int, Border> result;
  for (const auto& [place, border] : borders) {
    if (wanted.contains(facts.tensors[place])) result.emplace(place, border);
  }
  return result;
}

}  // namespace

const NumberedBlock& BlockTable::shared(const std::string& key,
                                        const std::function<LoweredBlock()>& lower) {
  std::unique_ptr<NumberedBlock>& block = known_[key];
  if (!block) {
    block = std::make_unique<NumberedBlock>(NumberedBlock{-1, lower()});
    block->id = add(block->lowered.block);
  }
  return *block;
}

const NumberedBlock& BlockTable::shared_parts(const std::string& key, int copies,
                                              const std::function<LoweredPass(int copy)>& lower) {
  std::unique_ptr<NumberedBlock>& block = known_[key];
  if (block) return *block;
  block = std::make_unique<NumberedBlock>();
  for (int copy = 0; copy < copies; ++copy) {
    LoweredPass lowered = lower(copy);
    std::vector<NumberedBlock>& parts = block->parts.emplace_back();
    for (LoweredBlock& one : lowered.blocks) {
      const int id = add(one.block);
      parts.push_back({id, std::move(one)});
    }
    block->lowered.out = std::move(lowered.out);  // equal for all copies
  }
  return *block;
}

int BlockTable::add(program::Block block) {
  program_.blocks.push_back(std::move(block));
  return static_cast<int>(program_.blocks.size()) - 1;
}

Blocks::Blocks(const strategies::Plan& plan, const TokenSlice& slice, const cost::Stack& stack,
               const cost::Precision& precision, const Stages& stages, Groups& groups,
               BlockTable& table)
    : plan_(plan),
      slice_(slice),
      sized_(slice.whole() ? std::nullopt : std::optional(sliced(plan.graph(), slice))),
      graph_(sized_ ? *sized_ : plan.graph()),
      stack_(stack),
      precision_(precision),
      stages_(stages),
      groups_(groups),
      table_(table) {
  const auto segments = static_cast<int>(stages.facts().size());
  segments_.resize(segments);
  for (int segment = 0; segment < segments; ++segment)
    recomputations_.emplace_back(plan, stages.facts(), segment);
  for (int segment = 0; segment < segments; ++segment) {
    const placement::Grid& grid = stages.grid_of_segment(segment);
    const int stage = stages.of(segment);
    const int family = stages.irregular(stage) ? -1 - stage : groups.family(grid);
    const std::string key = structure_key(plan, grid, family, stages.facts(segment)) +
                            recomputations_[segment].key(stages.facts(segment));
    structures_.push_back(
        known_structures_.emplace(key, static_cast<int>(known_structures_.size())).first->second);
    lower_forward_of(segment);
  }
  for (int segment = 0; segment < segments; ++segment) {
    if (recomputations_[segment].together()) lower_again_of(segment);
  }
  for (int segment = segments - 1; segment >= 0; --segment) {
    const int stage = stages.of(segment);
    bool whole = false;
    bool split = false;
    for (int m = 0; m < plan.micro_batches; ++m)
      (plan.splits_backward(stage, m) ? split : whole) = true;
    lower_backward_of(segment, whole, split);
  }
}

std::vector<const NumberedBlock*> Blocks::with_weights(int segment) const {
  const SegmentBlocks& blocks = segments_[segment];
  if (blocks.backward != nullptr) return {blocks.backward};
  if (blocks.weight != nullptr) return {blocks.input, blocks.weight};
  return {};
}

BlockContext Blocks::context(int segment, int copy) const {
  const int replica = stages_.replica(stages_.of(segment), copy);
  return {plan_,
          graph_,
          slice_,
          stack_,
          precision_,
          stages_.replicas()[replica].grid,
          groups_,
          stages_.facts(segment),
          recomputations_[segment],
          replica,
          copy};
}

Blocks::Borders Blocks::borders_of(const SegmentFacts& facts,
                                   const std::vector<TensorId>& tensors) const {
  Borders borders;
  for (const TensorId tensor : tensors)
    borders[facts.place.at(tensor)] = borders_.arrived.at(tensor);
  return borders;
}

/// Notes how a tensor from another segment lies where one of `ops` of this one reads it.
void Blocks::arrive(int segment, const std::vector<model::OpId>& ops, TensorId tensor, int from) {
  Border border = borders_.left.at(tensor);
  const bool same_axes =
      stages_.grid_of_segment(from).axes == stages_.grid_of_segment(segment).axes;
  const int stage = stages_.of(segment);
  const bool stays = stages_.transfer(stages_.of(from), stage) == StageTransfer::stays;
  const bool listed = stages_.irregular(stage) || !border.masks.empty();
  if (!same_axes || (!stays && listed)) {
    const placement::Grid& grid = stages_.grid_of_segment(segment);
    border = border_of(first_reading(plan_, grid, 0, ops, tensor), grid, border.category);
  }
  borders_.crossed[{tensor, stages_.of(from), stage}] = {borders_.left.at(tensor), border};
  borders_.arrived[tensor] = border;
}

const Border& Blocks::leaving(TensorId tensor, int from, int to) const {
  const auto found = borders_.crossed.find({tensor, from, to});
  return found == borders_.crossed.end() ? borders_.left.at(tensor)
                                         : found->second.first;  // recycled
}

const Border& Blocks::arriving(TensorId tensor, int from, int to) const {
  const auto found = borders_.crossed.find({tensor, from, to});
  return found == borders_.crossed.end() ? borders_.arrived.at(tensor) : found->second.second;
}

/// As what the segment that reads an activation counts it.
Category Blocks::category_for_reader(TensorId activation) const {
  const Recomputation& again = recomputations_[stages_.reader(activation)];
  return again.kept().contains(activation) ? again.category_of(plan_.graph(), activation)
                                           : Category::temporaries;
}

std::string Blocks::key_of(int segment, const std::string& what) const {
  return what + std::to_string(structures_[segment]) + "/" + std::to_string(slice_.begin) + "/";
}

/// Is a segment the last of its stage to use what another stage recycles? It leaves it to be sent.
bool Blocks::sends_again(const Recycled& one, int segment) const {
  if (stages_.of(one.producer) != stages_.of(segment)) return false;
  if (stages_.of(one.reader) == stages_.of(segment)) return false;
  const std::vector<TensorId>& out = stages_.facts(one.producer).activations_out;
  const bool read = std::ranges::find(out, one.tensor) != out.end();
  const int last = read && stages_.of(stages_.reader(one.tensor)) == stages_.of(one.producer)
                       ? stages_.reader(one.tensor)
                       : one.producer;
  return last == segment;
}

/// Copies on grids of axes share their blocks, too.
const NumberedBlock* Blocks::shared(int segment, const std::string& key,
                                    const std::function<LoweredPass(int copy)>& lower) {
  if (stages_.grid_of_segment(segment).listed.empty()) {
    return &table_.shared(key, [&] {
      LoweredPass pass = lower(0);
      pass.blocks.front().out = std::move(pass.out);
      return std::move(pass.blocks.front());
    });
  }
  return &table_.shared_parts(key, plan_.copies().of(stages_.of(segment)), lower);
}

const NumberedBlock* Blocks::forward_block(int segment, const Borders& in,
                                           const std::map<int, Category>& leaves, ForwardRun run,
                                           const std::string& key) {
  const char* name = run == ForwardRun::trains ? "F" : run == ForwardRun::infers ? "I" : "A";
  return shared(segment, key_of(segment, name) + key,
                [&](int copy) { return lower_forward(context(segment, copy), in, leaves, run); });
}

void Blocks::lower_forward_of(int segment) {
  const SegmentFacts& facts = stages_.facts(segment);
  for (const TensorId tensor : facts.activations_in)
    arrive(segment, plan_.graph().segments[segment].forward, tensor, stages_.producer(tensor));
  const Borders in = borders_of(facts, facts.activations_in);
  std::string key = text_of(in);
  std::map<int, Category> leaves;
  for (const TensorId tensor : facts.activations_out) {
    // What leaves for another stage is only passing through here.
    const int to = stages_.of(stages_.reader(tensor));
    const bool sent = stages_.transfer(stages_.of(segment), to) == StageTransfer::sends;
    const Category category = sent ? Category::temporaries : category_for_reader(tensor);
    leaves[facts.place.at(tensor)] = category;
    key += "o" + std::to_string(static_cast<int>(category));
  }
  segments_[segment].forward = forward_block(segment, in, leaves, ForwardRun::trains, key);
  if (plan_.graph().forward_repeats > 1) {
    const std::map<int, Category> without = leaves;
    for (const Recycled& one : stages_.recycled()) {
      if (!sends_again(one, segment)) continue;
      const bool passes_by = one.producer != segment;
      leaves[facts.place.at(one.tensor)] =
          passes_by ? borders_.arrived.at(one.tensor).category : Category::temporaries;
      key += "r" + std::to_string(facts.place.at(one.tensor));
    }
    segments_[segment].inference = forward_block(segment, in, leaves, ForwardRun::infers, key);
    for (const auto& [place, border] : segments_[segment].inference->lowered.out) {
      if (!without.contains(place)) borders_.left[facts.tensors[place]] = border;
    }
  }
  for (const TensorId tensor : facts.activations_out) {
    borders_.left[tensor] = segments_[segment].forward->lowered.out.at(facts.place.at(tensor));
    borders_.left[tensor].category = category_for_reader(tensor);
  }
}

/// What the forward pass left for the backward pass, of this segment's tensors and of those before.
std::map<int, Border> Blocks::left_by_forward(int segment) const {
  const SegmentFacts& facts = stages_.facts(segment);
  const std::set<TensorId>& wanted = recomputations_[segment].kept();
  Borders kept = only(segments_[segment].forward->lowered.out, facts, wanted);
  for (const TensorId tensor : facts.activations_in) {  // but those of which it kept a part
    if (wanted.contains(tensor)) kept.emplace(facts.place.at(tensor), borders_.arrived.at(tensor));
  }
  return kept;
}

/// What a segment reads when it runs again together with others: checkpoints, and what those before
/// it have computed again.
Blocks::Borders Blocks::arriving_again(int segment) const {
  const SegmentFacts& facts = stages_.facts(segment);
  Borders in = left_by_forward(segment);
  for (const TensorId tensor : facts.activations_in) {
    if (recomputations_[segment].handed_on(tensor))
      in.emplace(facts.place.at(tensor), borders_.again.at(tensor));
  }
  return in;
}

void Blocks::lower_again_of(int segment) {
  const SegmentFacts& facts = stages_.facts(segment);
  const Borders in = arriving_again(segment);
  std::string key = text_of(in);
  std::map<int, Category> leaves;
  for (const TensorId tensor : facts.activations_out) {
    const Recomputation& reader = recomputations_[stages_.reader(tensor)];
    if (!reader.together() || !reader.handed_on(tensor)) continue;
    const Category category = reader.kept_again().contains(tensor)
                                  ? reader.category_of(plan_.graph(), tensor)
                                  : Category::temporaries;
    leaves[facts.place.at(tensor)] = category;
    key += "o" + std::to_string(facts.place.at(tensor)) + "c" +
           std::to_string(static_cast<int>(category));
  }
  segments_[segment].again = forward_block(segment, in, leaves, ForwardRun::again, key);
  for (const auto& [place, category] : leaves)
    borders_.again[facts.tensors[place]] = segments_[segment].again->lowered.out.at(place);
}

/// What a segment's backward pass finds.
Blocks::Borders Blocks::left_for_backward(int segment) const {
  const Recomputation& groups = recomputations_[segment];
  if (!groups.together()) return left_by_forward(segment);
  const SegmentFacts& facts = stages_.facts(segment);
  Borders kept = only(segments_[segment].again->lowered.out, facts, groups.kept_again());
  kept.merge(only(arriving_again(segment), facts, groups.kept_again()));
  return kept;
}

const NumberedBlock* Blocks::backward_block(int segment, const Borders& kept, BackwardPart part) {
  const SegmentFacts& facts = stages_.facts(segment);
  Borders in;
  if (part != BackwardPart::weight) in = borders_of(facts, facts.gradients_in);
  const char* name = part == BackwardPart::both ? "B" : part == BackwardPart::input ? "b" : "W";
  return shared(segment, key_of(segment, name) + text_of(kept) + text_of(in),
                [&](int copy) { return lower_backward(context(segment, copy), kept, in, part); });
}

/// What is kept, and the gradients of parameters that later segments of the stage have begun to sum
/// up.
Blocks::Borders Blocks::with_begun(int segment, Borders kept) const {
  const SegmentFacts& facts = stages_.facts(segment);
  for (const auto& [key, border] : borders_.begun) {
    const auto place = facts.place.find(key.second);
    if (key.first == stages_.of(segment) && place != facts.place.end())
      kept.emplace(place->second, border);
  }
  return kept;
}

void Blocks::note_begun(int segment, const NumberedBlock* block) {
  if (block == nullptr) return;
  for (const int place : block->lowered.whole_gradients) {
    borders_.begun[{stages_.of(segment), stages_.facts(segment).tensors[place]}] = {
        block->lowered.gradients.at(place), Category::whole_gradients};
  }
}

void Blocks::lower_backward_of(int segment, bool whole, bool split) {
  const SegmentFacts& facts = stages_.facts(segment);
  for (const TensorId activation : facts.activations_out) {
    const TensorId gradient = plan_.graph().gradient_of[activation];
    if (gradient >= 0 && borders_.left.contains(gradient)) {
      arrive(segment, plan_.graph().segments[segment].backward, gradient,
             stages_.reader(activation));
    }
  }
  SegmentBlocks& blocks = segments_[segment];
  const Borders kept = left_for_backward(segment);
  if (whole)
    blocks.backward = backward_block(segment, with_begun(segment, kept), BackwardPart::both);
  if (split) {
    const Recomputation& again = recomputations_[segment];
    blocks.input =
        backward_block(segment, with_begun(segment, only(kept, facts, again.read_by_input())),
                       BackwardPart::input);
    note_begun(segment, blocks.input);
    Borders for_weights = only(kept, facts, again.read_by_weight());
    for_weights.merge(only(borders_of(facts, facts.gradients_in), facts, again.read_by_weight()));
    for_weights.merge(only(blocks.input->lowered.out, facts, again.read_by_weight()));
    blocks.weight = backward_block(segment, with_begun(segment, for_weights), BackwardPart::weight);
  }
  note_begun(segment, blocks.weight);
  note_begun(segment, blocks.backward);
  const NumberedBlock* sends = whole ? blocks.backward : blocks.input;
  for (const TensorId tensor : facts.gradients_out) {
    borders_.left[tensor] = sends->lowered.out.at(facts.place.at(tensor));
  }
}

}  // namespace stratagem::lowering
