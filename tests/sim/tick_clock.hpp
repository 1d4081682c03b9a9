// A second engine, which goes through time picosecond by picosecond and looks at everything in
// each: for programs of a call an iteration, on networks that no two collectives share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "program/program.hpp"
#include "sim/price.hpp"

namespace stratagem::sim {

class TickClock {
 public:
  /// Kernels do 1 - millionths / 10^6 of a picosecond's work in one beside communication. A
  /// collective takes `latency` and a picosecond a byte.
  TickClock(const program::Program& program, const Prices& prices, std::int64_t millionths,
            std::int64_t latency, int iterations)
      : millionths_(millionths), latency_(latency) {
    for (std::size_t d = 0; d < program.devices.size(); ++d) {
      ranks_.emplace_back();
      for (int i = 0; i < iterations; ++i) unroll(program, prices, static_cast<int>(d));
    }
    for (std::int64_t now = 0; !done(); ++now) {
      while (settle(now)) {
      }
      work(now);
    }
  }

  /// Of the tasks of a device, all iterations in a row.
  [[nodiscard]] std::vector<std::int64_t> begins(int device) const {
    return times(device, &Job::begin);
  }
  [[nodiscard]] std::vector<std::int64_t> ends(int device) const {
    return times(device, &Job::end);
  }

 private:
  static constexpr std::int64_t million = 1'000'000;
  static constexpr std::int64_t unknown = -1;

  struct Job {
    program::Task task;
    Price price;
    std::vector<int> before;               ///< that must have ended
    std::pair<int, int> instance{-1, -1};  ///< communicator, and its collectives before
    std::int64_t launch = unknown;
    std::int64_t launches_end = unknown;
    std::int64_t begin = unknown;  ///< of a collective first its arrival
    std::int64_t end = unknown;
    std::int64_t left = 0;       ///< millionths of picoseconds of work
    std::int64_t left_last = 0;  ///< the same of the last kernel
    [[nodiscard]] const program::Collective* collective() const {
      return std::get_if<program::Collective>(&task.work);
    }
  };
  struct Rank {
    std::vector<Job> jobs;
    std::size_t launched = 0;  ///< jobs
    std::int64_t host = 0;
    std::map<int, int> collectives;  ///< by communicator
  };
  struct Instance {
    std::size_t size = 0;
    std::size_t arrived = 0;
    std::int64_t begin = unknown;
    std::int64_t end = unknown;
  };

  void unroll(const program::Program& program, const Prices& prices, int device) {
    Rank& rank = ranks_[device];
    const program::Device& place = program.devices[device];
    const int block = program.sequences[place.sequence].calls.stored().front().block;
    const auto first = static_cast<int>(rank.jobs.size());
    for (std::size_t t = 0; t < program.blocks[block].tasks.size(); ++t) {
      Job job{.task = program.blocks[block].tasks[t], .price = prices[block][t], .before = {}};
      for (const int wait : job.task.waits) job.before.push_back(first + wait);
      for (std::size_t other = rank.jobs.size(); other-- > 0;) {
        if (rank.jobs[other].task.stream != job.task.stream) continue;
        job.before.push_back(static_cast<int>(other));
        break;
      }
      job.left = job.price.device.count * million;
      job.left_last = job.price.last_kernel.count * million;
      if (const auto* collective = job.collective()) {
        const int communicator = place.groups[collective->group];
        job.instance = {communicator, rank.collectives[communicator]++};
        instances_[job.instance].size = program.communicators[communicator].ranks.size();
      }
      rank.jobs.push_back(std::move(job));
    }
  }

  [[nodiscard]] bool done() const {
    return std::ranges::all_of(ranks_, [](const Rank& rank) {
      return std::ranges::all_of(rank.jobs, [](const Job& job) { return job.end != unknown; });
    });
  }

  /// Does what can be done at an instant; true if something was.
  bool settle(std::int64_t now) {
    bool changed = false;
    for (Rank& rank : ranks_) {
      changed = launch(rank) || changed;
      for (Job& job : rank.jobs) changed = begin(rank, job, now) || end(job, now) || changed;
    }
    for (auto& [key, instance] : instances_) {
      if (instance.begin != unknown || instance.arrived < instance.size) continue;
      const Job& job = first_of(key);
      instance.begin = now;
      instance.end = now + latency_ + static_cast<std::int64_t>(job.collective()->payload.value);
      changed = true;
    }
    return changed;
  }

  /// The host goes on to the next job, unless it waits for the one before.
  static bool launch(Rank& rank) {
    if (rank.launched == rank.jobs.size()) return false;
    if (rank.launched > 0) {
      const Job& before = rank.jobs[rank.launched - 1];
      if (before.task.synchronizations > 0) {
        if (before.end == unknown) return false;
        rank.host = std::max(rank.host, before.end);
      }
    }
    Job& job = rank.jobs[rank.launched++];
    job.launch = rank.host + job.price.first_launch.count;
    rank.host += job.price.host.count;
    job.launches_end = rank.host;
    return true;
  }

  bool begin(const Rank& rank, Job& job, std::int64_t now) {
    if (job.begin != unknown || job.launch == unknown || job.launch > now) return false;
    for (const int other : job.before) {
      if (rank.jobs[other].end == unknown) return false;
    }
    job.begin = now;
    if (job.collective() != nullptr) ++instances_.at(job.instance).arrived;
    return true;
  }

  bool end(Job& job, std::int64_t now) {
    if (job.begin == unknown || job.end != unknown) return false;
    if (job.collective() != nullptr) {
      const Instance& instance = instances_.at(job.instance);
      if (instance.begin == unknown || instance.end > now) return false;
      job.begin = instance.begin;
    } else if (job.left > 0 || job.left_last > 0 || job.launches_end > now) {
      return false;
    }
    job.end = now;
    return true;
  }

  /// What gets done in the picosecond that begins now.
  void work(std::int64_t now) {
    for (Rank& rank : ranks_) {
      const bool slow = std::ranges::any_of(rank.jobs, [&](const Job& job) {
        const auto* collective = job.collective();
        if (collective == nullptr || cost::concerns_host(collective->kind)) return false;
        const Instance& instance = instances_.at(job.instance);
        return instance.begin != unknown && instance.begin <= now && now < instance.end;
      });
      for (Job& job : rank.jobs) {
        const auto* kernel = std::get_if<cost::Kernel>(&job.task.work);
        if (kernel == nullptr || job.begin == unknown || job.end != unknown) continue;
        const bool slowed = slow && !cost::concerns_host(kernel->kind);
        const std::int64_t rate = slowed ? million - millionths_ : million;
        job.left -= rate;
        if (job.launches_end <= now) job.left_last -= rate;
      }
    }
  }

  [[nodiscard]] const Job& first_of(std::pair<int, int> instance) const {
    for (const Rank& rank : ranks_) {
      for (const Job& job : rank.jobs) {
        if (job.instance == instance) return job;
      }
    }
    throw std::out_of_range("a collective has ranks");
  }

  [[nodiscard]] std::vector<std::int64_t> times(int device, std::int64_t Job::*time) const {
    std::vector<std::int64_t> result;
    for (const Job& job : ranks_[device].jobs) result.push_back(job.*time);
    return result;
  }

  std::int64_t millionths_;
  std::int64_t latency_;
  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, Instance> instances_;
};

}  // namespace stratagem::sim
