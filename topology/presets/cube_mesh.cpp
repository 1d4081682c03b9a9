// The hybrid cube mesh of eight V100 SXM2: two quads, fully joined, and six NVLinks between them.
#include <array>
#include <cstddef>

#include "topology/presets/parts.hpp"

namespace stratagem::topology::parts {

/// Read in `nvidia-smi topo -m` of a server with eight V100 SXM2 (kyumdoctor.tistory.com/74), and
/// of GPUs 0 and 1 in the NCCL XML of nccl#671. Isomorphic to `dgx1()` of msccl-tools; agrees with
/// vTrain's measured all-reduces on the first 2..8 GPUs.
void join_cube_mesh(NodeDesign& design, const std::vector<VertexId>& gpus) {
  struct Pair {
    int a, b, links;
  };
  constexpr std::array<Pair, 16> mesh{{{0, 1, 1},
                                       {0, 2, 1},
                                       {0, 3, 2},
                                       {0, 4, 2},
                                       {1, 2, 2},
                                       {1, 3, 1},
                                       {1, 5, 2},
                                       {2, 3, 2},
                                       {2, 6, 1},
                                       {3, 7, 1},
                                       {4, 5, 1},
                                       {4, 6, 1},
                                       {4, 7, 2},
                                       {5, 6, 2},
                                       {5, 7, 1},
                                       {6, 7, 2}}};
  for (const auto& [a, b, links] : mesh) {
    design.join(gpus[static_cast<std::size_t>(a)], gpus[static_cast<std::size_t>(b)],
                LinkKind::nvlink, links, nvlink, nvlink_latency);
  }
}

}  // namespace stratagem::topology::parts
