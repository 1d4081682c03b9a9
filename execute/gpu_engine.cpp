// Copies, messages and times of values in the memory of a GPU.
#include "execute/gpu_engine.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "base/input_error.hpp"
#include "execute/gpu/operators.hpp"
#include "execute/gpu/pool.hpp"
#include "kernels/device.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/finite.hpp"
#include "kernels/strided.hpp"

namespace stratagem::execute {
namespace {

using kernels::DeviceIn;
using kernels::DeviceOut;

template <typename E>
DeviceOut<E> on_gpu(const Elements<E>& elements) {
  return {elements.data(), elements.size()};
}
template <typename E>
DeviceOut<E> on_gpu(std::span<E> elements) {
  return {elements.data(), elements.size()};
}

/// Where a region lies in a whole that contains it: `shape` goes from the whole to the region, one
/// element behind the other, from element `first` of the whole on.
struct Within {
  kernels::Strided shape;
  std::int64_t first = 0;
};

Within within(const Region& whole, const Region& region) {
  if (region.mask.ranges == whole.mask.ranges || region.size() == 0)
    return {.shape = {.sizes = {region.size()}, .from = {1}, .to = {1}},
            .first = region.size() == 0 ? 0 : region.begin - whole.begin};
  const std::vector<std::int64_t> sizes = region.shape(), all = whole.shape();
  Within result{.shape = {.sizes = sizes, .from = sizes, .to = sizes}};
  std::int64_t from = 1, to = 1;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    result.shape.from[d] = from;
    result.shape.to[d] = to;
    result.first += (region.mask.ranges[d].begin - whole.mask.ranges[d].begin) * from;
    from *= all[d];
    to *= sizes[d];
  }
  return result;
}

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
      copy_within(whole.bytes, whole.region, part.bytes, part.region);
    } else if (!part.wide.empty()) {
      copy_within(whole.wide, whole.region, part.wide, part.region);
    } else {
      copy_within(whole.data, whole.region, part.data, part.region);
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
      result->numbers = uploaded(value->numbers);
    } else {
      const auto size = static_cast<std::size_t>(value->region.size());
      result = value_in<T>(pool_->take(bytes_of<T>(list, size)), list, value->region);
      if (size > 0) give(on_gpu(uploaded(value->data)), value->region, *result, false);
    }
    return result;
  }

  void note(const Value<T>& value, double weight, std::size_t sum) override {
    const auto size = static_cast<std::size_t>(value.region.size());
    float* const seen = pinned<float>(size);
    notes_.push_back({.values = {seen, size}, .weight = weight, .sum = sum});
    kernels::copy_bytes(stream_, place_of(value), seen, size * sizeof(float));
  }

  std::vector<double> noted(std::size_t sums) override {
    stream_.synchronise();
    std::vector<double> result(sums);
    for (const Note& note : notes_) {
      for (const float number : note.values)
        result[note.sum] += static_cast<double>(number) * note.weight;
    }
    notes_.clear();
    pinned_used_ = 0;
    return result;
  }

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
    take(whole, region, on_gpu(staged));
    kernels::copy_bytes(stream_, staged.data(), to, staged.size() * sizeof(float));
    stream_.synchronise();
  }

  void unpack(const Host* from, const Region& region, const Value<T>& whole, bool adds) override {
    expects(whole.bytes.empty(), "only numbers are exchanged");
    if (region.size() == 0) return;
    const Elements<float> staged = staging(region);
    kernels::copy_bytes(stream_, from, staged.data(), staged.size() * sizeof(float));
    give(on_gpu(staged), region, whole, adds);
    stream_.synchronise();  // where it came from may be written to again
  }

  std::unique_ptr<Post<T>> post(kernels::Communicator& group, Packing<T>& packing) override {
    if (!nccl_ || group.size() == 1) return Engine<T>::post(group, packing);
    return std::make_unique<DevicePost>(*this, kernels::nccl_communicator(group, stream_, *nccl_));
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

  void start(Recording& recording, std::size_t tasks) override {
    while (events_.size() < 2 * tasks) events_.emplace_back();
    tasks_ = tasks;
    stream_.synchronise();
    recording.start(tasks);
    first_.record(stream_);
  }
  void begin(Recording& /*recording*/, std::size_t task) override {
    events_[2 * task].record(stream_);
  }
  void end(Recording& /*recording*/, std::size_t task) override {
    events_[2 * task + 1].record(stream_);
  }
  void finish(Recording& recording) override {
    stream_.synchronise();
    for (std::size_t task = 0; task < tasks_; ++task)
      recording.set(task, events_[2 * task].since(first_).value,
                    events_[2 * task + 1].since(first_).value);
  }

 private:
  struct Note {
    std::span<const float> values;  ///< on the host once the stream has come so far
    double weight = 0;
    std::size_t sum = 0;
  };

  /// Memory of the host until `noted`, which a GPU reads and writes while the host goes on.
  template <typename E>
  E* pinned(std::size_t size) {
    if (pinned_used_ == pinned_.size()) pinned_.emplace_back();
    kernels::PinnedArray<std::byte>& place = pinned_[pinned_used_++];
    const std::size_t bytes = size * sizeof(E);
    if (place.size() < bytes) place = kernels::PinnedArray<std::byte>(bytes);
    return reinterpret_cast<E*>(place.data());
  }

  /// What lies on the host, which may go once this returns.
  template <typename E>
  Elements<E> uploaded(const Elements<E>& values) {
    E* const leaving = pinned<E>(values.size());
    std::ranges::copy(values, leaving);
    const std::size_t bytes = values.size() * sizeof(E);
    Elements<E> result(pool_->take(bytes), values.size());
    kernels::copy_bytes(stream_, leaving, result.data(), bytes);
    return result;
  }

  template <typename E>
  static DeviceOut<E> from(const Elements<E>& all, std::int64_t first) {
    const auto begin = static_cast<std::size_t>(first);
    return on_gpu(all).subspan(begin, all.size() - begin);
  }

  template <typename E>
  void copy_within(const Elements<E>& all, const Region& whole, const Elements<E>& part,
                   const Region& region) {
    const auto [shape, first] = within(whole, region);
    kernels::copy_strided<E, E>(stream_, shape, false, from(all, first), on_gpu(part));
  }

  /// A region of a whole, one element behind the other.
  void take(const Value<T>& whole, const Region& region, DeviceOut<float> to) {
    const auto [shape, first] = within(whole.region, region);
    if (!whole.wide.empty()) {
      kernels::copy_strided<float, float>(stream_, shape, false, from(whole.wide, first), to);
    } else {
      kernels::copy_strided<T, float>(stream_, shape, false, from(whole.data, first), to);
    }
  }

  /// And back into the whole.
  void give(DeviceIn<float> taken, const Region& region, const Value<T>& whole, bool adds) {
    const auto [shape, first] = within(whole.region, region);
    const kernels::Strided back{.sizes = shape.sizes, .from = shape.to, .to = shape.from};
    if (!whole.wide.empty()) {
      kernels::copy_strided<float, float>(stream_, back, adds, taken, from(whole.wide, first));
    } else {
      kernels::copy_strided<float, T>(stream_, back, adds, taken, from(whole.data, first));
    }
  }

  /// A message on its way, in fp32.
  Elements<float> staging(const Region& region) {
    const auto size = static_cast<std::size_t>(region.size());
    return Elements<float>(pool_->take(size * sizeof(float)), size);
  }

  /// Collectives whose messages stay on GPUs.
  class DevicePost final : public Post<T> {
   public:
    using Message = std::span<float>;
    using Sent = std::span<const float>;

    DevicePost(GpuEngine& engine, std::unique_ptr<kernels::DeviceCommunicator> group)
        : engine_(engine), group_(std::move(group)) {}

    [[nodiscard]] int rank() const override { return group_->rank(); }
    [[nodiscard]] int size() const override { return group_->size(); }
    Message room_out(std::size_t elements) override {
      return engine_.room_out_.of(engine_, elements);
    }
    Message room_in(std::size_t elements) override {
      return engine_.room_in_.of(engine_, elements);
    }

    Message open(const Value<T>& value) override {
      const Message own = own_place(value);
      if (!own.empty() || value.region.size() == 0) return own;
      const Message message = room_out(static_cast<std::size_t>(value.region.size()));
      pack(value, value.region, message.data());
      return message;
    }
    Message place(const Value<T>& value) override {
      const Message own = own_place(value);
      return own.empty() ? room_in(static_cast<std::size_t>(value.region.size())) : own;
    }
    void close(Sent message, const Value<T>& value) override {
      if (message.data() != place_of(value)) unpack(message.data(), value.region, value, false);
    }
    void pack(const Value<T>& whole, const Region& region, float* to) override {
      expects(whole.bytes.empty(), "only numbers are exchanged");
      if (region.size() > 0) engine_.take(whole, region, {to, elements(region)});
    }
    void unpack(const float* from, const Region& region, const Value<T>& whole,
                bool adds) override {
      expects(whole.bytes.empty(), "only numbers are exchanged");
      if (region.size() > 0) engine_.give({from, elements(region)}, region, whole, adds);
    }

    void all_reduce(kernels::Reduction reduction, Message values) override {
      group_->all_reduce(engine_.stream_, reduction, on_gpu(values));
      group_->wait(engine_.stream_);
    }
    void reduce_scatter(kernels::Reduction reduction, Sent whole, Message part) override {
      group_->reduce_scatter(engine_.stream_, reduction, sent(whole), on_gpu(part));
      group_->wait(engine_.stream_);
    }
    void all_gather(Sent part, Message whole) override {
      group_->all_gather(engine_.stream_, sent(part), on_gpu(whole));
      group_->wait(engine_.stream_);
    }
    void all_to_all(Sent out, Message in) override {
      group_->all_to_all(engine_.stream_, sent(out), on_gpu(in));
      group_->wait(engine_.stream_);
    }

   private:
    static std::size_t elements(const Region& region) {
      return static_cast<std::size_t>(region.size());
    }
    static DeviceIn<float> sent(Sent values) { return {values.data(), values.size()}; }
    /// Where numbers in fp32 lie; empty for others.
    static Message own_place(const Value<T>& value) {
      expects(value.bytes.empty(), "only numbers are exchanged");
      if (!value.wide.empty()) return {value.wide.data(), value.wide.size()};
      if constexpr (std::is_same_v<T, float>) return {value.data.data(), value.data.size()};
      return {};
    }

    GpuEngine& engine_;
    std::unique_ptr<kernels::DeviceCommunicator> group_;
  };

  /// For messages of all groups, since one is moved at a time.
  struct Room {
    Memory memory;
    std::size_t size = 0;
    std::span<float> of(GpuEngine& engine, std::size_t elements) {
      if (size < elements) {
        memory.reset();
        memory = engine.allocate(elements * sizeof(float));
        size = elements;
      }
      return {reinterpret_cast<float*>(memory.get()), elements};
    }
  };

  kernels::Stream stream_;
  std::optional<kernels::GivingUp> nccl_;  ///< none: messages go through the host
  std::shared_ptr<gpu::Pool> pool_ = std::make_shared<gpu::Pool>();
  Room room_out_, room_in_;
  kernels::DeviceArray<std::int8_t> found_;  ///< of `finite`
  std::vector<Note> notes_;
  std::vector<kernels::PinnedArray<std::byte>> pinned_;
  std::size_t pinned_used_ = 0;
  kernels::Event first_;
  std::deque<kernels::Event> events_;  ///< begin and end of every task
  std::size_t tasks_ = 0;
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
