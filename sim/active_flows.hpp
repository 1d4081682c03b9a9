// The flows under way: bytes left, rate, and which ends next.
#pragma once

#include <vector>

#include "sim/folding/folding.hpp"
#include "sim/instant.hpp"
#include "sim/network.hpp"
#include "sim/relative_state.hpp"

namespace stratagem::sim {

/// Flows by a handle that the caller chooses.
class ActiveFlows {
 public:
  explicit ActiveFlows(const Folding& folding);

  /// Adds a flow of `volume` bytes of payload. Its rate counts after the next `share`.
  void begin(int flow, int handle, Bytes volume);
  /// The instant at which the next flow ends, `never` if there is none.
  [[nodiscard]] Instant next_end() const;
  /// Removes the flows that end at `now` and returns their handles in the order in which they
  /// began.
  std::vector<int> end_at(Instant now);
  /// Accounts for what has flowed until `now` and shares the links anew. Call after every change.
  void share(Instant now);

  /// Adds what is left of every flow, and its handle as its place among `handles`, which ascend.
  void write(RelativeState& state, const std::vector<int>& handles) const;

 private:
  struct Entry {
    int flow;
    int handle;
    Bytes left;
    BytesPerSecond rate;
    Instant since;
    Instant end;
  };
  void count(int flow, std::int64_t sign);

  const Folding& folding_;
  FairShare fair_share_;
  std::vector<Entry> entries_;
};

}  // namespace stratagem::sim
