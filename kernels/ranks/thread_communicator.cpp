// The last rank to arrive at a collective computes it for all ranks.
#include "kernels/ranks/thread_communicator.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

namespace stratagem::kernels {
namespace {

std::span<std::byte> bytes_of(const Target& target) {
  return {static_cast<std::byte*>(target.data), target.count * size_of(target.element)};
}
std::span<const std::byte> bytes_of(const Source& source) {
  return {static_cast<const std::byte*>(source.data), source.count * size_of(source.element)};
}

/// What the members of a group have brought to one operation.
struct Rendezvous {
  std::vector<Source> sources;
  std::vector<Target> targets;
  int arrived = 0;
  long held = 0;  ///< operations done so far
};

/// What all threads share; whoever runs holds the lock.
struct Shared {
  std::mutex turn;
  std::condition_variable changed;
  std::exception_ptr failure;
  /// By world ranks, then which group of these it is.
  std::map<std::vector<int>, Rendezvous> rendezvous;
  /// By group, sender and receiver: messages sent and not taken yet, by number, and how many have
  /// been
  /// sent and asked for.
  struct Connection {
    std::map<long, std::vector<std::byte>> messages;
    long sent = 0;
    long asked = 0;
  };
  std::map<std::tuple<std::vector<int>, int, int>, Connection> connections;
};

template <typename T>
void reduce_into(Reduction reduction, std::span<const T> from, std::span<T> to) {
  for (std::size_t i = 0; i < to.size(); ++i)
    to[i] = reduction == Reduction::sum ? to[i] + from[i] : std::max(to[i], from[i]);
}

/// The reduced elements [begin, begin + count) of all sources.
void reduce_all(Reduction reduction, const std::vector<Source>& sources, std::size_t begin,
                const Target& to) {
  const auto run = [&]<typename T>(T) {
    std::vector<T> result(to.count);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const std::span<const T> part(static_cast<const T*>(sources[i].data) + begin, to.count);
      i == 0 ? static_cast<void>(std::ranges::copy(part, result.begin()))
             : reduce_into<T>(reduction, part, result);
    }
    std::ranges::copy(result, static_cast<T*>(to.data));
  };
  to.element == Element::fp32 ? run(float{}) : run(double{});
}

class Threads final : public Communicator {
 public:
  /// `id` tells groups of the same ranks apart.
  Threads(Shared& shared, std::vector<int> ranks, int id, int me,
          std::unique_lock<std::mutex>& turn)
      : shared_(shared), ranks_(std::move(ranks)), me_(me), turn_(turn), key_(ranks_) {
    key_.push_back(id);
  }

  [[nodiscard]] int rank() const override { return me_; }
  [[nodiscard]] int size() const override { return static_cast<int>(ranks_.size()); }

  [[nodiscard]] std::unique_ptr<Communicator> group(const std::vector<int>& ranks) override {
    std::vector<int> world;
    for (const int rank : ranks) world.push_back(ranks_[static_cast<std::size_t>(rank)]);
    const auto found = std::ranges::find(ranks, me_);
    expects(found != ranks.end(), "a rank makes groups that it is in");
    const int id = ++groups_[world];
    return std::make_unique<Threads>(shared_, world, id, static_cast<int>(found - ranks.begin()),
                                     turn_);
  }

  void barrier() override {
    meet({}, {}, [](Rendezvous&) {});
  }

  [[nodiscard]] std::unique_ptr<Pending> start(const std::vector<Sent>& sent,
                                               const std::vector<Received>& received) override {
    for (const Sent& message : sent) {
      const std::span<const std::byte> bytes = bytes_of(message.values);
      Shared::Connection& there = connection(me_, message.to);
      there.messages[there.sent++].assign(bytes.begin(), bytes.end());
    }
    if (!sent.empty()) shared_.changed.notify_all();
    auto pending = std::make_unique<Arrivals>(*this);
    for (const Received& message : received)
      pending->expect(message, connection(message.from, me_).asked++);
    return pending;
  }

 protected:
  void do_all_reduce(Reduction reduction, Target values) override {
    const Source source{values.data, values.count, values.element};
    meet(source, values, [&](Rendezvous& rendezvous) {
      reduce_all(reduction, rendezvous.sources, 0, rendezvous.targets.front());
      for (const Target& target : rendezvous.targets)
        copy(bytes_of(rendezvous.targets.front()), target);
    });
  }
  void do_all_gather(Source part, Target whole) override {
    meet(part, whole, [&](Rendezvous& rendezvous) {
      for (const Target& target : rendezvous.targets) {
        std::size_t at = 0;
        for (const Source& source : rendezvous.sources) {
          const std::span<const std::byte> bytes = bytes_of(source);
          std::ranges::copy(bytes, bytes_of(target).begin() + static_cast<std::ptrdiff_t>(at));
          at += bytes.size();
        }
      }
    });
  }
  void do_reduce_scatter(Reduction reduction, Source whole, Target part) override {
    meet(whole, part, [&](Rendezvous& rendezvous) {
      for (std::size_t i = 0; i < rendezvous.targets.size(); ++i)
        reduce_all(reduction, rendezvous.sources, i * part.count, rendezvous.targets[i]);
    });
  }
  void do_broadcast(int root, Target values) override {
    meet({values.data, values.count, values.element}, values, [&](Rendezvous& rendezvous) {
      for (const Target& target : rendezvous.targets)
        copy(bytes_of(rendezvous.sources[static_cast<std::size_t>(root)]), target);
    });
  }
  void do_reduce(Reduction reduction, int root, Target values) override {
    meet({values.data, values.count, values.element}, values, [&](Rendezvous& rendezvous) {
      reduce_all(reduction, rendezvous.sources, 0,
                 rendezvous.targets[static_cast<std::size_t>(root)]);
    });
  }
  void do_all_to_all(Source out, Target in) override {
    meet(out, in, [&](Rendezvous& rendezvous) {
      const std::size_t ranks = rendezvous.sources.size();
      for (std::size_t to = 0; to < ranks; ++to) {
        for (std::size_t from = 0; from < ranks; ++from) {
          const std::span<const std::byte> all = bytes_of(rendezvous.sources[from]);
          const std::size_t length = all.size() / ranks;
          std::ranges::copy(all.subspan(to * length, length),
                            bytes_of(rendezvous.targets[to]).subspan(from * length).begin());
        }
      }
    });
  }

 private:
  class Arrivals final : public Pending {
   public:
    explicit Arrivals(Threads& group) : group_(group) {}
    void expect(const Received& message, long number) { expected_.emplace_back(message, number); }
    void wait() override {
      for (const auto& [message, number] : expected_) {
        Shared::Connection& connection = group_.connection(message.from, group_.me_);
        group_.wait_until([&, wanted = number] { return connection.messages.contains(wanted); });
        copy(connection.messages.at(number), message.values);
        connection.messages.erase(number);
      }
      expected_.clear();
    }

   private:
    Threads& group_;
    std::vector<std::pair<Received, long>> expected_;
  };

  static void copy(std::span<const std::byte> from, const Target& to) {
    const std::span<std::byte> bytes = bytes_of(to);
    expects(from.size() == bytes.size(), "a message is received as it was sent");
    if (from.data() != bytes.data()) std::ranges::copy(from, bytes.begin());
  }

  [[nodiscard]] Shared::Connection& connection(int from, int to) {
    return shared_.connections[{key_, from, to}];
  }

  template <typename Condition>
  void wait_until(const Condition& condition) {
    shared_.changed.wait(turn_, [&] { return shared_.failure != nullptr || condition(); });
    if (!condition()) throw CommunicationError("another rank of this process has failed");
  }

  template <typename Work>
  void meet(Source source, Target target, const Work& work) {
    if (shared_.failure) throw CommunicationError("another rank of this process has failed");
    Rendezvous& rendezvous = shared_.rendezvous[key_];
    rendezvous.sources.resize(ranks_.size());
    rendezvous.targets.resize(ranks_.size());
    rendezvous.sources[static_cast<std::size_t>(me_)] = source;
    rendezvous.targets[static_cast<std::size_t>(me_)] = target;
    if (++rendezvous.arrived == size()) {
      work(rendezvous);
      rendezvous.arrived = 0;
      ++rendezvous.held;
      shared_.changed.notify_all();
      return;
    }
    wait_until([&rendezvous, held = rendezvous.held] { return rendezvous.held != held; });
  }

  Shared& shared_;
  std::vector<int> ranks_;
  int me_;
  std::unique_lock<std::mutex>& turn_;
  std::vector<int> key_;
  std::map<std::vector<int>, int> groups_;  ///< made of this one, by world ranks
};

}  // namespace

void run_ranks(int ranks, const std::function<void(Communicator& world)>& rank) {
  Shared shared;
  std::vector<int> world(static_cast<std::size_t>(ranks));
  for (int i = 0; i < ranks; ++i) world[static_cast<std::size_t>(i)] = i;
  const auto run = [&](int me) {
    std::unique_lock turn(shared.turn);
    try {
      Threads group(shared, world, 0, me, turn);
      rank(group);
    } catch (...) {
      if (!shared.failure) shared.failure = std::current_exception();
      shared.changed.notify_all();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < ranks; ++i) threads.emplace_back(run, i);
  }
  if (shared.failure) std::rethrow_exception(shared.failure);
}

}  // namespace stratagem::kernels
