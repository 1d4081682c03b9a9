// Collectives whose messages stay on GPUs.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "base/input_error.hpp"
#include "execute/gpu/parts.hpp"
#include "execute/gpu/pool.hpp"
#include "execute/post.hpp"
#include "kernels/ranks/nccl_communicator.hpp"

namespace stratagem::execute::gpu {

/// For a message at a time.
struct Room {
  std::shared_ptr<Pool> pool;
  Memory memory = {};
  std::size_t size = 0;

  std::span<float> of(std::size_t elements) {
    if (size < elements) {
      memory.reset();
      memory = pool->take(elements * sizeof(float));
      size = elements;
    }
    return {reinterpret_cast<float*>(memory.get()), elements};
  }
};

/// For messages of all groups, since one is moved at a time.
struct Rooms {
  Room out, in;
};

template <typename T>
class DevicePost final : public Post<T> {
 public:
  using Message = std::span<float>;
  using Sent = std::span<const float>;

  /// The stream and the rooms outlive it.
  DevicePost(const kernels::Stream& stream, Rooms& rooms,
             std::unique_ptr<kernels::DeviceCommunicator> group)
      : stream_(stream), parts_(stream), rooms_(rooms), group_(std::move(group)) {}

  [[nodiscard]] int rank() const override { return group_->rank(); }
  [[nodiscard]] int size() const override { return group_->size(); }
  Message room_out(std::size_t elements) override { return rooms_.out.of(elements); }
  Message room_in(std::size_t elements) override { return rooms_.in.of(elements); }

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
    if (region.size() > 0) parts_.take(whole, region, {to, elements(region)});
  }
  void unpack(const float* from, const Region& region, const Value<T>& whole, bool adds) override {
    expects(whole.bytes.empty(), "only numbers are exchanged");
    if (region.size() > 0) parts_.give({from, elements(region)}, region, whole, adds);
  }

  void all_reduce(kernels::Reduction reduction, Message values) override {
    group_->all_reduce(stream_, reduction, on_gpu(values));
    group_->wait(stream_);
  }
  void reduce_scatter(kernels::Reduction reduction, Sent whole, Message part) override {
    group_->reduce_scatter(stream_, reduction, sent(whole), on_gpu(part));
    group_->wait(stream_);
  }
  void all_gather(Sent part, Message whole) override {
    group_->all_gather(stream_, sent(part), on_gpu(whole));
    group_->wait(stream_);
  }
  void all_to_all(Sent out, Message in) override {
    group_->all_to_all(stream_, sent(out), on_gpu(in));
    group_->wait(stream_);
  }

 private:
  static std::size_t elements(const Region& region) {
    return static_cast<std::size_t>(region.size());
  }
  static kernels::DeviceIn<float> sent(Sent values) { return {values.data(), values.size()}; }
  /// Where numbers in fp32 lie; empty for others.
  static Message own_place(const Value<T>& value) {
    expects(value.bytes.empty(), "only numbers are exchanged");
    if (!value.wide.empty()) return {value.wide.data(), value.wide.size()};
    if constexpr (std::is_same_v<T, float>) return {value.data.data(), value.data.size()};
    return {};
  }

  const kernels::Stream& stream_;
  Parts parts_;
  Rooms& rooms_;
  std::unique_ptr<kernels::DeviceCommunicator> group_;
};

}  // namespace stratagem::execute::gpu
