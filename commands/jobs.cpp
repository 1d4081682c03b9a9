// All processors, if nothing else is asked for.
#include "commands/jobs.hpp"

#include <string>

#include "base/parallel.hpp"

namespace stratagem::commands {

void add_jobs(Options& options) {
  options.whole("jobs", "runs to simulate at once (default: as many as there are processors)");
}

int jobs(const Arguments& asked) {
  if (!asked.has("jobs")) return processors();
  const int jobs = asked.whole("jobs");
  if (jobs < 1) throw UsageError("--jobs: expected at least 1, found " + std::to_string(jobs));
  return jobs;
}

}  // namespace stratagem::commands
