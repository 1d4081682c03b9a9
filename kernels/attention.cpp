// Attention a few queries at a time: scores of one tile live in the cache and are never written
// out.
#include "kernels/attention.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernels/gemm.hpp"
#include "kernels/inside/rows.hpp"

namespace stratagem::kernels {
namespace {

constexpr std::int64_t queries_of_tile = 64;

/// Some queries of one head, and how many keys the last of them sees.
struct Tile {
  std::int64_t first = 0;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
};

template <typename T>
class Head {
 public:
  Head(const Attention& shape, std::int64_t head)
      : a_(shape),
        head_(head),
        kv_head_((head / shape.heads) * shape.kv_heads +
                 head % shape.heads / (shape.heads / shape.kv_heads)) {}

  template <typename Work>
  void for_each_tile(const Work& work) const {
    for (std::int64_t first = 0; first < a_.queries; first += queries_of_tile) {
      Tile tile{.first = first, .queries = std::min(queries_of_tile, a_.queries - first)};
      tile.keys = seen_by(first + tile.queries - 1);
      work(tile);
    }
  }

  /// exp(scale * q k^T - log_sum), 0 where a key is not seen; log sums as given, or computed first.
  RowArray<T> probabilities(const Tile& tile, In<T> q, In<T> k, Out<T> log_sums, bool known) const {
    RowArray<T> scores(tile.queries, tile.keys);
    gemm<T>(
        {.m = tile.queries, .n = tile.keys, .k = a_.size, .transpose_b = true, .alpha = scale()},
        queries(tile, q), keys(tile, k), cells(scores));
    for (std::int64_t i = 0; i < tile.queries; ++i) {
      const std::int64_t seen = seen_by(tile.first + i);
      auto row = scores.row(i).head(seen);
      T& log_sum = log_sums[head_ * a_.queries + tile.first + i];
      if (!known) {
        const T largest = row.maxCoeff();
        log_sum = largest + std::log((row - largest).exp().sum());
      }
      row = (row - log_sum).exp();
      scores.row(i).tail(tile.keys - seen).setZero();
    }
    return scores;
  }

  [[nodiscard]] double scale() const { return 1 / std::sqrt(static_cast<double>(a_.size)); }

  template <typename Span>
  Span queries(const Tile& tile, Span x) const {
    return x.subspan((head_ * a_.queries + tile.first) * a_.size, tile.queries * a_.size);
  }
  template <typename Span>
  Span keys(const Tile& tile, Span x) const {
    return x.subspan(kv_head_ * a_.keys * a_.size, tile.keys * a_.size);
  }
  static Out<T> cells(RowArray<T>& array) {
    return {array.data(), static_cast<std::size_t>(array.size())};
  }

 private:
  [[nodiscard]] std::int64_t seen_by(std::int64_t query) const {
    return a_.causal ? a_.keys - a_.queries + query + 1 : a_.keys;
  }

  const Attention& a_;
  std::int64_t head_;     ///< of all heads of the batch
  std::int64_t kv_head_;  ///< of all heads of keys of the batch
};

template <typename Q, typename K>
void expect_sizes(const Attention& a, const Q& by_query, const K& by_key, std::size_t log_sums) {
  expects(a.kv_heads > 0 && a.heads % a.kv_heads == 0, "heads of keys divide heads of queries");
  expects(a.keys > 0, "a query sees a key");
  expects(!a.causal || a.queries <= a.keys, "causal queries are the last of the keys");
  for (const auto& x : by_query) expect_size(a.batch * a.heads * a.queries * a.size, x);
  for (const auto& x : by_key) expect_size(a.batch * a.kv_heads * a.keys * a.size, x);
  expects(log_sums == static_cast<std::size_t>(a.batch * a.heads * a.queries),
          "attention has a log sum for every query of every head");
}

}  // namespace

template <typename T>
void attention(const Attention& a, In<T> q, In<T> k, In<T> v, Out<T> out, Out<T> log_sums) {
  expect_sizes(a, std::array{q, In<T>(out)}, std::array{k, v}, log_sums.size());
  for (std::int64_t h = 0; h < a.batch * a.heads; ++h) {
    const Head<T> head(a, h);
    head.for_each_tile([&](const Tile& tile) {
      RowArray<T> p = head.probabilities(tile, q, k, log_sums, false);
      gemm<T>({.m = tile.queries, .n = a.size, .k = tile.keys}, head.cells(p), head.keys(tile, v),
              head.queries(tile, out));
    });
  }
}

template <typename T>
void attention_gradient(const Attention& a, In<T> dout, In<T> q, In<T> k, In<T> v, In<T> out,
                        In<T> log_sums, Out<T> dq, Out<T> dk, Out<T> dv) {
  expect_sizes(a, std::array{dout, q, out, dq.empty() ? q : In<T>(dq)},
               std::array{k, v, dk.empty() ? k : In<T>(dk), dv.empty() ? v : In<T>(dv)},
               log_sums.size());
  std::ranges::fill(dk, T{0});
  std::ranges::fill(dv, T{0});
  std::vector<T> sums(log_sums.begin(), log_sums.end());
  for (std::int64_t h = 0; h < a.batch * a.heads; ++h) {
    const Head<T> head(a, h);
    head.for_each_tile([&](const Tile& t) {
      RowArray<T> p = head.probabilities(t, q, k, sums, true);
      if (!dv.empty()) {
        gemm<T>({.m = t.keys, .n = a.size, .k = t.queries, .transpose_a = true, .beta = 1},
                head.cells(p), head.queries(t, dout), head.keys(t, dv));
      }
      if (dq.empty() && dk.empty()) return;
      RowArray<T> ds(t.queries, t.keys);
      gemm<T>({.m = t.queries, .n = t.keys, .k = a.size, .transpose_b = true},
              head.queries(t, dout), head.keys(t, v), head.cells(ds));
      const Rows rows{t.queries, a.size};
      const Column<T> along =
          (rows_of<T>(rows, head.queries(t, dout)) * rows_of<T>(rows, head.queries(t, out)))
              .rowwise()
              .sum();
      ds = p * (ds.colwise() - along);
      if (!dq.empty()) {
        gemm<T>({.m = t.queries, .n = a.size, .k = t.keys, .alpha = head.scale()}, head.cells(ds),
                head.keys(t, k), head.queries(t, dq));
      }
      if (dk.empty()) return;
      gemm<T>({.m = t.keys,
               .n = a.size,
               .k = t.queries,
               .transpose_a = true,
               .alpha = head.scale(),
               .beta = 1},
              head.cells(ds), head.queries(t, q), head.keys(t, dk));
    });
  }
}

#define INSTANTIATE(T)                                                                            \
  template void attention<T>(const Attention&, In<T>, In<T>, In<T>, Out<T>, Out<T>);              \
  template void attention_gradient<T>(const Attention&, In<T>, In<T>, In<T>, In<T>, In<T>, In<T>, \
                                      Out<T>, Out<T>, Out<T>);
STRATAGEM_FOR_ELEMENTS(INSTANTIATE)

}  // namespace stratagem::kernels
