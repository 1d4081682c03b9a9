// Joins the world, and maps what goes wrong on one rank to what all of them do.
#include "commands/on_ranks.hpp"

#include <fmt/format.h>

#include <memory>

#include "base/input_error.hpp"
#include "calibrate/measure/ranks.hpp"
#include "commands/arguments.hpp"
#include "kernels/world.hpp"

namespace stratagem::commands {

int on_ranks(Seconds limit, ExitCode failed,
             const std::function<int(kernels::Communicator& ranks)>& work) {
  std::unique_ptr<kernels::World> world;
  try {
    world = kernels::world(limit);
  } catch (const kernels::CommunicationError& error) {
    throw UsageError(error.what());
  }
  const int rank = world->all().rank();
  try {
    return work(world->all());
  } catch (const calibrate::AnotherRankFailed&) {
    return done;
  } catch (const InputError&) {
    throw;
  } catch (const UsageError&) {
    if (rank == 0) throw;
    return done;
  } catch (const std::exception& error) {
    if (world->all().size() == 1) throw;
    fmt::print(stderr, "stratagem: rank {}: {}\n", rank, error.what());
  }
  world->stop(failed);
  return failed;
}

}  // namespace stratagem::commands
