// Turns the steps of a redistribution into a block for every device that takes part.
#include "strategies/lower/crossing.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/input_error.hpp"
#include "strategies/lower/lifetimes.hpp"

namespace stratagem::strategies {
namespace {

Bytes bytes_of(const model::Tensor& tensor, const Mask& mask) {
  double elements = 1;
  for (const Range& range : mask.ranges) elements *= static_cast<double>(range.end - range.begin);
  return elements * model::size_of(tensor.type);
}

/// What every device of a grid has of a tensor.
std::vector<Piece> pieces(const model::Tensor& tensor, const Grid& grid, const Layout& layout) {
  std::vector<Piece> result;
  for (int i = 0; i < grid.count(); ++i) {
    const std::vector<int> at = grid.coordinates(i);
    result.push_back({grid.device(at), mask_at(layout, tensor.shape, grid.sizes(), at)});
  }
  return result;
}

/// The block of one device.
class DeviceBlock {
 public:
  DeviceBlock(const Crosser& crosser, std::optional<Mask> has, std::optional<Mask> wants)
      : c_(crosser), wants_(std::move(wants)) {
    block_.name = "move " + c_.tensor->name;
    if (has) external_ = hold(*has, c_.leaves.category);
  }

  void local(StepKind kind, const Share& share) {
    const bool final = wants_ && share.holds == *wants_;
    if (kind == StepKind::select && !share.reads.empty() && !final) {
      slots_[share.holds] = slots_.at(share.reads.front());  // a view
      return;
    }
    cost::Kernel kernel{.kind = cost::KernelKind::elementwise, .type = c_.tensor->type};
    kernel.traffic = bytes_of(*c_.tensor, share.holds);
    for (const Mask& mask : share.reads)
      kernel.traffic += std::min(bytes_of(*c_.tensor, mask), bytes_of(*c_.tensor, share.holds));
    push(to_text(kind), kernel, Stream::compute, share);
  }

  void communicate(StepKind kind, const Share& share, int group, Bytes payload, Stream stream) {
    push(to_text(kind), Collective{.kind = collective(kind), .group = group, .payload = payload},
         stream, share);
  }

  /// Nothing if the device has nothing to do.
  std::optional<LoweredBlock> finish() {
    const auto kept = wants_ ? slots_.find(*wants_) : slots_.end();
    std::set<int> survivors;
    if (kept != slots_.end()) {
      survivors.insert(kept->second);
      block_.slots[kept->second].category = c_.arrives.category;
    }
    std::set<int> external;
    if (external_ >= 0) external.insert(external_);
    const bool unused =
        external_ >= 0 && !survivors.contains(external_) && !used_.contains(external_);
    if (unused) free_unused();
    if (block_.tasks.empty()) return std::nullopt;
    set_lifetimes(block_, external, survivors);
    LoweredBlock result;
    result.block = std::move(block_);
    if (kept != slots_.end() && last_writer_.contains(kept->second))
      result.last_writer[0] = last_writer_.at(kept->second);
    return result;
  }

 private:
  int hold(const Mask& mask, Category category) {
    block_.slots.push_back({c_.tensor->name, c_.id, bytes_of(*c_.tensor, mask), category});
    return slots_[mask] = static_cast<int>(block_.slots.size()) - 1;
  }

  void push(const std::string& what, std::variant<cost::Kernel, Collective> work, Stream stream,
            const Share& share) {
    const auto index = static_cast<int>(block_.tasks.size());
    Task task{};
    task.name = c_.tensor->name + " " + what;
    task.work = std::move(work);
    task.stream = stream;
    for (const Mask& mask : share.reads) {
      const int slot = slots_.at(mask);
      task.reads.push_back(slot);
      used_.insert(slot);
      if (const auto writer = last_writer_.find(slot);
          writer != last_writer_.end() && block_.tasks[writer->second].stream != stream)
        task.waits.push_back(writer->second);
    }
    const bool keeps = share.reads.size() == 1 && share.reads.front() == share.holds;
    if (!keeps) {
      const int slot = in_place(task) ? slots_[share.holds] = slots_.at(share.reads.front())
                                      : hold(share.holds, Category::temporaries);
      task.writes.push_back(slot);
      used_.insert(slot);
      last_writer_[slot] = index;
    }
    block_.tasks.push_back(std::move(task));
  }

  static bool in_place(const Task& task) {
    const auto* one = std::get_if<Collective>(&task.work);
    return one != nullptr && one->kind == cost::CollectiveKind::all_reduce;
  }

  void free_unused() {
    Task task{};
    task.name = c_.tensor->name + " free";
    task.work = cost::Kernel{.kind = cost::KernelKind::elementwise, .launches = 0};
    task.reads = {external_};
    block_.tasks.push_back(std::move(task));
  }

  const Crosser& c_;
  std::optional<Mask> wants_;
  Block block_;
  std::map<Mask, int> slots_;
  std::map<int, int> last_writer_;
  std::set<int> used_;
  int external_ = -1;
};

class CrossingLowering {
 public:
  CrossingLowering(const Crosser& crosser, Groups& groups) : c_(crosser), groups_(groups) {}

  CrossingBlocks run() {
    const std::vector<Piece> have = pieces(*c_.tensor, *c_.from, c_.leaves.layout);
    const std::vector<Piece> want = pieces(*c_.tensor, *c_.to, c_.arrives.layout);
    std::map<int, Mask> has;
    std::map<int, Mask> wants;
    for (const Piece& piece : have) has.emplace(piece.device, piece.mask);
    for (const Piece& piece : want) wants.emplace(piece.device, piece.mask);
    for (const auto* side : {&has, &wants}) {
      for (const auto& [device, mask] : *side)
        blocks_.try_emplace(device, c_, find(has, device), find(wants, device));
    }
    for (const Step& step : redistribute(c_.tensor->shape, have, want).steps) add(step);
    CrossingBlocks result;
    for (auto& [device, block] : blocks_) {
      std::optional<LoweredBlock> lowered = block.finish();
      if (lowered)
        (has.contains(device) ? result.leaving : result.arriving)
            .emplace(device, std::move(*lowered));
    }
    return result;
  }

 private:
  static std::optional<Mask> find(const std::map<int, Mask>& masks, int device) {
    const auto found = masks.find(device);
    return found == masks.end() ? std::nullopt : std::optional(found->second);
  }

  void add(const Step& step) {
    if (!communicates(step.kind)) {
      for (const std::vector<Share>& group : step.groups) {
        for (const Share& share : group) blocks_.at(share.device).local(step.kind, share);
      }
      return;
    }
    const bool directed = step.kind == StepKind::send || step.kind == StepKind::broadcast;
    std::vector<std::vector<int>> all;
    for (const std::vector<Share>& group : step.groups) all.push_back(ranks_of(group));
    for (std::size_t g = 0; g < step.groups.size(); ++g) {
      // A device may send to several others: every message has a group of its own.
      const int number = directed ? groups_.of({all[g]}) : groups_.of(all);
      add_group(step.kind, step.groups[g], number, directed);
    }
  }

  static std::vector<int> ranks_of(const std::vector<Share>& group) {
    std::vector<int> ranks;
    for (const Share& share : group) ranks.push_back(share.device);
    return ranks;
  }

  void add_group(StepKind kind, const std::vector<Share>& group, int number, bool directed) {
    Bytes payload;  // the whole of what the collective is about (cost/ring.hpp)
    for (const Share& share : group) {
      payload = std::max(payload, bytes_of(*c_.tensor, share.holds));
      for (const Mask& mask : share.reads) payload = std::max(payload, bytes_of(*c_.tensor, mask));
    }
    for (std::size_t i = 0; i < group.size(); ++i) {
      const Stream out = c_.backward ? Stream::send_backward : Stream::send_forward;
      const Stream in = c_.backward ? Stream::receive_backward : Stream::receive_forward;
      const Stream stream = !directed ? Stream::communication : i == 0 ? out : in;
      blocks_.at(group[i].device).communicate(kind, group[i], number, payload, stream);
    }
  }

  const Crosser& c_;
  Groups& groups_;
  std::map<int, DeviceBlock> blocks_;
};

}  // namespace

CrossingBlocks cross(const Crosser& crosser, Groups& groups) {
  return CrossingLowering(crosser, groups).run();
}

}  // namespace stratagem::strategies
