// The collectives that ranks have come to: the k-th of a communicator in the program of one rank
// meets the k-th of every other.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "program/program.hpp"
#include "sim/folding/folding.hpp"
#include "sim/instant.hpp"
#include "sim/relative_state.hpp"

namespace stratagem::sim {

/// A rank's part in a collective: the task that one of its queues holds.
struct Arrival {
  int actor = 0;
  int queue = 0;
};

/// The k-th collective of a communicator class.
struct CollectiveInstance {
  const program::Collective* collective = nullptr;
  int communicator_class = 0;
  std::size_t k = 0;
  int flow = 0;  ///< that it takes, of the folding's
  Instant last_arrival;
  std::vector<Arrival> arrivals;
};

/// Instances by a number in the order in which their first ranks arrived, which settles ties.
class CollectiveInstances {
 public:
  explicit CollectiveInstances(const Folding& folding);

  /// A rank comes to the k-th of a communicator class: its number, if all ranks have arrived now.
  /// Expects that it is the same collective for all of them, and that the first rank's outlives
  /// this object.
  std::optional<int> arrive(int communicator_class, std::size_t k,
                            const program::Collective& collective, const Arrival& arrival,
                            Instant when);
  [[nodiscard]] CollectiveInstance& operator[](int instance) { return instances_[instance]; }
  /// All ranks go on from it.
  void end(int instance);
  /// At which some ranks have arrived, and which have not ended, ascending.
  [[nodiscard]] const std::vector<int>& open() const { return open_; }

  /// Adds who has arrived at the open ones.
  void write(RelativeState& state) const;

 private:
  /// The flows of one kind of collective of one communicator class.
  struct Routes {
    int any = -1;  ///< whatever the payload
    std::map<Bytes, int> by_payload;
  };

  const Folding& folding_;
  std::vector<CollectiveInstance> instances_;
  std::vector<int> open_;
  std::vector<std::vector<Arrival>> spare_;  ///< empty; their memory is used again
  std::vector<std::vector<int>> numbers_;    ///< by communicator class, then k
  std::map<std::pair<int, cost::CollectiveKind>, Routes> routes_;
};

}  // namespace stratagem::sim
