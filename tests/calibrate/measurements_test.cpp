// Measurement files: units stand in the header, and what is wrong is named by row.
#include "calibrate/measurements.hpp"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/input_error.hpp"
#include "tests/catch.hpp"

namespace stratagem::calibrate {
namespace {

/// A file that holds one table, removed at the end of the test.
class OneTable {
 public:
  explicit OneTable(const std::string& table)
      : file_((std::filesystem::temp_directory_path() /
               ("stratagem_table_" + std::to_string(getpid()) + ".json"))
                  .string()) {
    std::ofstream(file_)
        << R"({"schema": 1, "device": {"gpu": "G", "architecture": "a", "multiprocessors": 10,
      "peak": {"fp16": "100 TFLOP/s"}, "memory_bandwidth": "1000 GB/s", "nvlink": "25 GB/s"},
      "source": "test", "status": "measured", "tables": [)"
        << table << "]}";
  }
  OneTable(const OneTable&) = delete;
  OneTable& operator=(const OneTable&) = delete;
  ~OneTable() { std::remove(file_.c_str()); }
  [[nodiscard]] Measurements read() const { return read_measurements(file_); }

 private:
  std::string file_;
};

TEST_CASE("the unit of a column multiplies its cells") {
  const auto gemms = OneTable(R"({"kind": "gemm", "type": "fp16", "timing": "kernel",
      "columns": ["m", "n", "k", "time ms"], "rows": [[100, 200, 300, 0.5]]})")
                         .read()
                         .gemms;
  REQUIRE(gemms.size() == 1);
  CHECK(gemms[0].points[0].k == 300);
  CHECK(gemms[0].points[0].batch == 1);
  CHECK(close(gemms[0].points[0].time, 500_us, 1e-12));

  const auto sizes = OneTable(R"({"kind": "all_reduce", "type": "fp32", "timing": "kernel",
      "columns": ["ranks", "links", "size MiB", "time us"], "rows": [[8, 6, 4, 100]]})")
                         .read()
                         .all_reduces;
  CHECK(sizes[0].points[0].size == 4_MiB);
}

TEST_CASE("a rate is turned into a time") {
  // 2 * 1000^3 * 3 FLOP / 60 TFLOP/s = 100 us
  const auto gemms = OneTable(R"({"kind": "gemm", "type": "fp16", "timing": "kernel",
      "columns": ["batch", "m", "n", "k", "rate TFLOP/s"], "rows": [[3, 1000, 1000, 1000, 60]]})")
                         .read()
                         .gemms;
  CHECK(close(gemms[0].points[0].time, 100_us, 1e-12));
  const auto copies =
      OneTable(R"({"kind": "elementwise", "operation": "copy", "type": "fp32", "timing": "kernel",
      "columns": ["rate GB/s"], "rows": [[900]]})")
          .read()
          .streaming;
  CHECK(close(copies[0].points[0].bytes / copies[0].points[0].time, 900_GBps, 1e-12));
}

TEST_CASE("mistakes in a table are named with their row and column") {
  const auto error = [](const std::string& rows, const std::string& time = "time us") {
    try {
      static_cast<void>(OneTable(R"({"kind": "gemm", "type": "fp16", "timing": "kernel",)"
                                 R"( "columns": ["m", "n", "k", ")" +
                                 time + R"("], "rows": )" + rows + "}")
                            .read());
    } catch (const InputError& thrown) {
      return thrown.path;
    }
    return std::string("nothing was wrong");
  };
  CHECK(error("[[1, 2, 3, 4]]") == "nothing was wrong");
  CHECK(error("[]") == "/tables/0/rows");
  CHECK(error("[[1, 2, 3, 4], [1, 2, 3]]") == "/tables/0/rows/1");
  CHECK(error("[[1, 2, 3, -4]]") == "/tables/0/rows/0/3");
  CHECK(error("[[1, 0, 3, 4]]") == "/tables/0/rows/0/1");
  CHECK(error("[[1, 2, 3, 4]]", "time GB") == "/tables/0/columns/3");
  CHECK(error("[[1, 2, 3, 4]]", "tme us") == "/tables/0/columns/3");
  CHECK_THROWS_WITH(OneTable(R"({"kind": "gem", "columns": [], "rows": []})").read(),
                    ContainsSubstring("/tables/0/kind"));
  // Of before RMS norms were a kind: among layer norms they would change those.
  CHECK_THROWS_WITH(OneTable(R"({"kind": "norm", "operation": "RMS norm gradient", "type": "fp32",
      "timing": "kernel", "columns": ["rate GB/s"], "rows": [[900]]})")
                        .read(),
                    ContainsSubstring("/tables/0/kind: expected \"rms_norm\""));
}

TEST_CASE("what only people read is looked at, too: spreads, repeats, rows and columns") {
  const auto norm = [](const std::string& rows, const std::string& columns,
                       const std::string& spread, const std::string& repeats) -> std::string {
    const OneTable table(
        R"({"kind": "norm", "operation": "layer norm", "type": "fp16", "timing": "kernel",
        "columns": ["rows", "columns", "bytes", "time us", "spread", "repeats"], "rows": [[)" +
        rows + ", " + columns + ", 1000, 5, " + spread + ", " + repeats + "]]}");
    try {
      static_cast<void>(table.read());
    } catch (const InputError& error) {
      return error.what();
    }
    return "read";
  };
  CHECK(norm("8", "16", "0.01", "7") == "read");
  CHECK(norm("8", "16", "0", "1") == "read");
  CHECK_THAT(norm("8", "0.5", "0.01", "7"),
             ContainsSubstring("/tables/0/rows/0/1: expected a whole number >= 1, found 0.5"));
  CHECK_THAT(norm("-1", "16", "0.01", "7"),
             ContainsSubstring("/tables/0/rows/0/0: expected a whole"));
  CHECK_THAT(norm("8", "16", "-5", "7"),
             ContainsSubstring("/tables/0/rows/0/4: expected a share of 0 or more, found -5"));
  CHECK_THAT(norm("8", "16", "\"hello\"", "7"),
             ContainsSubstring("/tables/0/rows/0/4: expected a number, found \"hello\""));
  CHECK_THAT(norm("8", "16", "0.01", "-7"),
             ContainsSubstring("/tables/0/rows/0/5: expected a whole"));
}

TEST_CASE("every shipped file of measurements can be read and says where it is from") {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("scenarios/measurements")) {
    if (entry.path().extension() != ".json") continue;
    const Measurements measurements = read_measurements(entry.path().string());
    CHECK_FALSE(measurements.origin.source.empty());
    CHECK(measurements.gemms.size() + measurements.streaming.size() +
              measurements.all_reduces.size() + measurements.nccl_all_reduces.size() +
              measurements.kernel_gaps.size() >
          0);
    ++files;
  }
  CHECK(files == 22);
}

std::vector<std::string> families(const std::string& family) {
  std::vector<std::string> found;
  const auto gemms =
      OneTable(R"({"kind": "gemm", "type": "fp16", "timing": "kernel", )" + family + R"(
      "columns": ["m", "n", "k", "time us"],
      "rows": [[4096, 300, 200, 1], [8, 300, 200, 1], [200, 300, 4096, 1]]})")
          .read()
          .gemms;
  for (const GemmPoint& point : gemms[0].points) found.push_back(point.family);
  return found;
}

TEST_CASE("products are alike by their weights, unless the table says otherwise") {
  const auto weights = families("");
  CHECK(weights[0] == weights[1]);
  CHECK(weights[0] != weights[2]);
  CHECK(families(R"("family": ["n", "k"],)") == weights);
  // The same three numbers in another order: a product of the backward pass.
  const auto sizes = families(R"("family": ["smallest", "middle"],)");
  CHECK(sizes[0] == sizes[2]);
  CHECK(sizes[0] != sizes[1]);
  CHECK_THROWS_WITH(families(R"("family": ["weight"],)"), ContainsSubstring("/family/0"));
}

TEST_CASE("unaligned products stand apart, with the bytes at whose multiples their rows begin") {
  const auto table = [](const std::string& row) {
    return OneTable(
               R"({"kind": "gemm", "operation": "unaligned", "type": "fp16", "timing": "kernel",
      "columns": ["m", "n", "k", "transposes", "time us"], "rows": [)" +
               row + "]}")
        .read()
        .gemms.at(0);
  };
  CHECK(table(R"([8, 16, 9, "NT", 1])").points.empty());
  CHECK(table(R"([8, 16, 9, "NT", 1])").unaligned.at(0).second == 2);   // rows of 9 values
  CHECK(table(R"([8, 12, 16, "NN", 1])").unaligned.at(0).second == 8);  // of 12, of b and c
  CHECK(table(R"([10, 8, 7, "TN", 1])").unaligned.at(0).second == 4);   // of 10, of a
  CHECK_THROWS_WITH(table(R"([9, 8, 8, "NT", 1])"), ContainsSubstring("no multiple of 16 bytes"));
}

TEST_CASE("kernels that move memory are alike by the power of ten of their bytes") {
  const auto points = OneTable(R"({"kind": "softmax", "operation": "softmax", "type": "fp16",
      "timing": "kernel", "columns": ["bytes", "time us"],
        "rows": [[1000, 1], [9999, 1], [10000, 1]]})")
                          .read()
                          .streaming[0]
                          .points;
  CHECK(points[0].family == points[1].family);
  CHECK(points[0].family != points[2].family);
}

}  // namespace
}  // namespace stratagem::calibrate
