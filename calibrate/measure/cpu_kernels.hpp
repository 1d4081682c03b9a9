// The kernels of kernels/ in fp32 as experiments of any shape, on operands out of a working set.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "calibrate/measure/experiment.hpp"
#include "kernels/operand.hpp"

namespace stratagem::calibrate {

/// Kernels are measured in fp32.
constexpr double element_bytes = sizeof(float);

/// Operands, dealt out in turn: what is dealt was last used a whole working set ago.
class Pool {
 public:
  /// Of twice the cache and three operands as large as it, so that nothing is in a cache when its
  /// turn comes again; more where experiments ask for room. With a `working_set` of so many bytes,
  /// to be read and to be written together, turns come sooner: then only experiments with operands
  /// of more than an eighth of it use more of the pool.
  explicit Pool(Bytes cache, std::optional<Bytes> working_set = std::nullopt);

  /// Operands of one experiment will take so many elements. Before anything is dealt.
  void make_room(std::int64_t elements);
  /// The next operands are those of an experiment that asked for so much room.
  void begin(std::int64_t elements);

  /// Random numbers from 0.5 to 1.5, to be read: results of results would grow beyond all numbers,
  /// and arithmetic on what is no number any more takes another time.
  std::span<float> read(std::int64_t elements);
  std::span<float> write(std::int64_t elements);

  /// So many different rows of a table, in an order that no prefetcher follows.
  std::span<const std::int64_t> tokens(std::int64_t rows);

 private:
  /// When the first experiment runs: where all was measured before it would be for nothing.
  void fill();
  std::span<float> deal(std::vector<float>& from, std::size_t& next, std::int64_t elements) const;

  std::size_t cache_;                       ///< in elements
  std::optional<std::size_t> working_set_;  ///< of each of the two, likewise
  std::size_t end_ = 0;                     ///< where turns begin again
  std::size_t elements_;                    ///< of each of the two
  std::vector<float> random_, results_;
  std::vector<std::int64_t> tokens_;
  std::size_t next_read_ = 0, next_write_ = 0;
};
using SharedPool = std::shared_ptr<Pool>;

struct Product {
  std::int64_t m, n, k, batch;
  std::string transposes;  ///< as BLAS writes them: "NT"
};
Experiment product(const Product& product, const SharedPool& pool);

/// Rows times columns of what moves memory. `operands`: how often the elements are read or written,
/// masks of a byte as a quarter.
struct MemoryKernel {
  std::string kind;       ///< one of cost::streaming_kinds
  std::string operation;  ///< "softmax gradient": a gradient's ends so
  double operands;
  std::function<void(const kernels::Rows&, Pool&)> run;
};
/// Every kind of kernel that moves memory; an addition first.
const std::vector<MemoryKernel>& memory_kernels();
Experiment streaming(const MemoryKernel& stream, const kernels::Rows& rows, const SharedPool& pool);

}  // namespace stratagem::calibrate
