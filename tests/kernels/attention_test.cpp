// Attention in tiles against products and softmax of whole matrices; gradients by differences.
#include "kernels/attention.hpp"

#include <cmath>

#include "kernels/gemm.hpp"
#include "tests/kernels/operands.hpp"

namespace stratagem::kernels::attention_test {

namespace {

std::int64_t query_elements(const Attention& a) { return a.batch * a.heads * a.queries * a.size; }
std::int64_t key_elements(const Attention& a) { return a.batch * a.kv_heads * a.keys * a.size; }
std::int64_t of_values(std::int64_t elements, const Attention& a) {
  return elements / a.size * a.value_size();
}

template <typename T>
struct Run {
  explicit Run(const Attention& a)
      : shape(a),
        q(random_operand<T>(query_elements(a), 1)),
        k(random_operand<T>(key_elements(a), 2)),
        v(random_operand<T>(of_values(key_elements(a), a), 3)),
        dout(random_operand<T>(of_values(query_elements(a), a), 4)),
        out(dout.size()),
        dq(q.size()),
        dk(k.size()),
        dv(v.size()),
        log_sums(a.batch * a.heads * a.queries) {}

  void run() {
    attention<T>(shape, q, k, v, out, log_sums, sinks);
    attention_gradient<T>(shape, dout, q, k, v, out, log_sums, dq, dk, dv);
  }

  Attention shape;
  std::vector<T> q, k, v, dout, out, dq, dk, dv, log_sums;
  std::vector<T> sinks = {};
};

/// A product, exponentials over their sum and a product of whole matrices, head by head.
std::vector<double> by_whole_matrices(const Run<double>& r) {
  const Attention& a = r.shape;
  const std::int64_t width = a.value_size();
  std::vector<double> out(r.out.size()), p(a.queries * a.keys);
  for (std::int64_t h = 0; h < a.batch * a.heads; ++h) {
    const std::int64_t kv = h / (a.heads / a.kv_heads);
    const auto q = std::span(r.q).subspan(h * a.queries * a.size, a.queries * a.size);
    const auto k = std::span(r.k).subspan(kv * a.keys * a.size, a.keys * a.size);
    const auto v = std::span(r.v).subspan(kv * a.keys * width, a.keys * width);
    gemm_reference<double>({.m = a.queries, .n = a.keys, .k = a.size, .transpose_b = true}, q, k,
                           p);
    for (std::int64_t i = 0; i < a.queries; ++i) {
      double sum = r.sinks.empty() ? 0 : std::exp(r.sinks[h % a.heads]);
      for (std::int64_t j = 0; j < a.keys; ++j) {
        const std::int64_t back =
            a.keys - a.queries + i - j;  // keys before its own, negative after
        const bool together = std::ranges::none_of(
            a.documents, [&](std::int64_t first) { return j < first && first <= j + back; });
        const bool seen =
            !a.causal || (back >= 0 && (a.window == 0 || back < a.window) && together);
        double& x = p[i * a.keys + j];
        x = seen ? std::exp(x / std::sqrt(static_cast<double>(a.size))) : 0;
        sum += x;
      }
      for (std::int64_t j = 0; j < a.keys; ++j) p[i * a.keys + j] /= sum;
    }
    gemm_reference<double>({.m = a.queries, .n = width, .k = a.keys}, p, v,
                           std::span(out).subspan(h * a.queries * width, a.queries * width));
  }
  return out;
}

const std::vector<Attention> shapes = {
    {.batch = 1, .heads = 1, .kv_heads = 1, .queries = 1, .keys = 1, .size = 1},
    {.batch = 2, .heads = 3, .kv_heads = 3, .queries = 65, .keys = 65, .size = 17},
    {.batch = 1,
     .heads = 2,
     .kv_heads = 1,
     .queries = 127,
     .keys = 127,
     .size = 64,
     .causal = true},
    {.batch = 2, .heads = 4, .kv_heads = 2, .queries = 7, .keys = 131, .size = 8, .causal = true},
    {.batch = 1, .heads = 2, .kv_heads = 2, .queries = 130, .keys = 31, .size = 16},
    {.batch = 2,
     .heads = 4,
     .kv_heads = 2,
     .queries = 131,
     .keys = 140,
     .size = 24,
     .causal = true,
     .values = 16,
     .window = 70},
    {.batch = 1,
     .heads = 2,
     .kv_heads = 2,
     .queries = 66,
     .keys = 66,
     .size = 8,
     .causal = true,
     .values = 24,
     .window = 1},
    {.batch = 2,
     .heads = 4,
     .kv_heads = 2,
     .queries = 131,
     .keys = 140,
     .size = 8,
     .causal = true,
     .documents = {0, 12, 13, 90}},
    {.batch = 1,
     .heads = 1,
     .kv_heads = 1,
     .queries = 100,
     .keys = 100,
     .size = 8,
     .causal = true,
     .window = 20,
     .documents = {0, 70}}};

TEST_CASE("tiles agree with whole matrices, in fp64 and fp32, whatever the shape") {
  for (const Attention& shape : shapes) {
    CAPTURE(shape.queries, shape.keys, shape.size, shape.causal);
    Run<double> fp64(shape);
    Run<float> fp32(shape);
    fp64.run();
    fp32.run();
    CHECK(relative_error(fp64.out, by_whole_matrices(fp64)) < 1e-13);
    CHECK(relative_error(fp32.out, fp64.out) < fp32_error);
    fp64.sinks = random_operand<double>(shape.heads, 5);
    fp64.run();
    CHECK(relative_error(fp64.out, by_whole_matrices(fp64)) < 1e-13);
    fp64.sinks.clear();
    fp64.run();
    // One key that is seen: probabilities are 1, and nothing comes back.
    if (shape.keys == 1 || shape.window == 1) continue;
    CHECK(relative_error(fp32.dq, fp64.dq) < fp32_error);
    CHECK(relative_error(fp32.dk, fp64.dk) < fp32_error);
    CHECK(relative_error(fp32.dv, fp64.dv) < fp32_error);
  }
}

TEST_CASE("gradients of attention agree with finite differences") {
  const auto check = [](bool causal, std::int64_t values, std::int64_t window, bool sinks) {
    CAPTURE(causal, values, window, sinks);
    Run<double> at({.batch = 1,
                    .heads = 2,
                    .kv_heads = 1,
                    .queries = 3,
                    .keys = 5,
                    .size = 2,
                    .causal = causal,
                    .values = values,
                    .window = window});
    if (sinks) at.sinks = random_operand<double>(at.shape.heads, 5);
    at.run();
    const auto loss = [&](std::vector<double> Run<double>::*member) {
      return [&, member](const std::vector<double>& value) {
        Run<double> moved(at.shape);
        moved.sinks = at.sinks;
        moved.*member = value;
        attention<double>(moved.shape, moved.q, moved.k, moved.v, moved.out, moved.log_sums,
                          moved.sinks);
        return weighted_sum(moved.out, at.dout);
      };
    };
    CHECK(relative_error(at.dq, finite_differences(at.q, loss(&Run<double>::q))) < 1e-8);
    CHECK(relative_error(at.dk, finite_differences(at.k, loss(&Run<double>::k))) < 1e-8);
    CHECK(relative_error(at.dv, finite_differences(at.v, loss(&Run<double>::v))) < 1e-8);
    if (!sinks) return;
    // Of sinks operands are rows of tokens: here the heads of one sample, turned.
    const auto rows = [&](const std::vector<double>& heads, std::int64_t width) {
      std::vector<double> turned(heads.size());
      for (std::int64_t h = 0; h < at.shape.heads; ++h) {
        for (std::int64_t i = 0; i < at.shape.queries * width; ++i)
          turned[(i / width * at.shape.heads + h) * width + i % width] =
              heads[h * at.shape.queries * width + i];
      }
      return turned;
    };
    const std::int64_t width = at.shape.value_size();
    std::vector<double> dsinks(at.sinks.size());
    attention_sink_gradient<double>(rows(at.dout, width), rows(at.out, width), rows(at.log_sums, 1),
                                    at.sinks, dsinks);
    CHECK(relative_error(dsinks, finite_differences(at.sinks, loss(&Run<double>::sinks))) < 1e-8);
  };
  check(false, 0, 0, false);
  check(true, 0, 0, false);
  check(true, 3, 0, false);
  check(true, 1, 2, true);
  check(false, 0, 0, true);
}

TEST_CASE("heads of keys that do not divide heads of queries are refused") {
  Run<double> run({.batch = 1, .heads = 3, .kv_heads = 2, .queries = 2, .keys = 2, .size = 2});
  CHECK_THROWS_AS(run.run(), stratagem::BrokenPromise);
}

}  // namespace

}  // namespace stratagem::kernels::attention_test
