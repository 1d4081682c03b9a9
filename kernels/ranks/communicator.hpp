// Collectives between ranks, each of which has a part of the work: processes over MPI, threads, or
// one rank alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/operand.hpp"

namespace stratagem::kernels {

/// Ranks that could not meet: one has died, or did not come in time. what() is one line that names
/// the operation, and the rank where that is known. No collective is possible after it: only
/// World::stop.
struct CommunicationError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Reduction : std::uint8_t { sum, maximum };

/// What a message consists of; bytes are moved, never reduced.
enum class Element : std::uint8_t { byte, fp32, fp64 };

template <typename T>
concept Sendable = std::is_same_v < std::remove_const_t<T>,
float > || std::is_same_v<std::remove_const_t<T>, double> ||
    std::is_same_v<std::remove_const_t<T>, std::byte>;
template <typename T>
concept Reducible = Sendable<T> && !std::is_same_v<std::remove_const_t<T>, std::byte>;

template <Sendable T>
constexpr Element element_of = std::is_same_v<std::remove_const_t<T>, float>    ? Element::fp32
                               : std::is_same_v<std::remove_const_t<T>, double> ? Element::fp64
                                                                                : Element::byte;

constexpr std::size_t size_of(Element element) {
  return element == Element::byte ? 1 : element == Element::fp32 ? sizeof(float) : sizeof(double);
}

/// Memory without its type, as implementations see it.
struct Source {
  const void* data = nullptr;
  std::size_t count = 0;
  Element element = Element::byte;
};
struct Target {
  void* data = nullptr;
  std::size_t count = 0;
  Element element = Element::byte;
};

template <Sendable T>
Source source(std::span<T> values) {
  return {values.data(), values.size(), element_of<T>};
}
template <Sendable T>
Target target(std::span<T> values) {
  return {values.data(), values.size(), element_of<T>};
}

/// A message to or from a rank of the group. Messages between two ranks arrive in the order in
/// which they were started.
struct Sent {
  int to = 0;
  Source values;
};
struct Received {
  int from = 0;
  Target values;  ///< as large as what is sent
};

/// Messages on their way. Their memory must live, and be left alone, until `wait` has returned.
class Pending {
 public:
  Pending() = default;
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  virtual ~Pending() = default;

  /// Returns when all have been taken over or have arrived; at once if called again. To be called
  /// before the object is destroyed.
  virtual void wait() = 0;
};

/// An ordered group of ranks. All ranks of a group call the same operations on it in the same
/// order, with buffers of equal sizes, and an operation returns when this rank's part of it is
/// done. Sizes that do not fit each other meet BrokenPromise; ranks that cannot meet,
/// CommunicationError. One thread of a process calls.
///
/// Buffers are in host memory, contiguous, and do not overlap. An operation has at most 2^31 - 1
/// elements, of a gather or an exchange of all its parts together.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// The ranks of this group in this order, each once: ranks[i] has the rank i in it. Called by
  /// those ranks and no others, so that groups which share no rank can be made at the same time.
  /// Ranks of several groups make them in the same order. Throws BrokenPromise if this rank is not
  /// in the list.
  [[nodiscard]] virtual std::unique_ptr<Communicator> group(const std::vector<int>& ranks) = 0;

  /// Returns when all ranks have come.
  virtual void barrier() = 0;

  /// Every rank's values become the sum or maximum over ranks, (n) -> (n). The order of additions
  /// is MPI's: the same for equal groups and sizes, another one for others.
  template <Reducible T>
  void all_reduce(Reduction reduction, std::span<T> values) {
    do_all_reduce(reduction, target(values));
  }

  /// The parts of all ranks in the order of ranks, (n) -> (ranks, n).
  template <Sendable T>
  void all_gather(In<T> part, std::span<T> whole) {
    expects(whole.size() == part.size() * count(), "a gather has room for every rank's part");
    do_all_gather(source(part), target(whole));
  }

  /// Part r of the reduced values for rank r, (ranks, n) -> (n).
  template <Reducible T>
  void reduce_scatter(Reduction reduction, In<T> whole, std::span<T> part) {
    expects(whole.size() == part.size() * count(), "a reduction has a part for every rank");
    do_reduce_scatter(reduction, source(whole), target(part));
  }

  /// The values of rank `root` for all, (n) -> (n).
  template <Sendable T>
  void broadcast(int root, std::span<T> values) {
    do_broadcast(root, target(values));
  }

  /// The values of rank `root` become the sum or maximum over ranks; those of others stay.
  template <Reducible T>
  void reduce(Reduction reduction, int root, std::span<T> values) {
    do_reduce(reduction, root, target(values));
  }

  /// Part r of `out` goes to rank r, whose part arrives as part r of `in`, (ranks, n) -> (ranks,
  /// n).
  template <Sendable T>
  void all_to_all(In<T> out, std::span<T> in) {
    expects(out.size() == in.size() && out.size() % count() == 0,
            "an exchange has equal parts for all ranks, in and out");
    do_all_to_all(source(out), target(in));
  }

  /// Starts messages, all at once: none waits for another. A rank may send to itself.
  [[nodiscard]] virtual std::unique_ptr<Pending> start(const std::vector<Sent>& sent,
                                                       const std::vector<Received>& received) = 0;

  /// The same until all have been taken over and have arrived.
  void exchange(const std::vector<Sent>& sent, const std::vector<Received>& received) {
    start(sent, received)->wait();
  }
  /// Returns when `values` may be overwritten, which may be before they have arrived or only then:
  /// two ranks that both send first may wait for each other. Use `start` or `exchange` there.
  template <Sendable T>
  void send(int to, std::span<T> values) {
    exchange({{.to = to, .values = source(values)}}, {});
  }
  template <Sendable T>
  void receive(int from, std::span<T> values) {
    exchange({}, {{.from = from, .values = target(values)}});
  }

 protected:
  virtual void do_all_reduce(Reduction reduction, Target values) = 0;
  virtual void do_all_gather(Source part, Target whole) = 0;
  virtual void do_reduce_scatter(Reduction reduction, Source whole, Target part) = 0;
  virtual void do_broadcast(int root, Target values) = 0;
  virtual void do_reduce(Reduction reduction, int root, Target values) = 0;
  virtual void do_all_to_all(Source out, Target in) = 0;

 private:
  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(size()); }
};

/// One rank that has nobody to talk to: gathers and exchanges copy, reductions leave values as they
/// are. It needs no library.
std::unique_ptr<Communicator> lone();

}  // namespace stratagem::kernels
