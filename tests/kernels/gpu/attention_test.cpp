// Fused attention on a GPU against fp64, and against products and softmax on the GPU.
#include "kernels/attention.hpp"

#include "kernels/gemm.hpp"
#include "kernels/softmax.hpp"
#include "tests/kernels/gpu/gpu.hpp"
#include "tests/sanitized.hpp"

using namespace stratagem::kernels;

namespace {

std::int64_t query_elements(const Attention& a) { return a.batch * a.heads * a.queries * a.size; }
std::int64_t key_elements(const Attention& a) { return a.batch * a.kv_heads * a.keys * a.size; }

/// All operands and results of one shape.
template <typename T>
struct OnGpu {
  explicit OnGpu(const Attention& a)
      : shape(a),
        q(random_both<T>(query_elements(a), 1)),
        k(random_both<T>(key_elements(a), 2)),
        v(random_both<T>(key_elements(a), 3)),
        dout(random_both<T>(query_elements(a), 4)),
        out(room<T>(query_elements(a))),
        dq(room<T>(query_elements(a))),
        dk(room<T>(key_elements(a))),
        dv(room<T>(key_elements(a))),
        log_sums(room<float>(a.batch * a.heads * a.queries)) {}

  void run() {
    attention<T>(stream(), shape, q, k, v, out, log_sums);
    attention_gradient<T>(stream(), shape, dout, q, k, v, out, log_sums, dq, dk, dv);
  }

  Attention shape;
  Both<T> q, k, v, dout;
  DeviceArray<T> out, dq, dk, dv;
  DeviceArray<float> log_sums;
};

struct Reference {
  template <typename T>
  explicit Reference(const OnGpu<T>& of)
      : out(of.q.values.size()),
        dq(out),
        dk(of.k.values.size()),
        dv(dk),
        log_sums(of.log_sums.size()) {
    attention<double>(of.shape, of.q.values, of.k.values, of.v.values, out, log_sums);
    attention_gradient<double>(of.shape, of.dout.values, of.q.values, of.k.values, of.v.values, out,
                               log_sums, dq, dk, dv);
  }
  std::vector<double> out, dq, dk, dv, log_sums;
};

/// Heads of every width of tiles and between them, and of what goes to the plain kernel; lengths of
/// one, of primes, of whole tiles and one more; causal; heads of keys that several share.
std::vector<Attention> shapes() {
  std::vector<Attention> result = {
      {.batch = 1, .heads = 1, .kv_heads = 1, .queries = 1, .keys = 1, .size = 1},
      {.batch = 1, .heads = 1, .kv_heads = 1, .queries = 1, .keys = 1, .size = 64},
      {.batch = 2, .heads = 3, .kv_heads = 3, .queries = 65, .keys = 65, .size = 17},
      {.batch = 1, .heads = 2, .kv_heads = 2, .queries = 130, .keys = 31, .size = 16},
      {.batch = 1, .heads = 2, .kv_heads = 1, .queries = 61, .keys = 83, .size = 200}};
  // Emulated: one whole tile, and one with a rest.
  const std::int64_t whole = emulated() ? 64 : 128, queries = emulated() ? 67 : 127;
  const std::int64_t keys = emulated() ? 97 : 193, pairs = emulated() ? 1 : 2;
  for (const std::int64_t size : {8, 40, 64, 80, 96, 128, 136, 256}) {
    if (emulated() && (size == 80 || size == 96)) continue;
    for (const bool causal : {false, true}) {
      result.push_back({.batch = 1,
                        .heads = pairs,
                        .kv_heads = pairs,
                        .queries = whole,
                        .keys = whole,
                        .size = size,
                        .causal = causal});
      result.push_back({.batch = pairs,
                        .heads = 2 * pairs,
                        .kv_heads = pairs,
                        .queries = queries,
                        .keys = keys,
                        .size = size,
                        .causal = causal});
    }
  }
  result.push_back({.batch = 1,
                    .heads = 1,
                    .kv_heads = 1,
                    .queries = 1,
                    .keys = 257,
                    .size = 128,
                    .causal = true});
  return result;
}

TEST_CASE("attention and its gradients agree with fp64, in every type, whatever the shape") {
  if (no_device()) return;
  std::size_t type = 0;  // with sanitizers each shape is for one of the three
  for_types([&]<typename T>() {
    std::size_t number = type++;
    for (const Attention& shape : shapes()) {
      if (number++ % stratagem::stride(3) != 0) continue;
      CAPTURE(shape.queries, shape.keys, shape.size, shape.causal, sizeof(T));
      OnGpu<T> gpu(shape);
      gpu.run();
      const Reference reference(gpu);
      CHECK(error_of(gpu.out, reference.out) <= tolerance<T>);
      CHECK(error_of(gpu.log_sums, reference.log_sums) <= tolerance<T>);
      // Behind a causal mask the first keys have most of the first queries' probabilities: their
      // gradients are several times typical ones, and bf16 rounds them accordingly.
      const bool rounds = shape.causal && std::is_same_v<T, BFloat16>;
      CHECK(error_of(gpu.dv, reference.dv) <= (rounds ? 2 : 1) * tolerance<T>);
      if (shape.keys == 1) continue;  // one key: probabilities are 1, and nothing comes back
      // ds = p (dp - along) cancels where a query sees few keys, and `along` is a sum over outputs
      // that were rounded: its error, half a unit of dp, is several times that of typical elements.
      const bool few_keys = shape.causal || shape.keys < 64;
      CHECK(error_of(gpu.dq, reference.dq) <= (few_keys ? 4 : 1) * tolerance<T>);
      CHECK(error_of(gpu.dk, reference.dk) <= (few_keys ? 4 : 1) * tolerance<T>);
    }
  });
}

TEST_CASE("fused attention agrees with two products and a softmax on the GPU") {
  if (no_device()) return;
  for_types([]<typename T>() {
    for (const bool causal : {false, true}) {
      OnGpu<T> gpu({.batch = 2,
                    .heads = 3,
                    .kv_heads = 3,
                    .queries = 256,
                    .keys = 256,
                    .size = 64,
                    .causal = causal});
      attention<T>(stream(), gpu.shape, gpu.q, gpu.k, gpu.v, gpu.out, gpu.log_sums);
      const auto scores = room<T>(6 * 256 * 256), p = room<T>(6 * 256 * 256);
      const auto out = room<T>(6 * 256 * 64);
      std::optional<CausalMask> mask;
      if (causal) mask = {.queries = 256, .first = 0};
      gemm<T>(stream(), {.m = 256, .n = 256, .k = 64, .batch = 6, .transpose_b = true}, gpu.q,
              gpu.k, scores);
      softmax<T>(stream(), {6 * 256, 256}, 1.0 / 8, mask, scores, p);
      gemm<T>(stream(), {.m = 256, .n = 64, .k = 256, .batch = 6}, p, gpu.v, out);
      const auto unfused = on_host(stream(), out);
      CHECK(error_of(gpu.out, std::vector<double>(unfused.begin(), unfused.end())) <=
            2 * tolerance<T>);
    }
  });
}

TEST_CASE("attention by WMMA, and without tensor cores, agrees with fp64") {
  if (no_device()) return;
  for (const Attention& shape : shapes()) {
    CAPTURE(shape.queries, shape.keys, shape.size, shape.causal);
    OnGpu<Half> gpu(shape);
    const Reference reference(gpu);
    for (const auto kernel : {AttentionKernel::wmma, AttentionKernel::plain}) {
      const auto run = [&] {
        gpu.out = room<Half>(query_elements(shape));
        attention<Half>(stream(), shape, gpu.q, gpu.k, gpu.v, gpu.out, gpu.log_sums, kernel);
      };
      if (kernel == AttentionKernel::wmma && (shape.size % 8 != 0 || shape.size > 128)) {
        CHECK_THROWS_AS(run(), DeviceError);
        continue;
      }
      run();
      CHECK(error_of(gpu.out, reference.out) <= tolerance<Half>);
      CHECK(error_of(gpu.log_sums, reference.log_sums) <= tolerance<Half>);
    }
  }
}

TEST_CASE("large scores: probabilities of nearly one and nearly nothing") {
  if (no_device()) return;
  const Attention shape{
      .batch = 1, .heads = 1, .kv_heads = 1, .queries = 128, .keys = 192, .size = 64};
  OnGpu<Half> gpu(shape);
  std::vector<Half> large;
  for (const double x : gpu.q.values) large.emplace_back(static_cast<float>(16 * x));
  gpu.q = both(large);
  gpu.run();
  const Reference reference(gpu);
  CHECK(error_of(gpu.out, reference.out) <= tolerance<Half>);
  CHECK(error_of(gpu.log_sums, reference.log_sums) <= tolerance<Half>);
}

TEST_CASE("gradients are the same, bit by bit, every time") {
  if (no_device()) return;
  const std::int64_t length = emulated() ? 150 : 500;
  const Attention shape{.batch = 2,
                        .heads = emulated() ? 2 : 8,
                        .kv_heads = emulated() ? 1 : 2,
                        .queries = length,
                        .keys = length,
                        .size = 128,
                        .causal = true};
  OnGpu<Half> first(shape), second(shape);
  first.run();
  second.run();
  const auto same = [](const DeviceArray<Half>& a, const DeviceArray<Half>& b) {
    const auto x = on_host(stream(), a), y = on_host(stream(), b);
    return std::ranges::equal(x, y, {}, &Half::bits, &Half::bits);
  };
  CHECK(same(first.dq, second.dq));
  CHECK(same(first.dk, second.dk));
  CHECK(same(first.dv, second.dv));
}

TEST_CASE("heads of more than 256, and of keys that do not divide those of queries, are refused") {
  if (no_device()) return;
  OnGpu<float> wide({.batch = 1, .heads = 1, .kv_heads = 1, .queries = 2, .keys = 2, .size = 257});
  CHECK_THROWS_WITH(wide.run(), ContainsSubstring("257"));
  OnGpu<float> odd({.batch = 1, .heads = 3, .kv_heads = 2, .queries = 2, .keys = 2, .size = 2});
  CHECK_THROWS_AS(odd.run(), stratagem::BrokenPromise);
}

}  // namespace
