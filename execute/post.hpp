// Moves the packed messages of a collective between ranks: by NCCL between GPUs, or through the
// host.
#pragma once

#include <span>
#include <vector>

#include "execute/value.hpp"
#include "kernels/ranks/communicator.hpp"

namespace stratagem::execute {

/// Memory that exchanges pack their messages in, kept from one to the next.
template <typename T>
struct Packing {
  std::vector<OnHost<T>> out, in;
};

/// Of one group. Spans are where the post has its messages, which need not be memory of the host:
/// only the post looks into them. What it has moved has arrived when the call returns.
template <typename T>
class Post {
 public:
  using Host = OnHost<T>;
  using Message = std::span<Host>;
  using Sent = std::span<const Host>;

  Post() = default;
  Post(const Post&) = delete;
  Post& operator=(const Post&) = delete;
  virtual ~Post() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// Room for a message that leaves, or for one that arrives: one of each at a time.
  virtual Message room_out(std::size_t elements) = 0;
  virtual Message room_in(std::size_t elements) = 0;
  /// A value's numbers as a message that may be written to: where they lie, if they lie where
  /// messages do and in their type, else a copy in the room of what leaves.
  virtual Message open(const Value<T>& value) = 0;
  /// The same place, or the room of what arrives, with whatever lies there.
  virtual Message place(const Value<T>& value) = 0;
  /// Writes what is in such a place to the value, if it is not its own.
  virtual void close(Sent message, const Value<T>& value) = 0;
  /// Copies a region that a whole contains to where it lies in a message.
  virtual void pack(const Value<T>& whole, const Region& region, Host* to) = 0;
  /// And back, or adds it to what is there.
  virtual void unpack(const Host* from, const Region& region, const Value<T>& whole, bool adds) = 0;

  // As the operations of kernels::Communicator.
  virtual void all_reduce(kernels::Reduction reduction, Message values) = 0;
  virtual void reduce_scatter(kernels::Reduction reduction, Sent whole, Message part) = 0;
  virtual void all_gather(Sent part, Message whole) = 0;
  virtual void all_to_all(Sent out, Message in) = 0;
};

}  // namespace stratagem::execute
