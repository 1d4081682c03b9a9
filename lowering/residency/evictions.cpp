// Adds one call for each side of each copy.
#include "lowering/residency/evictions.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/input_error.hpp"
#include "placement/local_part.hpp"

namespace stratagem::lowering {

using placement::CellPass;
using strategies::Eviction;

namespace {

/// One side of an eviction: what a stage's forward cell keeps goes to the devices that take it in,
/// or `back`. Evictions concern whole micro-batches.
program::Block eviction_block(const strategies::Plan& plan, const Stages& stages,
                              const Blocks& blocks, int stage, int group, bool back, bool sends) {
  program::Block block{.name = std::string(back ? "fetch" : "evict") + " activations",
                       .slots = {},
                       .tasks = {program::Task{}}};
  program::Task& task = block.tasks.front();
  Bytes total;
  for (const int segment : plan.stages[stage]) {
    const SegmentFacts& facts = stages.facts(segment);
    for (const auto& [place, border] : blocks.left_by_forward(segment)) {
      const model::Tensor& t = plan.graph().tensors[facts.tensors[place]];
      const Bytes bytes = local_bytes(t, border.layout, stages.grid_of_segment(segment));
      const auto slot = static_cast<int>(block.slots.size());
      (sends ? task.reads : task.writes).push_back(slot);
      (sends ? task.frees : task.allocates).push_back(slot);
      block.slots.push_back({t.name, facts.tensors[place], bytes, border.category});
      total += bytes;
    }
  }
  task.name = block.name;
  task.work =
      program::Collective{.kind = cost::CollectiveKind::send, .group = group, .payload = total};
  task.stream = sends ? program::Stream::send_forward : program::Stream::receive_forward;
  return block;
}

}  // namespace

std::optional<Eviction> Evictions::eviction_of(const placement::Cell& cell) const {
  const auto found = c_.plan.evictions().find({cell.stage, cell.micro_batch});
  if (found == c_.plan.evictions().end()) return std::nullopt;
  return Eviction{cell.stage, cell.micro_batch, found->second};
}

bool Evictions::stands_in(int device_class, int stage) const {
  const std::vector<int>& replicas = c_.stages.device_classes()[device_class].replicas;
  return std::ranges::any_of(replicas,
                             [&](int s) { return c_.stages.replicas()[s].stage == stage; });
}

void Evictions::add_copies_for_peers() {
  if (c_.plan.evictions().empty()) return;
  std::map<std::pair<int, int>, Written> taken_in;  // by stage and micro-batch
  for (std::size_t owner = 0; owner < c_.order.rounds.size(); ++owner) {
    for (const ScheduledCell& of : c_.order.rounds[owner]) {
      const placement::Cell& cell = of.cell;
      const std::optional<Eviction> eviction = eviction_of(cell);
      if (!eviction || cell.pass == CellPass::weight) continue;
      if (!stands_in(static_cast<int>(owner), cell.stage)) continue;
      if (!draft_.runs_replica(draft_.replica_of(eviction->guest_of, cell))) continue;
      const bool returns = cell.pass == CellPass::backward;
      const int call = move(*eviction, of, returns, true);
      const std::pair key(cell.stage, cell.micro_batch);
      if (returns) draft_.wait(call, 0, taken_in.at(key));
      taken_in[key] = {call, 0};
    }
  }
}

void Evictions::evict_from(const ScheduledCell& of) {
  const std::optional<Eviction> eviction = eviction_of(of.cell);
  if (!eviction || of.cell.pass != CellPass::forward) return;
  const Written last = draft_.last_computation();
  draft_.wait(move(*eviction, of, false, false), 0, last);
}

std::optional<Written> Evictions::fetch_for(const ScheduledCell& of) {
  const std::optional<Eviction> eviction = eviction_of(of.cell);
  if (!eviction || of.cell.pass != CellPass::backward) return std::nullopt;
  const Written last = draft_.last_computation();
  const int call = move(*eviction, of, true, false);
  draft_.wait(call, 0, last);
  return Written{call, 0};
}

/// One side of one copy: away or back, of the guest or of its owner.
int Evictions::move(const Eviction& eviction, const ScheduledCell& of, bool back, bool guest) {
  const placement::Grid& owner = draft_.replica(eviction.stage, of.cell).grid;
  const placement::Grid& lender = draft_.replica(eviction.guest_of, of.cell).grid;
  if (owner.axes != lender.axes || !owner.listed.empty())
    throw InputError("", "", "evictions between stages with equal grids of devices", "");
  const int group = back ? c_.groups.across({lender, owner}, -3 - eviction.stage)
                         : c_.groups.across({owner, lender}, -3 - eviction.stage);
  const std::string key = "evict " + std::to_string(eviction.stage) + (back ? "b" : "a") +
                          (guest ? "g" : "o") + std::to_string(group);
  const int block = draft_.shared(key, [&] {
    return eviction_block(c_.plan, c_.stages, *c_.slices.front(), eviction.stage, group, back,
                          back == guest);
  });
  return draft_.add_call(block, -1, of);
}

}  // namespace stratagem::lowering
