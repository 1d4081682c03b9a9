// Runs of nccl-tests as measurements. Figures of the rows are from public logs; the lines around them
// follow the format of nccl-tests (src/util.cu).
#include "calibrate/nccl_log.hpp"

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "calibrate/measurements.hpp"
#include "tests/catch.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem::calibrate {
namespace {

/// Eight ranks; times of kvcache-ai/Mooncake#3484.
std::string eight_ranks() {
  std::string text =
      "# nccl-tests version 2.17.1 nccl-headers=22803 nccl-library=22809\n"
      "# Collective test starting: all_reduce_perf\n# Using devices\n";
  for (int rank = 0; rank < 8; ++rank) {
    text += "#  Rank  " + std::to_string(rank) + " Group  0 Pid  28307 on      gpu59 device  " +
            std::to_string(rank) + " [0000:16:00] NVIDIA A100-SXM4-80GB\n";
  }
  return text +
         "#\n#                                                              out-of-place\n"
         "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
         "time   algbw   busbw #wrong\n"
         "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "
         "(us)  (GB/s)  (GB/s)\n"
         "           0             0     float     sum      -1     5.70    0.00    0.00      0     "
         "5.54    0.00    0.00      0\n"
         "     1048576        262144     float     sum      -1    27.76   37.78   66.11       0    "
         "27.49   38.15   66.76       0\n"
         "    16777216       4194304     float     sum      -1   121.33  138.28  242.00       0   "
         "120.47  139.26  243.71       0\n"
         "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 154.645\n";
}

/// The first of these results as -J writes it.
const std::string as_json = R"({"version": 1, "nccl_version": 22809,
  "config": {"nthreads": 1, "ngpus": 8, "devices": [
    {"rank": 0, "group": 0, "hostname": "gpu59", "device": 0, "device_info": "NVIDIA A100-SXM4-80GB"}]},
  "results": [{"size": 1048576, "count": 262144, "type": "float", "redop": "sum", "root": "    -1",
    "out_of_place": {"time": 27.76, "alg_bw": 37.78, "bus_bw": 66.11, "nwrong": 0},
    "in_place": {"time": 27.49, "alg_bw": 38.15, "bus_bw": 66.76, "nwrong": 0}}],
  "out_of_bounds": {"count": 0, "okay": "true"}})";

NcclLog read(const std::string& text) {
  const TemporaryFolder folder;
  folder.write("log", text);
  return read_nccl_log((folder.path() / "log").string());
}

std::string complaint(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.path + ": " + error.expected + ", found " + error.found;
  }
  return "accepted";
}

TEST_CASE("the text of all_reduce_perf: ranks, GPU, version, sizes and times") {
  const NcclLog log = read(eight_ranks());
  CHECK(log.ranks == 8);
  CHECK(log.gpu == "NVIDIA A100-SXM4-80GB");
  CHECK(log.version == "2.28.9");
  REQUIRE(log.rows.size() == 2);  // nothing of 0 bytes
  CHECK(log.rows[0].size == 1_MiB);
  CHECK(close(log.rows[0].out_of_place, 27.76_us, 1e-12));
  CHECK(close(log.rows[0].in_place, 27.49_us, 1e-12));
  CHECK(log.rows[1].size == 16_MiB);
}

TEST_CASE("the JSON of -J says the same") {
  const NcclLog log = read(as_json);
  CHECK(log.ranks == 8);
  CHECK(log.gpu == "NVIDIA A100-SXM4-80GB");
  CHECK(log.version == "2.28.9");
  REQUIRE(log.rows.size() == 1);
  CHECK(close(log.rows[0].out_of_place, 27.76_us, 1e-12));
}

TEST_CASE("older logs have no root, and NCCL's own line its version") {
  std::string text = "NCCL version 2.8.4+cuda11.2\n" + eight_ranks();
  text = with(text, "# nccl-tests version 2.17.1 nccl-headers=22803 nccl-library=22809\n", "");
  text = with(text, "redop    root     time", "redop     time");
  for (std::size_t at = 0; (at = text.find("      -1 ", at)) != std::string::npos;)
    text.replace(at, 9, " ");
  const NcclLog log = read(text);
  CHECK(log.version == "2.8.4");
  CHECK(log.rows.size() == 2);
}

TEST_CASE("other collectives, several servers and results that cannot be are refused") {
  CHECK_THAT(complaint("hello\n"), ContainsSubstring("the output of all_reduce_perf"));
  CHECK_THAT(complaint(with(eight_ranks(), "66.11", "33.06")),  // (n-1)/n: a reduce-scatter
             StartsWith("line 17: an all-reduce, whose busbw is 1.75"));
  // An all-gather of two GPUs (nccl-tests#44) names no reduction.
  CHECK_THAT(
      complaint("# Rank 0 Pid 1 on a device 0 [0x1] RTX\n# Rank 1 Pid 1 on a device 1 [0x2] RTX\n"
                "# size count type time algbw busbw error time algbw busbw error\n"
                "1048576 131072 float 47.38 11.06 11.06 0e+00 46.84 11.19 11.19 0e+00\n"),
      ContainsSubstring("an all-reduce, found results without a reduction"));
  CHECK_THAT(complaint(with(eight_ranks(), "Rank  7 Group  0 Pid  28307 on      gpu59",
                            "Rank  7 Group  0 Pid  28307 on      gpu60")),
             StartsWith("line 11: ranks of one server, found 2"));
  CHECK_THAT(complaint(with(as_json, "\"redop\": \"sum\"", "\"redop\": \"none\"")),
             StartsWith("/results/0: an all-reduce"));
  CHECK_THAT(complaint(with(as_json, "\"ngpus\": 8", "\"ngpus\": 1")),
             ContainsSubstring("at least two ranks"));
}

TEST_CASE("imported logs are measurements like any other") {
  const TemporaryFolder folder;
  const Datasheet sheet = read_datasheet("scenarios/datasheets/a100-sxm4-80gb.json");
  const ImportedLogs imported =
      import_logs({read(eight_ranks())}, sheet, "dgx-a100", "", "mine.csv");
  folder.write("mine.json", imported.json);
  folder.write("mine.csv", imported.csv);
  const Measurements back = read_measurements((folder.path() / "mine.json").string());
  CHECK(back.device.gpu == "NVIDIA A100-SXM4-80GB");
  CHECK(back.device.multiprocessors == 108);
  CHECK(back.status == "measured");
  REQUIRE(back.nccl_all_reduces.size() == 1);
  const NcclTable& table = back.nccl_all_reduces.front();
  CHECK(table.cluster == "dgx-a100");
  CHECK(table.version == "2.28.9");
  CHECK(table.fitted_ranks == std::vector{8});
  REQUIRE(table.points.size() == 2);
  CHECK(table.points[1].size == 16_MiB);
  CHECK(close(table.points[1].time, 121.33_us, 1e-12));
}

TEST_CASE("logs of different versions of NCCL, or of none that is known, are refused") {
  const Datasheet sheet = read_datasheet("scenarios/datasheets/a100-sxm4-80gb.json");
  NcclLog log = read(eight_ranks());
  NcclLog other = log;
  other.version = "2.18.6";
  CHECK_THROWS_AS(import_logs({log, other}, sheet, "dgx-a100", "", "a.csv"), InputError);
  log.version = "";
  CHECK_THROWS_AS(import_logs({log}, sheet, "dgx-a100", "", "a.csv"), InputError);
  CHECK_NOTHROW(import_logs({log}, sheet, "dgx-a100", "2.18.6", "a.csv"));
}

}  // namespace
}  // namespace stratagem::calibrate
