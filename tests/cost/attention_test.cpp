// Rates of fused attention: the formula, what is between known sizes of heads, and which runs.
#include "cost/attention.hpp"

#include <algorithm>

#include "base/json_reader.hpp"
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

/// So many heads that the last block of queries does not count.
AttentionShape many_heads(double keys, bool causal) {
  return {.heads = 1e15, .queries = 128, .keys = keys, .causal = causal};
}

TEST_CASE(
    "a pass reaches its efficiency over endless keys, and half of it over as many as it loses") {
  const AttentionPass one = pass(0.6, 100, 156);
  CHECK(close(attention_share(one, many_heads(1e12, false), 132), 0.6, 1e-9));
  CHECK(close(attention_share(one, many_heads(1e12, true), 132), 0.6, 1e-9));
  CHECK(close(attention_share(one, many_heads(100, false), 132), 0.3, 1e-9));
  CHECK(close(attention_share(one, many_heads(512, true), 132), 0.3, 1e-9));  // 2 (100 + 156)
}

TEST_CASE("the fullest multiprocessor has a block of queries more than the mean") {
  const AttentionPass one = pass(0.6, 0, 0);
  const auto share = [&](double heads, double queries, bool causal) {
    const AttentionShape shape{.heads = heads, .queries = queries, .keys = 4096, .causal = causal};
    return attention_share(one, shape, 100);
  };
  CHECK(close(share(100, 128, false), 0.6 / 2, 1e-12));      // one block each
  CHECK(close(share(100, 384, false), 0.6 * 3 / 4, 1e-12));  // three, and one more
  CHECK(close(share(100, 384, true), 0.6 * 3 / 5, 1e-12));   // one more with all keys
  CHECK(close(share(300, 1, false), 0.6 * 3 / 4, 1e-12));    // blocks of one query
}

TEST_CASE("behind a window a query sees so many keys, fewer at the beginning") {
  // Query i of n sees min(i + 1, window) keys.
  for (const int keys : {1, 7, 64, 1000}) {
    for (const int window : {1, 5, 64, 999}) {
      double pairs = 0;
      for (int query = 0; query < keys; ++query) pairs += std::min(query + 1, window);
      const AttentionShape shape{.heads = 1,
                                 .queries = static_cast<double>(keys),
                                 .keys = static_cast<double>(keys),
                                 .causal = true,
                                 .window = static_cast<double>(window)};
      // Without a window the diagonal counts half.
      if (window < keys) CHECK(close(shape.seen() * keys, pairs, 1e-12));
      if (window >= keys) CHECK(shape.seen() == keys / 2.0);
    }
  }
}

TEST_CASE("behind a cache a query sees all of it, and keys are divided where queries are few") {
  const AttentionPass one = pass(0.6, 0, 0);
  const AttentionShape later{.heads = 4,
                             .queries = 64,
                             .keys = 1064,
                             .causal = true,
                             .before = 1000,
                             .divides_keys = true};
  CHECK(later.seen() == 1032);
  // Four blocks on 132 multiprocessors count as one on each; on two they are two on each.
  const double last = 1064.0 / 1032;
  CHECK(close(attention_share(one, later, 132), 0.6 / (1 + last), 1e-12));
  CHECK(close(attention_share(one, later, 4), 0.6 / (1 + last), 1e-12));
  CHECK(close(attention_share(one, later, 2), 0.6 / (1 + last / 2), 1e-12));
}

TEST_CASE("a window as long as the keys takes as long as none") {
  AttentionShape shape{.heads = 30, .queries = 8192, .keys = 8192, .causal = true};
  const double none = attention_share(pass(0.6, 100, 206), shape, 100);
  shape.window = 8191;
  CHECK(close(attention_share(pass(0.6, 100, 206), shape, 100), none, 1e-3));
  shape.window = 4096;
  CHECK(attention_share(pass(0.6, 100, 206), shape, 100) < none);
}

TEST_CASE("a window has two edges of tiles that are half empty, and equal blocks") {
  AttentionShape shape{.heads = 1e3, .queries = 128, .keys = 1e9, .causal = true, .window = 512};
  // 100 + 2 x 206 keys lost of 512; 10 blocks each, and one more.
  CHECK(close(attention_share(pass(0.6, 100, 206), shape, 100), 0.6 / 2 * 10 / 11, 1e-6));
}

TEST_CASE("between two sizes of heads a share is between theirs, beyond them the nearest's") {
  std::map<int, AttentionPasses> sizes;
  sizes[64] = {pass(0.3, 0, 0), pass(0.2, 0, 0)};
  sizes[128] = {pass(0.5, 0, 0), pass(0.4, 0, 0)};
  const auto share = [&](bool forward, double size) {
    return attention_share(sizes, forward, size, many_heads(1e3, true), 132);
  };
  CHECK(close(share(true, 64), 0.3, 1e-9));
  CHECK(close(share(true, 96), 0.4, 1e-9));
  CHECK(close(share(false, 112), 0.35, 1e-9));
  CHECK(close(share(true, 40), 0.3, 1e-9));
  CHECK(close(share(false, 256), 0.4, 1e-9));
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

/// TFLOP/s of FlashAttention-2 on an H100 that did nothing else: heads of 128, causal, 8 Ki tokens.
double measured_at_rest(const std::string& pass, double products) {
  const auto record = JsonReader::from_file("docs/records/h100/attention.json");
  for (const JsonReader& row : record.at("rows").elements()) {
    const std::vector<JsonReader> cells = row.elements();
    if (cells[0].text() != "FlashAttention-2" || cells[1].text() != pass) continue;
    if (cells[4].whole_number() != 8192 || cells[6].whole_number() != 128) continue;
    if (cells[7].whole_number() != 2) continue;
    const double heads = cells[2].number() * cells[3].number();
    return 1e-6 * products * heads * 8192 * 8192 * 128 / cells[8].number();
  }
  FAIL("no such row");
  return 0;
}

TEST_CASE("what we measured of FlashAttention-2 on an H100 at rest is what its authors print") {
  // Charts in Dao-AILab/flash-attention (assets): heads of 128, causal, 8 Ki tokens, 333 TFLOP/s
  // forward, 308 both ways, of which the forward pass is 2 products of 7.
  const double forward = measured_at_rest("forward", 2);
  const double backward = measured_at_rest("backward", 5);
  CHECK(close(forward, 333, 0.03));
  CHECK(close(7 / (2 / forward + 5 / backward), 308, 0.03));
}

}  // namespace
}  // namespace stratagem::cost
