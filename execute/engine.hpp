// The interface to the machine that holds and computes a rank's values.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/input_error.hpp"
#include "execute/operators/application.hpp"
#include "execute/post.hpp"
#include "execute/recording.hpp"
#include "execute/value.hpp"
#include "kernels/adam.hpp"

namespace stratagem::execute {

/// What the optimizer reads and writes of a parameter.
template <typename T>
struct Step {
  kernels::Adam settings;
  std::span<T> gradient, parameter;
  std::span<OnHost<T>> momentum, variance;
  std::span<OnHost<T>> main;  ///< of which the parameter is the rounded copy; empty where T is wide
  bool first = false;         ///< `main` has nothing yet: it begins as the parameter
};

/// One rank's processor, or its GPU. Work is done in the order in which it was asked for; a GPU
/// does it later, so that whatever goes wrong may be thrown by any later call, by `finish` at the
/// latest. Values that an engine is given lie where it computes, unless they are said to lie on the
/// host.
template <typename T>
class Engine {
 public:
  using Host = OnHost<T>;

  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;

  /// Begins at a multiple of 64 bytes, with whatever lies there; may outlive the engine. Throws
  /// std::bad_alloc, or a GPU's kernels::DeviceOutOfMemory.
  virtual Memory allocate(std::size_t bytes) = 0;
  virtual void clear(void* memory, std::size_t bytes) = 0;

  /// Between values of one size in lists of one kind. `from` and `to` may be the same place.
  virtual void copy(const Value<T>& from, const Value<T>& to) = 0;
  virtual void add(const Value<T>& from, const Value<T>& to) = 0;
  /// What the region of `part` shows of the whole, which has all of it.
  virtual void copy_part(const Value<T>& whole, const Value<T>& part) = 0;
  /// Writes a part to where it lies in a whole that contains it, or adds it there, or keeps the
  /// larger of both. Expects numbers.
  virtual void put(const Value<T>& part, const Value<T>& whole, bool adds,
                   model::Combine combine) = 0;
  /// Is every element a number?
  virtual bool finite(const Value<T>& value) = 0;

  /// The value for the host to look at, once it has been computed: itself if it lies there.
  virtual Shared<Host> on_host(const Shared<T>& value) = 0;
  /// What lies on the host, to be computed with: itself likewise. `wide` numbers stay so.
  virtual Shared<T> from_host(const Shared<Host>& value, List list) = 0;
  /// Adds `weight` times the sum of a value, as it is now, to one of several sums.
  virtual void note(const Value<T>& value, double weight, std::size_t sum) = 0;
  /// So many of those sums, which begin anew, after all that was asked for is done.
  virtual std::vector<double> noted(std::size_t sums) = 0;

  /// What moves the messages of a group's collectives, here or on the host. All ranks of the group
  /// ask for it alike; `group` and `packing` outlive it, and so does the engine.
  virtual std::unique_ptr<Post<T>> post(kernels::Communicator& group, Packing<T>& packing);

  // Messages that lie on the host while they are moved.
  /// A value's numbers as a message that may be written to: where they lie, if that is on the host
  /// and in its type, else copied to `room`, which grows if it must.
  virtual std::span<Host> open(const Value<T>& value, std::vector<Host>& room) = 0;
  /// The same place with whatever lies there, to receive the value in.
  virtual std::span<Host> place(const Value<T>& value, std::vector<Host>& room) = 0;
  /// Writes what is in such a place to the value, if it is not its own.
  virtual void close(std::span<const Host> message, const Value<T>& value) = 0;
  /// Copies a region that a whole contains to where it lies in a message.
  virtual void pack(const Value<T>& whole, const Region& region, Host* to) = 0;
  /// And back, or adds it to what is there.
  virtual void unpack(const Host* from, const Region& region, const Value<T>& whole, bool adds) = 0;

  virtual void apply(const Application<T>& application) = 0;
  virtual void step(const Step<T>& step) = 0;

  /// The clock of tasks, which a GPU has for itself: its times are there after `finish`.
  virtual void start(Recording& recording, std::size_t tasks) = 0;
  virtual void begin(Recording& recording, std::size_t task) = 0;
  virtual void end(Recording& recording, std::size_t task) = 0;
  /// Waits until all is done.
  virtual void finish(Recording& recording) = 0;
};

/// A value of zeros where an engine computes.
template <typename T>
Shared<T> zeros(Engine<T>& engine, List list, Region region) {
  const std::size_t bytes = bytes_of<T>(list, static_cast<std::size_t>(region.size()));
  const Memory memory = engine.allocate(bytes);
  engine.clear(memory.get(), bytes);
  return value_in<T>(memory, list, std::move(region));
}

template <typename T>
void clear(Engine<T>& engine, const Value<T>& value) {
  with_list(value, [&](const auto& list) {
    engine.clear(list.data(), list.size() * sizeof(*list.data()));
  });
}

/// The part of a value: itself, if it is all. Expects that it shows it.
template <typename T>
Shared<T> view(Engine<T>& engine, const Shared<T>& whole, const Region& part) {
  if (whole->region == part) return whole;
  expects(shows(whole->region, part), "what a task reads is here");
  const bool mask = !whole->bytes.empty();
  const List list = mask ? List::bytes : (whole->wide.empty() ? List::data : List::wide);
  const Shared<T> result = zeros(engine, list, part);
  const placement::ValuePart& from = whole->region.mask.value;
  const placement::ValuePart& to = part.mask.value;
  const bool first = to.index % (to.count / from.count) == 0;
  if (mask || first) engine.copy_part(*whole, *result);
  return result;
}

/// Messages lie on the host, where an engine packs them, and a communicator of hosts moves them.
template <typename T>
class HostPost final : public Post<T> {
 public:
  using Host = OnHost<T>;
  using Message = std::span<Host>;
  using Sent = std::span<const Host>;

  /// All of which outlive it.
  HostPost(Engine<T>& engine, kernels::Communicator& group, Packing<T>& packing)
      : engine_(engine), group_(group), packing_(packing) {}

  [[nodiscard]] int rank() const override { return group_.rank(); }
  [[nodiscard]] int size() const override { return group_.size(); }
  Message room_out(std::size_t elements) override { return room(packing_.out, elements); }
  Message room_in(std::size_t elements) override { return room(packing_.in, elements); }
  Message open(const Value<T>& value) override { return engine_.open(value, packing_.out); }
  Message place(const Value<T>& value) override { return engine_.place(value, packing_.in); }
  void close(Sent message, const Value<T>& value) override { engine_.close(message, value); }
  void pack(const Value<T>& whole, const Region& region, Host* to) override {
    engine_.pack(whole, region, to);
  }
  void unpack(const Host* from, const Region& region, const Value<T>& whole, bool adds) override {
    engine_.unpack(from, region, whole, adds);
  }
  void all_reduce(kernels::Reduction reduction, Message values) override {
    group_.all_reduce(reduction, values);
  }
  void reduce_scatter(kernels::Reduction reduction, Sent whole, Message part) override {
    group_.reduce_scatter(reduction, whole, part);
  }
  void all_gather(Sent part, Message whole) override { group_.all_gather(part, whole); }
  void all_to_all(Sent out, Message in) override { group_.all_to_all(out, in); }

 private:
  static Message room(std::vector<Host>& list, std::size_t elements) {
    if (list.size() < elements) list.resize(elements);
    return Message(list).first(elements);
  }

  Engine<T>& engine_;
  kernels::Communicator& group_;
  Packing<T>& packing_;
};

template <typename T>
std::unique_ptr<Post<T>> Engine<T>::post(kernels::Communicator& group, Packing<T>& packing) {
  return std::make_unique<HostPost<T>>(*this, group, packing);
}

}  // namespace stratagem::execute
