// Kernels that move bytes: a floor per launch and a share of the bandwidth.
#include "cost/kernel_time.hpp"

#include "base/input_error.hpp"
#include "cost/gemm.hpp"
#include "tests/catch.hpp"

namespace stratagem::cost {
namespace {

Profile simple() {
  Profile profile;
  profile.name = "simple";
  profile.memory.bandwidth.value = 1_TBps;
  profile.kernels.streaming["norm"].value = 0.5;
  profile.kernels.floor.value = 3_us;
  profile.multiprocessors.value = 80;
  profile.peak["fp16"].value = 125_TFLOPps;
  profile.kernels.gemm["fp16"] = {.efficiency = {.value = 0.9, .source = {}},
                                  .half_intensity = {.value = 10, .source = {}},
                                  .ramp = {.value = 50, .source = {}},
                                  .streaming = {.value = 0.8, .source = {}},
                                  .fixed = {.value = 5_us, .source = {}}};
  return profile;
}

TEST_CASE("a streaming kernel takes its floor and its bytes at a share of the bandwidth") {
  Kernel norm{.kind = KernelKind::norm, .flops = {}, .traffic = 100_MB};
  // 100 MB / (0.5 * 1 TB/s) = 200 us
  CHECK(close(kernel_time(norm, simple()), 203_us, 1e-12));
  norm.launches = 4;
  CHECK(close(kernel_time(norm, simple()), 212_us, 1e-12));
}

TEST_CASE("a pass that was measured has its own share, what tells no pass the kind's") {
  Profile profile = simple();
  Kernel norm{.kind = KernelKind::norm, .flops = {}, .traffic = 100_MB};
  norm.pass = KernelPass::gradient;
  CHECK(close(kernel_time(norm, profile), 203_us, 1e-12));  // nobody measured passes
  profile.kernels.by_pass["norm"].forward.value = 0.25;
  profile.kernels.by_pass["norm"].gradient.value = 1;
  CHECK(close(kernel_time(norm, profile), 103_us, 1e-12));
  norm.pass = KernelPass::forward;
  CHECK(close(kernel_time(norm, profile), 403_us, 1e-12));
  norm.pass = KernelPass::either;
  CHECK(close(kernel_time(norm, profile), 203_us, 1e-12));
}

TEST_CASE("a kernel without bytes costs its floor") {
  CHECK(kernel_time({.kind = KernelKind::norm, .flops = {}, .traffic = {}}, simple()) == 3_us);
}

TEST_CASE("pieces of a product take as long together as the product") {
  Kernel product{.kind = KernelKind::gemm, .m = 4096, .n = 1024, .k = 2048, .batch = 1};
  product.flops = Flops{2.0 * 4096 * 1024 * 2048};
  product.traffic = 28_MB;
  for (const int pieces : {2, 3, 8}) {
    Kernel piece = product;
    piece.flops = product.flops / pieces;
    piece.traffic = product.traffic / pieces;
    piece.piece.of = pieces;
    CHECK(close(pieces * kernel_time(piece, simple()), kernel_time(product, simple()), 1e-12));
  }
}

TEST_CASE("a product that spares multiprocessors runs as on a GPU without them") {
  Kernel product{.kind = KernelKind::gemm, .m = 4096, .n = 1024, .k = 2048, .batch = 1};
  product.flops = Flops{2.0 * 4096 * 1024 * 2048};
  product.traffic = 28_MB;
  Profile smaller = simple();
  smaller.multiprocessors.value = 64;
  smaller.peak["fp16"].value = 64.0 / 80 * simple().peak.at("fp16").value;
  const Seconds expected = kernel_time(product, smaller);
  product.piece.spared = 16;
  CHECK(close(kernel_time(product, simple()), expected, 1e-12));
  product.piece.spared = 1000;  // one is left
  CHECK(kernel_time(product, simple()) < Seconds{1});
}

TEST_CASE("further launches of a GEMM cost a floor each") {
  Kernel gemm{.kind = KernelKind::gemm,
              .m = 64,
              .n = 64,
              .k = 64,
              .batch = 1,
              .flops = {},
              .traffic = 24576_B};
  const Seconds one = kernel_time(gemm, simple());
  CHECK(one == gemm_time(gemm, simple()));
  gemm.launches = 3;
  CHECK(close(kernel_time(gemm, simple()), one + 6_us, 1e-12));
}

TEST_CASE("a kind without a share of the bandwidth is the user's mistake") {
  const Kernel softmax{.kind = KernelKind::softmax, .flops = {}, .traffic = 1_MB};
  CHECK_THROWS_WITH(kernel_time(softmax, simple()),
                    StartsWith("profile simple: /streaming/softmax"));
}

TEST_CASE("a fused attention computes its products at a share of the peak, or moves its operands") {
  Profile profile = simple();
  profile.kernels.streaming["elementwise"].value = 0.8;
  // Two blocks of 128 queries for each multiprocessor: the last block doubles the time.
  const auto blocks = static_cast<std::int64_t>(2 * profile.multiprocessors.value);
  Kernel attention{.kind = KernelKind::attention,
                   .type = model::DataType::fp16,
                   .m = 128,
                   .n = 1024,
                   .k = 64,
                   .batch = blocks,
                   .flops = Flops{50e9},
                   .traffic = 10_MB};
  CHECK_THROWS_WITH(kernel_time(attention, profile), StartsWith("profile simple: /attention"));
  AttentionPasses& passes = profile.kernels.attention["FlashAttention-2"][64];
  passes.forward.efficiency.value = 0.4;
  passes.backward.efficiency.value = 0.25;
  // 2 * 50 GFLOP / (0.4 * 125 TFLOP/s) = 2 ms; 10 MB / 0.8 TB/s = 12.5 us are hidden behind it.
  CHECK(close(kernel_time(attention, profile), 2003_us, 1e-12));
  attention.kind = KernelKind::attention_backward;  // 2 * 50 GFLOP / (0.25 * 125 TFLOP/s)
  CHECK(close(kernel_time(attention, profile), 3203_us, 1e-12));
  attention.flops = Flops{0.05e9};
  CHECK(close(kernel_time(attention, profile), 15.5_us, 1e-12));
}

TEST_CASE("parts of attention on streams leave as many multiprocessors idle as the whole") {
  Profile profile = simple();
  profile.kernels.streaming["elementwise"].value = 0.8;
  profile.kernels.attention["FlashAttention-2"][64].forward.efficiency.value = 0.4;
  Kernel whole{.kind = KernelKind::attention,
               .type = model::DataType::fp16,
               .m = 128,
               .n = 1024,
               .k = 64,
               .batch = 4 * 60,
               .flops = Flops{50e9}};
  Kernel part = whole;
  part.batch = 60;
  part.flops = whole.flops / 4;
  const Seconds floor = profile.kernels.floor.value;
  CHECK(kernel_time(part, profile) - floor > 1.1 * (kernel_time(whole, profile) - floor) / 4);
  part.piece.of = 4;
  CHECK(
      close(4 * (kernel_time(part, profile) - floor), kernel_time(whole, profile) - floor, 1e-12));
}

TEST_CASE("every kind of kernel has a name, and every shipped profile knows it") {
  for (const char* name :
       {"v100-sxm2", "v100-sxm3", "v100-sxm3-450w", "a100-sxm4-40gb", "a100-sxm4-80gb"}) {
    const Profile profile = read_profile("scenarios/profiles/" + std::string(name) + ".json");
    for (std::size_t kind = 0; kind < kernel_kind_names.size(); ++kind) {
      const bool attention = is_attention(static_cast<KernelKind>(kind));
      if (attention && profile.kernels.attention.empty()) continue;  // a V100 has no fused one
      const Kernel kernel{.kind = static_cast<KernelKind>(kind),
                          .m = 1024,
                          .n = 1024,
                          .k = 1024,
                          .batch = 1,
                          .flops = {},
                          .traffic = 6_MB};
      const Seconds time = kernel_time(kernel, profile);
      CHECK(time > kernel.traffic / profile.memory.bandwidth.value);
      // The slowest move 6 MB at half the memory's rate; copies to the host at 5 GB/s and more.
      CHECK(time < (kernel.kind == KernelKind::host_copy ? 1.3_ms : 100_us));
    }
  }
}

}  // namespace
}  // namespace stratagem::cost
