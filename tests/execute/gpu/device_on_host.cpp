// A GPU for tests on machines without one: its memory is the host's, its kernels those of fp32 on
// the processor, with operands widened and results rounded.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "kernels/activation.hpp"
#include "kernels/adam.hpp"
#include "kernels/attention.hpp"
#include "kernels/cross_entropy.hpp"
#include "kernels/device.hpp"
#include "kernels/dropout.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/embedding.hpp"
#include "kernels/finite.hpp"
#include "kernels/gemm.hpp"
#include "kernels/half.hpp"
#include "kernels/norm.hpp"
#include "kernels/rotary.hpp"
#include "kernels/softmax.hpp"
#include "kernels/strided.hpp"

namespace stratagem::kernels {
namespace {

using Floats = std::vector<float>;

template <typename T>
Floats floats(DeviceIn<T> x) {
  return {x.data(), x.data() + x.size()};
}
template <typename T>
Floats floats(DeviceOut<T> x) {
  return floats(DeviceIn<T>(x));
}

template <typename T>
void put(const Floats& x, DeviceOut<T> y) {
  std::ranges::transform(x, y.data(), [](float number) { return static_cast<T>(number); });
}

template <typename E>
std::span<const E> seen(DeviceIn<E> x) {
  return {x.data(), x.size()};
}

/// Calls `kernel(result)` with fp32 of what is in `y`, and rounds what it leaves there.
template <typename T, typename Kernel>
void into(DeviceOut<T> y, const Kernel& kernel) {
  Floats result = floats(y);
  kernel(result);
  put(result, y);
}

}  // namespace

// ---- devices

struct Stream::Inside {
  Device device{.name = "a processor", .major = 9};
};

std::vector<Device> devices() { return {Device{.name = "a processor", .major = 9}}; }
std::string why_no_devices() { return ""; }
Bytes memory_available(int /*device*/) { return Bytes{1e9}; }

Stream::Stream(int /*device*/) : inside_(std::make_unique<Inside>()) {}
Stream::~Stream() = default;
void Stream::synchronise() const {}
const Device& Stream::device() const { return inside_->device; }

using Clock = std::chrono::steady_clock;

Event::Event() : event_(new Clock::time_point()) {}
Event::~Event() { delete static_cast<Clock::time_point*>(event_); }
void Event::record(const Stream& /*stream*/) {
  *static_cast<Clock::time_point*>(event_) = Clock::now();
}
void Event::wait() const {}
Seconds Event::since(const Event& earlier) const {
  const std::chrono::duration<double> time = *static_cast<const Clock::time_point*>(event_) -
                                             *static_cast<const Clock::time_point*>(earlier.event_);
  return Seconds{time.count()};
}

void* allocate(Place /*place*/, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  void* const memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (memory == nullptr) throw DeviceOutOfMemory("aligned_alloc");
  std::memset(memory, 0xFF, bytes);  // whatever is read before it is written is no number
  return memory;
}
void release(Place /*place*/, void* memory) noexcept { std::free(memory); }
void copy_bytes(const Stream& /*stream*/, const void* from, void* to, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}
void fill_bytes(const Stream& /*stream*/, void* memory, unsigned char value, std::size_t bytes) {
  if (bytes > 0) std::memset(memory, value, bytes);
}

// ---- kernels

#define OF_ONE(name)                                          \
  template <typename T>                                       \
  void name(const Stream&, DeviceIn<T> x, DeviceOut<T> y) {   \
    into(y, [&](Floats& to) { name<float>(floats(x), to); }); \
  }
#define OF_TWO(name)                                                       \
  template <typename T>                                                    \
  void name(const Stream&, DeviceIn<T> a, DeviceIn<T> b, DeviceOut<T> y) { \
    into(y, [&](Floats& to) { name<float>(floats(a), floats(b), to); });   \
  }
OF_ONE(gelu)
OF_ONE(relu)
OF_ONE(sigmoid)
OF_ONE(squared_relu)
OF_TWO(gelu_gradient)
OF_TWO(relu_gradient)
OF_TWO(sigmoid_gradient)
OF_TWO(squared_relu_gradient)
OF_TWO(add)
OF_TWO(multiply)
#undef OF_ONE
#undef OF_TWO

template <typename T>
void silu(const Stream&, DeviceIn<T> x, DeviceOut<T> y) {
  into(y, [&](Floats& to) { swiglu<float>(floats(x), Floats(x.size(), 1), to); });
}
template <typename T>
void silu_gradient(const Stream&, DeviceIn<T> dy, DeviceIn<T> x, DeviceOut<T> dx) {
  Floats unused(x.size());
  into(dx, [&](Floats& to) {
    swiglu_gradient<float>(floats(dy), floats(x), Floats(x.size(), 1), to, unused);
  });
}

/// Every second element.
template <typename T>
Floats every_second(DeviceIn<T> pairs, std::size_t first) {
  Floats result;
  for (std::size_t i = first; i < pairs.size(); i += 2) result.push_back(pairs.data()[i]);
  return result;
}
template <typename T>
void swiglu_pairs(const Stream&, DeviceIn<T> pairs, DeviceOut<T> y) {
  into(y, [&](Floats& to) { swiglu<float>(every_second(pairs, 0), every_second(pairs, 1), to); });
}
template <typename T>
void swiglu_pairs_gradient(const Stream&, DeviceIn<T> dy, DeviceIn<T> pairs, DeviceOut<T> dpairs) {
  Floats dgate(dy.size()), dup(dy.size());
  swiglu_gradient<float>(floats(dy), every_second(pairs, 0), every_second(pairs, 1), dgate, dup);
  for (std::size_t i = 0; i < dy.size(); ++i) {
    dpairs.data()[2 * i] = static_cast<T>(dgate[i]);
    dpairs.data()[2 * i + 1] = static_cast<T>(dup[i]);
  }
}

template <typename T>
void bias_add(const Stream&, const Rows& shape, DeviceIn<T> x, DeviceIn<T> bias, DeviceOut<T> y) {
  into(y, [&](Floats& to) { bias_add<float>(shape, floats(x), floats(bias), to); });
}
template <typename T>
void column_sums(const Stream&, const Rows& shape, DeviceIn<T> x, DeviceOut<T> sums) {
  into(sums, [&](Floats& to) { column_sums<float>(shape, floats(x), to); });
}
template <typename T>
void fill(const Stream&, double value, DeviceOut<T> y) {
  std::fill_n(y.data(), y.size(), static_cast<T>(static_cast<float>(value)));
}
template <typename From, typename To>
void cast(const Stream&, DeviceIn<From> x, DeviceOut<To> y) {
  put(floats(x), y);
}
template <typename T>
void find_not_finite(const Stream&, DeviceIn<T> x, DeviceOut<std::int8_t> found) {
  if (!all_finite<T>(seen(x))) *found.data() = 1;
}
template <typename From, typename To>
void copy_strided(const Stream&, const Strided& shape, bool adds, DeviceIn<From> x,
                  DeviceOut<To> y) {
  into(y, [&](Floats& to) { copy_strided<float>(merged(shape), adds, floats(x), to); });
}
template <typename T>
void rotary(const Stream&, const Rotary& shape, DeviceIn<T> x, DeviceOut<T> y) {
  into(y, [&](Floats& to) { rotary<float>(shape, floats(x), to); });
}
template <typename T>
void rotary_gradient(const Stream&, const Rotary& shape, DeviceIn<T> dy, DeviceOut<T> dx) {
  into(dx, [&](Floats& to) { rotary_gradient<float>(shape, floats(dy), to); });
}
template <typename T>
void gemm(const Stream&, const Gemm& shape, DeviceIn<T> a, DeviceIn<T> b, DeviceOut<T> c, Tf32) {
  into(c, [&](Floats& to) { gemm<float>(shape, floats(a), floats(b), to); });
}

template <typename T>
void dropout(const Stream&, const Part& part, double probability, const RandomStream& random,
             DeviceIn<T> x, DeviceOut<T> y, DeviceOut<std::int8_t> mask) {
  into(y, [&](Floats& to) {
    dropout<float>(part, probability, random, floats(x), to, {mask.data(), mask.size()});
  });
}
template <typename T>
void dropout_gradient(const Stream&, double probability, DeviceIn<T> dy, DeviceIn<std::int8_t> mask,
                      DeviceOut<T> dx) {
  into(dx, [&](Floats& to) { dropout_gradient<float>(probability, floats(dy), seen(mask), to); });
}
template <typename T>
void embedding(const Stream&, std::int64_t width, std::int64_t first, DeviceIn<std::int64_t> tokens,
               DeviceIn<T> table, DeviceOut<T> y) {
  into(y, [&](Floats& to) { embedding<float>(width, first, seen(tokens), floats(table), to); });
}
template <typename T>
void embedding_gradient(const Stream&, std::int64_t width, std::int64_t first, DeviceIn<T> dy,
                        DeviceIn<std::int64_t> tokens, DeviceOut<T> dtable) {
  into(dtable,
       [&](Floats& to) { embedding_gradient<float>(width, first, floats(dy), seen(tokens), to); });
}

template <typename T>
void attention(const Stream&, const Attention& shape, DeviceIn<T> q, DeviceIn<T> k, DeviceIn<T> v,
               DeviceOut<T> out, DeviceOut<float> log_sums, AttentionKernel) {
  into(log_sums, [&](Floats& sums) {
    into(out,
         [&](Floats& to) { attention<float>(shape, floats(q), floats(k), floats(v), to, sums); });
  });
}
template <typename T>
void attention_gradient(const Stream&, const Attention& shape, DeviceIn<T> dout, DeviceIn<T> q,
                        DeviceIn<T> k, DeviceIn<T> v, DeviceIn<T> out, DeviceIn<float> log_sums,
                        DeviceOut<T> dq, DeviceOut<T> dk, DeviceOut<T> dv) {
  Floats of_q = floats(dq), of_k = floats(dk), of_v = floats(dv);
  attention_gradient<float>(shape, floats(dout), floats(q), floats(k), floats(v), floats(out),
                            seen(log_sums), of_q, of_k, of_v);
  put(of_q, dq);
  put(of_k, dk);
  put(of_v, dv);
}

template <typename T>
void layer_norm(const Stream&, const Rows& shape, double epsilon, DeviceIn<T> x, DeviceIn<T> scale,
                DeviceIn<T> shift, DeviceOut<T> y, DeviceOut<float> statistics) {
  into(y, [&](Floats& to) {
    layer_norm<float>(shape, epsilon, floats(x), floats(scale), floats(shift), to,
                      {statistics.data(), statistics.size()});
  });
}
template <typename T>
void layer_norm_gradient(const Stream&, const Rows& shape, DeviceIn<T> dy, DeviceIn<T> x,
                         DeviceIn<float> statistics, DeviceIn<T> scale, DeviceOut<T> dx) {
  into(dx, [&](Floats& to) {
    layer_norm_gradient<float>(shape, floats(dy), floats(x), seen(statistics), floats(scale), to);
  });
}
template <typename T>
void layer_norm_scale_gradient(const Stream&, const Rows& shape, DeviceIn<T> dy, DeviceIn<T> x,
                               DeviceIn<float> statistics, DeviceOut<T> dscale) {
  into(dscale, [&](Floats& to) {
    layer_norm_scale_gradient<float>(shape, floats(dy), floats(x), seen(statistics), to);
  });
}
template <typename T>
void rms_norm(const Stream&, const Rows& shape, double epsilon, DeviceIn<T> x, DeviceIn<T> scale,
              DeviceOut<T> y, DeviceOut<float> statistics) {
  into(y, [&](Floats& to) {
    rms_norm<float>(shape, epsilon, floats(x), floats(scale), to,
                    {statistics.data(), statistics.size()});
  });
}
template <typename T>
void rms_norm_gradient(const Stream&, const Rows& shape, DeviceIn<T> dy, DeviceIn<T> x,
                       DeviceIn<float> statistics, DeviceIn<T> scale, DeviceOut<T> dx) {
  into(dx, [&](Floats& to) {
    rms_norm_gradient<float>(shape, floats(dy), floats(x), seen(statistics), floats(scale), to);
  });
}
template <typename T>
void rms_norm_scale_gradient(const Stream&, const Rows& shape, DeviceIn<T> dy, DeviceIn<T> x,
                             DeviceIn<float> statistics, DeviceOut<T> dscale) {
  into(dscale, [&](Floats& to) {
    rms_norm_scale_gradient<float>(shape, floats(dy), floats(x), seen(statistics), to);
  });
}

template <typename T>
void softmax(const Stream&, const Rows& shape, double scale, const std::optional<CausalMask>& mask,
             DeviceIn<T> x, DeviceOut<T> y) {
  into(y, [&](Floats& to) { softmax<float>(shape, scale, mask, floats(x), to); });
}
template <typename T>
void softmax_gradient(const Stream&, const Rows& shape, double scale, DeviceIn<T> dy, DeviceIn<T> y,
                      DeviceOut<T> dx) {
  into(dx, [&](Floats& to) { softmax_gradient<float>(shape, scale, floats(dy), floats(y), to); });
}

template <typename T>
void row_maximum(const Stream&, const Rows& shape, DeviceIn<T> x, DeviceOut<float> maximum) {
  into(maximum, [&](Floats& to) { row_maximum<float>(shape, floats(x), to); });
}
template <typename T>
void row_sums(const Stream&, const Rows& shape, DeviceIn<T> x, DeviceOut<float> sums) {
  into(sums, [&](Floats& to) { row_sums<float>(shape, floats(x), to); });
}
template <typename T>
void exponential(const Stream&, const Rows& shape, DeviceIn<T> x, DeviceIn<float> maximum,
                 DeviceOut<T> y) {
  into(y, [&](Floats& to) { exponential<float>(shape, floats(x), seen(maximum), to); });
}
template <typename T>
void pick(const Stream&, const Rows& shape, std::int64_t first, DeviceIn<T> x,
          DeviceIn<std::int64_t> labels, DeviceOut<float> picked) {
  into(picked, [&](Floats& to) { pick<float>(shape, first, floats(x), seen(labels), to); });
}
void cross_entropy(const Stream&, DeviceIn<float> maximum, DeviceIn<float> sum,
                   DeviceIn<float> picked, DeviceOut<float> loss) {
  into(loss, [&](Floats& to) { cross_entropy<float>(seen(maximum), seen(sum), seen(picked), to); });
}
template <typename T>
void cross_entropy_gradient(const Stream&, const Rows& shape, std::int64_t first,
                            DeviceIn<float> dloss, DeviceIn<T> exponentials, DeviceIn<float> sum,
                            DeviceIn<std::int64_t> labels, DeviceOut<T> dx) {
  into(dx, [&](Floats& to) {
    cross_entropy_gradient<float>(shape, first, seen(dloss), floats(exponentials), seen(sum),
                                  seen(labels), to);
  });
}
template <typename T>
void adam(const Stream&, const Adam& settings, DeviceIn<T> gradient, DeviceOut<float> parameter,
          DeviceOut<float> momentum, DeviceOut<float> variance) {
  adam<float>(settings, floats(gradient), {parameter.data(), parameter.size()},
              {momentum.data(), momentum.size()}, {variance.data(), variance.size()});
}

#define INSTANTIATE(T)                                                                             \
  template void gelu<T>(const Stream&, DeviceIn<T>, DeviceOut<T>);                                 \
  template void relu<T>(const Stream&, DeviceIn<T>, DeviceOut<T>);                                 \
  template void squared_relu<T>(const Stream&, DeviceIn<T>, DeviceOut<T>);                         \
  template void squared_relu_gradient<T>(const Stream&, DeviceIn<T>, DeviceIn<T>, DeviceOut<T>);   \
  template void sigmoid<T>(const Stream&, DeviceIn<T>, DeviceOut<T>);                              \
  template void gelu_gradient<T>(const Stream&, DeviceIn<T>, DeviceIn<T>, DeviceOut<T>);           \
  template void relu_gradient<T>(const Stream&, DeviceIn<T>, DeviceIn<T>, DeviceOut<T>);           \
  template void sigmoid_gradient<T>(const Stream&, DeviceIn<T>, DeviceIn<T>, DeviceOut<T>);        \
  template void add<T>(const Stream&, DeviceIn<T>, DeviceIn<T>, DeviceOut<T>);                     \
  template void multiply<T>(const Stream&, DeviceIn<T>, DeviceIn<T>, DeviceOut<T>);                \
  template void silu<T>(const Stream&, DeviceIn<T>, DeviceOut<T>);                                 \
  template void silu_gradient<T>(const Stream&, DeviceIn<T>, DeviceIn<T>, DeviceOut<T>);           \
  template void swiglu_pairs<T>(const Stream&, DeviceIn<T>, DeviceOut<T>);                         \
  template void swiglu_pairs_gradient<T>(const Stream&, DeviceIn<T>, DeviceIn<T>, DeviceOut<T>);   \
  template void bias_add<T>(const Stream&, const Rows&, DeviceIn<T>, DeviceIn<T>, DeviceOut<T>);   \
  template void column_sums<T>(const Stream&, const Rows&, DeviceIn<T>, DeviceOut<T>);             \
  template void find_not_finite<T>(const Stream&, DeviceIn<T>, DeviceOut<std::int8_t>);            \
  template void rotary<T>(const Stream&, const Rotary&, DeviceIn<T>, DeviceOut<T>);                \
  template void rotary_gradient<T>(const Stream&, const Rotary&, DeviceIn<T>, DeviceOut<T>);       \
  template void gemm<T>(const Stream&, const Gemm&, DeviceIn<T>, DeviceIn<T>, DeviceOut<T>, Tf32); \
  template void dropout<T>(const Stream&, const Part&, double, const RandomStream&, DeviceIn<T>,   \
                           DeviceOut<T>, DeviceOut<std::int8_t>);                                  \
  template void dropout_gradient<T>(const Stream&, double, DeviceIn<T>, DeviceIn<std::int8_t>,     \
                                    DeviceOut<T>);                                                 \
  template void embedding<T>(const Stream&, std::int64_t, std::int64_t, DeviceIn<std::int64_t>,    \
                             DeviceIn<T>, DeviceOut<T>);                                           \
  template void embedding_gradient<T>(const Stream&, std::int64_t, std::int64_t, DeviceIn<T>,      \
                                      DeviceIn<std::int64_t>, DeviceOut<T>);                       \
  template void attention<T>(const Stream&, const Attention&, DeviceIn<T>, DeviceIn<T>,            \
                             DeviceIn<T>, DeviceOut<T>, DeviceOut<float>, AttentionKernel);        \
  template void attention_gradient<T>(const Stream&, const Attention&, DeviceIn<T>, DeviceIn<T>,   \
                                      DeviceIn<T>, DeviceIn<T>, DeviceIn<T>, DeviceIn<float>,      \
                                      DeviceOut<T>, DeviceOut<T>, DeviceOut<T>);                   \
  template void layer_norm<T>(const Stream&, const Rows&, double, DeviceIn<T>, DeviceIn<T>,        \
                              DeviceIn<T>, DeviceOut<T>, DeviceOut<float>);                        \
  template void layer_norm_gradient<T>(const Stream&, const Rows&, DeviceIn<T>, DeviceIn<T>,       \
                                       DeviceIn<float>, DeviceIn<T>, DeviceOut<T>);                \
  template void layer_norm_scale_gradient<T>(const Stream&, const Rows&, DeviceIn<T>, DeviceIn<T>, \
                                             DeviceIn<float>, DeviceOut<T>);                       \
  template void rms_norm<T>(const Stream&, const Rows&, double, DeviceIn<T>, DeviceIn<T>,          \
                            DeviceOut<T>, DeviceOut<float>);                                       \
  template void rms_norm_gradient<T>(const Stream&, const Rows&, DeviceIn<T>, DeviceIn<T>,         \
                                     DeviceIn<float>, DeviceIn<T>, DeviceOut<T>);                  \
  template void rms_norm_scale_gradient<T>(const Stream&, const Rows&, DeviceIn<T>, DeviceIn<T>,   \
                                           DeviceIn<float>, DeviceOut<T>);                         \
  template void softmax<T>(const Stream&, const Rows&, double, const std::optional<CausalMask>&,   \
                           DeviceIn<T>, DeviceOut<T>);                                             \
  template void softmax_gradient<T>(const Stream&, const Rows&, double, DeviceIn<T>, DeviceIn<T>,  \
                                    DeviceOut<T>);                                                 \
  template void row_maximum<T>(const Stream&, const Rows&, DeviceIn<T>, DeviceOut<float>);         \
  template void row_sums<T>(const Stream&, const Rows&, DeviceIn<T>, DeviceOut<float>);            \
  template void exponential<T>(const Stream&, const Rows&, DeviceIn<T>, DeviceIn<float>,           \
                               DeviceOut<T>);                                                      \
  template void pick<T>(const Stream&, const Rows&, std::int64_t, DeviceIn<T>,                     \
                        DeviceIn<std::int64_t>, DeviceOut<float>);                                 \
  template void cross_entropy_gradient<T>(const Stream&, const Rows&, std::int64_t,                \
                                          DeviceIn<float>, DeviceIn<T>, DeviceIn<float>,           \
                                          DeviceIn<std::int64_t>, DeviceOut<T>);                   \
  template void adam<T>(const Stream&, const Adam&, DeviceIn<T>, DeviceOut<float>,                 \
                        DeviceOut<float>, DeviceOut<float>);                                       \
  template void copy_strided<T, T>(const Stream&, const Strided&, bool, DeviceIn<T>, DeviceOut<T>);
INSTANTIATE(float)
INSTANTIATE(Half)
INSTANTIATE(BFloat16)
#undef INSTANTIATE

#define INSTANTIATE(From, To)                                                               \
  template void copy_strided<From, To>(const Stream&, const Strided&, bool, DeviceIn<From>, \
                                       DeviceOut<To>);
INSTANTIATE(std::int8_t, std::int8_t)
INSTANTIATE(Half, float)
INSTANTIATE(float, Half)
INSTANTIATE(BFloat16, float)
INSTANTIATE(float, BFloat16)
#undef INSTANTIATE

template void fill<float>(const Stream&, double, DeviceOut<float>);
template void cast<Half, float>(const Stream&, DeviceIn<Half>, DeviceOut<float>);
template void cast<float, Half>(const Stream&, DeviceIn<float>, DeviceOut<Half>);
template void cast<BFloat16, float>(const Stream&, DeviceIn<BFloat16>, DeviceOut<float>);
template void cast<float, BFloat16>(const Stream&, DeviceIn<float>, DeviceOut<BFloat16>);

}  // namespace stratagem::kernels
