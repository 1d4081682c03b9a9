// Simulates passes of single tokens, until those between lie on straight lines.
#include "study/workflow/generation.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

#include "base/json_writer.hpp"
#include "study/scenario.hpp"

namespace stratagem::study {
namespace {

/// The bytes that the kernels of a GPU move in a pass, of the one that moves most.
Bytes traffic_of(const program::Program& program) {
  Bytes most;
  for (const program::Sequence& sequence : program.sequences) {
    Bytes bytes;
    for (std::size_t call = 0; call < sequence.calls.size(); ++call) {
      for (const program::Task& task : program.blocks[sequence.calls.body(call).block].tasks) {
        if (const auto* kernel = std::get_if<cost::Kernel>(&task.work)) bytes += kernel->traffic;
      }
    }
    most = std::max(most, bytes);
  }
  return most;
}

std::size_t most_tasks(const program::Program& program) {
  std::size_t most = 0;
  for (const program::Sequence& sequence : program.sequences)
    most = std::max(most, task_count(program, sequence));
  return most;
}

/// Passes of a run for some of the tokens of its sequence.
class Passes {
 public:
  Passes(const Run& run, int answer, const SimulateOptions& options)
      : run_(run), options_(options), prompt_(static_cast<int>(run.batch.sequence) - answer) {}

  [[nodiscard]] int prompt() const { return prompt_; }

  /// `tokens` of each sample, behind those in the cache.
  [[nodiscard]] Pass pass(int tokens, int cached) const {
    const Json cache = Json::object().set("room", run_.batch.sequence).set("tokens", cached);
    const Json model = Json::object().set("sequence", tokens).set("cache", cache);
    Pass pass{with_settings(run_, Json::object().set("model", model)), {}};
    pass.simulated = simulate(pass.run, options_);
    return pass;
  }

 private:
  const Run& run_;
  SimulateOptions options_;
  int prompt_;
};

/// The time of a pass of one token as a function of the tokens before it.
class DecodeSteps {
 public:
  explicit DecodeSteps(const Passes& passes) : passes_(passes) {}

  /// The passes after those of `from` tokens and before those of `to`, whose times are known.
  Seconds between(int from, Seconds at_from, int to, Seconds at_to) {
    const int count = to - from - 1;
    if (count < 1) return {};
    const int middle = from + (to - from) / 2;
    const Seconds there = time(middle);
    const double way = static_cast<double>(middle - from) / (to - from);
    const Seconds on_line = at_from + way * (at_to - at_from);
    if (std::abs((there - on_line).value) <= rounding_.value)
      return count * 0.5 * (at_from + at_to);
    return between(from, at_from, middle, there) + there + between(middle, there, to, at_to);
  }

  Seconds time(int cached) { return time_of(passes_.pass(1, cached).simulated); }

  Seconds time_of(const Simulated& simulated) {
    constexpr Seconds picosecond{1e-12};
    ++simulated_;
    rounding_ = static_cast<double>(most_tasks(simulated.program)) * picosecond;
    return simulated.outcome.metrics->makespan;
  }

  [[nodiscard]] int simulated() const { return simulated_; }

 private:
  const Passes& passes_;
  Seconds rounding_;
  int simulated_ = 0;
};

}  // namespace

Generation generate(const Run& run, int answer, const SimulateOptions& options) {
  const Passes passes(run, answer, options);
  const auto bandwidth = run.profile.memory.bandwidth.value;
  Generation result;
  result.ends.push_back(passes.pass(passes.prompt(), 0));
  result.prefill = result.ends.front().simulated.outcome.metrics->makespan;
  result.time = result.prefill;
  result.memory_bound = traffic_of(result.ends.front().simulated.program) / bandwidth;
  const int single = answer - 1;
  if (single == 0) return result;

  DecodeSteps tokens(passes);
  const int from = passes.prompt(), to = from + single - 1;
  const Pass first = passes.pass(1, from);
  result.first = result.last = tokens.time_of(first.simulated);
  result.ends.push_back(single == 1 ? first : passes.pass(1, to));
  const Simulated& last = result.ends.back().simulated;
  if (single > 1) result.last = tokens.time_of(last);
  result.time += result.first;
  if (single > 1) result.time += tokens.between(from, result.first, to, result.last) + result.last;
  // Bytes are linear in the tokens before.
  const Bytes mean = 0.5 * (traffic_of(first.simulated.program) + traffic_of(last.program));
  result.memory_bound += single * mean / bandwidth;
  result.exposed_communication =
      last.outcome.metrics->exposed_communication / last.outcome.metrics->iteration_time;
  result.idle = last.outcome.metrics->bubble_fraction;
  result.simulated = tokens.simulated();
  return result;
}

}  // namespace stratagem::study
