// Limits of the GEMM formula that hold whatever its constants are.
#include "cost/gemm.hpp"

#include <tuple>

#include "base/input_error.hpp"
#include "tests/catch.hpp"

namespace stratagem::cost {
namespace {

/// 100 multiprocessors, 100 TFLOP/s, 1 TB/s; half of the tile's rate is reached at I = 10.
Profile round_numbers() {
  Profile profile;
  profile.name = "round";
  profile.multiprocessors.value = 100;
  profile.peak["fp16"].value = 100_TFLOPps;
  profile.memory.bandwidth.value = 1_TBps;
  profile.kernels.gemm["fp16"] = {.efficiency = {.value = 0.9, .source = {}},
                                  .half_intensity = {.value = 10, .source = {}},
                                  .ramp = {.value = 0, .source = {}},
                                  .streaming = {.value = 1, .source = {}},
                                  .fixed = {.value = 0_s, .source = {}}};
  return profile;
}

Kernel gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
  const auto product = [](std::int64_t a, std::int64_t b) {
    return static_cast<double>(a) * static_cast<double>(b);
  };
  return {
      .kind = KernelKind::gemm,
      .type = model::DataType::fp16,
      .m = m,
      .n = n,
      .k = k,
      .batch = batch,
      .flops = Flops{2 * product(m, n) * product(k, batch)},
      .traffic = static_cast<double>(batch) * (product(m, k) + product(k, n) + product(m, n)) * 2_B,
      .launches = 1};
}

/// The largest tiles are 256 x 128: I = 256 * 128 / 384.
constexpr double largest_intensity = 256.0 * 128 / 384;

TEST_CASE("an infinitely large GEMM runs at efficiency * I / (I + half_intensity) of peak") {
  const Kernel kernel = gemm(1 << 20, 1 << 20, 1 << 20);
  const FlopsPerSecond rate = kernel.flops / gemm_time(kernel, round_numbers());
  CHECK(close(rate, 0.9 * largest_intensity / (largest_intensity + 10) * 100_TFLOPps, 1e-3));
}

TEST_CASE("a GEMM whose K vanishes costs its fixed time and the ramp of one wave") {
  Profile profile = round_numbers();
  GemmConstants& constants = profile.kernels.gemm["fp16"];
  constants.fixed.value = 4_us;
  constants.half_intensity.value = 0;
  constants.ramp.value = 5000;
  profile.memory.bandwidth.value = 1'000'000_TBps;
  // One tile of 64 x 32, the smallest: 2 * 64 * 32 * 5000 FLOP at 0.9 TFLOP/s.
  CHECK(close(gemm_time(gemm(64, 32, 1), profile), 4_us + Flops{2.0 * 64 * 32 * 5000} / 0.9_TFLOPps,
              1e-3));
}

TEST_CASE("one tile more than a full wave costs a whole wave") {
  Profile profile = round_numbers();
  profile.memory.bandwidth.value = 1'000'000_TBps;
  profile.kernels.gemm["fp16"].ramp.value = 1e6;  // so long that splitting K does not pay
  // On 100 multiprocessors 100 tiles of 64 x 32 take as long as one, 101 as long as 200.
  const Seconds wave = gemm_time(gemm(64, 32, 64), profile);
  CHECK(close(gemm_time(gemm(64, 32, 64, 100), profile), wave, 1e-4));
  CHECK(close(gemm_time(gemm(64, 32, 64, 101), profile), 2 * wave, 1e-4));
  CHECK(close(gemm_time(gemm(64, 32, 64, 200), profile), 2 * wave, 1e-4));
}

TEST_CASE("no GEMM is faster than peak or than its bytes through the memory") {
  const Profile profile = round_numbers();
  for (const std::int64_t m : {1, 8, 100, 1000, 4096}) {
    for (const std::int64_t n : {1, 17, 256, 5000}) {
      for (const std::int64_t k : {1, 64, 999, 8192}) {
        for (const std::int64_t batch : {1, 96}) {
          const Kernel kernel = gemm(m, n, k, batch);
          CHECK(gemm_time(kernel, profile) >= kernel.flops / 100_TFLOPps);
          CHECK(gemm_time(kernel, profile) >= kernel.traffic / 1_TBps);
        }
      }
    }
  }
}

TEST_CASE("a matrix times a vector runs at its share of the memory's bandwidth") {
  Profile profile = round_numbers();
  profile.kernels.gemm["fp16"].streaming.value = 0.8;
  // Against peak 100 TFLOP/s even with tiles 32 wide, of which one column is wanted, memory is 8
  // times slower: 2 * 16384^2 * 2 B / 0.8 TB/s = 671 us; 64 * 16384^2 FLOP / (0.9 * 21.33 / 31.33 *
  // 100 TFLOP/s) = 280 us.
  profile.peak["fp16"].value = 1000_TFLOPps;
  const Kernel kernel = gemm(16384, 1, 16384);
  CHECK(close(gemm_time(kernel, profile), kernel.traffic / (0.8 * 1_TBps), 1e-3));
}

TEST_CASE("where compute and memory take equally long, the corner adds the fourth root of two") {
  Profile profile = round_numbers();
  profile.kernels.gemm["fp16"].half_intensity.value = 0;
  profile.kernels.gemm["fp16"].efficiency.value = 1;
  // 100 tiles of 64 x 32 and K = 64 in one wave: 2 * 64 * 32 * 64 FLOP / 1 TFLOP/s. Split, the wave
  // is as long.
  Kernel kernel = gemm(64, 32, 64, 100);
  const Seconds compute = Flops{2.0 * 64 * 32 * 64} / 1_TFLOPps;
  kernel.traffic = compute * 1_TBps;
  CHECK(close(gemm_time(kernel, profile), 1.189207 * compute, 1e-6));
  kernel.traffic = compute * 1_TBps / 2;  // (1 + 1/16)^(1/4)
  CHECK(close(gemm_time(kernel, profile), 1.015272 * compute, 1e-6));
}

TEST_CASE("a longer K never takes less time") {
  const Profile profile = read_profile("scenarios/profiles/v100-sxm2.json");
  for (const std::int64_t n : {16, 128, 7000}) {
    Seconds before;
    for (std::int64_t k = 8; k <= 4096; k += 8) {
      const Seconds now = gemm_time(gemm(1024, n, k), profile);
      CHECK(now >= before);
      before = now;
    }
  }
}

TEST_CASE("a few tiles along a long K are split over the multiprocessors") {
  const Profile profile = round_numbers();
  // 128 x 128 is at most 8 tiles of 64 x 32; split 16 times they fill the GPU.
  const Kernel kernel = gemm(128, 128, 65536);
  const FlopsPerSecond unsplit = 8 * 0.9 * (64.0 * 32 / 96) / (64.0 * 32 / 96 + 10) * 1_TFLOPps;
  CHECK(kernel.flops / gemm_time(kernel, profile) > 4 * unsplit);
}

TEST_CASE("each part of a split writes and reads sums of 4 bytes") {
  Profile profile = round_numbers();
  profile.kernels.gemm["fp16"].half_intensity.value = 0;
  profile.kernels.gemm["fp16"].efficiency.value = 1;
  // Three tiles of 64 x 32, split 16 times, are one wave of 48: 2 * 64 * 32 * (k / 16) FLOP at 1
  // TFLOP/s. Any other tile or split computes for twice as long at least. The memory is as slow as
  // makes its 16 * 3 * 64 * 32 sums, written and read, take as long.
  Kernel kernel = gemm(64, 32, 1'600'000, 3);
  const Seconds compute = Flops{2.0 * 64 * 32 * 100'000} / 1_TFLOPps;
  const Bytes sums = 2.0 * 16 * 3 * 64 * 32 * 4_B;
  profile.memory.bandwidth.value = sums / compute;
  kernel.traffic = 0_B;
  CHECK(close(gemm_time(kernel, profile), 1.189207 * compute, 1e-6));  // 2^(1/4)
  kernel.traffic = sums;  // the operands come to it: (1 + 2^4)^(1/4)
  CHECK(close(gemm_time(kernel, profile), 2.030543 * compute, 1e-6));
}

TEST_CASE("a data type that the GPU lacks is the user's mistake") {
  Kernel kernel = gemm(64, 64, 64);
  kernel.type = model::DataType::bf16;
  CHECK_THROWS_AS(gemm_time(kernel, round_numbers()), InputError);
}

Profile processor() {
  Profile profile = round_numbers();
  profile.multiprocessors.value = 1;
  profile.collective.memory_efficiency = Constant<double>{.value = 0.25, .source = {}};
  return profile;
}

TEST_CASE("a product on a processor is one tile of its own size") {
  // I = 40 * 40 / 80 = 20, two thirds of 0.9 of the peak: 60 TFLOP/s, less 25 of 1025 steps of K.
  Profile profile = processor();
  profile.memory.bandwidth.value = BytesPerSecond{1e30};
  profile.kernels.gemm["fp16"].ramp.value = 25;
  profile.kernels.gemm["fp16"].fixed.value = 7_us;
  const Kernel kernel = gemm(40, 40, 1000, 30);
  CHECK(close(gemm_time(kernel, profile), 7_us + kernel.flops * 1.025 / 60_TFLOPps, 1e-9));
  // Neither a column more nor its transpose makes a step.
  const Seconds wider = gemm_time(gemm(40, 41, 1000, 30), profile);
  CHECK(wider < 1.03 * gemm_time(kernel, profile));
  CHECK(close(wider, gemm_time(gemm(41, 40, 1000, 30), profile), 1e-12));
}

TEST_CASE("a product of a processor that computes little moves its operands") {
  Profile profile = processor();
  profile.kernels.gemm["fp16"].half_intensity.value = 0;
  profile.peak["fp16"].value = FlopsPerSecond{1e30};
  profile.kernels.gemm["fp16"].streaming.value = 0.5;
  const Kernel kernel = gemm(1, 1000, 1000);
  CHECK(close(gemm_time(kernel, profile), kernel.traffic / 500_GBps, 1e-9));
}

TEST_CASE("unaligned rows limit a product's rate, and change nothing where memory takes longer") {
  Profile profile = round_numbers();
  Kernel product = gemm(10000, 10001, 10000);
  const Seconds aligned = gemm_time(product, profile);
  product.alignment = 2;
  CHECK(gemm_time(product, profile) == aligned);  // no limit is known
  profile.kernels.gemm["fp16"].unaligned[2].value = 0.1;
  profile.kernels.gemm["fp16"].unaligned[8].value = 0.2;
  // 2e12 operations at a tenth of 100 TFLOP/s.
  CHECK(close(gemm_time(product, profile), product.flops / 10_TFLOPps, 1e-3));
  product.alignment = 8;
  CHECK(close(gemm_time(product, profile), product.flops / 20_TFLOPps, 1e-3));
  product.alignment = 4;
  CHECK(gemm_time(product, profile) == aligned);
  Kernel thin = gemm(1, 10001, 10000);
  const Seconds moving = gemm_time(thin, profile);
  thin.alignment = 2;
  CHECK(close(gemm_time(thin, profile), moving, 1e-3));
}

TEST_CASE("a table of 50257 words takes an H100 five times as long as one of 50304, as measured") {
  // scenarios/measurements/h100_sxm_pytorch.json: 4096 tokens, 2048 wide, three products.
  const Profile profile = read_profile("scenarios/profiles/h100-sxm5.json");
  const auto all = [&](std::int64_t words, int alignment) {
    Seconds sum;
    for (auto [m, n, k] :
         {std::tuple{4096, words, 2048}, {4096, 2048, words}, {words, 2048, 4096}}) {
      Kernel one = gemm(m, n, k);
      one.type = model::DataType::bf16;
      one.alignment = alignment;
      sum += gemm_time(one, profile);
    }
    return sum;
  };
  CHECK(close(all(50257, 2), Seconds{20.33e-3}, 0.1));
  CHECK(close(all(50304, 0), Seconds{3.72e-3}, 0.1));
}

}  // namespace
}  // namespace stratagem::cost
