// Messages that leave and arrive beside what a rank computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/input_error.hpp"
#include "execute/engine.hpp"
#include "kernels/ranks/communicator.hpp"

namespace stratagem::execute {

/// Of one rank. What leaves is a copy, since its buffer may be freed before; copies are kept until
/// `finish`, or a `settle` that is late enough.
template <typename T>
class Messages {
 public:
  using Host = OnHost<T>;
  explicit Messages(Engine<T>& engine) : engine_(engine) {}

  /// To the second rank of a pair, or to all but the first of a larger group.
  void send(kernels::Communicator& group, const Value<T>& value) {
    expects(value.region.size() > 0, "messages are not empty");
    Leaving& message = leaving_.back().emplace_back();
    message.bytes.assign(value.bytes.begin(), value.bytes.end());
    kernels::Source source = kernels::source(std::as_bytes(std::span(message.bytes)));
    if (value.bytes.empty()) {
      message.values.resize(static_cast<std::size_t>(value.region.size()));
      engine_.pack(value, value.region, message.values.data());
      source = kernels::source(std::span<const Host>(message.values));
    }
    std::vector<kernels::Sent> sent;
    for (int to = 1; to < group.size(); ++to) sent.push_back({.to = to, .values = source});
    message.pending = group.start(sent, {});
  }

  /// From the first rank of a group, into a value, by a task.
  void receive(kernels::Communicator& group, const Shared<T>& value, std::size_t task) {
    Arriving& message = arriving_[value.get()];
    message.value = value;
    message.task = task;
    const bool numbers = value->bytes.empty();
    if (numbers) message.place = engine_.place(*value, message.room);
    const kernels::Target target = numbers ? kernels::target(message.place)
                                           : kernels::target(std::as_writable_bytes(std::span(
                                                 value->bytes.data(), value->bytes.size())));
    message.pending = group.start({}, {{.from = 0, .values = target}});
  }

  /// Waits for a value, if it is a message that has not arrived; by which task it was to come.
  std::optional<std::size_t> arrive(const Value<T>* value) {
    const auto found = arriving_.find(value);
    if (found == arriving_.end()) return {};
    const std::size_t task = found->second.task;
    found->second.pending->wait();
    if (value->bytes.empty()) engine_.close(found->second.place, *value);
    arriving_.erase(found);
    return task;
  }

  /// A round of the program is over: waits for what left more than so many rounds before it.
  void settle(std::size_t rounds) {
    for (; leaving_.size() > rounds; leaving_.pop_front()) {
      for (Leaving& message : leaving_.front()) message.pending->wait();
    }
    leaving_.emplace_back();
  }

  /// Waits for all of them; returns the tasks of those that nobody has asked for.
  std::vector<std::size_t> finish() {
    settle(0);
    std::vector<std::size_t> tasks;
    while (!arriving_.empty()) tasks.push_back(*arrive(arriving_.begin()->first));
    return tasks;
  }

 private:
  struct Leaving {
    std::vector<Host> values;
    std::vector<std::int8_t> bytes;             ///< of masks, in place of numbers
    std::unique_ptr<kernels::Pending> pending;  ///< gone before what it carries
  };
  struct Arriving {
    Shared<T> value;
    std::vector<Host> room;  ///< where an engine needs some
    std::span<Host> place;
    std::unique_ptr<kernels::Pending> pending;
    std::size_t task = 0;
  };
  Engine<T>& engine_;
  std::deque<std::vector<Leaving>> leaving_{1};  ///< by round, the last one goes on
  std::map<const Value<T>*, Arriving> arriving_;
};

}  // namespace stratagem::execute
