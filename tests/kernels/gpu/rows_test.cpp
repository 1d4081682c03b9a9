// Kernels of rows on a GPU against fp64: softmax, norms, cross-entropy, embedding, heads.
#include "kernels/cross_entropy.hpp"
#include "kernels/embedding.hpp"
#include "kernels/heads.hpp"
#include "kernels/norm.hpp"
#include "kernels/softmax.hpp"
#include "tests/kernels/gpu/gpu.hpp"

using namespace stratagem::kernels;

namespace {

/// Rows of one, of primes, of whole packets, and of more than a block has threads for.
std::vector<Rows> shapes() {
  std::vector<Rows> result = awkward_rows;
  for (const Rows& more : {Rows{3, 4096}, Rows{2, 5003}, Rows{517, 24}}) result.push_back(more);
  return result;
}

TEST_CASE("softmax and its gradient agree with fp64, masked or not") {
  if (no_device()) return;
  for_types([]<typename T>() {
    for (const Rows& shape : shapes()) {
      for (const bool masked : {false, true}) {
        CAPTURE(shape.rows, shape.columns, masked, sizeof(T));
        std::optional<CausalMask> mask;
        if (masked) mask = {.queries = shape.rows, .first = shape.columns / 2};
        const auto x = random_both<T>(shape.size(), 1), dy = random_both<T>(shape.size(), 2);
        const auto y = room<T>(shape.size()), dx = room<T>(shape.size());
        std::vector<double> reference(shape.size());
        softmax<T>(stream(), shape, 3, mask, x, y);
        softmax<double>(shape, 3, mask, x.values, reference);
        CHECK(error_of(y, reference) <= tolerance<T>);
        // From the same probabilities, so that only the gradient is judged.
        const auto given = on_host(stream(), y);
        softmax_gradient<T>(stream(), shape, 3, dy, y, dx);
        softmax_gradient<double>(shape, 3, dy.values,
                                 std::vector<double>(given.begin(), given.end()), reference);
        if (shape.columns > 1) CHECK(error_of(dx, reference) <= tolerance<T>);
      }
    }
  });
}

TEST_CASE("scores far apart neither overflow nor become no numbers") {
  if (no_device()) return;
  const auto x = both<float>({-3e38F, 0, 3e38F, 3e38F});
  const auto y = room<float>(4);
  softmax<float>(stream(), {1, 4}, 1, {}, x, y);
  CHECK(on_host(stream(), y) == std::vector<float>{0, 0, 0.5F, 0.5F});
}

/// Statistics of fp64 as the GPU's, rounded to fp32 on both sides.
Both<float> both_rounded(const std::vector<double>& numbers) {
  return both(std::vector<float>(numbers.begin(), numbers.end()));
}

TEST_CASE("layer norm and its gradients agree with fp64") {
  if (no_device()) return;
  for_types([]<typename T>() {
    for (const Rows& shape : shapes()) {
      CAPTURE(shape.rows, shape.columns, sizeof(T));
      const auto x = random_both<T>(shape.size(), 1), dy = random_both<T>(shape.size(), 4);
      const auto scale = random_both<T>(shape.columns, 2), shift = random_both<T>(shape.columns, 3);
      const auto y = room<T>(shape.size()), dx = room<T>(shape.size());
      const auto dscale = room<T>(shape.columns);
      const auto statistics = room<float>(2 * shape.rows);
      std::vector<double> y_reference(shape.size()), statistics_reference(2 * shape.rows);
      std::vector<double> dx_reference(shape.size()), dscale_reference(shape.columns);
      layer_norm<T>(stream(), shape, 1e-5, x, scale, shift, y, statistics);
      layer_norm<double>(shape, 1e-5, x.values, scale.values, shift.values, y_reference,
                         statistics_reference);
      CHECK(error_of(y, y_reference) <= tolerance<T>);
      CHECK(error_of(statistics, statistics_reference) <= fp32_error);
      const auto given = both_rounded(statistics_reference);
      layer_norm_gradient<T>(stream(), shape, dy, x, given, scale, dx);
      layer_norm_gradient<double>(shape, dy.values, x.values, given.values, scale.values,
                                  dx_reference);
      if (shape.columns > 1) CHECK(error_of(dx, dx_reference) <= tolerance<T>);
      layer_norm_scale_gradient<T>(stream(), shape, dy, x, given, dscale);
      layer_norm_scale_gradient<double>(shape, dy.values, x.values, given.values, dscale_reference);
      if (shape.columns > 1) CHECK(error_of(dscale, dscale_reference) <= tolerance<T>);
    }
  });
}

TEST_CASE("the variance of numbers far from zero is not lost") {
  if (no_device()) return;
  // 1000 and 1001 in turn: mean 1000.5, variance 1/4, so what is normalised is -1 and 1.
  std::vector<float> x(1024), ones(1024, 1), none(1024, 0);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1000 + static_cast<float>(i % 2);
  const auto y = room<float>(1024), statistics = room<float>(2);
  layer_norm<float>(stream(), {1, 1024}, 0, both(x), both(ones), both(none), y, statistics);
  const auto result = on_host(stream(), y);
  CHECK(result[0] == Approx(-1).epsilon(1e-5));
  CHECK(result[1023] == Approx(1).epsilon(1e-5));
}

TEST_CASE("RMS norm and its gradients agree with fp64") {
  if (no_device()) return;
  for_types([]<typename T>() {
    for (const Rows& shape : shapes()) {
      CAPTURE(shape.rows, shape.columns, sizeof(T));
      const auto x = random_both<T>(shape.size(), 1), dy = random_both<T>(shape.size(), 4);
      const auto scale = random_both<T>(shape.columns, 2);
      const auto y = room<T>(shape.size()), dx = room<T>(shape.size());
      const auto dscale = room<T>(shape.columns);
      const auto statistics = room<float>(shape.rows);
      std::vector<double> y_reference(shape.size()), statistics_reference(shape.rows);
      std::vector<double> dx_reference(shape.size()), dscale_reference(shape.columns);
      rms_norm<T>(stream(), shape, 1e-5, x, scale, y, statistics);
      rms_norm<double>(shape, 1e-5, x.values, scale.values, y_reference, statistics_reference);
      CHECK(error_of(y, y_reference) <= tolerance<T>);
      CHECK(error_of(statistics, statistics_reference) <= fp32_error);
      const auto given = both_rounded(statistics_reference);
      rms_norm_gradient<T>(stream(), shape, dy, x, given, scale, dx);
      rms_norm_gradient<double>(shape, dy.values, x.values, given.values, scale.values,
                                dx_reference);
      if (shape.columns > 1) CHECK(error_of(dx, dx_reference) <= tolerance<T>);
      rms_norm_scale_gradient<T>(stream(), shape, dy, x, given, dscale);
      rms_norm_scale_gradient<double>(shape, dy.values, x.values, given.values, dscale_reference);
      CHECK(error_of(dscale, dscale_reference) <= tolerance<T>);
    }
  });
}

/// Labels of which every third is in another part of the vocabulary.
Both<std::int64_t> labels_of(const Rows& shape, std::int64_t first) {
  std::vector<std::int64_t> labels(shape.rows);
  for (std::int64_t i = 0; i < shape.rows; ++i)
    labels[i] = i % 3 == 2 ? first - 1 : first + i * 7919 % shape.columns;
  return {on_device(stream(), labels), std::vector<double>(labels.begin(), labels.end())};
}

TEST_CASE("the steps of a cross-entropy agree with fp64, over a part of the vocabulary") {
  if (no_device()) return;
  for_types([]<typename T>() {
    const std::int64_t first = 100;
    for (const Rows& shape : shapes()) {
      CAPTURE(shape.rows, shape.columns, sizeof(T));
      const auto x = random_both<T>(shape.size(), 1);
      const auto dloss = random_both<float>(shape.rows, 2);
      const auto labels = labels_of(shape, first);
      const std::vector<std::int64_t> of_host(labels.values.begin(), labels.values.end());
      const auto maximum = room<float>(shape.rows), sum = room<float>(shape.rows);
      const auto picked = room<float>(shape.rows), loss = room<float>(shape.rows);
      const auto y = room<T>(shape.size()), dx = room<T>(shape.size());
      std::vector<double> m(shape.rows), s(m), p(m), l(m), e(shape.size()), d(e);
      row_maximum<T>(stream(), shape, x, maximum);
      row_maximum<double>(shape, x.values, m);
      CHECK(error_of(maximum, m) == 0);
      exponential<T>(stream(), shape, x, maximum, y);
      exponential<double>(shape, x.values, m, e);
      CHECK(error_of(y, e) <= tolerance<T>);
      row_sums<T>(stream(), shape, y, sum);
      row_sums<double>(shape, e, s);
      CHECK(error_of(sum, s) <= tolerance<T>);
      pick<T>(stream(), shape, first, x, labels.device, picked);
      pick<double>(shape, first, x.values, of_host, p);
      CHECK(error_of(picked, p) == 0);
      cross_entropy(stream(), maximum, sum, picked, loss);
      cross_entropy<double>(m, s, p, l);
      if (shape.columns > 1) CHECK(error_of(loss, l) <= tolerance<T>);
      cross_entropy_gradient<T>(stream(), shape, first, dloss, y, sum, labels.device, dx);
      cross_entropy_gradient<double>(shape, first, dloss.values, e, s, of_host, d);
      if (shape.columns > 1) CHECK(error_of(dx, d) <= tolerance<T>);
    }
  });
}

TEST_CASE("an embedding and its gradient agree with fp64, however often a token comes") {
  if (no_device()) return;
  for_types([]<typename T>() {
    for (const std::int64_t width : {1, 7, 64, 1000}) {
      const std::int64_t first = 5, rows = 13, count = 301;
      std::vector<std::int64_t> tokens(count);
      for (std::int64_t i = 0; i < count; ++i) tokens[i] = i * i % 29;  // some are elsewhere
      const auto table = random_both<T>(rows * width, 1), dy = random_both<T>(count * width, 2);
      const auto on_gpu = on_device(stream(), tokens);
      const auto y = room<T>(count * width);
      std::vector<double> reference(count * width);
      embedding<T>(stream(), width, first, on_gpu, table, y);
      embedding<double>(width, first, tokens, table.values, reference);
      CHECK(error_of(y, reference) == 0);
      auto dtable = random_both<T>(rows * width, 3);
      embedding_gradient<T>(stream(), width, first, dy, on_gpu, dtable.device);
      embedding_gradient<double>(width, first, dy.values, tokens, dtable.values);
      CHECK(error_of(dtable.device, dtable.values) <= tolerance<T>);
    }
  });
}

TEST_CASE("heads are split and merged, forward and backward, without a bit changed") {
  if (no_device()) return;
  for_types([]<typename T>() {
    for (const Heads& h : {Heads{1, 1, 1, 1}, Heads{2, 5, 3, 7}, Heads{2, 17, 4, 64}}) {
      const auto n = h.elements();
      const auto qkv = random_both<T>(3 * n, 1);
      const auto q = room<T>(n), k = room<T>(n), v = room<T>(n), merged = room<T>(n);
      const auto back = room<T>(3 * n), parted = room<T>(n);
      std::vector<double> q_reference(n), k_reference(n), v_reference(n), merged_reference(n);
      split_heads<T>(stream(), h, qkv, q, k, v);
      split_heads<double>(h, qkv.values, q_reference, k_reference, v_reference);
      CHECK(error_of(q, q_reference) == 0);
      CHECK(error_of(k, k_reference) == 0);
      CHECK(error_of(v, v_reference) == 0);
      split_heads_gradient<T>(stream(), h, q, k, v, back);
      CHECK(error_of(back, qkv.values) == 0);
      merge_heads<T>(stream(), h, q, merged);
      merge_heads<double>(h, q_reference, merged_reference);
      CHECK(error_of(merged, merged_reference) == 0);
      merge_heads_gradient<T>(stream(), h, merged, parted);
      CHECK(error_of(parted, q_reference) == 0);
    }
  });
}

}  // namespace
