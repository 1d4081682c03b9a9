// Adds up arenas, which are where ranks compute, and what the check keeps on the host.
#include "commands/execution/memory_check.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "base/input_error.hpp"
#include "base/quantity_text.hpp"
#include "commands/execution/free_memory.hpp"
#include "execute/gpu/gpu_engine.hpp"
#include "execute/memory_need.hpp"

namespace stratagem::commands {
namespace {

/// `where` is what it has: "memory".
void check(const study::Run& run, const std::string& where, Bytes available, Bytes of_rank,
           Bytes of_all) {
  if (of_all <= available) return;
  throw InputError(run.origin.file, run.origin.path,
                   "a run for the " + to_text(available) + " of " + where +
                       " that are available here, or --beyond-memory",
                   "one that needs " + to_text(of_all) + " here, " + to_text(of_rank) +
                       " of them for this rank");
}

}  // namespace

Needed needed(const execute::Runnable& plan, const execute::Runnable& alone, const Unit& unit,
              int rank) {
  const execute::MemoryNeed own =
      execute::memory_need(plan.program, plan.graph, rank, sizes_of(unit));
  Needed result{.host = unit.is_gpu() ? Bytes{} : own.iteration,
                .gpu = unit.is_gpu() ? own.iteration : Bytes{}};
  if (rank == 0) {
    const Unit of_check{.precision = unit.precision == "fp64" ? "fp64" : "fp32"};
    const execute::MemoryNeed one =
        execute::memory_need(alone.program, alone.graph, 0, sizes_of(of_check));
    result.host = std::max(result.host, one.iteration + one.gradients);
  }
  result.host += own.gradients;
  return result;
}

void check_room(const study::Run& run, const Arguments& asked, const Unit& unit,
                const Needed& of_rank, const Needed& of_all) {
  if (asked.has("beyond-memory")) return;
  if (const std::optional<Bytes> available = memory_available())
    check(run, "memory", *available, of_rank.host, of_all.host);
  if (unit.is_gpu()) {
    check(run, "the GPU's memory", execute::gpu_memory_available(unit.device), of_rank.gpu,
          of_all.gpu);
  }
}

}  // namespace stratagem::commands
