// The profile of one GPU model: every constant of the cost formulas, with unit and origin.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "base/json_writer.hpp"
#include "base/quantity.hpp"
#include "cost/attention.hpp"
#include "cost/constant.hpp"
#include "cost/evidence.hpp"

namespace stratagem::cost {

/// Matrix multiplication of one data type, see gemm.hpp for the formula.
struct GemmConstants {
  Constant<double> efficiency;      ///< share of peak that an infinitely large tile reaches, 0..1
  Constant<double> half_intensity;  ///< tile intensity tm*tn/(tm+tn) that reaches half of that
  Constant<double> ramp;            ///< steps of K that filling and draining a tile's pipeline cost
  Constant<double> streaming;  ///< share of the memory's bandwidth for operands and result, 0..1
  Constant<Seconds> fixed;     ///< fixed device time of one GEMM kernel
  /// Share of the peak that products in 16 bits reach at most where rows of an operand or of the
  /// result begin at multiples of 2, 4 or 8 bytes only, by that number. Empty: as all others.
  std::map<int, Constant<double>> unaligned = {};
};

/// What measured collectives add to NCCL's own prediction, see nccl/correction.hpp for the formula.
struct NcclConstants {
  Constant<Seconds> added;          ///< fixed time of one collective
  Constant<double> latency_factor;  ///< measured latency over the predicted one
  /// Speed of NVLink channels over what nvlink_efficiency leaves.
  Constant<double> bandwidth_factor;
  Constant<BytesPerSecond> copy;  ///< rate at which the payload is moved once more, by each GPU
};

/// How long a collective of so many bytes took.
struct TimedPayload {
  Bytes payload;  ///< as in ring.hpp
  Seconds time;   ///< from when the last rank comes until the last one is done
};

/// Collectives of one kind on ranks of one server, as measured: see measured_times.hpp.
struct CollectiveTimes {
  std::map<int, std::vector<TimedPayload>> by_ranks;  ///< two ranks or more; ascending payloads
  Provenance provenance = Provenance::measured;
  std::string source;
  double error = 0;  ///< as of a Constant
};

/// Collectives, see ring.hpp for the formula.
struct CollectiveConstants {
  Constant<double> nvlink_efficiency;   ///< usable share of an NVLink's datasheet bandwidth, 0..1
  Constant<double> network_efficiency;  ///< usable share of a network port's bandwidth, 0..1
  Constant<double> pcie_efficiency;     ///< usable share of a PCIe link's bandwidth, 0..1
  /// Of a processor: the share of a rank's memory bandwidth at which messages leave while others
  /// arrive as fast, 0..1. It is below 1 because bytes are copied several times, into shared memory
  /// and out of it. Without it, ranks on processors are refused.
  std::optional<Constant<double>> memory_efficiency;
  Constant<Seconds> base;          ///< fixed time of one collective
  Constant<Seconds> node_step;     ///< per ring step between GPUs of one node
  Constant<Seconds> network_step;  ///< per ring step that crosses the network
  Constant<Seconds> host_step;     ///< of a copy to or from the host: host_copy.latency
  /// The latency of links that these steps already contain. A hop adds the rest (ring.hpp). Without
  /// a value, a hop adds all of its latency.
  std::optional<Constant<Seconds>> node_link_latency = {};
  std::optional<Constant<Seconds>> network_link_latency = {};
  std::optional<Constant<Seconds>> host_link_latency = {};  ///< host_copy.link_latency
  std::optional<NcclConstants> nccl;  ///< where they were fitted; only NCCL's model uses them
  /// For ranks on processors: measured times, by to_text of the kind. They replace the formula for
  /// groups within a server. Empty: not measured.
  std::map<std::string, CollectiveTimes> times;
  /// Share of its speed that a kernel loses while its GPU communicates, from 0 to below 1
  /// (sim/engine.hpp); 0 if not given.
  std::optional<Constant<double>> compute_slowdown;
};

/// Copies between device memory and host memory. Pinned memory is copied at what PCIe carries, see
/// ring.hpp.
struct HostCopyConstants {
  Constant<Seconds> latency;           ///< fixed time of one copy
  Constant<BytesPerSecond> bandwidth;  ///< of pageable memory, which the host waits for
  /// The latency of the links between GPU and host that `latency` already contains; 0 if not given.
  std::optional<Constant<Seconds>> link_latency = {};
};

/// Device memory of one NCCL communicator on each of its GPUs:
///   fixed + peers * peer
/// A GPU has 2 peers in a ring or tree of more than two, all others in all-to-alls.
struct CommunicatorConstants {
  Constant<Bytes> fixed;
  Constant<Bytes> peer;  ///< buffers of all protocols of all channels, to and fro
};

/// The shares of the memory's bandwidth that the two passes of a kind of kernel reach, where they
/// differ: on processors an exponential costs more than the memory that it reads.
struct PassShares {
  Constant<double> forward;
  Constant<double> gradient;
};

/// The memory of a device, and what of it is taken before any tensor.
struct MemoryConstants {
  Constant<Bytes> size;
  Constant<BytesPerSecond> bandwidth;
  Constant<Bytes> context;  ///< of driver and libraries
  /// Where it is not known, communicators count as part of the context.
  std::optional<CommunicatorConstants> communicator;
};

/// What kernels of each kind reach of the peak and of the memory's bandwidth; gemm.hpp and
/// kernel_time.hpp have the formulas.
struct KernelConstants {
  std::map<std::string, GemmConstants> gemm;  ///< by data type: tensor cores and plain ones differ
  /// Achieved share of the bandwidth by kind of kernel: elementwise, norm, softmax, ...
  std::map<std::string, Constant<double>> streaming;
  /// For kinds of which both passes were measured, by kind. Kernels that know their pass take these
  /// shares in place of `streaming`.
  std::map<std::string, PassShares> by_pass;
  Attentions attention;     ///< empty: refused
  Constant<Seconds> floor;  ///< shortest time between two dependent kernels on a stream
};

struct Profile {
  std::string name;  ///< "v100-sxm3"
  std::string gpu;   ///< "NVIDIA Tesla V100-SXM3-32GB"
  Constant<double> multiprocessors;
  std::map<std::string, Constant<FlopsPerSecond>> peak;  ///< by data type, "fp16"; dense
  MemoryConstants memory;
  KernelConstants kernels;
  Constant<Seconds> launch;  ///< host time to launch one kernel from an eager framework
  /// Launches of kernels that a stream takes before the next waits for the first of them to end.
  /// None: about 1,000 (launch_queue_of).
  std::optional<Constant<double>> launch_queue = {};
  /// The standard deviation of how fast GPUs of this kind multiply, as a share (speed_spread.hpp);
  /// from 0 to below 1. None: all are alike.
  std::optional<Constant<double>> speed_spread = {};
  CollectiveConstants collective;
  HostCopyConstants host_copy;
  /// The memory bandwidth that optimizer steps on the processors of a server reach, all of its
  /// ranks together.
  std::optional<Constant<BytesPerSecond>> host_memory_bandwidth;
  /// The measurements behind fitted constants, by what was fitted: "gemm fp16", "softmax",
  /// "all_reduce", "nccl all_reduce". A kind without an entry has no measured range.
  std::map<std::string, Evidence> evidence;
  /// Of a processor: how many ranks of a server were busy while its kernels were measured, and so
  /// shared memory and caches. Ascending, each number once. Empty: not known.
  std::vector<int> busy_ranks;
  /// Of a processor: its pace when kernels take the predicted times, as the time of the yardstick
  /// (kernels/core_speed.hpp). At another pace, times of kernels are proportionally longer or
  /// shorter. None: not known.
  std::optional<Constant<Seconds>> pace;

  /// Is a device a core of a processor? Only there messages go through memory.
  [[nodiscard]] bool of_processor() const { return collective.memory_efficiency.has_value(); }
};

/// How many launches a stream takes. A profile that does not say it has 1,000, which is what
/// forums.developer.nvidia.com/t/68937 says of GPUs: of each stream as many.
int launch_queue_of(const Profile&);

/// Reads a profile file; throws InputError for a missing or unknown constant, a wrong unit or
/// provenance.
Profile read_profile(const std::string& file);
HostCopyConstants read_host_copy(const JsonReader& json);
Constant<double> read_count(const JsonReader& json);  ///< a whole number of at least 1
Constant<double> read_loss(const JsonReader& json);   ///< at least 0 and below 1
MemoryConstants read_device_memory(const JsonReader& profile);
Profile read_profile(const JsonReader&);

/// The same format: what is written here reads back equal. docs/guide/measurements.md describes it.
Json to_json(const Profile&);

}  // namespace stratagem::cost
