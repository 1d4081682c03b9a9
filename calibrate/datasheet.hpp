// A datasheet: the rates of a GPU that are known without measuring, and what replaces constants
// that nobody measured.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cost/profile.hpp"

namespace stratagem::calibrate {

/// A constant that is taken from another one: dropout as elementwise, bf16 as fp16.
struct Likeness {
  std::string as;
  cost::Provenance provenance = cost::Provenance::assumed;
  std::string because;
  double times_as_long = 1;  ///< as the other one's share of the peak, or of the bandwidth, says
};

/// What profiles say of links that is not fitted to measurements.
struct LinkFacts {
  cost::Constant<double> network_efficiency;
  cost::Constant<double> pcie_efficiency;
  cost::Constant<Seconds> network_step;
  /// The link latency that the measured step and network_step contain: cost/profile.hpp.
  std::optional<cost::Constant<Seconds>> node_link_latency, network_link_latency;
  /// A stated value, for GPUs that all-reduces of another architecture, which would be fitted
  /// otherwise, do not represent.
  std::optional<cost::Constant<double>> nvlink_efficiency;
  std::optional<cost::Constant<double>> compute_slowdown;
};

/// Kernels that nobody measured, and what they are like.
struct Likenesses {
  std::map<std::string, Likeness> gemm;       ///< by data type
  std::map<std::string, Likeness> streaming;  ///< by kind of kernel
};

/// What is fitted for GPUs, and stated of processors: datasheet_of_processor.
struct ProcessorFacts {
  cost::Constant<Seconds> kernel_floor, launch;
  cost::CollectiveConstants collective;
};

/// Launches of kernels: how many a stream takes, and the host's time of one. None: about 1,000, and
/// what eager frameworks took.
struct LaunchFacts {
  std::optional<cost::Constant<double>> queue;
  std::optional<cost::Constant<Seconds>> time;
};

/// Copies to and from the host, and the memory that steps on its processors use.
struct HostFacts {
  cost::HostCopyConstants copy;
  std::optional<cost::Constant<BytesPerSecond>> memory_bandwidth;
};

/// A file of scenarios/datasheets/. docs/guide/measurements.md describes the format.
struct Datasheet {
  std::string file;
  std::string name;          ///< of the profile: "v100-sxm2"
  std::string gpu;           ///< "NVIDIA Tesla V100-SXM2-16GB"
  std::string architecture;  ///< measurements of the same architecture count as this GPU's
  /// Files to fit from, for what those that the user names do not have.
  std::vector<std::string> measurements;
  cost::Constant<double> multiprocessors;
  std::map<std::string, cost::Constant<FlopsPerSecond>> peak;
  cost::MemoryConstants memory;
  Likenesses like;
  cost::Attentions attention;  ///< taken over where nothing is measured
  LinkFacts links;
  HostFacts host;
  LaunchFacts launches = {};
  std::optional<cost::Constant<double>> speed_spread = {};
  std::optional<ProcessorFacts> processor = {};
};

/// Throws InputError for a missing or unknown key, or a wrong unit or provenance.
Datasheet read_datasheet(const std::string& file);

/// The rates of a datasheet as the "device" of a file of measurements.
Json measured_device(const Datasheet& sheet, const std::string& gpu);

}  // namespace stratagem::calibrate
