// Sums the collectives of a server's devices, each once.
#include "report/traces/link_rates.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "report/traces/collectives.hpp"
#include "report/traces/measured_round.hpp"

namespace stratagem::report {
namespace {

/// The row to which a direction of a link counts.
using Rows = std::map<topology::Direction, std::string>;

/// Of the links of a GPU, and of the ports of the adapters nearest to it.
Rows rows_of(const topology::Cluster& cluster, int gpu) {
  const int node = cluster.node_of(gpu), within = gpu % cluster.gpus_per_node();
  const std::vector<int> adapters =
      cluster.nics_per_node() > 0 ? cluster.nearest_nics(gpu) : std::vector<int>();
  const auto is_its = [&](const topology::Vertex& vertex, topology::LinkKind kind) {
    if (vertex.node != node) return false;
    if (kind == topology::LinkKind::network)
      return vertex.kind == topology::VertexKind::nic &&
             std::ranges::count(adapters, vertex.index) > 0;
    return (vertex.kind == topology::VertexKind::gpu ||
            vertex.kind == topology::VertexKind::cpu_rank) &&
           vertex.index == within;
  };
  Rows rows;
  for (std::size_t l = 0; l < cluster.links().size(); ++l) {
    const topology::Link& link = cluster.links()[l];
    const bool is_at_a = is_its(cluster.vertices()[link.a], link.kind);
    if (!is_at_a && !is_its(cluster.vertices()[link.b], link.kind)) continue;
    for (const bool forward : {true, false})
      rows[{static_cast<topology::LinkId>(l), forward}] =
          topology::to_text(link.kind) + (forward == is_at_a ? " out" : " in");
  }
  return rows;
}

class Sum {
 public:
  Sum(const program::Program& program, const sim::Timeline& timeline,
      cost::Collectives& collectives, int device)
      : program_(program),
        timeline_(timeline),
        collectives_(collectives),
        rows_(rows_of(collectives.cluster(), device)) {
    const int size = collectives.cluster().gpus_per_node();
    const int first = device / size * size;
    const int last = std::min(first + size, static_cast<int>(program.devices.size()));
    for (int other = first; other < last; ++other) add_tasks_of(other);
  }

  [[nodiscard]] LinkRates rates() const {
    LinkRates result;
    std::map<std::string, std::size_t> places;
    for (const auto& [key, change] : changes_) {
      if (places.try_emplace(key.second, places.size()).second) result.links.push_back(key.second);
    }
    std::vector<Change> now(places.size());
    for (const auto& [key, change] : changes_) {
      const auto& [when, link] = key;
      Change& sum = now[places.at(link)];
      sum.collectives += change.collectives;
      sum.rate = sum.collectives == 0 ? BytesPerSecond{} : sum.rate + change.rate;
      if (result.steps.empty() || result.steps.back().when != when) {
        result.steps.push_back({when, std::vector<BytesPerSecond>(places.size())});
      }
      for (std::size_t i = 0; i < now.size(); ++i) result.steps.back().rates[i] = now[i].rate;
    }
    return result;
  }

 private:
  struct Change {
    BytesPerSecond rate;
    int collectives = 0;  ///< more than before
  };
  using Loads = std::vector<std::pair<std::string, Bytes>>;

  /// Of a communicator the tasks of the first device count.
  void add_tasks_of(int device) {
    const sim::ActorTimes& times = timeline_.times[timeline_.actor_of[device]];
    const std::size_t round = measured_round(timeline_);
    for (const DeviceCollective& one : collectives_of(program_, timeline_, device)) {
      if (counted_.try_emplace(one.communicator, device).first->second == device)
        add(times.begins[round][one.task], times.ends[round][one.task],
            loads(one.collective, one.communicator));
    }
  }

  /// What a collective puts on the device's links.
  const Loads& loads(const program::Collective& collective, int communicator) {
    const auto [known, is_new] =
        loads_.try_emplace(std::tuple(communicator, collective.kind, collective.payload), Loads());
    if (!is_new) return known->second;
    std::map<std::string, Bytes> bytes;
    const cost::Route route = collectives_.route(
        collective.kind, program_.communicators[communicator].ranks, collective.payload);
    for (const cost::LinkLoad& load : route.loads) {
      const auto row = rows_.find(load.direction);
      if (row != rows_.end()) bytes[row->second] += load.load * collective.payload;
    }
    return known->second = Loads(bytes.begin(), bytes.end());
  }

  void add(sim::Instant begin, sim::Instant end, const Loads& loads) {
    if (begin == end) return;
    for (const auto& [link, bytes] : loads) {
      const BytesPerSecond rate = bytes / sim::to_seconds(end - begin);
      Change& more = changes_[{begin, link}];
      more.rate += rate;
      ++more.collectives;
      Change& less = changes_[{end, link}];
      less.rate -= rate;
      --less.collectives;
    }
  }

  const program::Program& program_;
  const sim::Timeline& timeline_;
  cost::Collectives& collectives_;
  Rows rows_;
  std::map<int, int> counted_;  ///< by communicator: the device with whose tasks it is counted
  std::map<std::tuple<int, cost::CollectiveKind, Bytes>, Loads> loads_;
  std::map<std::pair<sim::Instant, std::string>, Change> changes_;
};

}  // namespace

LinkRates link_rates(const program::Program& program, const sim::Timeline& timeline,
                     cost::Collectives& collectives, int device) {
  return Sum(program, timeline, collectives, device).rates();
}

}  // namespace stratagem::report
