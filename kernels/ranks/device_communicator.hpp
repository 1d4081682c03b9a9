// Collectives between ranks that have a GPU each, of what lies in their GPUs' memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/device.hpp"
#include "kernels/half.hpp"
#include "kernels/ranks/communicator.hpp"

namespace stratagem::kernels {

/// What a message between GPUs consists of; bytes are moved, never reduced.
enum class DeviceElement : std::uint8_t { byte, fp16, bf16, fp32, fp64 };

template <typename T>
concept DeviceSendable = std::is_same_v<std::remove_const_t<T>, Half> ||
    std::is_same_v<std::remove_const_t<T>, BFloat16> || Sendable<T>;
template <typename T>
concept DeviceReducible = DeviceSendable<T> && !std::is_same_v<std::remove_const_t<T>, std::byte>;

template <DeviceSendable T>
constexpr DeviceElement device_element_of =
    std::is_same_v<std::remove_const_t<T>, Half>       ? DeviceElement::fp16
    : std::is_same_v<std::remove_const_t<T>, BFloat16> ? DeviceElement::bf16
    : std::is_same_v<std::remove_const_t<T>, float>    ? DeviceElement::fp32
    : std::is_same_v<std::remove_const_t<T>, double>   ? DeviceElement::fp64
                                                       : DeviceElement::byte;

constexpr std::size_t size_of(DeviceElement element) {
  switch (element) {
    case DeviceElement::byte:
      return 1;
    case DeviceElement::fp16:
    case DeviceElement::bf16:
      return 2;
    case DeviceElement::fp32:
      return 4;
    default:
      return 8;
  }
}

/// A GPU's memory without its type, as implementations see it.
struct DeviceSource {
  const void* data = nullptr;
  std::size_t count = 0;
  DeviceElement element = DeviceElement::byte;
};
struct DeviceTarget {
  void* data = nullptr;
  std::size_t count = 0;
  DeviceElement element = DeviceElement::byte;
};

template <DeviceSendable T>
DeviceSource source(DeviceSpan<T> values) {
  return {values.data(), values.size(), device_element_of<T>};
}
template <DeviceSendable T>
DeviceTarget target(DeviceSpan<T> values) {
  return {values.data(), values.size(), device_element_of<T>};
}

/// A message to or from a rank of the group; of two ranks the first sent is the first received.
struct DeviceSent {
  int to = 0;
  DeviceSource values;
};
struct DeviceReceived {
  int from = 0;
  DeviceTarget values;  ///< as large as what is sent
};

/// An ordered group of ranks with a GPU each: the sibling of Communicator for device memory.
///
/// It is an interface of its own, not an implementation of that one, for two reasons. Operands are
/// DeviceSpans, so that the compiler refuses host memory here and device memory there: a pointer
/// tells neither, and mistaking one for the other is a crash at best. And an operation here is only
/// asked for: it goes into a stream behind what is there, and what it reads may not have been
/// computed when the call returns, where Communicator's operations are done when they return.
///
/// All ranks of a group ask for the same operations in the same order, with operands of equal
/// sizes. Those of one group are done one after the other, also on several streams; operands must
/// live, and be left alone, until they are. Operands of an operation do not overlap. Sizes that do
/// not fit each other meet BrokenPromise.
///
/// Ranks that cannot meet, because one has died, does not come or its GPU fails, meet
/// CommunicationError, which names the operation, the group and, where it is known, the rank: in
/// the call that asks, or in `wait`. After it no operation of this group is possible. One thread of
/// a process calls.
class DeviceCommunicator {
 public:
  DeviceCommunicator() = default;
  DeviceCommunicator(const DeviceCommunicator&) = delete;
  DeviceCommunicator& operator=(const DeviceCommunicator&) = delete;
  /// All ranks of the group destroy it, groups that share ranks in the same order.
  virtual ~DeviceCommunicator() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// As Communicator::group: the ranks of this group in this order, called by those and no others.
  [[nodiscard]] virtual std::unique_ptr<DeviceCommunicator> group(
      const std::vector<int>& ranks) = 0;

  /// Returns when all that the stream was asked for is done. In place of Stream::synchronise, which
  /// would wait for a rank that has died for ever.
  virtual void wait(const Stream& stream) = 0;

  /// What the stream is asked for next begins when the streams of all ranks have come here. The
  /// host does not wait.
  virtual void barrier(const Stream& stream) = 0;

  /// Every rank's values become the sum or maximum over ranks, (n) -> (n). The order of additions
  /// is the library's, and so is the precision of partial sums of fp16 and bf16.
  template <DeviceReducible T>
  void all_reduce(const Stream& stream, Reduction reduction, DeviceSpan<T> values) {
    do_all_reduce(stream, reduction, target(values));
  }

  /// The parts of all ranks in the order of ranks, (n) -> (ranks, n).
  template <DeviceSendable T>
  void all_gather(const Stream& stream, DeviceIn<T> part, DeviceSpan<T> whole) {
    expects(whole.size() == part.size() * count(), "a gather has room for every rank's part");
    do_all_gather(stream, source(part), target(whole));
  }

  /// Part r of the reduced values for rank r, (ranks, n) -> (n).
  template <DeviceReducible T>
  void reduce_scatter(const Stream& stream, Reduction reduction, DeviceIn<T> whole,
                      DeviceSpan<T> part) {
    expects(whole.size() == part.size() * count(), "a reduction has a part for every rank");
    do_reduce_scatter(stream, reduction, source(whole), target(part));
  }

  /// The values of rank `root` for all, (n) -> (n).
  template <DeviceSendable T>
  void broadcast(const Stream& stream, int root, DeviceSpan<T> values) {
    expects(is_rank(root), "a root is a rank of the group");
    do_broadcast(stream, root, target(values));
  }

  /// The values of rank `root` become the sum or maximum over ranks; those of others stay.
  template <DeviceReducible T>
  void reduce(const Stream& stream, Reduction reduction, int root, DeviceSpan<T> values) {
    expects(is_rank(root), "a root is a rank of the group");
    do_reduce(stream, reduction, root, target(values));
  }

  /// Part r of `out` goes to rank r, whose part arrives as part r of `in`, (ranks, n) -> (ranks,
  /// n).
  template <DeviceSendable T>
  void all_to_all(const Stream& stream, DeviceIn<T> out, DeviceSpan<T> in) {
    expects(out.size() == in.size() && out.size() % count() == 0,
            "an exchange has equal parts for all ranks, in and out");
    do_all_to_all(stream, source(out), target(in));
  }

  /// Messages, all at once: none waits for another. A rank may send to itself, and then receives
  /// from itself in the same call.
  void exchange(const Stream& stream, const std::vector<DeviceSent>& sent,
                const std::vector<DeviceReceived>& received) {
    for (const DeviceSent& message : sent) expects(is_rank(message.to), "ranks send to ranks");
    for (const DeviceReceived& message : received)
      expects(is_rank(message.from), "ranks receive from ranks");
    do_exchange(stream, sent, received);
  }
  /// Two ranks that both send first wait for each other: use `exchange` there.
  template <DeviceSendable T>
  void send(const Stream& stream, int to, DeviceSpan<T> values) {
    exchange(stream, {{.to = to, .values = source(values)}}, {});
  }
  template <DeviceSendable T>
  void receive(const Stream& stream, int from, DeviceSpan<T> values) {
    exchange(stream, {}, {{.from = from, .values = target(values)}});
  }

 protected:
  virtual void do_all_reduce(const Stream& stream, Reduction reduction, DeviceTarget values) = 0;
  virtual void do_all_gather(const Stream& stream, DeviceSource part, DeviceTarget whole) = 0;
  virtual void do_reduce_scatter(const Stream& stream, Reduction reduction, DeviceSource whole,
                                 DeviceTarget part) = 0;
  virtual void do_broadcast(const Stream& stream, int root, DeviceTarget values) = 0;
  virtual void do_reduce(const Stream& stream, Reduction reduction, int root,
                         DeviceTarget values) = 0;
  virtual void do_all_to_all(const Stream& stream, DeviceSource out, DeviceTarget in) = 0;
  virtual void do_exchange(const Stream& stream, const std::vector<DeviceSent>& sent,
                           const std::vector<DeviceReceived>& received) = 0;

 private:
  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(size()); }
  [[nodiscard]] bool is_rank(int rank) const { return rank >= 0 && rank < size(); }
};

}  // namespace stratagem::kernels
