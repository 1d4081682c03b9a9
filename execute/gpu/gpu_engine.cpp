// Copies, messages and times of values in the memory of a GPU.
#include "execute/gpu/gpu_engine.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "base/input_error.hpp"
#include "execute/gpu/clock.hpp"
#include "execute/gpu/device_post.hpp"
#include "execute/gpu/notes.hpp"
#include "execute/gpu/operators.hpp"
#include "execute/gpu/parts.hpp"
#include "execute/gpu/pool.hpp"
#include "kernels/device.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/finite.hpp"

namespace stratagem::execute {
namespace {

using gpu::on_gpu;
using kernels::DeviceOut;

template <typename T>
class GpuEngine final : public Engine<T> {
 public:
  using Host = OnHost<T>;
  GpuEngine(int device, std::optional<kernels::GivingUp> nccl)
      : stream_(device), nccl_(std::move(nccl)), found_(1) {}

  Memory allocate(std::size_t bytes) override { return pool_->take(bytes); }
  void clear(void* memory, std::size_t bytes) override {
    kernels::fill_bytes(stream_, memory, 0, bytes);
  }

  void copy(const Value<T>& from, const Value<T>& to) override {
    if (from.region.size() == 0 || same_place(from, to)) return;
    const std::size_t bytes =
        with_list(from, [](const auto& list) { return list.size() * sizeof(*list.data()); });
    kernels::copy_bytes(stream_, place_of(from), const_cast<void*>(place_of(to)), bytes);
  }

  void add(const Value<T>& from, const Value<T>& to) override {
    expects(from.bytes.empty(), "only numbers are added");
    if (!from.wide.empty())
      return kernels::add<float>(stream_, on_gpu(to.wide), on_gpu(from.wide), on_gpu(to.wide));
    kernels::add<T>(stream_, on_gpu(to.data), on_gpu(from.data), on_gpu(to.data));
  }

  void copy_part(const Value<T>& whole, const Value<T>& part) override {
    if (part.region.size() == 0) return;
    if (!part.bytes.empty()) {
      parts_.copy(whole.bytes, whole.region, part.bytes, part.region);
    } else if (!part.wide.empty()) {
      parts_.copy(whole.wide, whole.region, part.wide, part.region);
    } else {
      parts_.copy(whole.data, whole.region, part.data, part.region);
    }
  }

  void put(const Value<T>&, const Value<T>&, bool, model::Combine) override {
    throw BrokenPromise("plans that join parts of tensors are refused for GPUs");
  }

  bool finite(const Value<T>& value) override {
    kernels::fill_bytes(stream_, found_.data(), 0, 1);
    if (!value.wide.empty()) {
      kernels::find_not_finite<float>(stream_, on_gpu(value.wide), found_);
    } else {
      kernels::find_not_finite<T>(stream_, on_gpu(value.data), found_);
    }
    std::int8_t found = 0;
    kernels::copy_bytes(stream_, found_.data(), &found, 1);
    stream_.synchronise();
    return found == 0;
  }

  Shared<Host> on_host(const Shared<T>& value) override {
    Shared<Host> result = execute::zeros<Host>(value->region);
    pack(*value, value->region, result->data.data());
    return result;
  }

  Shared<T> from_host(const Shared<Host>& value, List list) override {
    const bool tokens = !value->numbers.empty();
    auto result = std::make_shared<Value<T>>();
    if (tokens) {
      result->region = value->region;
      result->numbers = notes_.uploaded(value->numbers, *pool_);
    } else {
      const auto size = static_cast<std::size_t>(value->region.size());
      result = value_in<T>(pool_->take(bytes_of<T>(list, size)), list, value->region);
      if (size > 0)
        parts_.give(on_gpu(notes_.uploaded(value->data, *pool_)), value->region, *result, false);
    }
    return result;
  }

  void note(const Value<T>& value, double weight, std::size_t sum) override {
    notes_.note(value, weight, sum);
  }
  std::vector<double> noted(std::size_t sums) override { return notes_.noted(sums); }

  std::span<Host> open(const Value<T>& value, std::vector<Host>& room) override {
    const std::span<Host> message = place(value, room);
    pack(value, value.region, message.data());
    return message;
  }

  std::span<Host> place(const Value<T>& value, std::vector<Host>& room) override {
    const auto size = static_cast<std::size_t>(value.region.size());
    if (room.size() < size) room.resize(size);
    return std::span<Host>(room).first(size);
  }

  void close(std::span<const Host> message, const Value<T>& value) override {
    unpack(message.data(), value.region, value, false);
  }

  void pack(const Value<T>& whole, const Region& region, Host* to) override {
    expects(whole.bytes.empty(), "only numbers are exchanged");
    if (region.size() == 0) return;
    const Elements<float> staged = staging(region);
    parts_.take(whole, region, on_gpu(staged));
    kernels::copy_bytes(stream_, staged.data(), to, staged.size() * sizeof(float));
    stream_.synchronise();
  }

  void unpack(const Host* from, const Region& region, const Value<T>& whole, bool adds) override {
    expects(whole.bytes.empty(), "only numbers are exchanged");
    if (region.size() == 0) return;
    const Elements<float> staged = staging(region);
    kernels::copy_bytes(stream_, from, staged.data(), staged.size() * sizeof(float));
    parts_.give(on_gpu(staged), region, whole, adds);
    stream_.synchronise();  // where it came from may be written to again
  }

  std::unique_ptr<Post<T>> post(kernels::Communicator& group, Packing<T>& packing) override {
    if (!nccl_ || group.size() == 1) return Engine<T>::post(group, packing);
    return std::make_unique<gpu::DevicePost<T>>(stream_, rooms_,
                                                kernels::nccl_communicator(group, stream_, *nccl_));
  }

  void apply(const Application<T>& application) override {
    gpu::apply(gpu::Work<T>{application, stream_, *this});
  }

  void step(const Step<T>& step) override {
    if constexpr (std::is_same_v<T, Host>) {
      kernels::adam<T>(stream_, step.settings, on_gpu(step.gradient), on_gpu(step.parameter),
                       on_gpu(step.momentum), on_gpu(step.variance));
    } else {
      const DeviceOut<float> main = on_gpu(step.main);
      const DeviceOut<T> working = on_gpu(step.parameter);
      if (step.first) kernels::cast<T, float>(stream_, working, main);
      kernels::adam<T>(stream_, step.settings, on_gpu(step.gradient), main, on_gpu(step.momentum),
                       on_gpu(step.variance));
      kernels::cast<float, T>(stream_, main, working);
    }
  }

  void start(Recording& recording, std::size_t tasks) override { clock_.start(recording, tasks); }
  void begin(Recording& /*recording*/, std::size_t task) override { clock_.begin(task); }
  void end(Recording& /*recording*/, std::size_t task) override { clock_.end(task); }
  void finish(Recording& recording) override { clock_.finish(recording); }

 private:
  /// A message on its way, in fp32.
  Elements<float> staging(const Region& region) {
    const auto size = static_cast<std::size_t>(region.size());
    return Elements<float>(pool_->take(size * sizeof(float)), size);
  }

  kernels::Stream stream_;
  std::optional<kernels::GivingUp> nccl_;  ///< none: messages go through the host
  std::shared_ptr<gpu::Pool> pool_ = std::make_shared<gpu::Pool>();
  gpu::Parts parts_{stream_};
  gpu::Notes notes_{stream_};
  gpu::Clock clock_{stream_};
  gpu::Rooms rooms_{{pool_}, {pool_}};
  kernels::DeviceArray<std::int8_t> found_;  ///< of `finite`
};

}  // namespace

template <typename T>
std::unique_ptr<Engine<T>> gpu_engine(int device, const std::optional<kernels::GivingUp>& nccl) {
  return std::make_unique<GpuEngine<T>>(device, nccl);
}

std::string nccl_found() {
  try {
    return "NCCL " + kernels::nccl_version();
  } catch (const kernels::DeviceError&) {
    return "";
  }
}

Bytes gpu_memory_available(int device) { return kernels::memory_available(device); }

template std::unique_ptr<Engine<float>> gpu_engine<float>(int,
                                                          const std::optional<kernels::GivingUp>&);
template std::unique_ptr<Engine<kernels::Half>> gpu_engine<kernels::Half>(
    int, const std::optional<kernels::GivingUp>&);
template std::unique_ptr<Engine<kernels::BFloat16>> gpu_engine<kernels::BFloat16>(
    int, const std::optional<kernels::GivingUp>&);

}  // namespace stratagem::execute
