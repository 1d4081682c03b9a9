// Simulates the runs of many scenarios, as far as somebody measured them, on several threads.
#include <algorithm>
#include <atomic>
#include <exception>
#include <set>
#include <thread>

#include "search/validation.hpp"

namespace stratagem::search {
namespace {

bool measured_for(const Run& run, const Selection& selection) {
  if (group_of(run).find(selection.group) == std::string::npos) return false;
  return std::ranges::any_of(run.measured, [&](const Measured& each) {
    return selection.figure.empty() || each.name == selection.figure;
  });
}

/// The outcomes of the runs of a scenario that are wanted, and of what they are relative to.
std::vector<Outcome> outcomes_of(const Scenario& scenario, const Selection& selection) {
  std::set<std::string> baselines;
  for (const Run& run : scenario.runs) {
    if (measured_for(run, selection)) baselines.insert(run.baseline);
  }
  std::vector<Outcome> outcomes;
  for (const Run& run : scenario.runs) {
    const bool wanted = measured_for(run, selection) || baselines.contains(run.name);
    outcomes.push_back(wanted ? simulate(run, {}).outcome
                              : Outcome{.status = Outcome::Status::refused,
                                        .reason = "nothing of it is asked for",
                                        .gpus = run.gpus});
  }
  return outcomes;
}

/// A scenario, and what becomes of it. The unit of work: runs of one scenario share its document,
/// which notes what is read of it, so they are never simulated at the same time.
struct Task {
  const Scenario* scenario;
  std::vector<Outcome> outcomes;
  std::exception_ptr error;
};

void work(std::vector<Task>& tasks, std::atomic<std::size_t>& next, const Selection& selection) {
  for (std::size_t i = next++; i < tasks.size(); i = next++) {
    try {
      tasks[i].outcomes = outcomes_of(*tasks[i].scenario, selection);
    } catch (...) {
      tasks[i].error = std::current_exception();
    }
  }
}

void work_on_all(std::vector<Task>& tasks, const Selection& selection, int threads) {
  std::atomic<std::size_t> next = 0;
  {
    std::vector<std::jthread> others;
    for (int i = 1; i < threads; ++i)
      others.emplace_back([&] { work(tasks, next, selection); });
    work(tasks, next, selection);
  }
  for (const Task& task : tasks) {
    if (task.error) std::rethrow_exception(task.error);
  }
}

}  // namespace

std::vector<Played> play(std::vector<Scenario> scenarios, const Selection& selection, int threads) {
  std::vector<Task> tasks;
  for (const Scenario& scenario : scenarios) tasks.push_back({&scenario, {}, nullptr});
  work_on_all(tasks, selection, threads);
  std::vector<Played> played(scenarios.size());
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    played[i].scenario = std::move(scenarios[i]);
    played[i].results = compare(played[i].scenario, std::move(tasks[i].outcomes));
  }
  return played;
}

}  // namespace stratagem::search
