// Shapes, operands and launches of kernels on a GPU.
#include "calibrate/measure/cuda_experiments.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <type_traits>

#include "kernels/activation.hpp"
#include "kernels/adam.hpp"
#include "kernels/attention.hpp"
#include "kernels/cross_entropy.hpp"
#include "kernels/dropout.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/embedding.hpp"
#include "kernels/gemm.hpp"
#include "kernels/half.hpp"
#include "kernels/norm.hpp"
#include "kernels/philox.hpp"
#include "kernels/softmax.hpp"

namespace stratagem::calibrate {
namespace {

using kernels::DeviceArray;
using kernels::DeviceSpan;
using kernels::Rows;
using kernels::Stream;
using Sizes = std::vector<std::int64_t>;

double real(std::int64_t size) { return static_cast<double>(size); }

/// So many random numbers from `least` to `most` on the GPU: some millions, again and again.
template <typename T>
DeviceArray<T> random_elements(const Stream& stream, std::size_t elements, float least,
                               float most) {
  std::vector<T> some(std::min<std::size_t>(elements, 5'000'011));
  for (std::size_t i = 0; i < some.size(); ++i)
    some[i] = T(least + (most - least) * static_cast<float>(kernels::uniform({.seed = 1}, i)));
  DeviceArray<T> result(elements);
  for (std::size_t at = 0; at < elements; at += some.size()) {
    const std::size_t length = std::min(some.size(), elements - at);
    kernels::copy_bytes(stream, some.data(), result.data() + at, length * sizeof(T));
  }
  stream.synchronise();
  return result;
}

/// Operands, dealt out in turn, each at a multiple of 256 bytes: what is dealt was last used a
/// whole pool ago. They are of both signs, as in training: products of positive numbers toggle
/// fewer bits, take less power, and keep a higher clock. Statistics and states are positive, as
/// they are.
template <typename T>
class DevicePool {
 public:
  DevicePool(const Stream& on, std::size_t elements)
      : stream(on),
        random_(random_elements<T>(on, elements, -1, 1)),
        results_(elements),
        numbers_(random_elements<float>(on, elements / 2, 0.5F, 1.5F)) {}

  DeviceSpan<T> read(std::int64_t elements) { return deal(random_, next_read_, elements); }
  DeviceSpan<T> write(std::int64_t elements) { return deal(results_, next_write_, elements); }
  /// fp32 whatever the type: statistics and states of an optimizer, read and written.
  DeviceSpan<float> numbers(std::int64_t elements) {
    return deal(numbers_, next_number_, elements);
  }

  /// So many different rows of a table, in an order that no prefetcher follows.
  kernels::DeviceIn<std::int64_t> tokens(std::int64_t rows) {
    if (tokens_.size() != static_cast<std::size_t>(rows)) {
      std::vector<std::int64_t> tokens(static_cast<std::size_t>(rows));
      for (std::size_t i = 0; i < tokens.size(); ++i)
        tokens[i] = static_cast<std::int64_t>(i * 7919 % tokens.size());
      tokens_ = kernels::on_device(stream, tokens);
    }
    return tokens_;
  }

  const Stream& stream;

 private:
  template <typename Element>
  static DeviceSpan<Element> deal(const DeviceArray<Element>& from, std::size_t& next,
                                  std::int64_t elements) {
    const auto size = static_cast<std::size_t>(elements);
    if (next + size > from.size()) next = 0;
    const std::size_t at = next;
    next += (size + 127) / 128 * 128;
    return from.span().subspan(at, size);
  }

  DeviceArray<T> random_, results_;
  DeviceArray<float> numbers_;
  DeviceArray<std::int64_t> tokens_;
  std::size_t next_read_ = 0, next_write_ = 0, next_number_ = 0;
};

template <typename T>
using SharedPool = std::shared_ptr<DevicePool<T>>;

template <typename T>
std::string name_of() {
  if (std::is_same_v<T, kernels::Half>) return "fp16";
  return std::is_same_v<T, kernels::BFloat16> ? "bf16" : "fp32";
}

struct Product {
  std::int64_t m, n, k, batch;
  const char* transposes;
};

template <typename T>
CudaExperiment product(const Product& p, const SharedPool<T>& pool) {
  const double a = real(p.batch) * real(p.m) * real(p.k), b = real(p.batch) * real(p.k) * real(p.n);
  const double c = real(p.batch) * real(p.m) * real(p.n);
  const kernels::Gemm shape{.m = p.m,
                            .n = p.n,
                            .k = p.k,
                            .batch = p.batch,
                            .transpose_a = p.transposes[0] == 'T',
                            .transpose_b = p.transposes[1] == 'T'};
  return {.what = {.kind = "gemm",
                   .operation = "",
                   .columns = {"m", "n", "k", "batch"},
                   .sizes = {p.m, p.n, p.k, p.batch},
                   .transposes = p.transposes,
                   .flops = Flops{2 * c * real(p.k)},
                   .bytes = Bytes{(a + b + c) * sizeof(T)},
                   .prepare = {}},
          .type = name_of<T>(),
          .launch = [=] {
            const auto x = pool->read(p.batch * p.m * p.k), y = pool->read(p.batch * p.k * p.n);
            kernels::gemm<T>(pool->stream, shape, x, y, pool->write(p.batch * p.m * p.n));
          }};
}

/// The products of a layer, each forward (NT), for inputs (NN) and weights (TN).
void add_layers(const Sizes& widths, const Sizes& tokens, std::vector<Product>& to) {
  for (const std::int64_t h : widths) {
    for (const std::int64_t t : tokens) {
      for (const std::int64_t out : {h, 4 * h}) {
        to.push_back({t, out, h, 1, "NT"});
        to.push_back({t, h, out, 1, "NN"});
        to.push_back({out, h, t, 1, "TN"});
      }
    }
  }
}

std::vector<Product> products(Sweep sweep, std::int64_t multiprocessors) {
  const bool quick = sweep == Sweep::quick;
  std::vector<Product> result;
  if (quick)
    add_layers({1024, 4096}, {128, 2048, 2049}, result);
  else
    add_layers({1024, 2048, 4096, 5120, 8192},
               {16, 64, 128, 129, 512, 1000, 2048, 2049, 4096, 8192}, result);
  // 128 x 128 are tiles of cublasLt: so many that each multiprocessor has 1, 2 or 4, and some more.
  for (const std::int64_t waves : quick ? Sizes{1} : Sizes{1, 2, 4}) {
    for (const std::int64_t more : {0, 1}) {
      const std::int64_t rows = (multiprocessors * waves / 8 + more) * 128;
      result.push_back({rows, 1024, 4096, 1, "NT"});
    }
  }
  for (const std::int64_t s : quick ? Sizes{1024} : Sizes{256, 512, 1000, 1024, 2048}) {
    for (const std::int64_t size : {64, 128}) {
      result.push_back({s, s, size, 32, "NT"});
      result.push_back({s, size, s, 32, "NN"});
      result.push_back({s, size, s, 32, "TN"});
    }
  }
  return result;
}

/// Rows times columns of what moves memory. `bytes`: what an element takes, read or written, of
/// operands of the type (`operands` of them) and of fp32 or masks (`more` bytes).
template <typename T>
struct StreamOf {
  const char* kind;
  const char* operation;
  double operands, more;
  std::function<void(const Rows&, DevicePool<T>&)> run;
};

template <typename T>
std::vector<StreamOf<T>> elementwise_streams() {
  using Pool = DevicePool<T>;
  return {{"elementwise", "add", 3, 0,
           [](const Rows& r, Pool& p) {
             const auto a = p.read(r.size()), b = p.read(r.size());
             kernels::add<T>(p.stream, a, b, p.write(r.size()));
           }},
          {"elementwise", "bias", 2, 0,
           [](const Rows& r, Pool& p) {
             const auto x = p.read(r.size()), bias = p.read(r.columns);
             kernels::bias_add<T>(p.stream, r, x, bias, p.write(r.size()));
           }},
          {"elementwise", "cast to fp32", 1, 4,
           [](const Rows& r, Pool& p) {
             kernels::cast<T, float>(p.stream, p.read(r.size()), p.numbers(r.size()));
           }},
          {"activation_function", "gelu", 2, 0,
           [](const Rows& r, Pool& p) {
             kernels::gelu<T>(p.stream, p.read(r.size()), p.write(r.size()));
           }},
          {"activation_function", "gelu gradient", 3, 0,
           [](const Rows& r, Pool& p) {
             const auto dy = p.read(r.size()), x = p.read(r.size());
             kernels::gelu_gradient<T>(p.stream, dy, x, p.write(r.size()));
           }},
          {"activation_function", "swiglu", 3, 0,
           [](const Rows& r, Pool& p) {
             kernels::swiglu_pairs<T>(p.stream, p.read(2 * r.size()), p.write(r.size()));
           }},
          {"activation_function", "swiglu gradient", 5, 0, [](const Rows& r, Pool& p) {
             const auto dy = p.read(r.size()), pairs = p.read(2 * r.size());
             kernels::swiglu_pairs_gradient<T>(p.stream, dy, pairs, p.write(2 * r.size()));
           }}};
}

/// Kernels that read a row more than once.
template <typename T>
std::vector<StreamOf<T>> row_streams() {
  using Pool = DevicePool<T>;
  return {{"softmax", "softmax", 2, 0,
           [](const Rows& r, Pool& p) {
             kernels::softmax<T>(p.stream, r, 1, {}, p.read(r.size()), p.write(r.size()));
           }},
          {"softmax", "softmax gradient", 3, 0,
           [](const Rows& r, Pool& p) {
             const auto dy = p.read(r.size()), y = p.read(r.size());
             kernels::softmax_gradient<T>(p.stream, r, 1, dy, y, p.write(r.size()));
           }},
          {"norm", "layer norm", 2, 0,
           [](const Rows& r, Pool& p) {
             const auto x = p.read(r.size()), scale = p.read(r.columns), shift = p.read(r.columns);
             kernels::layer_norm<T>(p.stream, r, 1e-5, x, scale, shift, p.write(r.size()),
                                    p.numbers(2 * r.rows));
           }},
          {"norm", "layer norm gradient", 3, 0,
           [](const Rows& r, Pool& p) {
             const auto dy = p.read(r.size()), x = p.read(r.size()), scale = p.read(r.columns);
             kernels::layer_norm_gradient<T>(p.stream, r, dy, x, p.numbers(2 * r.rows), scale,
                                             p.write(r.size()));
           }},
          {"norm", "layer norm scale gradient", 2, 0,
           [](const Rows& r, Pool& p) {
             const auto dy = p.read(r.size()), x = p.read(r.size());
             kernels::layer_norm_scale_gradient<T>(p.stream, r, dy, x, p.numbers(2 * r.rows),
                                                   p.write(r.columns));
           }},
          {"rms_norm", "RMS norm", 2, 0, [](const Rows& r, Pool& p) {
             const auto x = p.read(r.size()), scale = p.read(r.columns);
             kernels::rms_norm<T>(p.stream, r, 1e-5, x, scale, p.write(r.size()),
                                  p.numbers(r.rows));
           }}};
}

template <typename T>
std::vector<StreamOf<T>> other_streams() {
  using Pool = DevicePool<T>;
  return {{"reduction", "column sums", 1, 0,
           [](const Rows& r, Pool& p) {
             kernels::column_sums<T>(p.stream, r, p.read(r.size()), p.write(r.columns));
           }},
          {"dropout", "dropout", 2, 1,
           [](const Rows& r, Pool& p) {
             const auto x = p.read(r.size()), y = p.write(r.size());
             const auto mask = p.numbers((r.size() + 3) / 4);
             const DeviceSpan<std::int8_t> bytes(reinterpret_cast<std::int8_t*>(mask.data()),
                                                 static_cast<std::size_t>(r.size()));
             kernels::dropout<T>(p.stream, kernels::whole_of({r.rows, r.columns}), 0.1, {.seed = 1},
                                 x, y, bytes);
           }},
          {"embedding", "embedding", 2, 0,
           [](const Rows& r, Pool& p) {
             const auto tokens = p.tokens(r.rows);
             kernels::embedding<T>(p.stream, r.columns, 0, tokens, p.read(r.size()),
                                   p.write(r.size()));
           }},
          {"cross_entropy", "exponential", 2, 0,
           [](const Rows& r, Pool& p) {
             kernels::exponential<T>(p.stream, r, p.read(r.size()), p.numbers(r.rows),
                                     p.write(r.size()));
           }},
          {"cross_entropy", "gradient", 2, 0,
           [](const Rows& r, Pool& p) {
             const auto dloss = p.numbers(r.rows), sum = p.numbers(r.rows);
             kernels::cross_entropy_gradient<T>(p.stream, r, 0, dloss, p.read(r.size()), sum,
                                                p.tokens(r.rows), p.write(r.size()));
           }},
          {"optimizer", "Adam", 1, 24,  // reads a gradient and three states, writes the states
           [](const Rows& r, Pool& p) {
             const auto g = p.read(r.size());
             const auto w = p.numbers(r.size()), m = p.numbers(r.size());
             kernels::adam<T>(p.stream, {}, g, w, m, p.numbers(r.size()));
           }}};
}

/// Elementwise kernels first: an addition.
template <typename T>
std::vector<StreamOf<T>> streams() {
  std::vector<StreamOf<T>> all = elementwise_streams<T>();
  for (const auto& more : {row_streams<T>(), other_streams<T>()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

template <typename T>
CudaExperiment streaming(const StreamOf<T>& stream, const Rows& rows, const SharedPool<T>& pool) {
  const double bytes = stream.operands * sizeof(T) + stream.more;
  return {.what = {.kind = stream.kind,
                   .operation = stream.operation,
                   .columns = {"rows", "columns"},
                   .sizes = {rows.rows, rows.columns},
                   .transposes = "",
                   .flops = {},
                   .bytes = Bytes{std::ceil(bytes * real(rows.size()))},
                   .prepare = {}},
          .type = name_of<T>(),
          .launch = [=, run = stream.run] { run(rows, *pool); }};
}

/// From what the cache holds to what it does not.
std::vector<Rows> stream_sizes(Sweep sweep) {
  if (sweep == Sweep::quick) return {{256, 1024}, {4096, 4096}};
  return {{64, 1024}, {512, 1024}, {1000, 1000}, {4096, 1024}, {4096, 4096}, {16384, 4096}};
}
constexpr std::int64_t largest_stream = std::int64_t{16384} * 4096;

template <typename T>
std::array<CudaExperiment, 2> attention(const kernels::Attention& a, const SharedPool<T>& pool) {
  const std::int64_t of_queries = a.batch * a.heads * a.queries * a.size;
  const std::int64_t of_keys = a.batch * a.kv_heads * a.keys * a.size;
  const std::int64_t sums = a.batch * a.heads * a.queries;
  const double product =
      (a.causal ? 1.0 : 2.0) * real(of_queries) * real(a.keys);  // 2 m n k, half where causal
  const Experiment what{.kind = "attention",
                        .operation = "",
                        .columns = {"batch", "heads", "queries", "keys", "size", "causal"},
                        .sizes = {a.batch, a.heads, a.queries, a.keys, a.size, a.causal ? 2 : 1},
                        .transposes = "",
                        .flops = Flops{2 * product},
                        .bytes = Bytes{sizeof(T) * 2 * real(of_queries + of_keys)},
                        .prepare = {}};
  CudaExperiment forward{what, name_of<T>(), [=] {
                           const auto q = pool->read(of_queries), k = pool->read(of_keys);
                           const auto v = pool->read(of_keys);
                           kernels::attention<T>(pool->stream, a, q, k, v, pool->write(of_queries),
                                                 pool->numbers(sums));
                         }};
  CudaExperiment backward{
      what, name_of<T>(), [=] {
        const auto dout = pool->read(of_queries), q = pool->read(of_queries);
        const auto k = pool->read(of_keys), v = pool->read(of_keys), out = pool->read(of_queries);
        const auto dq = pool->write(of_queries), dk = pool->write(of_keys);
        kernels::attention_gradient<T>(pool->stream, a, dout, q, k, v, out, pool->numbers(sums), dq,
                                       dk, pool->write(of_keys));
      }};
  backward.what.kind = "attention_backward";
  backward.what.flops = Flops{5 * product};
  backward.what.bytes = Bytes{sizeof(T) * 4 * real(of_queries + of_keys)};
  return {forward, backward};
}

/// 16384 tokens of a model 2048 wide, as papers on attention measure it.
template <typename T>
std::vector<CudaExperiment> attentions(Sweep sweep, const SharedPool<T>& pool) {
  std::vector<CudaExperiment> result;
  const bool slow = std::is_same_v<T, float>;  // without tensor cores
  const Sizes lengths =
      sweep == Sweep::quick || slow ? Sizes{1024} : Sizes{512, 1024, 2048, 4096, 8192};
  for (const std::int64_t size : {64, 128}) {
    for (const std::int64_t length : lengths) {
      for (const bool causal : {false, true}) {
        const std::int64_t heads = 2048 / size;
        const auto both = attention<T>({.batch = 16384 / length,
                                        .heads = heads,
                                        .kv_heads = heads,
                                        .queries = length,
                                        .keys = length,
                                        .size = size,
                                        .causal = causal},
                                       pool);
        result.insert(result.end(), both.begin(), both.end());
      }
    }
  }
  return result;
}

/// The largest set of operands, a product's three of 8192 x 32768, or more than twice the cache.
template <typename T>
SharedPool<T> pool_of(const Stream& stream) {
  const double cache = stream.device().l2_cache.value / sizeof(T);
  const double largest = 2.0 * 8192 * 32768 + 8192.0 * 8192;
  return std::make_shared<DevicePool<T>>(stream,
                                         static_cast<std::size_t>(std::max(largest, 3 * cache)));
}

template <typename T>
CudaExperiments experiments(const Stream& stream, Sweep sweep) {
  const SharedPool<T> pool = pool_of<T>(stream);
  CudaExperiments result{
      .peak = product<T>({8192, 8192, 8192, 1, "NT"}, pool),
      .bandwidth = streaming<T>(streams<T>().front(), {largest_stream / 4096, 4096}, pool),
      .all = {},
      .attention = attentions<T>(sweep, pool)};
  for (const Product& shape : products(sweep, stream.device().multiprocessors))
    result.all.push_back(product<T>(shape, pool));
  for (const StreamOf<T>& of : streams<T>())
    for (const Rows& rows : stream_sizes(sweep)) result.all.push_back(streaming<T>(of, rows, pool));
  return result;
}

}  // namespace

CudaExperiments cuda_experiments(const Stream& stream, const std::string& type, Sweep sweep) {
  if (type == "fp16") return experiments<kernels::Half>(stream, sweep);
  if (type == "bf16") return experiments<kernels::BFloat16>(stream, sweep);
  expects(type == "fp32", "kernels on GPUs know fp16, bf16 and fp32");
  return experiments<float>(stream, sweep);
}

CudaStopwatch::CudaStopwatch(const Stream& stream)
    : stream_(stream), filled_(std::size_t{1} << 30) {}

GpuSample CudaStopwatch::once(const std::function<void()>& launch, int launches, int fills) const {
  kernels::Event fill, begin, end;
  const auto asked = std::chrono::steady_clock::now();
  fill.record(stream_);
  for (int i = 0; i < fills; ++i) kernels::fill_bytes(stream_, filled_.data(), 0, filled_.size());
  begin.record(stream_);
  for (int i = 0; i < launches; ++i) launch();
  end.record(stream_);
  const std::chrono::duration<double> host = std::chrono::steady_clock::now() - asked;
  end.wait();
  return {(1.0 / launches) * end.since(begin), Seconds{host.count()} < begin.since(fill)};
}

std::optional<Timed> CudaStopwatch::time_of(const std::function<void()>& launch,
                                            const Effort& effort) const {
  for (int i = 0; i < effort.warm_up; ++i) launch();
  return time_behind_fills([&](int launches, int fills) { return once(launch, launches, fills); },
                           effort);
}

}  // namespace stratagem::calibrate
