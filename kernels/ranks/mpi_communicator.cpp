// Communicators over MPI. A module of its own: nothing else of the program needs MPI.
#include <malloc.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "kernels/ranks/inside/rank_names.hpp"
#include "kernels/ranks/watchdog.hpp"
#include "kernels/ranks/world.hpp"

namespace stratagem::kernels {
namespace {

MPI_Datatype type_of(Element element) {
  switch (element) {
    case Element::byte:
      return MPI_BYTE;
    case Element::fp32:
      return MPI_FLOAT;
    default:
      return MPI_DOUBLE;
  }
}

MPI_Op operation_of(Reduction reduction) { return reduction == Reduction::sum ? MPI_SUM : MPI_MAX; }

int count_of(std::size_t elements) {
  expects(elements <= static_cast<std::size_t>(INT_MAX),
          "an operation has 2^31 - 1 elements at most");
  return static_cast<int>(elements);
}

void check(int code, const char* operation, const std::string& group) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw CommunicationError(std::string(operation) + " of " + group + ": " + text.data());
}

/// Calls of MPI on behalf of one group: watched, and their codes made exceptions.
class Guard {
 public:
  Guard(Watchdog& watchdog, std::string group) : watchdog_(&watchdog), group_(std::move(group)) {}

  template <typename Call>
  void operator()(const char* operation, const Call& call) const {
    watchdog_->begin(operation, group_);
    const int code = call();
    watchdog_->end();
    check(code, operation, group_);
  }

 private:
  Watchdog* watchdog_;
  std::string group_;
};

class MpiPending : public Pending {
 public:
  MpiPending(Guard guard, std::vector<MPI_Request> requests)
      : guard_(std::move(guard)), requests_(std::move(requests)) {}

  void wait() override {
    guard_("messages", [&] {
      return MPI_Waitall(count_of(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    });
    requests_.clear();
  }

 private:
  Guard guard_;
  std::vector<MPI_Request> requests_;
};

class MpiCommunicator : public Communicator {
 public:
  /// Takes `communicator` over; `ranks` are its members as the world counts them.
  MpiCommunicator(MPI_Comm communicator, std::vector<int> ranks, Watchdog& watchdog)
      : communicator_(communicator),
        ranks_(std::move(ranks)),
        watchdog_(&watchdog),
        guard_(watchdog, name_of(ranks_)) {
    MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(communicator_, &rank_);
  }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;
  /// Where something has gone wrong the others may not come: then it is left to the end.
  ~MpiCommunicator() override {
    if (communicator_ != MPI_COMM_WORLD && std::uncaught_exceptions() == 0)
      MPI_Comm_free(&communicator_);
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return count_of(ranks_.size()); }

  [[nodiscard]] std::unique_ptr<Communicator> group(const std::vector<int>& ranks) override {
    expects(std::ranges::find(ranks, rank_) != ranks.end(), "who makes a group is one of it");
    std::vector<int> members;
    for (const int rank : ranks) {
      expects(rank >= 0 && rank < size(), "a group is of ranks of this one");
      members.push_back(ranks_[static_cast<std::size_t>(rank)]);
      expects(std::ranges::count(members, members.back()) == 1, "a group has each rank once");
    }
    MPI_Group here = MPI_GROUP_NULL, there = MPI_GROUP_NULL;
    MPI_Comm_group(communicator_, &here);
    MPI_Group_incl(here, count_of(ranks.size()), ranks.data(), &there);
    MPI_Comm made = MPI_COMM_NULL;
    guard_("making a group", [&] { return MPI_Comm_create_group(communicator_, there, 0, &made); });
    MPI_Group_free(&there);
    MPI_Group_free(&here);
    return std::make_unique<MpiCommunicator>(made, std::move(members), *watchdog_);
  }

  void barrier() override {
    guard_("barrier", [&] { return MPI_Barrier(communicator_); });
  }

  [[nodiscard]] std::unique_ptr<Pending> start(const std::vector<Sent>& sent,
                                               const std::vector<Received>& received) override {
    std::vector<MPI_Request> requests(sent.size() + received.size(), MPI_REQUEST_NULL);
    auto request = requests.begin();
    for (const auto& [from, values] : received) {
      guard_("receive", [&, v = values, f = from] {
        return MPI_Irecv(v.data, count_of(v.count), type_of(v.element), f, 0, communicator_,
                         &*request++);
      });
    }
    for (const auto& [to, values] : sent) {
      guard_("send", [&, v = values, t = to] {
        return MPI_Isend(v.data, count_of(v.count), type_of(v.element), t, 0, communicator_,
                         &*request++);
      });
    }
    return std::make_unique<MpiPending>(guard_, std::move(requests));
  }

 protected:
  void do_all_reduce(Reduction reduction, Target v) override {
    guard_("all_reduce", [&] {
      return MPI_Allreduce(MPI_IN_PLACE, v.data, count_of(v.count), type_of(v.element),
                           operation_of(reduction), communicator_);
    });
  }
  void do_all_gather(Source part, Target whole) override {
    static_cast<void>(count_of(whole.count));
    guard_("all_gather", [&] {
      return MPI_Allgather(part.data, count_of(part.count), type_of(part.element), whole.data,
                           count_of(part.count), type_of(whole.element), communicator_);
    });
  }
  void do_reduce_scatter(Reduction reduction, Source whole, Target part) override {
    static_cast<void>(count_of(whole.count));
    guard_("reduce_scatter", [&] {
      return MPI_Reduce_scatter_block(whole.data, part.data, count_of(part.count),
                                      type_of(part.element), operation_of(reduction),
                                      communicator_);
    });
  }
  void do_broadcast(int root, Target v) override {
    guard_("broadcast", [&] {
      return MPI_Bcast(v.data, count_of(v.count), type_of(v.element), root, communicator_);
    });
  }
  void do_reduce(Reduction reduction, int root, Target v) override {
    const bool here = root == rank_;
    guard_("reduce", [&] {
      return MPI_Reduce(here ? MPI_IN_PLACE : v.data, here ? v.data : nullptr, count_of(v.count),
                        type_of(v.element), operation_of(reduction), root, communicator_);
    });
  }
  void do_all_to_all(Source out, Target in) override {
    static_cast<void>(count_of(out.count));
    const int part = count_of(out.count / ranks_.size());
    guard_("all_to_all", [&] {
      return MPI_Alltoall(out.data, part, type_of(out.element), in.data, part, type_of(in.element),
                          communicator_);
    });
  }

 private:
  MPI_Comm communicator_;
  std::vector<int> ranks_;
  int rank_ = 0;
  Watchdog* watchdog_;
  Guard guard_;
};

/// What ranks tell each other of themselves.
struct Introduction {
  std::array<char, 256> host{};
  Process process;
};

/// Other ranks of this server whose processes can be seen from here: in containers of their own
/// they cannot.
std::vector<Neighbour> neighbours(int rank, int ranks) {
  Introduction mine{.host = {}, .process = process_of(getpid())};
  gethostname(mine.host.data(), mine.host.size() - 1);
  std::vector<Introduction> all(static_cast<std::size_t>(ranks));
  MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
  std::vector<Neighbour> result;
  for (int other = 0; other < ranks; ++other) {
    const Introduction& theirs = all[static_cast<std::size_t>(other)];
    if (other != rank && theirs.host == mine.host && runs(theirs.process))
      result.push_back({.rank = other, .process = theirs.process});
  }
  MPI_Barrier(MPI_COMM_WORLD);  // all have been looked for while they ran
  return result;
}

class MpiWorld : public World {
 public:
  explicit MpiWorld(Seconds limit) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    watchdog_.emplace(rank, neighbours(rank, ranks), limit);
    std::vector<int> members(static_cast<std::size_t>(ranks));
    std::iota(members.begin(), members.end(), 0);
    all_.emplace(MPI_COMM_WORLD, std::move(members), *watchdog_);
  }
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;
  ~MpiWorld() override {
    try {
      all_->barrier();
    } catch (const std::exception&) {
      stop(1);
    }
    watchdog_.reset();  // whoever has finished is gone, not dead
    MPI_Finalize();
  }

  [[nodiscard]] Communicator& all() override { return *all_; }
  void before_the_end(std::function<int(const std::string& why)> act) override {
    watchdog_->before_the_end(std::move(act));
  }
  [[nodiscard]] std::string gone() const override { return watchdog_->gone(); }
  [[noreturn]] void stop(int exit_code) override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::_Exit(exit_code);
  }

 private:
  std::optional<Watchdog> watchdog_;
  std::optional<MpiCommunicator> all_;
};

}  // namespace
}  // namespace stratagem::kernels

/// What world.cpp looks for in this module. Reductions of Open MPI allocate as much again as they
/// reduce, every time; memory that goes back to the system in between has to be mapped page by page
/// again, which made large ones two to three times as slow. So it is kept.
extern "C" [[gnu::visibility("default")]] stratagem::kernels::World* stratagem_mpi_world(
    stratagem::Seconds limit) {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  return new stratagem::kernels::MpiWorld(limit);
}
