// Joins the other ranks, and turns an error of one rank into the same end for all.
#include "commands/ranks/on_ranks.hpp"

#include <fmt/format.h>

#include <memory>

#include "base/input_error.hpp"
#include "calibrate/measure/ranks.hpp"
#include "commands/arguments.hpp"
#include "execute/fault.hpp"

namespace stratagem::commands {

int on_ranks(Seconds limit, ExitCode failed,
             const std::function<int(kernels::World& world)>& work) {
  std::unique_ptr<kernels::World> world;
  try {
    world = kernels::world(limit);
  } catch (const kernels::CommunicationError& error) {
    throw UsageError(error.what());
  }
  const int rank = world->all().rank();
  try {
    return work(*world);
  } catch (const calibrate::AnotherRankFailed&) {
    return done;
  } catch (const InputError&) {
    throw;
  } catch (const UsageError&) {
    if (rank == 0) throw;
    return done;
  } catch (const std::exception& error) {
    const bool fault = dynamic_cast<const execute::Fault*>(&error) != nullptr;
    if (world->all().size() == 1 && !fault) throw;
    const std::string named = fault ? "" : "rank " + std::to_string(rank) + ": ";
    fmt::print(stderr, "stratagem: {}{}\n", named, error.what());
    if (world->all().size() == 1) return failed;
  }
  world->stop(failed);
  return failed;
}

}  // namespace stratagem::commands
