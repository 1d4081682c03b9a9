// The design of one server as a graph: GPUs, switches, host bridges, network adapters and the links
// between them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "topology/processor.hpp"

namespace stratagem::topology {

/// cpu_rank: a share of a processor's cores, with a rank on it, in a server without GPUs.
enum class VertexKind : std::uint8_t {
  gpu,
  nv_switch,
  pcie_switch,
  cpu,
  nic,
  fabric,
  cpu_rank,
  drive
};
/// c2c: a GPU's coherent link to the processor beside it (NVLink-C2C), which is no way to other
/// GPUs. memory: a cpu_rank's share of its processor's memory bandwidth.
/// drive: from a drive to what it stands at, as fast as the drive itself reads and writes.
enum class LinkKind : std::uint8_t { nvlink, c2c, pcie, inter_socket, network, memory, drive };
std::string to_text(VertexKind);
std::string to_text(LinkKind);

using VertexId = int;
using LinkId = int;

struct Vertex {
  VertexKind kind = VertexKind::gpu;
  int node = -1;  ///< the server it stands in, -1 for the switches of the fabric
  int index = 0;  ///< counts vertices of this kind within the node
  std::string name;
  friend bool operator==(const Vertex&, const Vertex&) = default;
};

/// `count` parallel full-duplex cables; `bandwidth` is their sum in one direction (datasheet rate).
struct Link {
  VertexId a = 0;
  VertexId b = 0;
  LinkKind kind = LinkKind::nvlink;
  int count = 1;
  BytesPerSecond bandwidth;
  Seconds latency;
  std::optional<BytesPerSecond> back = {};  ///< from b to a, where that is another rate
  friend bool operator==(const Link&, const Link&) = default;

  [[nodiscard]] BytesPerSecond toward(bool forward) const {
    return forward || !back ? bandwidth : *back;
  }
};

/// One direction of a link: a to b where `forward`.
struct Direction {
  LinkId link = 0;
  bool forward = true;
  friend auto operator<=>(const Direction&, const Direction&) = default;
};

/// The share (0..1] of a message that one direction of a link carries.
struct Share {
  Direction direction;
  double share = 1;
};

/// Drives of one kind. Each reads and writes at its rate at the same time, and no access takes a
/// time of its own: what is read and written is many megabytes long.
struct Drives {
  Bytes capacity;          ///< of each
  BytesPerSecond read;     ///< of each
  BytesPerSecond write;    ///< of each
  std::string provenance;  ///< of the figure that is known least
  std::string source;
  friend bool operator==(const Drives&, const Drives&) = default;
};

/// What a collective over all GPUs of some servers reached.
struct MeasuredCollective {
  int servers = 2;
  Bytes payload;  ///< the whole tensor
  /// Of n GPUs, payload x 2(n-1)/n over the time that an all-reduce took; x (n-1)/n of the others.
  BytesPerSecond bus_bandwidth;
  std::string source;
  friend bool operator==(const MeasuredCollective&, const MeasuredCollective&) = default;
};

/// Collectives that were measured between servers, each kind in ascending numbers of servers
/// (topology/measured_collectives.hpp).
struct MeasuredCollectives {
  std::vector<MeasuredCollective> all_reduces;  ///< empty: the others are, too
  std::vector<MeasuredCollective> all_gathers;
  std::vector<MeasuredCollective> reduce_scatters;
  friend bool operator==(const MeasuredCollectives&, const MeasuredCollectives&) = default;
};

/// The design of one server, to be repeated: ids are local to it. No vertex of it is a fabric.
struct NodeDesign {
  std::string name;  ///< "DGX-2H"
  std::string gpu;   ///< name of the GPU's profile, "v100-sxm3-450w"
  std::vector<Vertex> vertices;
  std::vector<Link> links;
  int compute_capability = 0;  ///< of its GPUs, ten times CUDA's number: 70 for 7.0; 0: not known
  Processor processor = Processor::unknown;
  std::optional<Bytes> host_memory = {};  ///< of its processors, all together; none: not known
  /// What its vertices of kind `drive` are; none: it has none that we know of
  /// (topology/drives.hpp).
  std::optional<Drives> drives = {};
  std::optional<double> price_per_gpu_hour = {};  ///< in any currency; none: not known
  /// Measured between such servers; none: collectives between servers are as fast as the ports let
  /// them be (cost/port_shares.hpp).
  MeasuredCollectives measured = {};
  /// Are its ranks shares of processors? Else they are GPUs.
  [[nodiscard]] bool on_processors() const;
  /// How many ranks it has: GPUs, or shares of processors.
  [[nodiscard]] int ranks() const;
  VertexId add(VertexKind kind, const std::string& name);
  void join(VertexId a, VertexId b, LinkKind kind, int count, BytesPerSecond each, Seconds latency);
  friend bool operator==(const NodeDesign&, const NodeDesign&) = default;
};

/// Has a kind of vertex a rank on it?
bool is_rank(VertexKind kind);

/// The design itself. Throws InputError if a vertex is a fabric, if there are both GPUs and shares
/// of processors, if a drive has not one link, to a PCIe switch or a processor, or if a link joins
/// what is not there, is a memory's that does not join a share to a processor, has no cable, no
/// finite bandwidth above 0 or no finite latency of 0 or more.
NodeDesign checked(NodeDesign design);

/// A server whose ranks are processors, with `ranks` of them in place of its own: each of its
/// shares is cut into equally many, and with it its links, so that all together move what it did. A
/// rank that communicates alone could draw more than its share; that is left out. Throws InputError
/// for servers of GPUs and for numbers that do not divide so.
NodeDesign divided(const NodeDesign& design, int ranks);

}  // namespace stratagem::topology
