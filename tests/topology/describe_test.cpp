// The table that `stratagem topology show` prints.
#include "tests/catch.hpp"
#include "topology/presets.hpp"

namespace stratagem::topology {

TEST_CASE("the table tells what a DGX-2H cluster is made of") {
  const std::string text = describe(presets()[2].build(32));
  CHECK_THAT(
      text,
      StartsWith("DGX-2H: 32 nodes of 16 GPUs, 512 GPUs (profile v100-sxm3-450w)\n"
                 "node: 16 GPU, 12 NVSwitch, 12 PCIe switch, 2 CPU, 8 NIC, 8 drive\n"
                 "network per node: 8 ports of 12.5 GB/s, together 100 GB/s\n"
                 "memory of its processors: 1.649 TB\n"
                 "drives: 8 of 3.84 TB, together 30.72 TB; read 3.2 GB/s, write 3.2 GB/s each\n"
                 "  assumed: "));
  // 16 GPUs x 6 switches = 96 links of one cable; 6 trunks of 8 cables x 25 GB/s; 8 ports.
  CHECK_THAT(text,
             ContainsSubstring(
                 "\n  GPU - NVSwitch             NVLink        96     1            25 GB/s "));
  CHECK_THAT(text,
             ContainsSubstring(
                 "\n  NVSwitch - NVSwitch        NVLink        6      8            200 GB/s"));
  CHECK_THAT(text,
             ContainsSubstring(
                 "\n  NIC - fabric               network       8      1            12.5 GB/s"));
  CHECK_THAT(text, ContainsSubstring("\n  GPU    NVLinks  NVLink bandwidth  nearest NIC\n"
                                     "  0-1    6        150 GB/s          0\n"
                                     "  2-3    6        150 GB/s          1\n"));
}

TEST_CASE("links of different width have rows of their own") {
  // DGX-1V: of the 16 pairs, eight have one NVLink and eight have two.
  const std::string text = describe(presets()[0].build(1));
  CHECK_THAT(text, StartsWith("DGX-1V: 1 node of 8 GPUs, 8 GPUs (profile v100-sxm2)\n"));
  CHECK_THAT(
      text, ContainsSubstring("\n  GPU - GPU          NVLink        8      1            25 GB/s "));
  CHECK_THAT(
      text, ContainsSubstring("\n  GPU - GPU          NVLink        8      2            50 GB/s "));
}

TEST_CASE("a drive's link has two rates where it reads faster than it writes") {
  const std::string text = describe(presets()[3].build(1));
  CHECK_THAT(text, ContainsSubstring("\n  drive - CPU  "));
  CHECK_THAT(text, ContainsSubstring(" 6.25 GB/s, back 3.125 GB/s "));
}

TEST_CASE("a GPU with two nearest adapters shows both") {
  CHECK_THAT(describe(presets()[3].build(2)),
             ContainsSubstring("\n  0-1  12       300 GB/s          0, 1\n"));
}

TEST_CASE("every preset can be described") {
  for (const Preset& preset : presets()) {
    const Cluster cluster = preset.build(2);
    CHECK_THAT(describe(cluster), StartsWith(cluster.design().name + ": 2 nodes of "));
  }
}

TEST_CASE("a lone GPU has no NVLink, no adapter and no network") {
  NodeDesign design{.name = "lone", .gpu = "test", .vertices = {}, .links = {}};
  design.add(VertexKind::gpu, "gpu0");
  const std::string text = describe(Cluster(design, 1, 10_GBps, 1_us));
  CHECK_THAT(text, ContainsSubstring("\nnetwork per node: none\n"));
  CHECK_THAT(text, ContainsSubstring("\n  0    0        -                 -\n"));
}

}  // namespace stratagem::topology
