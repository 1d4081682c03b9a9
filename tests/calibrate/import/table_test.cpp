// Tables as CSV: what stands in them arrives, and what is wrong is named by line and column.
#include "calibrate/import/table.hpp"

#include "base/input_error.hpp"
#include "calibrate/measurements.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem::calibrate {
namespace {

const std::string gemm_csv =
    "kind,gemm\ntype,bf16\nsource,cublasLtMatmul, 20 launches\nrows,2\nm,n,k,transposes,time us\n"
    "4096,4096,2048,TN,601.5\n64,128,256,NN,9\n";

std::string imported(const std::string& csv) {
  const TemporaryFolder folder;
  folder.write("table.csv", csv);
  return import_tables({(folder.path() / "table.csv").string()},
                       read_datasheet("scenarios/datasheets/a100-sxm4-80gb.json"));
}

std::string replaced(std::string text, const std::string& before, const std::string& after) {
  const std::size_t at = text.find(before);
  REQUIRE(at != std::string::npos);
  return text.replace(at, before.size(), after);
}

TEST_CASE("products in a CSV arrive as measurements of the datasheet's GPU") {
  const Measurements read =
      read_measurements(JsonReader::from_text(imported(gemm_csv), "mine.json"), "mine.json");
  CHECK(read.device.gpu == "NVIDIA A100-SXM4-80GB");
  CHECK(read.device.peak.at("bf16") == 312_TFLOPps);
  CHECK(read.origin.source == "cublasLtMatmul, 20 launches");
  CHECK(read.origin.status == "measured");
  REQUIRE(read.gemms.size() == 1);
  REQUIRE(read.gemms[0].points.size() == 2);
  const GemmPoint& first = read.gemms[0].points.front();
  CHECK(first.k == 2048);
  CHECK(first.transposes == "TN");
  CHECK(close(first.time, 601.5_us, 1e-12));
}

TEST_CASE("kernels that move memory need their operation, and may state their families") {
  const std::string csv =
      "kind,softmax\noperation,softmax\ntype,fp16\ntiming,eager\nfamily,columns\nsource,mine\n"
      "rows,1\nrows,columns,bytes,time ms\n64,1024,262144,0.01\n";
  const Measurements read =
      read_measurements(JsonReader::from_text(imported(csv), "mine.json"), "mine.json");
  REQUIRE(read.streaming.size() == 1);
  CHECK(read.streaming[0].timing == Timing::eager);
  CHECK(close(read.streaming[0].points[0].time, 10_us, 1e-12));
  CHECK(read.streaming[0].points[0].family == "columns 1024");
  CHECK_THROWS_WITH(imported(replaced(csv, "operation,softmax\n", "")),
                    ContainsSubstring("operation"));
}

TEST_CASE("a file that is cut off is refused wherever it ends") {
  for (std::size_t size = 0; size < gemm_csv.size(); ++size)
    CHECK_THROWS_AS(imported(gemm_csv.substr(0, size)), InputError);
  CHECK_NOTHROW(imported(gemm_csv));
  CHECK_THROWS_WITH(imported(replaced(gemm_csv, "64,128,256,NN,9\n", "")),
                    ContainsSubstring("row 2 of 2") && ContainsSubstring("cut off"));
}

TEST_CASE("what is wrong is named by line and column") {
  const auto wrong = [](const std::string& before, const std::string& after) {
    try {
      imported(replaced(gemm_csv, before, after));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("nothing is wrong");
  };
  CHECK_THAT(wrong("601.5", "fast"), ContainsSubstring("line 6, column \"time us\""));
  CHECK_THAT(wrong("601.5", "-1"), ContainsSubstring("a number of more than 0"));
  CHECK_THAT(wrong("601.5", "nan"), ContainsSubstring("line 6, column \"time us\""));
  CHECK_THAT(wrong(",NN,9", ",9"), ContainsSubstring("line 7") && ContainsSubstring("5 values"));
  CHECK_THAT(wrong("64,128,256,NN,9\n", "64,128,256,NN,9\n1,1,1,NN,1\n"),
             ContainsSubstring("line 7 and on"));
  CHECK_THAT(wrong("time us", "time parsecs"),
             ContainsSubstring("line 5, column \"time parsecs\""));
  CHECK_THAT(wrong("m,n,k", "m,n,height"), ContainsSubstring("line 5, column \"height\""));
  CHECK_THAT(wrong("type,bf16", "type,int8"), ContainsSubstring("line 2: expected a data type"));
  CHECK_THAT(wrong("4096,2048,TN", "4096,20.5,TN"), ContainsSubstring("line 6, column \"k\""));
  CHECK_THAT(wrong("4096,2048,TN", "4096,2048,XY"),
             ContainsSubstring("line 6, column \"transposes\"") && ContainsSubstring("XY"));
  CHECK_THAT(wrong("4096,2048,TN", "4096,2048,"),
             ContainsSubstring("line 6, column \"transposes\""));
  CHECK_THAT(wrong("kind,gemm", "kind,all_reduce"), ContainsSubstring("nccl-tests"));
  CHECK_THAT(wrong("kind,gemm", "kind,gemm\nkind,gemm"), ContainsSubstring("once"));
  CHECK_THAT(wrong("kind,gemm", "colour,red"), ContainsSubstring("line 1"));
}

TEST_CASE("a shape stands in a table once") {
  // Its time may be another one: then nobody knows which to believe.
  CHECK_THROWS_WITH(imported(replaced(gemm_csv, "64,128,256,NN,9", "4096,4096,2048,TN,590")),
                    ContainsSubstring("line 7: expected every shape once; line 6 has it"));
  CHECK_NOTHROW(imported(replaced(gemm_csv, "64,128,256,NN,9", "4096,4096,2048,NN,590")));
}

TEST_CASE("nothing is faster than its GPU's datasheet, but for what clocks may gain") {
  // 2 * 4096^2 * 2048 = 68.7 GFLOP take 220 us at 312 TFLOP/s; at 1.2 times that 184 us.
  CHECK_NOTHROW(imported(replaced(gemm_csv, "601.5", "190")));
  CHECK_THROWS_WITH(imported(replaced(gemm_csv, "601.5", "180")),
                    ContainsSubstring("line 6, column \"time us\"") &&
                        ContainsSubstring("the datasheet's peak of bf16"));
  const std::string rates = replaced(replaced(gemm_csv, "time us", "rate TFLOP/s"), "601.5", "290");
  const Measurements of_rates =
      read_measurements(JsonReader::from_text(imported(rates), "mine.json"), "mine.json");
  CHECK(
      close(of_rates.gemms[0].points[0].time, Flops{2.0 * 4096 * 4096 * 2048} / 290_TFLOPps, 1e-9));
  CHECK_THROWS_WITH(imported(replaced(rates, ",290", ",400")),
                    ContainsSubstring("line 6, column \"rate TFLOP/s\""));
  CHECK_THROWS_WITH(
      imported(replaced(rates, ",290", ",-290")),
      ContainsSubstring("line 6, column \"rate TFLOP/s\": expected a number of more"));

  // 2 GB in 900 us are 2.2 TB/s of 2.04; in 500 us nobody can move them. 20 MB may be in a cache.
  const std::string stream =
      "kind,elementwise\noperation,add\ntype,fp16\nsource,mine\nrows,1\nbytes,time us\n";
  CHECK_NOTHROW(imported(stream + "2000000000,900\n"));
  CHECK_THROWS_WITH(
      imported(stream + "2000000000,500\n"),
      ContainsSubstring("line 7, column \"time us\"") && ContainsSubstring("memory bandwidth"));
  CHECK_NOTHROW(imported(stream + "20000000,5\n"));
}

}  // namespace
}  // namespace stratagem::calibrate
