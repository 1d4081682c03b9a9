// A file as `calibrate measure --backend cuda` writes it on one GPU, made by its own writer with
// times of formulas: synthetic, nothing in it was measured. `calibrate fit` makes a profile of it.
#include "calibrate/measure/gpu_file.hpp"

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "calibrate/fit/fit.hpp"
#include "calibrate/fit/fit_profile.hpp"
#include "cost/gemm.hpp"
#include "cost/kernel_kind.hpp"
#include "tests/catch.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem::calibrate {
namespace {

constexpr const char* sheet_file = "scenarios/datasheets/h100-sxm5.json";
const std::vector<std::string> types{"fp16", "bf16", "fp32"};

Experiment experiment(const std::string& kind, const std::string& operation,
                      const std::vector<std::string>& columns,
                      const std::vector<std::int64_t>& sizes, Bytes bytes) {
  return {.kind = kind,
          .operation = operation,
          .columns = columns,
          .sizes = sizes,
          .transposes = kind == "gemm" ? "NT" : "",
          .flops = {},
          .bytes = bytes,
          .prepare = {}};
}

cost::GemmConstants planted_products() {
  return {.efficiency = {.value = 0.8, .source = {}},
          .half_intensity = {.value = 25, .source = {}},
          .ramp = {.value = 100, .source = {}},
          .streaming = {.value = 0.7, .source = {}},
          .fixed = {.value = 5_us, .source = {}}};
}

/// Fused attention that reaches 60 % of the peak forward, 40 % backward, over endless sequences.
cost::AttentionPass planted_pass(bool forward) {
  cost::AttentionPass pass;
  pass.efficiency.value = forward ? 0.6 : 0.4;
  pass.ramp.value = 80;
  pass.tile.value = 120;
  return pass;
}

cost::AttentionShape shape_of(std::int64_t heads, std::int64_t length, bool causal) {
  const auto tokens = static_cast<double>(length);
  return {.heads = static_cast<double>(heads), .queries = tokens, .keys = tokens, .causal = causal};
}

/// Rows of a planted GPU: a gap of 2.2 us, launches of 3.5 us, products by the formula of
/// cost::gemm_time, kernels that move memory at 90 % of the bandwidth and 3 us, fused attention.
class Planted {
 public:
  Planted(const Datasheet& sheet, const std::string& name)
      : file_(name,
              {.device = {.name = "imagined H100",
                          .major = 9,
                          .multiprocessors = 132,
                          .memory = sheet.memory.size.value},
               .rates = rates_of(sheet),
               .cuda = "CUDA 13.0, driver for 13.0",
               .note = "synthetic",
               .machine = {.host = "nowhere"}},
              {"", ""}) {
    rates_.multiprocessors.value = 132;
    rates_.memory.bandwidth = sheet.memory.bandwidth;
    rates_.peak = sheet.peak;
  }

  void write() {
    file_.add_time(experiment("kernel_gap", "", {}, {}, {}), {.median = 2.2_us});
    file_.add_time(experiment("host_launch", "", {}, {}, {}), {.median = 3.5_us});
    for (const std::string& type : types) {
      products(type);
      for (const std::string& kind : cost::streaming_kinds()) {
        streaming(type, kind, kind);
        if (kind == "softmax" || kind == "norm") streaming(type, kind, kind + " gradient");
      }
      attention(type);
    }
  }

  void leave_out(const std::string& type, const std::vector<std::int64_t>& shape) {
    file_.leave_out(experiment("gemm", "", {"m", "n", "k", "batch"}, shape, {}), type);
  }

 private:
  static GpuRates rates_of(const Datasheet& sheet) {
    GpuRates rates{.peak = {}, .memory = sheet.memory.bandwidth.value};
    for (const std::string& type : types) rates.peak[type] = sheet.peak.at(type).value;
    return rates;
  }
  static double product(std::int64_t a, std::int64_t b) { return static_cast<double>(a * b); }

  void products(const std::string& type) {
    const double size = type == "fp32" ? 4 : 2;
    const auto data = type == "fp16"   ? model::DataType::fp16
                      : type == "bf16" ? model::DataType::bf16
                                       : model::DataType::fp32;
    for (const std::int64_t m : {128, 2048, 2049, 8192}) {
      for (const std::int64_t n : {64, 1024, 4096}) {
        for (const std::int64_t k : {128, 1024, 4096}) {
          const Bytes bytes{size * (product(m, k) + product(k, n) + product(m, n))};
          const cost::Kernel kernel{.kind = cost::KernelKind::gemm,
                                    .type = data,
                                    .m = m,
                                    .n = n,
                                    .k = k,
                                    .batch = 1,
                                    .flops = Flops{2 * product(m, n) * static_cast<double>(k)},
                                    .traffic = bytes};
          file_.add(experiment("gemm", "", {"m", "n", "k", "batch"}, {m, n, k, 1}, bytes), type,
                    {.median = cost::gemm_time(kernel, planted_products(), rates_),
                     .spread = 0.01,
                     .repeats = 7});
        }
      }
    }
  }

  void streaming(const std::string& type, const std::string& kind, const std::string& operation) {
    for (const std::int64_t rows : {64, 512, 4096, 16384}) {
      const Bytes bytes{3 * product(rows, 4096) * (type == "fp32" ? 4 : 2)};
      file_.add(experiment(kind, operation, {"rows", "columns"}, {rows, 4096}, bytes), type,
                {.median = 3_us + bytes / (0.9 * rates_.memory.bandwidth.value),
                 .spread = 0.01,
                 .repeats = 7});
    }
  }

  /// fp32, which has no tensor cores here, at another share: no constant is to know of it.
  void attention(const std::string& type) {
    for (const std::int64_t length : {1024, 4096}) {
      for (const std::int64_t causal : {1, 2}) {
        for (const bool forward : {true, false}) {
          const std::int64_t batch = 16384 / length, heads = 16, size = 128;
          // 2 m n k of (length, size) x (size, length), of which forward there are two, backward
          // five.
          const double flops = (forward ? 2 : 5) * 2 * product(batch, heads) *
                               product(length, length) * static_cast<double>(size) /
                               static_cast<double>(causal);
          const double share =
              type == "fp32"
                  ? 0.2
                  : cost::attention_share(planted_pass(forward),
                                          shape_of(batch * heads, length, causal == 2), 132);
          file_.add(experiment(forward ? "attention" : "attention_backward", "",
                               {"batch", "heads", "queries", "keys", "size", "causal"},
                               {batch, heads, length, length, size, causal}, Bytes{1e6}),
                    type,
                    {.median = 2.2_us + Flops{flops} / (share * rates_.peak.at(type).value),
                     .spread = 0.01,
                     .repeats = 7});
        }
      }
    }
  }

  GpuFile file_;
  cost::Profile rates_;
};

Fit fitted(const Datasheet& sheet) {
  const TemporaryFolder folder;
  const std::string name = (folder.path() / "gpu.json").string();
  Planted(sheet, name).write();
  const Measurements measured = read_measurements(name);
  // By itself it has no all-reduces.
  CHECK_THROWS_WITH(fit_profile({measured}, sheet), ContainsSubstring("\"all_reduce\""));
  return fit_completed({measured}, sheet);
}

}  // namespace

TEST_CASE(
    "what is measured of one GPU gives a profile, with all-reduces of the datasheet's files") {
  const Datasheet sheet = read_datasheet(sheet_file);
  const cost::Profile mine = fitted(sheet).profile, shipped = fit_profile(sheet).profile;
  CHECK(mine.gpu == "imagined H100");
  CHECK(mine.kernels.floor.value == 2.2_us);
  CHECK(mine.kernels.floor.provenance == cost::Provenance::measured);
  for (const std::string& type : types) {
    INFO(type);
    // Measured, so not as fp16 is, whatever the datasheet says of bf16.
    CHECK(mine.kernels.gemm.at(type).efficiency.value == Approx(0.8).epsilon(0.03));
    CHECK_THAT(mine.kernels.gemm.at(type).efficiency.source,
               StartsWith("fitted to 36 " + type + " GEMMs"));
  }
  for (const std::string& kind : cost::streaming_kinds()) {
    INFO(kind);
    CHECK(mine.kernels.streaming.at(kind).value == Approx(0.9).epsilon(0.02));
    CHECK(mine.kernels.streaming.at(kind).provenance == cost::Provenance::fitted);
  }
  REQUIRE(mine.kernels.attention.contains("stratagem"));
  const cost::AttentionPasses& passes = mine.kernels.attention.at("stratagem").at(128);
  for (const bool causal : {false, true}) {
    const auto share = [&](const cost::AttentionPass& pass) {
      // Between what was measured.
      return cost::attention_share(pass, shape_of(128, 2048, causal), 132);
    };
    CHECK(share(passes.forward) == Approx(share(planted_pass(true))).epsilon(0.01));
    CHECK(share(passes.backward) == Approx(share(planted_pass(false))).epsilon(0.01));
  }
  CHECK_THAT(passes.forward.efficiency.source,
             ContainsSubstring("8 attention times on imagined H100"));
  CHECK(mine.launch.value == 3.5_us);
  CHECK(mine.launch.provenance == cost::Provenance::measured);
  // What one GPU cannot tell is as in the profile that is fitted to nothing else.
  CHECK(mine.collective.base.value == shipped.collective.base.value);
  CHECK(mine.collective.node_step.value == shipped.collective.node_step.value);
}

TEST_CASE("a file of a GPU names what it has no row of, since the host was never ahead") {
  const TemporaryFolder folder;
  const std::string name = (folder.path() / "gpu.json").string();
  Planted planted(read_datasheet(sheet_file), name);
  planted.write();
  CHECK(read_measurements(name).origin.note == "synthetic");
  const std::size_t rows = read_measurements(name).gemms.at(0).points.size();
  planted.leave_out("fp16", {512, 64, 128, 1});
  planted.leave_out("bf16", {512, 64, 256, 1});
  CHECK_THAT(read_measurements(name).origin.note,
             StartsWith("synthetic Left out") &&
                 Catch::Matchers::EndsWith(
                     ": fp16 gemm NT 512 x 64 x 128 x 1; bf16 gemm NT 512 x 64 x 256 x 1."));
  CHECK(read_measurements(name).gemms.at(0).points.size() == rows);
}

TEST_CASE("without fused attention in a file the datasheet's constants stay") {
  const Datasheet sheet = read_datasheet("scenarios/datasheets/a100-sxm4-80gb.json");
  const cost::Profile shipped = fit_profile(sheet).profile;
  REQUIRE(shipped.kernels.attention.size() == 1);
  const auto& passes = shipped.kernels.attention.at("FlashAttention-2").at(128);
  const auto& stated = sheet.attention.at("FlashAttention-2").at(128);
  CHECK(passes.forward.efficiency.value == stated.forward.efficiency.value);
  CHECK(passes.backward.ramp.value == stated.backward.ramp.value);
}

TEST_CASE("one pass of an implementation wants the other") {
  const Datasheet sheet = read_datasheet(sheet_file);
  const TemporaryFolder folder;
  const std::string name = (folder.path() / "gpu.json").string();
  Planted(sheet, name).write();
  Measurements measured = read_measurements(name);
  std::erase_if(measured.attentions, [](const AttentionTable& table) {
    return table.kind == cost::KernelKind::attention_backward;
  });
  CHECK_THROWS_WITH(fit_completed({measured}, sheet),
                    ContainsSubstring("attention_backward by stratagem"));
}

TEST_CASE("unaligned products limit types of 16 bits alone, whatever is like them") {
  // On this sheet fp8 and tf32 are like bf16.
  const Datasheet sheet = read_datasheet("scenarios/datasheets/b200-sxm.json");
  Measurements more;
  more.file = "more.json";
  more.device.architecture = sheet.architecture;
  more.device.peak["bf16"] = sheet.peak.at("bf16").value;
  GemmTable table{.type = model::DataType::bf16, .points = {}};
  table.unaligned.emplace_back(
      GemmPoint{.m = 4096, .n = 50257, .k = 2048, .transposes = "NT", .time = 3_ms}, 2);
  more.gemms.push_back(table);
  const cost::Profile profile = fit_completed({more}, sheet).profile;
  const double share = 2.0 * 4096 * 50257 * 2048 / 3e-3 / sheet.peak.at("bf16").value.value;
  CHECK(profile.kernels.gemm.at("bf16").unaligned.at(2).value == Approx(share).epsilon(1e-3));
  CHECK(profile.kernels.gemm.at("fp16").unaligned.at(2).value == Approx(share).epsilon(1e-3));
  CHECK(profile.kernels.gemm.at("fp8").unaligned.empty());
  CHECK(profile.kernels.gemm.at("tf32").unaligned.empty());
}

TEST_CASE("the operations of fused attention follow from its sizes and its mask") {
  const std::string head = R"({"schema": 1, "source": "s", "status": "measured",
    "device": {"gpu": "g", "architecture": "a", "multiprocessors": 1, "peak": {"fp16": "1 TFLOP/s"},
               "memory_bandwidth": "1 GB/s"},
    "tables": [{"kind": "attention", "type": "fp16", "timing": "kernel",
      "columns": ["batch", "heads", "queries", "keys", "size", "causal", "bytes", "time us"],
        "rows": [)";
  const auto read = [&](const std::string& row) {
    return read_measurements(JsonReader::from_text(head + row + "]}]}", "m.json"), "m.json");
  };
  // 2 products of 2 x 3 x 4 x 5 x 6 x 7 operations, and half of that.
  CHECK(read("[3, 4, 5, 6, 7, 1, 100, 2]").attentions[0].points[0].flops.value == 2 * 2 * 2520);
  CHECK(read("[3, 4, 5, 6, 7, 2, 100, 2]").attentions[0].points[0].flops.value == 2 * 2520);
  CHECK(read("[3, 4, 5, 6, 7, 2, 100, 2]").attentions[0].implementation == "stratagem");
  CHECK_THROWS_WITH(read("[3, 4, 5, 6, 7, 3, 100, 2]"),
                    ContainsSubstring("/tables/0/rows/0/5: expected 1, or 2 where a causal mask"));
}

}  // namespace stratagem::calibrate
