// What the links of a server still carry while channels are laid over them, and which adapters
// channels would rather have.
#pragma once

#include <vector>

#include "cost/nccl/graph.hpp"
#include "cost/nccl/paths.hpp"
#include "cost/nccl/server.hpp"
#include "cost/nccl/terms.hpp"

namespace stratagem::cost::nccl {

class FreeLinks {
 public:
  FreeLinks(const Server& server, const Paths& paths, const Terms& terms);

  /// Takes `amount` from every link of a path, or gives it back; false, and nothing taken, where
  /// one has not enough.
  bool take(const std::vector<int>& edges, BytesPerSecond amount);
  /// What the narrowest link of a path has left.
  [[nodiscard]] BytesPerSecond width(const Path& path) const;
  /// May a channel take this path between a GPU and an adapter?
  [[nodiscard]] bool near(const Path& path) const {
    return path.exists() && path.type <= terms_.max_inter;
  }
  /// The links of a path to or from an adapter, with the adapter's port.
  [[nodiscard]] std::vector<int> with_port(const Path& path, int nic, bool out) const;

  /// The adapters in the order in which a GPU would have them: the nearest before others, and of
  /// several that are equally near first another one for each GPU of the server.
  [[nodiscard]] const std::vector<int>& preferred(int g) const { return preferred_[g]; }
  /// In the order in which channels begin at them: every GPU's first, then every GPU's second, and
  /// so on.
  [[nodiscard]] std::vector<int> adapters() const;

 private:
  [[nodiscard]] int edge_between(int from, int to) const;
  [[nodiscard]] std::vector<int> nearest_first(int g) const;

  const Server& server_;
  const Paths& paths_;
  const Terms& terms_;
  std::vector<BytesPerSecond> free_;         ///< by edge
  std::vector<int> ports_out_;               ///< by adapter: the edge to the fabric
  std::vector<int> ports_in_;                ///< by adapter: the edge from the fabric
  std::vector<std::vector<int>> preferred_;  ///< by GPU, where channels leave the server
};

/// Reduction in the switch: one channel with each GPU as its head. All send to the switch and
/// receive from it, the head twice as much, which also talks to the nearest adapter that is not
/// taken.
std::vector<Channel> switch_channels(const Server& server, const Paths& paths, const Terms& terms,
                                     FreeLinks& links);

}  // namespace stratagem::cost::nccl
