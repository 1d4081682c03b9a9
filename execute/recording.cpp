// Ranks tell each other their times; the k-th collective of a group is one and the same on all of
// its ranks.
#include "execute/recording.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "sim/flat_sequence.hpp"

namespace stratagem::execute {
namespace {

sim::Instant instant(double seconds) {
  return sim::Instant{std::llround(std::max(seconds, 0.0) * 1e12)};
}

/// A rank's list for all, which may be of different lengths.
std::vector<std::vector<double>> gathered(const std::vector<double>& mine,
                                          const std::vector<std::size_t>& sizes,
                                          kernels::Communicator& world) {
  const std::size_t longest = *std::ranges::max_element(sizes);
  std::vector<double> part = mine, whole(longest * sizes.size());
  part.resize(longest);
  world.all_gather(kernels::In<double>(part), std::span<double>(whole));
  std::vector<std::vector<double>> result;
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    const auto first = whole.begin() + static_cast<std::ptrdiff_t>(rank * longest);
    result.emplace_back(first, first + static_cast<std::ptrdiff_t>(sizes[rank]));
  }
  return result;
}

/// A number of the running system, whose clock all of its processes read.
double clock_number() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return static_cast<double>(std::hash<std::string>()(boot) >> 12U);  // a double has it exactly
}

/// How much later than the first of all ranks each one started.
std::vector<double> starts(const Recording& recording, kernels::Communicator& world) {
  const std::chrono::duration<double> since = recording.started().time_since_epoch();
  const std::vector<std::size_t> pairs(static_cast<std::size_t>(world.size()), 2);
  const auto all = gathered({since.count(), clock_number()}, pairs, world);
  double first = since.count();
  bool one_clock = true;
  for (const std::vector<double>& rank : all) {
    first = std::min(first, rank[0]);
    one_clock = one_clock && rank[1] == all[0][1];
  }
  std::vector<double> result;
  for (const std::vector<double>& rank : all) result.push_back(one_clock ? rank[0] - first : 0);
  return result;
}

/// Moves the beginning of all parts of a collective to that of the last, and the end of a message
/// to that of its receive.
class CollectiveInstances {
 public:
  CollectiveInstances(const program::Program& program,
                      const std::vector<sim::FlatSequence>& sequences)
      : program_(program), sequences_(sequences) {}

  void align(sim::Timeline& timeline) {
    visit(timeline, [](Instance& instance, sim::Instant& begin, sim::Instant& end, bool sends) {
      instance.begin = std::max(instance.begin, begin);
      if (!sends) instance.end = std::max(instance.end, end);
    });
    visit(timeline,
          [](const Instance& instance, sim::Instant& begin, sim::Instant& end, bool sends) {
            begin = instance.begin;
            end = std::max(sends ? instance.end : end, begin);
          });
  }

 private:
  struct Instance {
    sim::Instant begin{0}, end{0};
  };

  template <typename Visit>
  void visit(sim::Timeline& timeline, const Visit& visit) {
    for (std::size_t rank = 0; rank < timeline.actors.size(); ++rank) {
      const program::Device& device = program_.devices[rank];
      const sim::FlatSequence& flat = sequences_[device.sequence];
      for (std::size_t i = 0; i < flat.tasks.size(); ++i) {
        const program::Collective* collective = flat.price(i).collective;
        if (collective == nullptr) continue;
        const int communicator = device.groups[collective->group];
        const bool sends = flat.tasks[i].stream == program::Stream::send_forward ||
                           flat.tasks[i].stream == program::Stream::send_backward;
        visit(instances_[{communicator, flat.ordinal(i)}], timeline.times[rank].begins[0][i],
              timeline.times[rank].ends[0][i], sends);
      }
    }
  }

  const program::Program& program_;
  const std::vector<sim::FlatSequence>& sequences_;
  std::map<std::pair<int, int>, Instance> instances_;  ///< by communicator and place among its own
};

}  // namespace

void Recording::start(std::size_t tasks) {
  begins_.assign(tasks, 0);
  ends_.assign(tasks, 0);
  start_ = std::chrono::steady_clock::now();
}

double Recording::now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

sim::Timeline timeline(const program::Program& program, const Recording& recording,
                       kernels::Communicator& world) {
  expects(program.lag == 0, "iterations that are recorded do not overlap");
  const sim::Prices no_prices =
      sim::price(program, [](const program::Task&) { return sim::Price{}; });
  std::vector<sim::FlatSequence> sequences;
  for (const program::Sequence& sequence : program.sequences)
    sequences.push_back(sim::flatten(program, sequence, no_prices, {.serial = true}));
  std::vector<std::size_t> sizes;
  for (const program::Device& device : program.devices)
    sizes.push_back(sequences[device.sequence].tasks.size());
  const auto begins = gathered(recording.begins(), sizes, world);
  const auto ends = gathered(recording.ends(), sizes, world);

  const std::vector<double> later = starts(recording, world);

  sim::Timeline result;
  result.played.sequences = program.sequences;
  sim::Instant last{0};
  for (std::size_t rank = 0; rank < program.devices.size(); ++rank) {
    const program::Device& device = program.devices[rank];
    result.actors.push_back({.device = static_cast<int>(rank),
                             .multiplicity = 1,
                             .sequence = device.sequence,
                             .communicator_classes = device.groups});
    result.actor_of.push_back(static_cast<int>(rank));
    std::vector<sim::Instant> from, to;
    for (const double begin : begins[rank]) from.push_back(instant(later[rank] + begin));
    for (const double end : ends[rank]) to.push_back(instant(later[rank] + end));
    for (const sim::Instant end : to) last = std::max(last, end);
    result.times.push_back({.begins = {from}, .ends = {to}, .launches = {from}});
  }
  CollectiveInstances(program, sequences).align(result);
  result.iteration_ends = {last};
  result.simulated_rounds = 1;
  for (sim::FlatSequence& sequence : sequences) {
    result.tasks.push_back(std::move(sequence.tasks));
    result.queues.push_back(std::move(sequence.queues));
  }
  return result;
}

}  // namespace stratagem::execute
