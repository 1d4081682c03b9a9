// Operands and calls of kernels on a processor.
#include "calibrate/measure/cpu_kernels.hpp"

#include <algorithm>
#include <cstddef>

#include "base/input_error.hpp"
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

/// A kernel that reads one or two operands of a shape and writes one.
template <typename Kernel>
std::function<void(const Rows&, Pool&)> of(int inputs, const Kernel& kernel) {
  return [=](const Rows& r, Pool& pool) {
    const auto a = pool.read(r.size()), b = pool.read(inputs > 1 ? r.size() : 0);
    kernel(r, a, b, pool.write(r.size()));
  };
}
using Operand = std::span<float>;

std::vector<MemoryKernel> elementwise_kernels() {
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
std::vector<MemoryKernel> row_kernels() {
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
          {"norm", "layer norm gradient", 3,
           [](const Rows& r, Pool& pool) {
             const auto dy = pool.read(r.size()), x = pool.read(r.size());
             const auto statistics = pool.read(2 * r.rows), scale = pool.read(r.columns);
             kernels::layer_norm_gradient<float>(r, dy, x, statistics, scale, pool.write(r.size()));
           }},
          {"rms_norm", "RMS norm", 2,
           [](const Rows& r, Pool& pool) {
             const auto x = pool.read(r.size()), scale = pool.read(r.columns);
             const auto y = pool.write(r.size());
             kernels::rms_norm<float>(r, 1e-5, x, scale, y, pool.write(r.rows));
           }},
          {"rms_norm", "RMS norm gradient", 3, [](const Rows& r, Pool& pool) {
             const auto dy = pool.read(r.size()), x = pool.read(r.size());
             const auto statistics = pool.read(r.rows), scale = pool.read(r.columns);
             kernels::rms_norm_gradient<float>(r, dy, x, statistics, scale, pool.write(r.size()));
           }}};
}

std::vector<MemoryKernel> other_kernels() {
  return {{"reduction", "column sums", 1,
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
          {"dropout", "dropout gradient", 2.25,
           [](const Rows& r, Pool& pool) {
             const auto dy = pool.read(r.size()), mask = pool.read((r.size() + 3) / 4);
             const std::span bytes(reinterpret_cast<const std::int8_t*>(mask.data()),
                                   static_cast<std::size_t>(r.size()));
             kernels::dropout_gradient<float>(0.1, dy, bytes, pool.write(r.size()));
           }},
          {"embedding", "embedding", 2,
           [](const Rows& r, Pool& pool) {
             const auto table = pool.read(r.size());
             kernels::embedding<float>(r.columns, 0, pool.tokens(r.rows), table,
                                       pool.write(r.size()));
           }},
          {"cross_entropy", "exponential", 2,
           [](const Rows& r, Pool& pool) {
             const auto x = pool.read(r.size()), maximum = pool.read(r.rows);
             kernels::exponential<float>(r, x, maximum, pool.write(r.size()));
           }},
          {"cross_entropy", "cross-entropy gradient", 2,
           [](const Rows& r, Pool& pool) {
             const auto dloss = pool.read(r.rows), exponentials = pool.read(r.size());
             const auto sum = pool.read(r.rows);
             kernels::cross_entropy_gradient<float>(r, 0, dloss, exponentials, sum,
                                                    pool.tokens(r.rows), pool.write(r.size()));
           }},
          // Reads gradient, parameter and two moments, writes three of them, in place: moments and
          // small steps keep what is read between 0.4 and 1.6.
          {"optimizer", "Adam", 7, [](const Rows& r, Pool& pool) {
             const auto g = pool.read(r.size()), p = pool.read(r.size());
             const auto m = pool.read(r.size());
             kernels::adam<float>({}, g, p, m, pool.read(r.size()));
           }}};
}

}  // namespace

Pool::Pool(Bytes cache, std::optional<Bytes> working_set)
    : cache_(static_cast<std::size_t>(cache.value / element_bytes)), elements_(5 * cache_) {
  if (working_set) working_set_ = static_cast<std::size_t>(working_set->value / element_bytes / 2);
}

void Pool::make_room(std::int64_t elements) {
  elements_ = std::max(elements_, 2 * cache_ + static_cast<std::size_t>(elements));
}

void Pool::begin(std::int64_t elements) {
  fill();
  end_ = elements_;
  if (working_set_)
    end_ = std::min(elements_, std::max(*working_set_, static_cast<std::size_t>(elements)));
  next_read_ = next_write_ = 0;
}

std::span<float> Pool::read(std::int64_t elements) { return deal(random_, next_read_, elements); }

std::span<float> Pool::write(std::int64_t elements) {
  return deal(results_, next_write_, elements);
}

std::span<const std::int64_t> Pool::tokens(std::int64_t rows) {
  if (tokens_.size() != static_cast<std::size_t>(rows)) {
    tokens_.resize(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < tokens_.size(); ++i)
      tokens_[i] = static_cast<std::int64_t>(i * 7919 % tokens_.size());
  }
  return tokens_;
}

void Pool::fill() {
  if (!random_.empty()) return;
  random_.resize(elements_);
  results_.resize(elements_);
  for (std::size_t i = 0; i < elements_; ++i) random_[i] = kernels::uniform({.seed = 1}, i) + 0.5F;
}

std::span<float> Pool::deal(std::vector<float>& from, std::size_t& next,
                            std::int64_t elements) const {
  const auto size = static_cast<std::size_t>(elements);
  expects(size <= end_, "a pool has room for the operands that are asked of it");
  if (next + size > end_) next = 0;
  next += size;
  return std::span(from).subspan(next - size, size);
}

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
  const std::int64_t room = p.batch * std::max({p.m * p.k + p.k * p.n, p.m * p.n});
  pool->make_room(room);
  return {.kind = "gemm",
          .operation = "",
          .columns = {"m", "n", "k", "batch"},
          .sizes = {p.m, p.n, p.k, p.batch},
          .transposes = p.transposes,
          .flops = Flops{2 * c * real(p.k)},
          .bytes = Bytes{(a + b + c) * element_bytes},
          .prepare = [=] {
            pool->begin(room);
            return [=] {
              const auto x = pool->read(p.batch * p.m * p.k), y = pool->read(p.batch * p.k * p.n);
              kernels::gemm<float>(shape, x, y, pool->write(p.batch * p.m * p.n));
            };
          }};
}

const std::vector<MemoryKernel>& memory_kernels() {
  static const std::vector<MemoryKernel> all = [] {
    std::vector<MemoryKernel> result = elementwise_kernels();
    for (const auto& more : {row_kernels(), other_kernels()})
      result.insert(result.end(), more.begin(), more.end());
    return result;
  }();
  return all;
}

Experiment streaming(const MemoryKernel& stream, const Rows& rows, const SharedPool& pool) {
  const double elements = static_cast<double>(rows.size());
  const std::int64_t room = 4 * (rows.size() + rows.rows + rows.columns);
  pool->make_room(room);
  return {.kind = stream.kind,
          .operation = stream.operation,
          .columns = {"rows", "columns"},
          .sizes = {rows.rows, rows.columns},
          .transposes = "",
          .flops = {},
          .bytes = Bytes{stream.operands * elements * element_bytes},
          .prepare = [=, run = stream.run] {
            pool->begin(room);
            return [=] { run(rows, *pool); };
          }};
}

}  // namespace stratagem::calibrate
