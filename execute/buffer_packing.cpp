// Follows allocations and frees in program order.
#include "execute/buffer_packing.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/input_error.hpp"
#include "program/buffers.hpp"

namespace stratagem::execute {
namespace {

using program::Buffer;
using program::Category;
using program::Residence;
using program::TaskOfCall;

/// Gaps in a range of addresses without an end.
class Gaps {
 public:
  std::size_t take(std::size_t bytes) {
    const std::size_t wanted = rounded(bytes);
    if (wanted == 0) return 0;
    auto best = by_offset_.end();
    for (auto gap = by_offset_.begin(); gap != by_offset_.end(); ++gap) {
      if (gap->second >= wanted && (best == by_offset_.end() || gap->second < best->second))
        best = gap;
    }
    if (best == by_offset_.end()) return grow(wanted);
    const auto [offset, length] = *best;
    by_offset_.erase(best);
    if (length > wanted) by_offset_[offset + wanted] = length - wanted;
    return offset;
  }

  void give_back(std::size_t offset, std::size_t bytes) {
    if (bytes == 0) return;
    auto gap = by_offset_.emplace(offset, rounded(bytes)).first;
    const auto next = std::next(gap);
    if (next != by_offset_.end() && gap->first + gap->second == next->first) {
      gap->second += next->second;
      by_offset_.erase(next);
    }
    if (gap == by_offset_.begin()) return;
    const auto before = std::prev(gap);
    if (before->first + before->second != gap->first) return;
    before->second += gap->second;
    by_offset_.erase(gap);
  }

  [[nodiscard]] std::size_t end() const { return end_; }

 private:
  static std::size_t rounded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

  /// Behind everything; a gap at the end is part of it.
  std::size_t grow(std::size_t wanted) {
    std::size_t offset = end_;
    if (!by_offset_.empty()) {
      const auto last = std::prev(by_offset_.end());
      if (last->first + last->second == end_) {
        offset = last->first;
        by_offset_.erase(last);
      }
    }
    end_ = offset + wanted;
    return offset;
  }

  std::map<std::size_t, std::size_t> by_offset_;
  std::size_t end_ = 0;
};

class Packer {
 public:
  Packer(const program::Program& program, const model::Graph& graph, int device,
         const ElementSizes& sizes)
      : program_(program),
        graph_(graph),
        sequence_(program.sequences[program.devices[device].sequence]),
        sizes_(sizes),
        buffers_(program, sequence_) {}

  BufferPacking pack() {
    result_.buffer_of.assign(program_.lag + 1, std::vector<int>(buffers_.count(), -1));
    place_residents();
    place_what_outlives_its_round();
    program::each_launch(program_, sequence_, [&](const program::Launch& launch) {
      for (int task = launch.first; task < launch.end; ++task) run({launch.call, task});
    });
    result_.extent = gaps_.end();
    return std::move(result_);
  }

 private:
  /// Buffers that live within a round take turns.
  void run(const TaskOfCall& task) {
    const auto shares = [&](int number) {
      return has_place(number) && !outlives_its_round(buffers_[number]);
    };
    buffers_.each_allocated(task, [&](int number) {
      if (shares(number)) place_in_all_iterations(number);
    });
    buffers_.each_freed(task, [&](int number) {
      if (shares(number)) give_back(number);
    });
  }

  /// What residents that hold no tensor would take is not there.
  [[nodiscard]] bool has_place(int number) const {
    expects(number >= 0, "what is freed was allocated");
    const Buffer buffer = buffers_[number];
    return buffer.place == Residence::device && (buffer.slot != nullptr || buffer.tensor >= 0);
  }

  [[nodiscard]] int lag(const TaskOfCall& of) const { return sequence_.calls.body(of.call).lag; }
  [[nodiscard]] bool outlives_its_round(const Buffer& buffer) const {
    return lag(*buffer.born) != lag(*buffer.dies);
  }

  void place_residents() {
    std::size_t states = 0;
    for (int number = buffers_.resident(0); number < buffers_.count(); ++number) {
      const Buffer buffer = buffers_[number];
      if (!buffer.born && has_place(number)) place_in_all_iterations(number);
      if (buffer.category == Category::optimizer_states && buffer.place == Residence::device)
        states += rounded_up(buffer.bytes.value / 4) * sizes_.state;
    }
    if (states > 0) result_.states = take(states);
  }

  /// It takes places of its own; the others share what is left.
  void place_what_outlives_its_round() {
    for (int number = 0; number < buffers_.resident(0); ++number) {
      const Buffer buffer = buffers_[number];
      expects(buffer.dies.has_value(), "what is allocated is freed");
      if (!has_place(number) || !outlives_its_round(buffer)) continue;
      for (std::vector<int>& of_iteration : result_.buffer_of)
        of_iteration[number] = take(capacity(buffer));
    }
  }

  void place_in_all_iterations(int number) {
    const int buffer = take(capacity(buffers_[number]));
    for (std::vector<int>& of_iteration : result_.buffer_of) of_iteration[number] = buffer;
  }

  void give_back(int number) {
    const BufferPacking::Buffer& dead = result_.buffers[result_.buffer_of[0][number]];
    gaps_.give_back(dead.offset, dead.capacity);
  }

  static std::size_t rounded_up(double count) {
    return static_cast<std::size_t>(std::ceil(count - 1e-6));
  }

  [[nodiscard]] std::size_t capacity(const Buffer& buffer) const {
    if (buffer.tensor < 0) return rounded_up(buffer.bytes.value);
    const std::size_t elements =
        rounded_up(buffer.bytes / model::size_of(graph_.tensors[buffer.tensor].type));
    const List list = list_of(graph_, buffer.tensor);
    if (list == List::bytes) return elements;
    return elements * (list == List::wide ? sizes_.wide : sizes_.number);
  }

  int take(std::size_t bytes) {
    result_.buffers.push_back({gaps_.take(bytes), bytes});
    return static_cast<int>(result_.buffers.size()) - 1;
  }

  const program::Program& program_;
  const model::Graph& graph_;
  const program::Sequence& sequence_;
  ElementSizes sizes_;
  program::Buffers buffers_;
  Gaps gaps_;
  BufferPacking result_;
};

}  // namespace

BufferPacking pack_buffers(const program::Program& program, const model::Graph& graph, int device,
                           const ElementSizes& sizes) {
  return Packer(program, graph, device, sizes).pack();
}

}  // namespace stratagem::execute
