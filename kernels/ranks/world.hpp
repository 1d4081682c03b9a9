// The ranks that a launcher has started together.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/quantity.hpp"
#include "kernels/ranks/communicator.hpp"

namespace stratagem::kernels {

/// What a launcher says of this process in its environment.
struct Launch {
  std::string launcher;  ///< "mpirun", "srun", "torchrun"
  int ranks = 1;
};

/// Was this process started as one of several ranks? By Open MPI's mpirun (OMPI_COMM_WORLD_SIZE), a
/// launcher that speaks PMI (PMI_SIZE), or srun (SLURM_STEP_NUM_TASKS: a batch script itself, which
/// has SLURM_NTASKS too, is one process). torchrun's WORLD_SIZE counts with RANK and
/// TORCHELASTIC_RUN_ID beside it. nullopt: it was started alone.
std::optional<Launch> launch();

/// All ranks of this run, from MPI's start to its end. One object in a process, once.
class World {
 public:
  World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  /// Ranks that end as they should meet here for the last time.
  virtual ~World() = default;

  [[nodiscard]] virtual Communicator& all() = 0;

  /// Has `act` called where this process ends because it has waited in vain for others, in another
  /// thread, with what is wrong; it returns the exit code. Without it that is 1.
  virtual void before_the_end(std::function<int(const std::string& why)> act) = 0;

  /// "rank 1 (process 123)": another rank of this server whose process is gone; "" if none is.
  [[nodiscard]] virtual std::string gone() const = 0;

  /// Ends all ranks, as far as the launcher lets us: when one cannot go on. Does not return.
  [[noreturn]] virtual void stop(int exit_code) = 0;
};

/// How long a rank waits for others in one operation before it gives up.
inline constexpr Seconds patience{25};

/// The ranks of this launch; one process started alone is a world of one, without any library.
/// MPI is a module, libstratagem_mpi.so beside the program or in its build folder, that is loaded
/// only here and only if a launcher is there.
///
/// While an operation of any group lasts, a thread looks after it twice a second: if a process of
/// another rank on the same server is gone, or the operation has lasted for `limit`, it says so in
/// one line on stderr, "stratagem: rank 0: rank 2 (process 123 on host) died during ..." and ends
/// this process, so that the others do not wait for ever either.
///
/// Throws CommunicationError where a launcher has started several ranks and MPI was not built,
/// cannot be loaded, or sees another number of them (torchrun, srun without --mpi=pmix).
std::unique_ptr<World> world(Seconds limit = patience);

}  // namespace stratagem::kernels
