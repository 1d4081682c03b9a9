// Ranks meet once over MPI, compare their inputs, and go on by themselves: one that dies takes no
// other with it.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace stratagem::commands {

struct Met {
  int rank = 0;
  int ranks = 1;
  std::string word;  ///< of rank 0, for all
};

/// The ranks of this launch, or one alone. Each calls `own`, and all results must be alike; rank 0
/// calls `word`. MPI has ended when this returns. Where `own` throws on some rank, or results
/// differ, one rank throws; on the others nothing is returned. Throws UsageError where a launcher
/// has started ranks that cannot find each other.
std::optional<Met> meet(const std::function<std::string()>& own,
                        const std::function<std::string()>& word);

}  // namespace stratagem::commands
