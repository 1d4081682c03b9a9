// Cells that repeat micro-batch by micro-batch, and a schedule in which they do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stratagem::search {

/// A cell of one micro-batch; its place in a list is its number.
struct Block {
  std::string name;          ///< "F2", for errors and tables
  int span = 1;              ///< units of time, at least 1
  std::vector<int> devices;  ///< that it keeps busy, all at once; at least one
  std::vector<int> after;    ///< blocks of the same micro-batch that end before it begins
};

/// Memory that a micro-batch holds on a device from the beginning of one block to the end of
/// another.
struct Held {
  int device = 0;
  int from = 0;
  int to = 0;
  std::int64_t amount = 1;  ///< at least 1
};

/// An order that is asked for: `before` of a micro-batch ends before `after` of the micro-batch
/// `lag` later begins (earlier, if negative).
struct Asked {
  int before = 0;
  int after = 0;
  int lag = 0;
};

struct Repeating {
  std::vector<Block> blocks;
  std::vector<Held> held;
  std::vector<std::int64_t> limits;  ///< of each device: the most that is held at once
  std::vector<Asked> asked;
};

/// Micro-batch m begins block b at begins[b] + m * period.
struct Repetend {
  int period = 0;
  std::vector<int> begins;  ///< the least of them is 0
  int latency = 0;          ///< from the first begin of a micro-batch to its last end
  int least_period = 0;     ///< no shorter one is possible: `period` itself, if it was proved
  int least_latency = 0;    ///< likewise, of those with this period
  /// Most that is held at once, by device.
  std::vector<std::int64_t> peaks;
};

}  // namespace stratagem::search
