// Names first, since tasks refer to buffers by them; then a line for each buffer, and some for each
// task.
#include "program/text/block_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <tuple>

#include "program/text/group_names.hpp"

namespace stratagem::program {
namespace {

model::TensorId bound(const Program& program, int segment, int place) {
  return segment < 0 ? place : program.segment_tensors[segment][place];
}

constexpr std::array<std::string_view, 6> action_names = {"apply", "convert",  "select",
                                                          "join",  "transfer", "step"};
constexpr std::array<std::string_view, 3> residence_names = {"", " on host", " on drives"};
constexpr std::array<std::string_view, 5> launched_by_names = {
    "", " in a library's loop", " in a library", " beginning a CUDA graph", " in a CUDA graph"};
constexpr std::array<std::string_view, 3> kernel_pass_names = {"", " forward", " gradient"};

std::string text_of(const Slot& slot, const placement::Grid& grid) {
  return fmt::format("{} B {}{}{}", slot.bytes.value,
                     category_names[static_cast<std::size_t>(slot.category)],
                     residence_names[static_cast<std::size_t>(slot.place)],
                     text_of_part(slot.layout, slot.shards, slot.masks, grid));
}

std::string text_of(const cost::Kernel& kernel) {
  std::string more = kernel.slowdown == 1 ? "" : fmt::format(" slowdown {}", kernel.slowdown);
  more += launched_by_names[static_cast<std::size_t>(kernel.by)];
  if (kernel.alignment > 0) more += fmt::format(" aligned to {} B", kernel.alignment);
  if (kernel.piece.of > 1) more += fmt::format(" one of {} pieces", kernel.piece.of);
  if (kernel.piece.spared > 0)
    more += fmt::format(" spares {} multiprocessors", kernel.piece.spared);
  if (kernel.seen.all) more += " to all";
  if (kernel.seen.in_cache) more += fmt::format(" after {} in a cache", kernel.seen.before);
  if (kernel.seen.longest_document > 0)
    more += fmt::format(" documents of up to {} tokens, {} pairs", kernel.seen.longest_document,
                        static_cast<double>(kernel.seen.twice_pairs) / 2);
  if (kernel.seen.window > 0) more += fmt::format(" window {}", kernel.seen.window);
  return fmt::format("{} {} {}x{}x{}x{} {} FLOP {} B x{}{}{}", cost::to_text(kernel.kind),
                     model::to_text(kernel.type), kernel.batch, kernel.m, kernel.n, kernel.k,
                     kernel.flops.value, kernel.traffic.value, kernel.launches,
                     kernel_pass_names[static_cast<std::size_t>(kernel.pass)], more);
}

using Uses = std::vector<std::tuple<int, int, int>>;

class BlockWriter {
 public:
  BlockWriter(const Program& program, const StoredCall& call, const GraphNames& names)
      : program_(program),
        block_(program.blocks[call.block]),
        segment_(call.segment),
        grid_(call.grid < 0 ? placement::Grid{} : program.grids[call.grid]),
        names_(names) {}

  BlockText write() {
    own_ = names_.segment_in(block_.name);
    if (own_.empty()) own_ = names_.segment(segment_);
    find_uses();
    result_.name = plain(block_.name);
    result_.groups = groups_of(block_);
    name_tensors();
    for (const Task& task : block_.tasks) result_.tasks.push_back(plain(task.name));
    number_equals(result_.tasks);
    write_slots();
    for (std::size_t t = 0; t < block_.tasks.size(); ++t) write_task(t);
    return std::move(result_);
  }

 private:
  /// A name as it is for all segments: a block is named for one of them.
  [[nodiscard]] std::string plain(const std::string& name) const {
    return segment_ < 0 ? name : names_.without_segments(name, own_);
  }

  template <typename Do>
  void for_operands(const Do& act) const {
    for (std::size_t t = 0; t < block_.tasks.size(); ++t) {
      int place = 0;
      for (const Operation& operation : block_.tasks[t].operations) {
        for (const auto* operands : {&operation.inputs, &operation.outputs}) {
          for (const Operand& operand : *operands) act(static_cast<int>(t), operand, place++);
        }
      }
    }
  }

  /// Where tasks name each slot: task, how, and place among what it names so, if that has an order.
  void find_uses() {
    uses_.resize(block_.slots.size());
    for (std::size_t t = 0; t < block_.tasks.size(); ++t) {
      const Task& task = block_.tasks[t];
      const auto at = static_cast<int>(t);
      for (std::size_t i = 0; i < task.allocates.size(); ++i)
        uses_[task.allocates[i]].emplace_back(at, 0, static_cast<int>(i));
      for (const int slot : task.reads) uses_[slot].emplace_back(at, 1, 0);
      for (const int slot : task.writes) uses_[slot].emplace_back(at, 2, 0);
      for (const int slot : task.frees) uses_[slot].emplace_back(at, 3, 0);
    }
    for_operands([&](int task, const Operand& operand, int place) {
      if (operand.slot >= 0) uses_[operand.slot].emplace_back(task, 4, place);
    });
    for (Uses& one : uses_) std::ranges::sort(one);
  }

  /// Those of equal names, and of other segments, are numbered in the order in which tasks use
  /// them.
  void name_tensors() {
    std::map<int, Uses> uses;  // by place
    for (std::size_t s = 0; s < block_.slots.size(); ++s) {
      Uses& one = uses[block_.slots[s].tensor];
      one.insert(one.end(), uses_[s].begin(), uses_[s].end());
    }
    for_operands([&](int task, const Operand& operand, int place) {
      uses[operand.tensor].emplace_back(task, 5, place);
    });
    uses.erase(-1);
    std::vector<std::tuple<Uses, model::TensorId, int>> order;
    for (auto& [place, one] : uses) {
      std::ranges::sort(one);
      order.emplace_back(std::move(one), bound(program_, segment_, place), place);
    }
    std::ranges::sort(order);
    std::vector<std::string> unique;
    for (const auto& [use, tensor, place] : order)
      unique.push_back(names_.tensor_within(tensor, segment_));
    number_equals(unique);
    for (std::size_t i = 0; i < order.size(); ++i) result_.seen[std::get<2>(order[i])] = unique[i];
  }

  /// Those of equal names are told apart by what they are, then by what uses them.
  void write_slots() {
    struct Line {
      std::string name, text;
      Uses uses;
      std::size_t slot = 0;
    };
    std::vector<Line> lines;
    for (std::size_t s = 0; s < block_.slots.size(); ++s) {
      const Slot& slot = block_.slots[s];
      Line line{plain(slot.name), text_of(slot, grid_), uses_[s], s};
      const std::string tensor = slot.tensor < 0 ? "nothing" : result_.seen.at(slot.tensor);
      if (line.name == "^" && slot.tensor >= 0) line.name = tensor;
      if (tensor != line.name) line.text += " of " + tensor;
      lines.push_back(std::move(line));
    }
    std::ranges::sort(lines, {}, [](const Line& line) {
      return std::tie(line.name, line.text, line.uses, line.slot);
    });
    std::vector<std::string> unique;
    for (const Line& line : lines) unique.push_back(line.name);
    number_equals(unique);
    slots_.resize(lines.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      slots_[lines[i].slot] = unique[i];
      result_.text += fmt::format("  {}: {}\n", unique[i], lines[i].text);
    }
  }

  void write_task(std::size_t t) {
    const Task& task = block_.tasks[t];
    result_.text += fmt::format("  > {} | {} | {}", result_.tasks[t],
                                stream_names[static_cast<std::size_t>(task.stream)], work(task));
    if (task.recomputed) result_.text += " recomputed";
    if (task.synchronizations > 0)
      result_.text += fmt::format(" synchronizes {}", task.synchronizations);
    result_.text += "\n";
    list("waits for", named(task.waits, result_.tasks), true);
    list("reads", named(task.reads, slots_), true);
    list("writes", named(task.writes, slots_), true);
    list("bears", named(task.allocates, slots_), false);
    list("frees", named(task.frees, slots_), true);
    for (const Operation& operation : task.operations)
      result_.text += "    " + operation_text(operation) + "\n";
  }

  [[nodiscard]] std::string work(const Task& task) const {
    if (const auto* kernel = std::get_if<cost::Kernel>(&task.work)) return text_of(*kernel);
    const auto& collective = std::get<Collective>(task.work);
    const auto group = std::ranges::find(result_.groups, collective.group);
    return fmt::format("{}{} {} B in group {}{}", cost::to_text(collective.kind),
                       collective.combine == model::Combine::maximum ? " maximum" : "",
                       collective.payload.value, group - result_.groups.begin() + 1,
                       collective.in_library ? " in a library" : "");
  }

  static std::vector<std::string> named(const std::vector<int>& indices,
                                        const std::vector<std::string>& names) {
    std::vector<std::string> result;
    for (const int index : indices) result.push_back(names[index]);
    return result;
  }

  void list(const char* what, std::vector<std::string> names, bool unordered) {
    if (names.empty()) return;
    if (unordered) {
      std::ranges::sort(names);
      names.erase(std::unique(names.begin(), names.end()), names.end());
    }
    result_.text += fmt::format("    {} {}\n", what, fmt::join(names, "; "));
  }

  [[nodiscard]] std::string operation_text(const Operation& operation) const {
    std::string text(action_names[static_cast<std::size_t>(operation.action)]);
    if (operation.action == Action::apply) text += " " + names_.operation(segment_, operation.op);
    if (operation.adds) text += " adds";
    if (operation.combine == model::Combine::maximum) text += " maximum";
    if (operation.replicas != 1) text += fmt::format(" replicas {}", operation.replicas);
    text += ":";
    for (const Operand& operand : operation.inputs) text += " " + operand_text(operand) + ";";
    text += " ->";
    for (const Operand& operand : operation.outputs) text += " " + operand_text(operand) + ";";
    return text;
  }

  /// What has no buffer of the block is in brackets.
  [[nodiscard]] std::string operand_text(const Operand& operand) const {
    const std::string tensor = operand.tensor < 0 ? "nothing" : result_.seen.at(operand.tensor);
    std::string text = operand.slot < 0 ? "(" + tensor + ")" : slots_[operand.slot];
    if (operand.slot >= 0 && operand.tensor != block_.slots[operand.slot].tensor)
      text += " as " + tensor;
    return text + text_of_part(operand.layout, operand.shards, operand.masks, grid_);
  }

  const Program& program_;
  const Block& block_;
  int segment_;
  placement::Grid grid_;
  const GraphNames& names_;
  std::string own_;                 ///< the segment that the block is named for
  std::vector<Uses> uses_;          ///< by slot
  std::vector<std::string> slots_;  ///< their names
  BlockText result_;
};

}  // namespace

BlockText block_text(const Program& program, const StoredCall& call, const GraphNames& names) {
  return BlockWriter(program, call, names).write();
}

std::string text_of_binding(const Program& program, const BlockText& block, int segment,
                            const GraphNames& names) {
  std::vector<std::string> differing;
  for (const auto& [place, name] : block.seen) {
    const model::TensorId tensor = bound(program, segment, place);
    const std::string whole = names.tensor(tensor);
    const bool told =
        name == (segment < 0 ? whole : names.without_segments(whole, names.segment(segment)));
    if (!told || name.starts_with("^")) differing.push_back(fmt::format(", {} = {}", name, whole));
  }
  std::ranges::sort(differing);
  return fmt::format("{}", fmt::join(differing, ""));
}

}  // namespace stratagem::program
