// Builds send and receive tasks with the buffers that they free or fill.
#include "strategies/lower/transfer_blocks.hpp"

#include <utility>

namespace stratagem::strategies {
namespace {

/// A gradient has come: frees the activation that was kept for it.
void free_what_was_sent(Block& block, const Message& message, const Blocks& blocks,
                        const Grid& grid) {
  const model::Tensor& t = blocks.graph().tensors[message.activation];
  const Border& border = blocks.leaving(message.activation, message.to, message.from);
  block.slots.push_back({.name = t.name,
                         .tensor = message.activation,
                         .bytes = local_bytes(t, border.layout, grid),
                         .category = Category::temporaries,
                         .layout = border.layout});
  block.tasks.front().deaths.push_back(static_cast<int>(block.slots.size()) - 1);
}

}  // namespace

Block message_block(const Message& message, const Blocks& blocks, const Grid& grid, int group,
                    Stream stream, bool sent_is_kept) {
  const bool sends = stream == Stream::send_forward || stream == Stream::send_backward;
  const Border& border = blocks.leaving(message.tensor, message.from, message.to);
  const model::Tensor& t = blocks.graph().tensors[message.tensor];
  const Bytes bytes = local_bytes(t, border.layout, grid);
  Block block{.name = (sends ? "send " : "receive ") + t.name,
              .slots = {{.name = t.name,
                         .tensor = message.tensor,
                         .bytes = bytes,
                         .category = sends ? Category::temporaries : border.category,
                         .layout = border.layout}},
              .tasks = {Task{}}};
  Task& task = block.tasks.front();
  task.name = block.name;
  Operation transfer{.deed = Deed::transfer};
  (sends ? transfer.inputs : transfer.outputs) = {{message.tensor, 0, border.layout}};
  if (border.masks.empty()) task.operations = {transfer};
  task.work = Collective{.kind = cost::CollectiveKind::send, .group = group, .payload = bytes};
  task.stream = stream;
  (sends ? task.reads : task.writes) = {0};
  (sends ? task.deaths : task.births) = {0};
  // What is recycled becomes an input, and inputs have no buffers in a plan.
  if (message.recycled) task.deaths = {0};
  if (!sent_is_kept || message.recycled) return block;
  const bool comes_back = blocks.graph().gradient_of[message.tensor] >= 0;
  if (stream == Stream::send_forward && comes_back) task.deaths.clear();
  if (stream == Stream::receive_backward && message.activation >= 0)
    free_what_was_sent(block, message, blocks, grid);
  return block;
}

Block eviction_block(const Plan& plan, const Stages& stages, const Blocks& blocks, int stage,
                     int group, bool back, bool sends) {
  Block block{.name = std::string(back ? "fetch" : "evict") + " activations",
              .slots = {},
              .tasks = {Task{}}};
  Task& task = block.tasks.front();
  Bytes total;
  for (const int segment : plan.stages[stage]) {
    const SegmentFacts& facts = stages.facts(segment);
    for (const auto& [place, border] : blocks.left_by_forward(segment)) {
      const model::Tensor& t = plan.graph().tensors[facts.tensors[place]];
      const Bytes bytes = local_bytes(t, border.layout, stages.grid_of_segment(segment));
      const auto slot = static_cast<int>(block.slots.size());
      (sends ? task.reads : task.writes).push_back(slot);
      (sends ? task.deaths : task.births).push_back(slot);
      block.slots.push_back({t.name, facts.tensors[place], bytes, border.category});
      total += bytes;
    }
  }
  task.name = block.name;
  task.work = Collective{.kind = cost::CollectiveKind::send, .group = group, .payload = total};
  task.stream = sends ? Stream::send_forward : Stream::receive_forward;
  return block;
}

}  // namespace stratagem::strategies
