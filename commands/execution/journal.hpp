// What is known of an execution so far: written while it runs, so that it is there when it stops.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/json_writer.hpp"
#include "commands/progress.hpp"
#include "commands/ranks/termination.hpp"
#include "execute/current_task.hpp"
#include "kernels/ranks/world.hpp"

namespace stratagem::commands {

/// Of one rank. A rank that stops writes the file, with `"status": "stopped"` and the `"reason"`,
/// unless another one has done so; until it stops or ends the file says that it is not done. So
/// whoever looks finds the iterations done, even where rank 0 is the one that was killed; ranks on
/// other servers see no file there and write none. What is there and no regular file is left alone.
class Journal {
 public:
  struct Of {
    int rank = 0;
    std::string file;                ///< "": none is written
    std::function<Json()> describe;  ///< what is known; called under the journal's lock
  };
  Journal(Of of, const execute::CurrentTask& current);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal();

  /// From here on the rank also says how it stopped, and exits with `check_failed`, where it waits
  /// in vain for another rank of `world`, or is asked to end. Rank 0 has a progress line. Once;
  /// `world` outlives the journal.
  void watch(kernels::World& world);

  /// Changes what `describe` reads, and writes it, if the last time is half a second ago.
  void change(const std::function<void()>& change);

  /// Writes why it stopped.
  void stopped(const std::string& reason);

  /// What is wrong, with this rank and its current task: "rank 0: out of memory, at task ...".
  [[nodiscard]] std::string placed(const std::string& what) const;

 private:
  using Clock = std::chrono::steady_clock;
  void write(const std::string& reason) const;
  int end(const std::string& reason);

  Of of_;
  const execute::CurrentTask& current_;
  std::mutex mutex_;
  Clock::time_point written_;
  kernels::World* world_ = nullptr;
  std::optional<Termination> termination_;
  std::optional<ProgressLine> line_;
};

}  // namespace stratagem::commands
