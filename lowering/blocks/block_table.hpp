// Cache of lowered blocks. The key holds everything that affects a block, so two segments with
// equal keys share one.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lowering/blocks/block.hpp"

namespace stratagem::lowering {

/// A block of the program, by its number, with what its neighbours need to know. On an irregular
/// stage there is a block for each device, and only the description of the borders is shared.
struct NumberedBlock {
  int id = -1;
  LoweredBlock lowered;
  std::vector<std::vector<NumberedBlock>> parts = {};  ///< by copy, then position in its replica

  /// What the device at a position in a replica runs.
  [[nodiscard]] const NumberedBlock& on(int copy, int position) const {
    return parts.empty() ? *this : parts[copy][position];
  }
};

class BlockTable {
 public:
  explicit BlockTable(program::Program& program) : program_(program) {}

  /// The block under `key`, made by `lower` the first time that it is asked for.
  const NumberedBlock& shared(const std::string& key, const std::function<LoweredBlock()>& lower);
  /// The same for the blocks of a pass. If its stage lists its devices, every copy has its own.
  const NumberedBlock& shared_parts(const std::string& key, int copies,
                                    const std::function<LoweredPass(int copy)>& lower);
  /// A block of its own.
  int add(program::Block block);
  [[nodiscard]] const program::Block& operator[](int id) const { return program_.blocks[id]; }

 private:
  program::Program& program_;
  std::map<std::string, std::unique_ptr<NumberedBlock>> known_;
};

}  // namespace stratagem::lowering
