// Builds send and receive tasks with the buffers that they free or fill.
#include "lowering/sequences/message_block.hpp"

#include <optional>
#include <utility>

#include "lowering/stack/stage_shares.hpp"
#include "placement/distribution.hpp"

namespace stratagem::lowering {

using placement::Layout;
using program::Action;
using program::Block;
using program::Category;
using program::Stream;
using program::Task;

namespace {

constexpr bool sends(Stream stream) {
  return stream == Stream::send_forward || stream == Stream::send_backward;
}

class MessageBlock {
 public:
  MessageBlock(const Transfer& transfer, const Blocks& blocks, const cost::Stack& stack,
               Groups& groups)
      : t_(transfer),
        message_(transfer.message),
        blocks_(blocks),
        stack_(stack),
        groups_(groups),
        border_(blocks.leaving(message_.tensor, message_.from, message_.to)) {
    block_.name = (sends(t_.stream) ? "send " : "receive ") + tensor(message_.tensor).name;
  }

  Block build() {
    const std::optional<Layout> share = share_of(message_.tensor, border_);
    sends(t_.stream) ? send(share) : receive(share);
    return std::move(block_);
  }

 private:
  [[nodiscard]] const model::Tensor& tensor(model::TensorId id) const {
    return blocks_.graph().tensors[id];
  }

  /// No share for a recycled tensor: it becomes an input, and inputs have no buffers to gather
  /// into.
  [[nodiscard]] std::optional<Layout> share_of(model::TensorId id, const Border& border) const {
    if (message_.recycled || !border.masks.empty()) return std::nullopt;
    return share_in(tensor(id), border.layout, t_.grid, stack_);
  }

  int add_slot(model::TensorId id, const Layout& layout, Category category) {
    block_.slots.push_back({.name = tensor(id).name,
                            .tensor = id,
                            .bytes = local_bytes(tensor(id), layout, t_.grid),
                            .category = category,
                            .layout = layout});
    return static_cast<int>(block_.slots.size()) - 1;
  }

  [[nodiscard]] program::Operand operand(int slot, const Layout& layout) const {
    return {message_.tensor, slot, layout};
  }

  void send(const std::optional<Layout>& share) {
    const bool comes_back = blocks_.graph().gradient_of[message_.tensor] >= 0;
    const bool kept = says(stack_, cost::Lifetime::sent_until_gradients) && !message_.recycled &&
                      comes_back && t_.stream == Stream::send_forward;
    const int whole = add_slot(message_.tensor, border_.layout, Category::temporaries);
    const int sent = share && kept ? copy(whole, *share) : whole;
    Task task = transfer(share.value_or(border_.layout));
    task.reads = {sent};
    if (!kept) task.frees = {sent};
    if (sent != whole) task.waits = {0};
    if (border_.masks.empty())
      task.operations = {
          {.action = Action::transfer, .inputs = {operand(sent, share.value_or(border_.layout))}}};
    block_.tasks.push_back(std::move(task));
  }

  /// Copies the share into a buffer of its own, so that the whole can be freed.
  int copy(int whole, const Layout& share) {
    const int part = add_slot(message_.tensor, share, Category::temporaries);
    Task task{};
    task.name = tensor(message_.tensor).name + " part";
    task.work = cost::Kernel{.kind = cost::KernelKind::elementwise,
                             .traffic = 2 * block_.slots[part].bytes};
    task.reads = task.frees = {whole};
    task.writes = task.allocates = {part};
    task.operations = {{.action = Action::select,
                        .inputs = {operand(whole, border_.layout)},
                        .outputs = {operand(part, share)}}};
    block_.tasks.push_back(std::move(task));
    return part;
  }

  void receive(const std::optional<Layout>& share) {
    const Layout& layout = share ? *share : border_.layout;
    const int slot =
        add_slot(message_.tensor, layout, share ? Category::temporaries : border_.category);
    Task task = transfer(layout);
    task.writes = task.allocates = {slot};
    if (message_.recycled) task.frees = {slot};
    if (border_.masks.empty())
      task.operations = {{.action = Action::transfer, .outputs = {operand(slot, layout)}}};
    block_.tasks.push_back(std::move(task));
    if (share) gather(slot, *share);
    if (says(stack_, cost::Lifetime::sent_until_gradients) &&
        t_.stream == Stream::receive_backward && message_.activation >= 0)
      free_what_was_sent();
  }

  void gather(int part, const Layout& share) {
    const int whole = add_slot(message_.tensor, border_.layout, border_.category);
    std::vector<int> axes;
    for (std::size_t axis = 0; axis < share.size(); ++axis) {
      if (share[axis] != border_.layout[axis]) axes.push_back(static_cast<int>(axis));
    }
    Task task{};
    task.name = "gather " + tensor(message_.tensor).name;
    task.work = program::Collective{.kind = cost::CollectiveKind::all_gather,
                                    .group = groups_.along(t_.grid, axes),
                                    .payload = block_.slots[whole].bytes};
    task.stream = Stream::communication;
    task.waits = {0};
    task.reads = task.frees = {part};
    task.writes = task.allocates = {whole};
    task.operations = {{.action = Action::convert,
                        .inputs = {operand(part, share)},
                        .outputs = {operand(whole, border_.layout)}}};
    block_.tasks.push_back(std::move(task));
  }

  /// Frees the activation that was kept until its gradient arrived.
  void free_what_was_sent() {
    const Border& sent = blocks_.leaving(message_.activation, message_.to, message_.from);
    const Layout kept = share_of(message_.activation, sent).value_or(sent.layout);
    block_.tasks.front().frees.push_back(
        add_slot(message_.activation, kept, Category::temporaries));
  }

  [[nodiscard]] Task transfer(const Layout& layout) const {
    Task task{};
    task.name = block_.name;
    task.work =
        program::Collective{.kind = cost::CollectiveKind::send,
                            .group = t_.group,
                            .payload = local_bytes(tensor(message_.tensor), layout, t_.grid)};
    task.stream = t_.stream;
    return task;
  }

  const Transfer& t_;
  const Message& message_;
  const Blocks& blocks_;
  const cost::Stack& stack_;
  Groups& groups_;
  const Border& border_;
  Block block_;
};

}  // namespace

Block message_block(const Transfer& transfer, const Blocks& blocks, const cost::Stack& stack,
                    Groups& groups) {
  return MessageBlock(transfer, blocks, stack, groups).build();
}

}  // namespace stratagem::lowering
