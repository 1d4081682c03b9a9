// Rates of fused attention: the formula, what is between known sizes of heads, and which runs.
#include "cost/attention.hpp"

#include "cost/profile.hpp"
#include "tests/catch.hpp"

namespace stratagem::cost {
namespace {

AttentionPass pass(double efficiency, double ramp, double tile) {
  AttentionPass result;
  result.efficiency.value = efficiency;
  result.ramp.value = ramp;
  result.tile.value = tile;
  return result;
}

TEST_CASE(
    "a pass reaches its efficiency over endless keys, and half of it over as many as it loses") {
  const AttentionPass one = pass(0.6, 100, 156);
  CHECK(close(attention_share(one, 1e12, false), 0.6, 1e-9));
  CHECK(close(attention_share(one, 1e12, true), 0.6, 1e-9));
  CHECK(close(attention_share(one, 100, false), 0.3, 1e-12));
  CHECK(close(attention_share(one, 512, true), 0.3, 1e-12));  // 2 (100 + 156)
}

TEST_CASE("between two sizes of heads a share is between theirs, beyond them the nearest's") {
  std::map<int, AttentionPasses> sizes;
  sizes[64] = {pass(0.3, 0, 0), pass(0.2, 0, 0)};
  sizes[128] = {pass(0.5, 0, 0), pass(0.4, 0, 0)};
  CHECK(close(attention_share(sizes, true, 64, 1e3), 0.3, 1e-12));
  CHECK(close(attention_share(sizes, true, 96, 1e3), 0.4, 1e-12));
  CHECK(close(attention_share(sizes, false, 112, 1e3), 0.35, 1e-12));
  CHECK(close(attention_share(sizes, true, 40, 1e3), 0.3, 1e-12));
  CHECK(close(attention_share(sizes, false, 256, 1e3), 0.4, 1e-12));
}

TEST_CASE("the first implementation that is preferred and known runs, else the only one") {
  Attentions of_gpu;
  of_gpu["cuDNN"][64] = {};
  CHECK(chosen_attention(of_gpu, {"FlashAttention-2"})->first == "cuDNN");
  of_gpu["FlashAttention-2"][64] = {};
  CHECK(chosen_attention(of_gpu, {"FlashAttention-3", "FlashAttention-2", "cuDNN"})->first ==
        "FlashAttention-2");
  CHECK(chosen_attention(of_gpu, {"FlashAttention-3"}) == of_gpu.end());
  of_gpu.clear();
  CHECK(chosen_attention(of_gpu, {"cuDNN"}) == of_gpu.end());
}

TEST_CASE("what we measured of FlashAttention-2 on an H100 is what its authors print") {
  // Charts in Dao-AILab/flash-attention (assets): heads of 128, causal, 8 Ki tokens, 333 TFLOP/s
  // forward, 308 both ways, of which the forward pass is 2 products of 7.
  const Profile profile = read_profile("scenarios/profiles/h100-sxm5.json");
  const auto& sizes = profile.kernels.attention.at("FlashAttention-2");
  const double peak = profile.peak.at("bf16").value / 1_TFLOPps;
  const double forward = peak * attention_share(sizes, true, 128, 8192);
  const double backward = peak * attention_share(sizes, false, 128, 8192);
  CHECK(close(forward, 333, 0.03));
  CHECK(close(7 / (2 / forward + 5 / backward), 308, 0.03));
}

}  // namespace
}  // namespace stratagem::cost
