// Runs of nccl-tests as measurements. Figures of the rows are from public logs; the lines around
// them follow the format of nccl-tests (src/util.cu).
#include "calibrate/import/nccl_log.hpp"

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "calibrate/fit/nccl.hpp"
#include "calibrate/fit/nccl_others.hpp"
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
    {"rank": 0, "group": 0, "hostname": "gpu59", "device": 0,
      "device_info": "NVIDIA A100-SXM4-80GB"}]},
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

/// A log of four A100 with one row of 4 MiB in 100 us, in the columns of nccl-tests 2.17: an
/// algorithm bandwidth of 4194304 / 100e-6 = 41.94 GB/s.
std::string four_ranks(const std::string& program, const std::string& operation,
                       const std::string& root, const std::string& bus) {
  std::string text = "# nccl-tests version 2.17.1 nccl-headers=22803 nccl-library=22809\n";
  if (!program.empty()) text += "# Collective test starting: " + program + "\n";
  for (int rank = 0; rank < 4; ++rank) {
    text += "#  Rank  " + std::to_string(rank) + " Group  0 Pid  28307 on      gpu59 device  " +
            std::to_string(rank) + " [0000:16:00] NVIDIA A100-SXM4-80GB\n";
  }
  text +=
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
      "time   algbw   busbw #wrong\n";
  text +=
      "     4194304       1048576     float  " + operation + "  " + root + "   100.00   41.94   ";
  text += bus + "       0   100.10   41.90   " + bus + "     N/A\n";
  return text + "# Out of bounds values : 0 OK\n";
}

/// The same as -J writes it.
std::string four_ranks_json(const std::string& program, const std::string& operation,
                            const std::string& root, const std::string& bus) {
  const std::string body = R"("time": 100.0, "alg_bw": 41.943040, "bus_bw": )" + bus;
  return R"({"version": 2, "args": [".\/build\/)" + program + R"(", "-J", "a.json"],
    "nccl_version": 22809, "config": {"nthreads": 1, "ngpus": 4, "devices": [
      {"rank": 0, "group": 0, "hostname": "gpu59", "device": 0,
        "device_info": "NVIDIA A100-SXM4-80GB"}]},
    "results": [{"size": 4194304, "count": 1048576, "type": "float", "redop": ")" +
         operation + R"(", "root": ")" + root + R"(", "out_of_place": {)" + body +
         R"(, "nwrong": 0}, "in_place": {)" + body + R"(, "nwrong": null}}]})";
}

struct Program {
  std::string name;
  cost::CollectiveKind kind;
  std::string operation;
  std::string root;
  std::string bus;
};

/// What four ranks call bus bandwidth, of 41.94 GB/s: 2 * 3/4, 3/4 or all of it (PERFORMANCE.md).
std::vector<Program> programs() {
  using cost::CollectiveKind;
  return {{"all_reduce_perf", CollectiveKind::all_reduce, "sum", "-1", "62.91"},
          {"all_gather_perf", CollectiveKind::all_gather, "none", "-1", "31.46"},
          {"reduce_scatter_perf", CollectiveKind::reduce_scatter, "sum", "-1", "31.46"},
          {"broadcast_perf", CollectiveKind::broadcast, "none", "0", "41.94"},
          {"reduce_perf", CollectiveKind::reduce, "sum", "0", "41.94"},
          {"alltoall_perf", CollectiveKind::all_to_all, "none", "-1", "31.46"},
          {"sendrecv_perf", CollectiveKind::send, "sum", "-1", "41.94"}};
}

TEST_CASE("every program's text and JSON say which collective, with its own bus bandwidth") {
  for (const Program& program : programs()) {
    INFO(program.name);
    for (const std::string& text :
         {four_ranks(program.name, program.operation, program.root, program.bus),
          four_ranks_json(program.name, program.operation, program.root, program.bus)}) {
      const NcclLog log = read(text);
      CHECK(log.collective == program.kind);
      CHECK(log.ranks == 4);
      REQUIRE(log.rows.size() == 1);
      CHECK(log.rows[0].size == 4_MiB);
      CHECK(close(log.rows[0].out_of_place, 100_us, 1e-12));
    }
    // Another program's bus bandwidth is refused.
    const std::string other = program.bus == "62.91" ? "31.46" : "62.91";
    for (const auto& [where, text] :
         {std::pair{"line 8: a", four_ranks(program.name, program.operation, program.root, other)},
          std::pair{"/results/0: a",
                    four_ranks_json(program.name, program.operation, program.root, other)}}) {
      CHECK_THAT(complaint(text), StartsWith(where));
      CHECK_THAT(complaint(text), ContainsSubstring("times its algbw, found " + other));
    }
  }
}

TEST_CASE(
    "a log that does not say its program is of the one that the user names, or an all-reduce") {
  const TemporaryFolder folder;
  for (const Program& program : programs()) {
    INFO(program.name);
    folder.write("log", four_ranks("", program.operation, program.root, program.bus));
    const std::string file = (folder.path() / "log").string();
    CHECK(read_nccl_log(file, program.name).collective == program.kind);
    const bool all_reduce = program.name == "all_reduce_perf";
    CHECK((complaint(folder.read("log")) == "accepted") == all_reduce);
  }
}

TEST_CASE(
    "sizes, times and bandwidths belong to each other, and programs are those that are known") {
  const std::string log = four_ranks("all_gather_perf", "none", "-1", "31.46");
  const auto with_time = [&](const std::string& time) {
    return with(log, "-1   100.00   41.94", "-1   " + time + "   41.94");
  };
  CHECK(complaint(with_time("100.10")) == "accepted");
  CHECK_THAT(complaint(with_time("101.00")),
             StartsWith("line 8: an algbw of size / time, 41.5277"));
  CHECK_THAT(complaint(with_time("0.00")), StartsWith("line 8: times above 0"));
  CHECK_THAT(complaint(with_time("fast")), StartsWith("line 8: a number as time"));
  CHECK_THAT(complaint(log.substr(0, log.find("     4194304"))),
             StartsWith("line 7: results of a program of nccl-tests"));
  const std::size_t root = log.find("  -1 ");
  CHECK_THAT(complaint(log.substr(0, root) + "\n"), StartsWith("line 8: 13 columns, found 4"));
  const std::string unknown = complaint(with(log, "all_gather_perf", "hypercube_perf"));
  CHECK_THAT(unknown, StartsWith("line 2: a run of all_reduce_perf, all_gather_perf,"));
  CHECK_THAT(unknown, ContainsSubstring("sendrecv_perf, found hypercube_perf"));
  CHECK_THAT(complaint(four_ranks_json("alltoallv_perf", "none", "-1", "31.46")),
             StartsWith("/args/0: a run of"));
  const std::string json = four_ranks_json("all_gather_perf", "none", "-1", "31.46");
  CHECK_THAT(complaint(with(json, "\"size\": 4194304", "\"size\": 0")),
             StartsWith("/results: at least one result"));
}

TEST_CASE(
    "imported logs of any program are measurements, and are judged by NCCL's own prediction") {
  const TemporaryFolder folder;
  const Datasheet sheet = read_datasheet("scenarios/datasheets/a100-sxm4-80gb.json");
  for (const Program& program : programs()) {
    INFO(program.name);
    const NcclLog log =
        read(four_ranks(program.name, program.operation, program.root, program.bus));
    const ImportedLogs imported = import_logs({log}, sheet, "dgx-a100", "", "mine.csv");
    folder.write("mine.json", imported.json);
    folder.write("mine.csv", imported.csv);
    const Measurements back = read_measurements((folder.path() / "mine.json").string());
    const bool all_reduce = program.name == "all_reduce_perf";
    REQUIRE(back.nccl_all_reduces.size() == (all_reduce ? 1 : 0));
    REQUIRE(back.nccl_others.size() == (all_reduce ? 0 : 1));
    const NcclTable& table = all_reduce ? back.nccl_all_reduces.front() : back.nccl_others.front();
    CHECK(table.collective == program.kind);
    REQUIRE(table.points.size() == 1);
    CHECK(table.points[0].ranks == 4);
    if (all_reduce) continue;
    CHECK_THAT(describe_others(table),
               StartsWith("dgx-a100, NCCL 2.28.9, " + cost::to_text(program.kind) + ": "));
    CHECK_THAT(describe_others(table), ContainsSubstring("   4 GPUs  4: "));
  }
  const NcclLog one = read(four_ranks("all_gather_perf", "none", "-1", "31.46"));
  const NcclLog other = read(four_ranks("alltoall_perf", "none", "-1", "31.46"));
  CHECK_THROWS_AS(import_logs({one, other}, sheet, "dgx-a100", "", "a.csv"), InputError);
}

TEST_CASE("collectives alone take as much longer as their busiest link has more to carry") {
  // On 4 A100, 12 cables of 20 GB/s each (the search's): an all-to-all, an all-gather and a ring of
  // sends leave every GPU over 240 GB/s, with three quarters and all of the payload.
  const topology::Cluster server = server_named("dgx-a100");
  cost::Collectives collectives(server, cost::as_searched(server.design()), "2.28.9");
  const auto slope = [&](cost::CollectiveKind kind) {
    const Seconds more = predict_alone(collectives, kind, 4, 8_GB);
    return (more - predict_alone(collectives, kind, 4, 4_GB)) / (4_GB / 240_GBps);
  };
  CHECK(close(slope(cost::CollectiveKind::send), 1.0, 1e-9));
  CHECK(close(slope(cost::CollectiveKind::all_to_all), 0.75, 1e-9));
  CHECK(close(slope(cost::CollectiveKind::all_gather), 0.75, 1e-9));
}

TEST_CASE("what is no number, or of wrong results, measures nothing") {
  CHECK(complaint(with(eight_ranks(), "27.76", "nan")).find("line 17") == 0);
  CHECK(complaint(with(eight_ranks(), "66.11       0", "66.11       7")) ==
        "line 17: results without wrong elements, found 7");
  CHECK(complaint(with(as_json, "66.11, \"nwrong\": 0", "66.11, \"nwrong\": 7"))
            .find("/results/0/out_of_place/nwrong: results without wrong elements") == 0);
}

TEST_CASE("several servers and results that cannot be are refused") {
  CHECK_THAT(complaint("hello\n"),
             ContainsSubstring("line 1: results of a program of nccl-tests up to here"));
  CHECK_THAT(complaint(with(eight_ranks(), "66.11", "33.06")),  // (n-1)/n: a reduce-scatter
             StartsWith("line 17: an all-reduce, whose busbw is 1.75"));
  // An all-gather of two GPUs (nccl-tests#44) names no reduction.
  CHECK_THAT(
      complaint("# Rank 0 Pid 1 on a device 0 [0x1] RTX\n# Rank 1 Pid 1 on a device 1 [0x2] RTX\n"
                "# size count type time algbw busbw error time algbw busbw error\n"
                "1048576 131072 float 47.38 11.06 11.06 0e+00 46.84 11.19 11.19 0e+00\n"),
      ContainsSubstring("(--program), found results without a reduction"));
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
  CHECK(back.origin.status == "measured");
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
  const ImportedLogs told = import_logs({log}, sheet, "dgx-a100", "2.18.6", "a.csv");
  CHECK_THAT(told.json, ContainsSubstring("2.18.6"));
}

}  // namespace
}  // namespace stratagem::calibrate
