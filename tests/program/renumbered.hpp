// The same program with other numbers for everything that has one.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "program/program.hpp"

namespace stratagem::program {

class Renumbering {
 public:
  Renumbering(Program program, unsigned seed) : program_(std::move(program)), engine_(seed) {}

  Program renumber() {
    copy_a_block();
    for (Block& block : program_.blocks) renumber_slots(block);
    renumber_blocks();
    renumber_groups();
    renumber_communicators();
    renumber_grids();
    renumber_places();
    renumber_sequences();
    shuffle_lists();
    return std::move(program_);
  }

 private:
  std::vector<int> order(std::size_t count) {
    std::vector<int> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0);
    std::ranges::shuffle(numbers, engine_);
    return numbers;
  }

  /// What was i becomes new_numbers[i].
  template <typename T>
  static void move(std::vector<T>& values, const std::vector<int>& new_numbers) {
    std::vector<T> moved(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) moved[new_numbers[i]] = std::move(values[i]);
    values = std::move(moved);
  }
  static void renumber(int& number, const std::vector<int>& new_numbers) {
    if (number >= 0) number = new_numbers[number];
  }

  template <typename Change>
  static void for_operands(Block& block, const Change& change) {
    for (Task& task : block.tasks) {
      for (Operation& operation : task.operations) {
        for (Operand& operand : operation.inputs) change(operand);
        for (Operand& operand : operation.outputs) change(operand);
      }
    }
  }
  template <typename Change>
  void for_calls(const Change& change) {
    for (Sequence& sequence : program_.sequences) {
      for (StoredCall& call : sequence.calls.stored()) change(call);
    }
  }

  /// Every other call of the block that is called first gets a block of its own, which is equal.
  void copy_a_block() {
    const int block = program_.sequences.front().calls.stored().front().block;
    const auto copy = static_cast<int>(program_.blocks.size());
    program_.blocks.push_back(Block(program_.blocks[block]));
    int calls = 0;
    for_calls([&](StoredCall& call) {
      if (call.block == block && calls++ % 2 == 1) call.block = copy;
    });
  }

  void renumber_slots(Block& block) {
    const std::vector<int> slots = order(block.slots.size());
    move(block.slots, slots);
    for (Task& task : block.tasks) {
      for (auto* list : {&task.reads, &task.writes, &task.allocates, &task.frees}) {
        for (int& slot : *list) renumber(slot, slots);
      }
    }
    for_operands(block, [&](Operand& operand) { renumber(operand.slot, slots); });
  }

  void renumber_blocks() {
    const std::vector<int> blocks = order(program_.blocks.size());
    move(program_.blocks, blocks);
    for_calls([&](StoredCall& call) { renumber(call.block, blocks); });
  }

  void renumber_groups() {
    std::size_t count = 0;
    for (const Device& device : program_.devices) count = std::max(count, device.groups.size());
    const std::vector<int> groups = order(count);
    for (Device& device : program_.devices) {
      device.groups.resize(count, -1);
      move(device.groups, groups);
    }
    for (Block& block : program_.blocks) {
      for (Task& task : block.tasks) {
        if (auto* collective = std::get_if<Collective>(&task.work))
          renumber(collective->group, groups);
      }
    }
  }

  void renumber_communicators() {
    const std::vector<int> communicators = order(program_.communicators.size());
    move(program_.communicators, communicators);
    for (Device& device : program_.devices) {
      for (int& communicator : device.groups) renumber(communicator, communicators);
    }
  }

  void renumber_grids() {
    const std::vector<int> grids = order(program_.grids.size());
    move(program_.grids, grids);
    for_calls([&](StoredCall& call) { renumber(call.grid, grids); });
    for (Sequence& sequence : program_.sequences) {
      for (Resident& resident : sequence.residents) renumber(resident.grid, grids);
    }
  }

  /// Of tensors in the tables of segments: segments that share a block have tables of one size.
  void renumber_places() {
    std::size_t longest = 0;
    for (const auto& table : program_.segment_tensors) longest = std::max(longest, table.size());
    std::vector<std::vector<int>> places(longest + 1);
    for (std::size_t size = 0; size <= longest; ++size) places[size] = order(size);
    std::vector<std::size_t> size_of(program_.blocks.size(), 0);
    for_calls([&](const StoredCall& call) {
      if (call.segment >= 0) size_of[call.block] = program_.segment_tensors[call.segment].size();
    });
    for (std::size_t b = 0; b < program_.blocks.size(); ++b) {
      if (size_of[b] == 0) continue;
      const std::vector<int>& to = places[size_of[b]];
      for (Slot& slot : program_.blocks[b].slots) renumber(slot.tensor, to);
      for_operands(program_.blocks[b], [&](Operand& operand) { renumber(operand.tensor, to); });
    }
    for (auto& table : program_.segment_tensors) move(table, places[table.size()]);
  }

  void renumber_sequences() {
    const std::vector<int> sequences = order(program_.sequences.size());
    move(program_.sequences, sequences);
    for (Device& device : program_.devices) renumber(device.sequence, sequences);
  }

  /// Lists without an order.
  void shuffle_lists() {
    for (Block& block : program_.blocks) {
      for (Task& task : block.tasks) {
        for (auto* list : {&task.waits, &task.reads, &task.writes, &task.frees})
          std::ranges::shuffle(*list, engine_);
      }
    }
    for_calls([&](StoredCall& call) { std::ranges::shuffle(call.waits, engine_); });
    for (Sequence& sequence : program_.sequences) {
      const auto elsewhere = std::ranges::stable_partition(
          sequence.residents, [](const Resident& r) { return r.place == Residence::device; });
      std::ranges::shuffle(elsewhere, engine_);
    }
  }

  Program program_;
  std::mt19937 engine_;
};

}  // namespace stratagem::program
