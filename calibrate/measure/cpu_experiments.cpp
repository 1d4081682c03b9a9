// Shapes, operands and calls of kernels on a processor.
#include "calibrate/measure/cpu_experiments.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

#include "kernels/activation.hpp"
#include "kernels/adam.hpp"
#include "kernels/cross_entropy.hpp"
#include "kernels/dropout.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/embedding.hpp"
#include "kernels/gemm.hpp"
#include "kernels/norm.hpp"
#include "kernels/philox.hpp"
#include "kernels/softmax.hpp"

namespace stratagem::calibrate {
namespace {

using kernels::Rows;
constexpr double element = sizeof(float);

/// Operands, dealt out in turn: what is dealt was last used a whole pool ago.
class Pool {
 public:
  explicit Pool(std::size_t elements) : elements_(elements) {}

  /// Random numbers from 0.5 to 1.5, to be read: results of results would grow beyond all numbers,
  /// and arithmetic on what is no number any more takes another time.
  std::span<float> read(std::int64_t elements) {
    fill();
    return deal(random_, next_read_, elements);
  }
  std::span<float> write(std::int64_t elements) {
    fill();
    return deal(results_, next_write_, elements);
  }

  /// So many different rows of a table, in an order that no prefetcher follows.
  std::span<const std::int64_t> tokens(std::int64_t rows) {
    if (tokens_.size() != static_cast<std::size_t>(rows)) {
      tokens_.resize(static_cast<std::size_t>(rows));
      for (std::size_t i = 0; i < tokens_.size(); ++i)
        tokens_[i] = static_cast<std::int64_t>(i * 7919 % tokens_.size());
    }
    return tokens_;
  }

 private:
  /// When the first experiment runs: where all was measured before it would be for nothing.
  void fill() {
    if (!random_.empty()) return;
    random_.resize(elements_);
    results_.resize(elements_);
    for (std::size_t i = 0; i < elements_; ++i)
      random_[i] = kernels::uniform({.seed = 1}, i) + 0.5F;
  }

  static std::span<float> deal(std::vector<float>& from, std::size_t& next, std::int64_t elements) {
    const auto size = static_cast<std::size_t>(elements);
    if (next + size > from.size()) next = 0;
    next += size;
    return std::span(from).subspan(next - size, size);
  }

  std::size_t elements_;
  std::vector<float> random_, results_;
  std::vector<std::int64_t> tokens_;
  std::size_t next_read_ = 0, next_write_ = 0;
};

using SharedPool = std::shared_ptr<Pool>;

struct Product {
  std::int64_t m, n, k, batch;
  const char* transposes;
};

Experiment product(const Product& p, const SharedPool& pool) {
  const auto real = [](std::int64_t size) { return static_cast<double>(size); };
  const double a = real(p.batch) * real(p.m) * real(p.k), b = real(p.batch) * real(p.k) * real(p.n);
  const double c = real(p.batch) * real(p.m) * real(p.n);
  const kernels::Gemm shape{.m = p.m,
                            .n = p.n,
                            .k = p.k,
                            .batch = p.batch,
                            .transpose_a = p.transposes[0] == 'T',
                            .transpose_b = p.transposes[1] == 'T'};
  return {.kind = "gemm",
          .operation = "",
          .columns = {"m", "n", "k", "batch"},
          .sizes = {p.m, p.n, p.k, p.batch},
          .transposes = p.transposes,
          .flops = Flops{2 * c * real(p.k)},
          .bytes = Bytes{(a + b + c) * element},
          .prepare = [=] {
            return [=] {
              const auto x = pool->read(p.batch * p.m * p.k), y = pool->read(p.batch * p.k * p.n);
              kernels::gemm<float>(shape, x, y, pool->write(p.batch * p.m * p.n));
            };
          }};
}

/// Rows times columns of what moves memory. `operands`: how often the elements are read or written,
/// masks of a byte as a quarter.
struct Stream {
  const char* kind;
  const char* operation;
  double operands;
  std::function<void(const Rows&, Pool&)> run;
};

/// A kernel that reads one or two operands of a shape and writes one.
template <typename Kernel>
std::function<void(const Rows&, Pool&)> of(int inputs, const Kernel& kernel) {
  return [=](const Rows& r, Pool& pool) {
    const auto a = pool.read(r.size()), b = pool.read(inputs > 1 ? r.size() : 0);
    kernel(r, a, b, pool.write(r.size()));
  };
}
using Operand = std::span<float>;

std::vector<Stream> elementwise_streams() {
  return {
      {"elementwise", "add", 3,
       of(2, [](const Rows&, Operand a, Operand b, Operand y) { kernels::add<float>(a, b, y); })},
      {"activation_function", "gelu", 2,
       of(1, [](const Rows&, Operand a, Operand, Operand y) { kernels::gelu<float>(a, y); })},
      {"activation_function", "gelu gradient", 3,
       of(2, [](const Rows&, Operand a, Operand b, Operand y) {
         kernels::gelu_gradient<float>(a, b, y);
       })}};
}

/// Kernels that read a row more than once.
std::vector<Stream> row_streams() {
  return {{"softmax", "softmax", 2,
           of(1, [](const Rows& r, Operand a, Operand,
                    Operand y) { kernels::softmax<float>(r, 1, {}, a, y); })},
          {"softmax", "softmax gradient", 3,
           of(2, [](const Rows& r, Operand a, Operand b,
                    Operand y) { kernels::softmax_gradient<float>(r, 1, a, b, y); })},
          {"norm", "layer norm", 2,
           [](const Rows& r, Pool& pool) {
             const auto x = pool.read(r.size()), scale = pool.read(r.columns);
             const auto shift = pool.read(r.columns), y = pool.write(r.size());
             kernels::layer_norm<float>(r, 1e-5, x, scale, shift, y, pool.write(2 * r.rows));
           }},
          {"norm", "layer norm gradient", 3, [](const Rows& r, Pool& pool) {
             const auto dy = pool.read(r.size()), x = pool.read(r.size());
             const auto statistics = pool.read(2 * r.rows), scale = pool.read(r.columns);
             kernels::layer_norm_gradient<float>(r, dy, x, statistics, scale, pool.write(r.size()));
           }}};
}

std::vector<Stream> other_streams() {
  return {
      {"reduction", "column sums", 1,
       [](const Rows& r, Pool& pool) {
         const auto x = pool.read(r.size());
         kernels::column_sums<float>(r, x, pool.write(r.columns));
       }},
      {"dropout", "dropout", 2.25,
       [](const Rows& r, Pool& pool) {
         const auto x = pool.read(r.size()), y = pool.write(r.size());
         const auto mask = pool.write((r.size() + 3) / 4);
         const std::span bytes(reinterpret_cast<std::int8_t*>(mask.data()),
                               static_cast<std::size_t>(r.size()));
         kernels::dropout<float>(kernels::whole_of({r.rows, r.columns}), 0.1, {.seed = 1}, x, y,
                                 bytes);
       }},
      {"embedding", "embedding", 2,
       [](const Rows& r, Pool& pool) {
         const auto table = pool.read(r.size());
         kernels::embedding<float>(r.columns, 0, pool.tokens(r.rows), table, pool.write(r.size()));
       }},
      {"cross_entropy", "exponential", 2,
       [](const Rows& r, Pool& pool) {
         const auto x = pool.read(r.size()), maximum = pool.read(r.rows);
         kernels::exponential<float>(r, x, maximum, pool.write(r.size()));
       }},
      {"optimizer", "Adam", 7,  // reads gradient, parameter and two moments, writes three of them
       [](const Rows& r, Pool& pool) {
         const auto g = pool.read(r.size()), p = pool.read(r.size());
         const auto m = pool.read(r.size());
         kernels::adam<float>({}, g, p, m, pool.read(r.size()));
       }}};
}

/// Elementwise kernels first: an addition.
std::vector<Stream> streams() {
  std::vector<Stream> all = elementwise_streams();
  for (const auto& more : {row_streams(), other_streams()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

Experiment streaming(const Stream& stream, const Rows& rows, const SharedPool& pool) {
  const double elements = static_cast<double>(rows.size());
  return {.kind = stream.kind,
          .operation = stream.operation,
          .columns = {"rows", "columns"},
          .sizes = {rows.rows, rows.columns},
          .transposes = "",
          .flops = {},
          .bytes = Bytes{stream.operands * elements * element},
          .prepare = [=, run = stream.run] { return [=] { run(rows, *pool); }; }};
}

/// The products of a layer and of the logits, each forward (NT), for inputs (NN) and weights (TN).
std::vector<Product> products(Sweep sweep) {
  using Sizes = std::vector<std::int64_t>;
  const bool quick = sweep == Sweep::quick;
  const Sizes widths = quick ? Sizes{256, 768} : Sizes{128, 255, 256, 384, 768, 1000, 1024, 2048};
  const Sizes tokens = quick ? Sizes{127, 512} : Sizes{32, 127, 128, 500, 512, 2048};
  std::vector<Product> result;
  for (const std::int64_t h : widths) {
    for (const std::int64_t t : tokens) {
      for (const std::int64_t out : {h, 4 * h}) {
        result.push_back({t, out, h, 1, "NT"});
        result.push_back({t, h, out, 1, "NN"});
        result.push_back({out, h, t, 1, "TN"});
      }
    }
  }
  for (const std::int64_t s : quick ? Sizes{128, 512} : Sizes{64, 128, 256, 500, 512, 1024}) {
    result.push_back({s, s, 64, 8, "NT"});
    result.push_back({s, 64, s, 8, "NN"});
    result.push_back({s, 64, s, 8, "TN"});
  }
  return result;
}

/// From what caches hold to what they do not.
std::vector<Rows> stream_sizes(Sweep sweep) {
  if (sweep == Sweep::quick) return {{64, 256}, {512, 768}, {2048, 1000}, {4096, 2048}};
  return {{16, 128},    {64, 256},    {127, 768},   {512, 768},
          {1000, 1000}, {2048, 1024}, {4096, 2048}, {4096, 8192}};
}

/// Twice the cache and the largest set of operands. Adam updates in place what it reads, which its
/// moments and small steps keep between 0.4 and 1.6.
SharedPool pool_beyond(double cache_elements, Sweep sweep) {
  const double largest = 4 * static_cast<double>(stream_sizes(sweep).back().size());
  return std::make_shared<Pool>(
      static_cast<std::size_t>(2 * cache_elements + std::max(largest, 3 * cache_elements)));
}

}  // namespace

CpuExperiments cpu_experiments(Sweep sweep, Bytes cache) {
  const double cache_elements = cache.value / element;
  const SharedPool pool = pool_beyond(cache_elements, sweep);
  const auto rows_of_cache = static_cast<std::int64_t>(std::ceil(cache_elements / 4096));
  CpuExperiments result{
      .peak = product({1536, 1536, 1536, 1, "NN"}, pool),
      .bandwidth =
          streaming(streams().front(), {std::max<std::int64_t>(rows_of_cache, 1), 4096}, pool),
      .all = {}};
  for (const Product& shape : products(sweep)) result.all.push_back(product(shape, pool));
  for (const Stream& stream : streams())
    for (const Rows& rows : stream_sizes(sweep))
      result.all.push_back(streaming(stream, rows, pool));
  return result;
}

}  // namespace stratagem::calibrate
