// Attention a few queries at a time: scores of one tile live in the cache and are never written
// out.
#include "kernels/attention.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/gemm.hpp"
#include "kernels/inside/rows.hpp"

namespace stratagem::kernels {
namespace {

constexpr std::int64_t queries_of_tile = 64;

/// Some queries of one head, and the keys up to the last that one of them sees.
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
      tile.keys = seen_by(first + tile.queries - 1).second;
      work(tile);
    }
  }

  /// scale * q k^T.
  RowArray<T> scores(const Tile& tile, In<T> q, In<T> k) const {
    RowArray<T> scores(tile.queries, tile.keys);
    gemm<T>(
        {.m = tile.queries, .n = tile.keys, .k = a_.size, .transpose_b = true, .alpha = scale()},
        queries(tile, q), keys(tile, k), cells(scores));
    return scores;
  }

  /// Of every query the logarithm of the sum of exponentials, with that of a sink if there are any.
  void sum(const Tile& tile, const RowArray<T>& scores, In<T> sinks, Out<T> log_sums) const {
    for (std::int64_t i = 0; i < tile.queries; ++i) {
      const auto [first, end] = seen_by(tile.first + i);
      const auto row = scores.row(i).segment(first, end - first);
      T largest = row.maxCoeff(), others = 0;
      if (!sinks.empty()) {
        const T sink = sinks[head_ % a_.heads];
        largest = std::max(largest, sink);
        others = std::exp(sink - largest);
      }
      log_sums[head_ * a_.queries + tile.first + i] =
          largest + std::log((row - largest).exp().sum() + others);
    }
  }

  /// exp(score - log_sum), 0 where a key is not seen.
  RowArray<T> probabilities(const Tile& tile, RowArray<T> scores, In<T> log_sums) const {
    for (std::int64_t i = 0; i < tile.queries; ++i) {
      const auto [first, end] = seen_by(tile.first + i);
      auto row = scores.row(i).segment(first, end - first);
      row = (row - log_sums[head_ * a_.queries + tile.first + i]).exp();
      scores.row(i).head(first).setZero();
      scores.row(i).tail(tile.keys - end).setZero();
    }
    return scores;
  }

  [[nodiscard]] double scale() const { return 1 / std::sqrt(static_cast<double>(a_.size)); }

  template <typename Span>
  Span queries(const Tile& tile, Span x) const {
    return rows_by_query(tile, x, a_.size);
  }
  template <typename Span>
  Span results(const Tile& tile, Span x) const {
    return rows_by_query(tile, x, a_.value_size());
  }
  template <typename Span>
  Span keys(const Tile& tile, Span x) const {
    return x.subspan(kv_head_ * a_.keys * a_.size, tile.keys * a_.size);
  }
  template <typename Span>
  Span values(const Tile& tile, Span x) const {
    return x.subspan(kv_head_ * a_.keys * a_.value_size(), tile.keys * a_.value_size());
  }
  static Out<T> cells(RowArray<T>& array) {
    return {array.data(), static_cast<std::size_t>(array.size())};
  }

 private:
  template <typename Span>
  Span rows_by_query(const Tile& tile, Span x, std::int64_t size) const {
    return x.subspan((head_ * a_.queries + tile.first) * size, tile.queries * size);
  }
  /// The first key that a query sees, and the one after the last.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> seen_by(std::int64_t query) const {
    const std::int64_t end = a_.causal ? a_.keys - a_.queries + query + 1 : a_.keys;
    const bool windowed = a_.causal && a_.window > 0;
    const std::int64_t first = windowed ? std::max<std::int64_t>(0, end - a_.window) : 0;
    const auto next = std::ranges::upper_bound(a_.documents, end - 1);
    return {next == a_.documents.begin() ? first : std::max(first, *(next - 1)), end};
  }

  const Attention& a_;
  std::int64_t head_;     ///< of all heads of the batch
  std::int64_t kv_head_;  ///< of all heads of keys of the batch
};

/// Operands of which some rows are as wide as keys, others as values.
template <typename T>
struct Operands {
  std::vector<In<T>> queries, results, keys, values;
};

template <typename T>
void expect_sizes(const Attention& a, const Operands<T>& of, std::size_t log_sums) {
  expects(a.kv_heads > 0 && a.heads % a.kv_heads == 0, "heads of keys divide heads of queries");
  expects(a.keys > 0, "a query sees a key");
  expects(!a.causal || a.queries <= a.keys, "causal queries are the last of the keys");
  const std::int64_t by_query = a.batch * a.heads * a.queries,
                     by_key = a.batch * a.kv_heads * a.keys;
  for (const In<T> x : of.queries) expect_size(by_query * a.size, x);
  for (const In<T> x : of.results) expect_size(by_query * a.value_size(), x);
  for (const In<T> x : of.keys) expect_size(by_key * a.size, x);
  for (const In<T> x : of.values) expect_size(by_key * a.value_size(), x);
  expects(log_sums == static_cast<std::size_t>(a.batch * a.heads * a.queries),
          "attention has a log sum for every query of every head");
}

}  // namespace

template <typename T>
void attention(const Attention& a, In<T> q, In<T> k, In<T> v, Out<T> out, Out<T> log_sums,
               In<T> sinks) {
  expect_sizes<T>(a, {{q}, {out}, {k}, {v}}, log_sums.size());
  for (std::int64_t h = 0; h < a.batch * a.heads; ++h) {
    const Head<T> head(a, h);
    head.for_each_tile([&](const Tile& tile) {
      RowArray<T> p = head.scores(tile, q, k);
      head.sum(tile, p, sinks, log_sums);
      p = head.probabilities(tile, std::move(p), log_sums);
      gemm<T>({.m = tile.queries, .n = a.value_size(), .k = tile.keys}, head.cells(p),
              head.values(tile, v), head.results(tile, out));
    });
  }
}

template <typename T>
void attention_gradient(const Attention& a, In<T> dout, In<T> q, In<T> k, In<T> v, In<T> out,
                        In<T> log_sums, Out<T> dq, Out<T> dk, Out<T> dv) {
  expect_sizes<T>(a,
                  {{q, dq.empty() ? q : In<T>(dq)},
                   {dout, out},
                   {k, dk.empty() ? k : In<T>(dk)},
                   {v, dv.empty() ? v : In<T>(dv)}},
                  log_sums.size());
  std::ranges::fill(dk, T{0});
  std::ranges::fill(dv, T{0});
  for (std::int64_t h = 0; h < a.batch * a.heads; ++h) {
    const Head<T> head(a, h);
    head.for_each_tile([&](const Tile& t) {
      RowArray<T> p = head.probabilities(t, head.scores(t, q, k), log_sums);
      if (!dv.empty()) {
        gemm<T>({.m = t.keys, .n = a.value_size(), .k = t.queries, .transpose_a = true, .beta = 1},
                head.cells(p), head.results(t, dout), head.values(t, dv));
      }
      if (dq.empty() && dk.empty()) return;
      RowArray<T> ds(t.queries, t.keys);
      gemm<T>({.m = t.queries, .n = t.keys, .k = a.value_size(), .transpose_b = true},
              head.results(t, dout), head.values(t, v), head.cells(ds));
      const Rows rows{t.queries, a.value_size()};
      const Column<T> along =
          (rows_of<T>(rows, head.results(t, dout)) * rows_of<T>(rows, head.results(t, out)))
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

template <typename T>
void attention_sink_gradient(In<T> dout, In<T> out, In<T> log_sums, In<T> sinks, Out<T> dsinks) {
  const auto heads = static_cast<std::int64_t>(sinks.size());
  const auto rows = static_cast<std::int64_t>(log_sums.size());
  if (rows == 0) return;
  const std::int64_t width = static_cast<std::int64_t>(out.size()) / rows;
  expect_size(rows * width, dout);
  expect_size(heads, dsinks);
  for (std::int64_t row = 0; row < rows; ++row) {
    T product = 0;
    for (std::int64_t i = row * width; i < (row + 1) * width; ++i) product += dout[i] * out[i];
    dsinks[row % heads] -= std::exp(sinks[row % heads] - log_sums[row]) * product;
  }
}

#define INSTANTIATE(T)                                                                            \
  template void attention<T>(const Attention&, In<T>, In<T>, In<T>, Out<T>, Out<T>, In<T>);       \
  template void attention_gradient<T>(const Attention&, In<T>, In<T>, In<T>, In<T>, In<T>, In<T>, \
                                      Out<T>, Out<T>, Out<T>);                                    \
  template void attention_sink_gradient<T>(In<T>, In<T>, In<T>, In<T>, Out<T>);
STRATAGEM_FOR_ELEMENTS(INSTANTIATE)

}  // namespace stratagem::kernels
