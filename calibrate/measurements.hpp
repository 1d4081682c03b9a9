// Measured points, as a file of scenarios/measurements/ holds them; see docs/guide/measurements.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "base/quantity.hpp"
#include "calibrate/all_reduce_csv.hpp"
#include "cost/attention.hpp"
#include "cost/kernel.hpp"
#include "cost/ring.hpp"
#include "model/tensor.hpp"

namespace stratagem::calibrate {

/// The GPU that was measured, with the datasheet rates that shares are taken of.
struct Device {
  std::string gpu;           ///< "V100-SXM2-16GB"
  std::string architecture;  ///< "volta": constants of one architecture stand in for each other
  double multiprocessors = 0;
  std::map<std::string, FlopsPerSecond> peak;  ///< by data type
  BytesPerSecond memory_bandwidth;
  BytesPerSecond nvlink;  ///< of one link and direction; 0 where nothing was measured over NVLink
  std::optional<Bytes> memory;  ///< of a processor
  std::optional<Seconds> pace;  ///< of a processor: that at which its rates hold (pace.hpp)
};

/// kernel: the GPU's own time (profiler, or many launches in a row).
/// eager: between two events around one operator of an eager framework, so the host's time is in
/// it.
enum class Timing : std::uint8_t { kernel, eager };

/// `batch` products (m, k) x (k, n). `transposes` is as BLAS writes it, "" where it is not known.
/// Points of one `family` are alike in shape: a fit is judged on families that it has not seen.
struct GemmPoint {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  std::string transposes;
  Seconds time;
  std::string family = {};
  std::optional<Seconds> pace = {};  ///< of a processor's core meanwhile (pace.hpp)
};
struct GemmTable {
  model::DataType type = model::DataType::fp16;
  std::vector<GemmPoint> points;
  /// Of a table of the operation "unaligned": in 16 bits, with rows that begin at multiples of 2, 4
  /// or 8 bytes only, and that number. They are no `points`.
  std::vector<std::pair<GemmPoint, int>> unaligned = {};
};

/// The size of a kernel of which only a rate is known: so large that fixed costs vanish.
inline constexpr Bytes very_large = 1000_TB;

/// `bytes` counts every operand once, read or written. A rate without bytes is read as a time of
/// `very_large`.
struct StreamingPoint {
  Bytes bytes;
  Seconds time;
  std::string family = {};
  std::optional<Seconds> pace = {};  ///< as of products
};
struct StreamingTable {
  std::string kind;       ///< one of cost::kernel_kind_names
  std::string operation;  ///< "gelu"
  Timing timing = Timing::kernel;
  std::vector<StreamingPoint> points;
};

/// One pass of fused attention. `flops` are those of two products forward and five backward, halved
/// if a causal mask hides half; `bytes` are counted as for kernels that move memory.
struct AttentionPoint {
  Flops flops;
  Bytes bytes;
  Seconds time;
  int size = 0;  ///< of a head
  cost::AttentionShape sizes = {};
  std::string shape = {};
  std::string family = {};
};
struct AttentionTable {
  std::string implementation;  ///< one of cost::attention_implementations
  cost::KernelKind kind = cost::KernelKind::attention;
  model::DataType type = model::DataType::fp16;
  std::vector<AttentionPoint> points;
};

/// Ring all-reduce of `size` bytes on each rank, over `links` NVLinks per GPU and direction.
struct AllReducePoint {
  int ranks = 0;
  int links = 0;
  Bytes size;
  Seconds time;
  std::string family = {};
};
struct AllReduceTable {
  std::vector<AllReducePoint> points;
};

/// Collectives of one kind on the first GPUs of a server, as NCCL runs them: imported logs, or what
/// `calibrate measure --backend cuda` found of groups that worked alone. A size is that of
/// NcclLog::Row, a `send` that of every rank to the next one at once.
struct NcclTable {
  cost::CollectiveKind collective = cost::CollectiveKind::all_reduce;
  std::string cluster;            ///< preset of the server
  std::string version;            ///< of NCCL
  std::vector<int> fitted_ranks;  ///< numbers of GPUs to fit to; the others are for judging
  std::vector<NcclPoint> points;
};

/// A collective of ranks on processors over MPI: groups of `ranks` ranks, `stride` apart, all of
/// which worked at the same time; sizes are payloads of cost/ring.hpp.
struct MpiPoint {
  int ranks = 0;
  int stride = 1;
  Bytes size;
  Seconds time;
};
struct MpiTable {
  cost::CollectiveKind collective = cost::CollectiveKind::all_reduce;
  std::vector<MpiPoint> points;
};

/// Who measured, where and when; "" where it is not known.
struct Origin {
  std::string host;
  std::string date;
  std::string source;  ///< citation, or the command that measured
  std::string status;  ///< "measured" by us or "published" by others
  std::string note;
};

struct Measurements {
  std::string file;
  Device device;
  int ranks = 1;    ///< processes that measured together, all busy; as many on every server
  int servers = 1;  ///< that they stood on
  Origin origin;
  std::vector<GemmTable> gemms;
  std::vector<StreamingTable> streaming;
  std::vector<AttentionTable> attentions;
  std::vector<AllReduceTable> all_reduces;
  std::vector<NcclTable> nccl_all_reduces;
  /// Other collectives, for judging: nothing is fitted to them.
  std::vector<NcclTable> nccl_others;
  std::vector<MpiTable> mpi;
  std::vector<Seconds> kernel_gaps;    ///< from one tiny kernel on a stream to the next
  std::vector<Seconds> host_launches;  ///< of the host, for a kernel
  /// The file was named by the datasheet, not by the user: use it only for tables that the user's
  /// files lack.
  bool stands_in = false;

  /// Of the server that had the most.
  [[nodiscard]] int ranks_of_server() const { return (ranks + servers - 1) / servers; }
};

/// Of an operation's name, "softmax gradient": those that end so are of the gradient, all others
/// of the forward pass.
cost::KernelPass pass_of(const std::string& operation);

/// Throws InputError, with the row and column, for anything that is not of the format.
Measurements read_measurements(const std::string& file);
/// The same of what was read already; tables `nccl_*` stand beside `file`.
Measurements read_measurements(const JsonReader& json, const std::string& file);

}  // namespace stratagem::calibrate
