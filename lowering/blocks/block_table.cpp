// Lowers each block once.
#include "lowering/blocks/block_table.hpp"

#include <utility>

namespace stratagem::lowering {

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

}  // namespace stratagem::lowering
