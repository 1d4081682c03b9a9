// Attention in tiles against products and softmax of whole matrices; gradients by differences.
#include "kernels/attention.hpp"

#include "kernels/gemm.hpp"
#include "kernels/softmax.hpp"
#include "tests/kernels/operands.hpp"

namespace stratagem::kernels::attention_test {

namespace {

std::int64_t query_elements(const Attention& a) { return a.batch * a.heads * a.queries * a.size; }
std::int64_t key_elements(const Attention& a) { return a.batch * a.kv_heads * a.keys * a.size; }

template <typename T>
struct Run {
  explicit Run(const Attention& a)
      : shape(a),
        q(random_operand<T>(query_elements(a), 1)),
        k(random_operand<T>(key_elements(a), 2)),
        v(random_operand<T>(key_elements(a), 3)),
        dout(random_operand<T>(query_elements(a), 4)),
        out(q.size()),
        dq(q.size()),
        dk(k.size()),
        dv(v.size()),
        log_sums(a.batch * a.heads * a.queries) {}

  void run() {
    attention<T>(shape, q, k, v, out, log_sums);
    attention_gradient<T>(shape, dout, q, k, v, out, log_sums, dq, dk, dv);
  }

  Attention shape;
  std::vector<T> q, k, v, dout, out, dq, dk, dv, log_sums;
};

/// A product, a softmax and a product of whole matrices, head by head.
std::vector<double> by_whole_matrices(const Run<double>& r) {
  const Attention& a = r.shape;
  std::vector<double> out(r.q.size()), scores(a.queries * a.keys), p(scores.size());
  for (std::int64_t h = 0; h < a.batch * a.heads; ++h) {
    const std::int64_t kv = h / (a.heads / a.kv_heads);
    const auto q = std::span(r.q).subspan(h * a.queries * a.size, a.queries * a.size);
    const auto k = std::span(r.k).subspan(kv * a.keys * a.size, a.keys * a.size);
    const auto v = std::span(r.v).subspan(kv * a.keys * a.size, a.keys * a.size);
    gemm_reference<double>({.m = a.queries, .n = a.keys, .k = a.size, .transpose_b = true}, q, k,
                           scores);
    std::optional<CausalMask> mask;
    if (a.causal) mask = {.queries = a.queries, .first = a.keys - a.queries};
    softmax<double>({a.queries, a.keys}, 1 / std::sqrt(static_cast<double>(a.size)), mask, scores,
                    p);
    gemm_reference<double>({.m = a.queries, .n = a.size, .k = a.keys}, p, v,
                           std::span(out).subspan(h * a.queries * a.size, a.queries * a.size));
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
    {.batch = 1, .heads = 2, .kv_heads = 2, .queries = 130, .keys = 31, .size = 16}};

TEST_CASE("tiles agree with whole matrices, in fp64 and fp32, whatever the shape") {
  for (const Attention& shape : shapes) {
    CAPTURE(shape.queries, shape.keys, shape.size, shape.causal);
    Run<double> fp64(shape);
    Run<float> fp32(shape);
    fp64.run();
    fp32.run();
    CHECK(relative_error(fp64.out, by_whole_matrices(fp64)) < 1e-13);
    CHECK(relative_error(fp32.out, fp64.out) < fp32_error);
    if (shape.keys == 1) continue;  // one key: probabilities are 1, and nothing comes back
    CHECK(relative_error(fp32.dq, fp64.dq) < fp32_error);
    CHECK(relative_error(fp32.dk, fp64.dk) < fp32_error);
    CHECK(relative_error(fp32.dv, fp64.dv) < fp32_error);
  }
}

TEST_CASE("gradients of attention agree with finite differences") {
  for (const bool causal : {false, true}) {
    Run<double> at({.batch = 1,
                    .heads = 2,
                    .kv_heads = 1,
                    .queries = 3,
                    .keys = 5,
                    .size = 2,
                    .causal = causal});
    at.run();
    const auto loss = [&](std::vector<double> Run<double>::*member) {
      return [&, member](const std::vector<double>& value) {
        Run<double> moved(at.shape);
        moved.*member = value;
        attention<double>(moved.shape, moved.q, moved.k, moved.v, moved.out, moved.log_sums);
        return weighted_sum(moved.out, at.dout);
      };
    };
    CHECK(relative_error(at.dq, finite_differences(at.q, loss(&Run<double>::q))) < 1e-8);
    CHECK(relative_error(at.dk, finite_differences(at.k, loss(&Run<double>::k))) < 1e-8);
    CHECK(relative_error(at.dv, finite_differences(at.v, loss(&Run<double>::v))) < 1e-8);
  }
}

TEST_CASE("heads of keys that do not divide heads of queries are refused") {
  Run<double> run({.batch = 1, .heads = 3, .kv_heads = 2, .queries = 2, .keys = 2, .size = 2});
  CHECK_THROWS_AS(run.run(), stratagem::BrokenPromise);
}

}  // namespace

}  // namespace stratagem::kernels::attention_test
