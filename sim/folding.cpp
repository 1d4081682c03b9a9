// Colour refinement over devices, flows and links, then representatives of the classes.
#include "sim/folding.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "base/input_error.hpp"
#include "base/quantity_text.hpp"

namespace stratagem::sim {
namespace {

using program::Program;
using topology::Direction;

/// Equal loads may differ in their last bits after summing in another order.
double rounded(double load) { return std::ldexp(std::round(std::ldexp(load, 40)), -40); }

std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }

/// One route of one kind of collective of one communicator.
struct RawFlow {
  int communicator = 0;
  int group = 0;
  cost::CollectiveKind kind = cost::CollectiveKind::all_reduce;
  std::vector<Bytes> payloads;
  Ticks latency;
  BytesPerSecond weight;
  std::vector<std::pair<int, double>> loads;  ///< link and load
};

/// The program on the cluster, unfolded, with numbers for the links that are used.
struct Raw {
  std::vector<RawFlow> flows;
  std::vector<BytesPerSecond> capacities;
  std::vector<std::vector<std::pair<int, double>>> users;  ///< by link: flow and load
};

/// Which collectives the program asks of every group: payloads by kind.
using Wanted = std::map<cost::CollectiveKind, std::set<Bytes>>;

std::map<int, Wanted> wanted_by_group(const Program& program) {
  std::map<int, Wanted> wanted;
  for (const program::Block& block : program.blocks) {
    for (const program::Task& task : block.tasks) {
      if (const auto* collective = std::get_if<program::Collective>(&task.work)) {
        wanted[collective->group][collective->kind].insert(collective->payload);
      }
    }
  }
  return wanted;
}

/// The group by which its members know a communicator.
std::vector<int> groups_of_communicators(const Program& program) {
  std::vector<int> groups(program.communicators.size(), -1);
  for (const program::Device& device : program.devices) {
    for (std::size_t group = 0; group < device.groups.size(); ++group) {
      if (device.groups[group] >= 0) groups[device.groups[group]] = static_cast<int>(group);
    }
  }
  return groups;
}

/// Numbers the links that are used and adds flows to them.
class RawBuilder {
 public:
  explicit RawBuilder(const cost::Collectives& collectives) : collectives_(collectives) {}

  /// Adds a flow without loads along a route.
  void add(RawFlow flow, const cost::Route& route) {
    const auto id = static_cast<int>(result_.flows.size());
    double slowest = 1 / route.limit.value;
    for (const cost::LinkLoad& load : route.loads) {
      const int link = number(load.direction);
      const double amount = rounded(load.load);
      flow.loads.emplace_back(link, amount);
      result_.users[link].emplace_back(id, amount);
      slowest = std::max(slowest, amount / result_.capacities[link].value);
    }
    flow.weight = {slowest > 0 ? 1 / slowest : 0};
    result_.flows.push_back(std::move(flow));
  }

  Raw result() { return std::move(result_); }

 private:
  int number(Direction direction) {
    const auto [found, fresh] =
        link_ids_.emplace(direction, static_cast<int>(result_.capacities.size()));
    if (fresh) {
      result_.capacities.push_back(
          collectives_.usable(collectives_.cluster().links()[direction.link], direction.forward));
      result_.users.emplace_back();
    }
    return found->second;
  }

  const cost::Collectives& collectives_;
  Raw result_;
  std::map<Direction, int> link_ids_;
};

/// Steps and links' latencies that add up.
Ticks countable(Seconds latency, cost::CollectiveKind kind) {
  if (latency < longest_task) return to_ticks(latency);
  throw InputError("", "/profile",
                   "latencies of links, and steps of collectives in the profile, with which " +
                       cost::to_text(kind) + " takes less than " + to_text(longest_task),
                   to_text(latency));
}

Raw raw(const Program& program, cost::Collectives& collectives) {
  RawBuilder builder(collectives);
  const auto wanted_by = wanted_by_group(program);
  const std::vector<int> groups = groups_of_communicators(program);
  for (std::size_t c = 0; c < program.communicators.size(); ++c) {
    const auto wanted = wanted_by.find(groups[c]);
    if (wanted == wanted_by.end()) continue;
    for (const auto& [kind, payloads] : wanted->second) {
      for (const cost::Routed& routed : collectives.routes(kind, program.communicators[c].ranks,
                                                           {payloads.begin(), payloads.end()})) {
        builder.add({.communicator = static_cast<int>(c),
                     .group = groups[c],
                     .kind = kind,
                     .payloads = routed.payloads,
                     .latency = countable(routed.route.latency, kind),
                     .weight = {},
                     .loads = {}},
                    routed.route);
      }
    }
  }
  return builder.result();
}

using Key = std::vector<std::uint64_t>;

/// Colours of devices, flows and links; refined until stable.
class Colours {
 public:
  Colours(const Program& program, const Raw& raw) : program_(program), raw_(raw) {
    flows_of_.resize(program.communicators.size());
    for (std::size_t f = 0; f < raw.flows.size(); ++f)
      flows_of_[raw.flows[f].communicator].push_back(static_cast<int>(f));
    start();
    for (std::size_t before = 0, now = count(); now != before; now = count()) {
      before = now;
      refine();
    }
  }

  std::vector<int> device, flow, link;

 private:
  [[nodiscard]] std::size_t count() const {
    const auto distinct = [](const std::vector<int>& colours) {
      return std::set(colours.begin(), colours.end()).size();
    };
    return distinct(device) + distinct(flow) + distinct(link);
  }

  /// Numbers keys by their first appearance.
  static std::vector<int> number(const std::vector<Key>& keys) {
    std::map<Key, int> known;
    std::vector<int> colours;
    colours.reserve(keys.size());
    for (const Key& key : keys)
      colours.push_back(known.emplace(key, static_cast<int>(known.size())).first->second);
    return colours;
  }

  void start() {
    std::vector<Key> keys;
    for (const program::Device& d : program_.devices)
      keys.push_back({static_cast<std::uint64_t>(d.sequence)});
    device = number(keys);
    keys.clear();
    for (const RawFlow& f : raw_.flows) {
      keys.push_back({static_cast<std::uint64_t>(f.kind), static_cast<std::uint64_t>(f.group),
                      static_cast<std::uint64_t>(f.latency.count), bits(f.weight.value)});
      for (const Bytes payload : f.payloads) keys.back().push_back(bits(payload.value));
    }
    flow = number(keys);
    keys.clear();
    for (const BytesPerSecond capacity : raw_.capacities) keys.push_back({bits(capacity.value)});
    link = number(keys);
  }

  void refine() {
    std::vector<Key> links;
    for (std::size_t l = 0; l < raw_.users.size(); ++l) {
      links.push_back({static_cast<std::uint64_t>(link[l])});
      append_sorted(links.back(), raw_.users[l], flow);
    }
    std::vector<Key> flows;
    for (std::size_t f = 0; f < raw_.flows.size(); ++f) {
      flows.push_back({static_cast<std::uint64_t>(flow[f])});
      append_members(flows.back(), raw_.flows[f]);
      append_sorted(flows.back(), raw_.flows[f].loads, link);
    }
    std::vector<Key> devices;
    for (std::size_t d = 0; d < program_.devices.size(); ++d)
      devices.push_back(device_key(static_cast<int>(d)));
    link = number(links);
    flow = number(flows);
    device = number(devices);
  }

  static void append_sorted(Key& key, const std::vector<std::pair<int, double>>& neighbours,
                            const std::vector<int>& colours) {
    std::vector<std::pair<int, double>> coloured;
    coloured.reserve(neighbours.size());
    for (const auto& [id, load] : neighbours) coloured.emplace_back(colours[id], load);
    std::ranges::sort(coloured);
    for (const auto& [colour, load] : coloured) {
      key.push_back(static_cast<std::uint64_t>(colour));
      key.push_back(bits(load));
    }
  }

  /// Source and destination of a send differ; members of other collectives do not.
  void append_members(Key& key, const RawFlow& f) const {
    std::vector<std::uint64_t> members;
    for (const int rank : program_.communicators[f.communicator].ranks) {
      members.push_back(static_cast<std::uint64_t>(device[rank]));
    }
    if (f.kind != cost::CollectiveKind::send) std::ranges::sort(members);
    key.push_back(members.size());
    key.insert(key.end(), members.begin(), members.end());
  }

  [[nodiscard]] Key device_key(int d) const {
    Key key = {static_cast<std::uint64_t>(device[d])};
    for (const int communicator : program_.devices[d].groups) {
      if (communicator < 0) continue;
      const std::vector<int>& ranks = program_.communicators[communicator].ranks;
      for (const int f : flows_of_[communicator]) {
        key.push_back(static_cast<std::uint64_t>(flow[f]));
        if (raw_.flows[f].kind == cost::CollectiveKind::send)
          key.push_back(ranks.front() == d ? 1 : 0);
      }
    }
    return key;
  }

  const Program& program_;
  const Raw& raw_;
  std::vector<std::vector<int>> flows_of_;  ///< by communicator
};

/// Chooses representatives: of every class the first, or everyone as a class of its own.
struct Classes {
  std::vector<int> of;     ///< by member: its class
  std::vector<int> first;  ///< by class: its representative
  std::vector<int> size;

  Classes(const std::vector<int>& colours, bool folded) {
    std::map<int, int> known;
    for (std::size_t i = 0; i < colours.size(); ++i) {
      const int key = folded ? colours[i] : static_cast<int>(i);
      const auto [found, fresh] = known.emplace(key, static_cast<int>(first.size()));
      if (fresh) {
        first.push_back(static_cast<int>(i));
        size.push_back(0);
      }
      of.push_back(found->second);
      ++size[found->second];
    }
  }
};

/// Communicators with equal colours of all their flows and members are one class.
std::vector<int> communicator_colours(const Program& program, const Raw& raw,
                                      const Colours& colours) {
  std::vector<std::vector<int>> keys(program.communicators.size());
  for (std::size_t f = 0; f < raw.flows.size(); ++f)
    keys[raw.flows[f].communicator].push_back(colours.flow[f]);
  std::map<std::vector<int>, int> known;
  std::vector<int> result;
  result.reserve(keys.size());
  for (const std::vector<int>& key : keys)
    result.push_back(known.emplace(key, static_cast<int>(known.size())).first->second);
  return result;
}

void add_actors(Folding& result, const Program& program, const Classes& devices,
                const Classes& communicators) {
  for (std::size_t a = 0; a < devices.first.size(); ++a) {
    const program::Device& device = program.devices[devices.first[a]];
    Actor actor{.device = devices.first[a],
                .multiplicity = devices.size[a],
                .sequence = device.sequence,
                .communicator_classes = {}};
    for (const int c : device.groups)
      actor.communicator_classes.push_back(c < 0 ? -1 : communicators.of[c]);
    result.actors.push_back(std::move(actor));
  }
  for (std::size_t m = 0; m < communicators.first.size(); ++m) {
    std::set<int> members;
    for (const int rank : program.communicators[communicators.first[m]].ranks)
      members.insert(devices.of[rank]);
    result.communicator_classes.push_back(
        {{members.begin(), members.end()}, communicators.size[m]});
  }
}

/// The uses of one link by (class, load) in ascending order; of each the representatives of its
/// flows, counted.
using Uses = std::map<std::pair<int, double>, std::map<int, std::int64_t>>;

Uses uses_of(const Raw& raw, const Colours& colours, const Classes& flows, int link) {
  Uses uses;
  for (const auto& [flow, load] : raw.users[link])
    ++uses[{colours.flow[flow], load}][flows.of[flow]];
  return uses;
}

/// Adds a link and tells every flow where it counts.
void add_link(Folding& result, BytesPerSecond capacity, const Uses& uses) {
  const auto id = static_cast<int>(result.capacities.size());
  result.capacities.push_back(capacity);
  result.link_uses.emplace_back();
  for (const auto& [key, members] : uses) {
    LinkUse use{.flow = key.first, .load = key.second, .count = 0};
    for (const auto& [flow, count] : members) {
      result.flows[flow].parts.push_back(
          {id, static_cast<int>(result.link_uses.back().size()), count});
      use.count += count;
    }
    result.link_uses.back().push_back(use);
  }
}

}  // namespace

Folding fold(const Program& program, const topology::Cluster& cluster,
             const cost::CollectiveConstants& constants, bool folded) {
  cost::Collectives closed_form(cluster, constants);
  return fold(program, closed_form, folded);
}

Folding fold(const Program& program, cost::Collectives& collectives, bool folded) {
  expects(static_cast<int>(program.devices.size()) <= collectives.cluster().gpus(),
          "a program has at most as many devices as the cluster");
  const Raw unfolded = raw(program, collectives);
  const Colours colours(program, unfolded);
  const Classes devices(colours.device, folded);
  const Classes communicators(communicator_colours(program, unfolded, colours), folded);
  const Classes flows(colours.flow, folded);
  const Classes links(colours.link, folded);
  Folding result;
  add_actors(result, program, devices, communicators);
  result.actor_of = devices.of;
  for (const int f : flows.first) {
    const RawFlow& flow = unfolded.flows[f];
    result.flows.push_back({.kind = flow.kind,
                            .payloads = flow.payloads,
                            .communicator_class = communicators.of[flow.communicator],
                            .flow_class = colours.flow[f],
                            .latency = flow.latency,
                            .parts = {}});
  }
  std::map<Uses, BytesPerSecond> slowest;
  for (const int link : links.first) {
    const BytesPerSecond capacity = unfolded.capacities[link];
    const auto [found, fresh] = slowest.emplace(uses_of(unfolded, colours, flows, link), capacity);
    found->second = std::min(found->second, capacity);
  }
  for (const auto& [uses, capacity] : slowest) add_link(result, capacity, uses);
  if (const auto& slowdown = collectives.constants().compute_slowdown)
    result.compute_slowdown = slowdown->value;
  result.serial = collectives.cluster().design().on_processors();
  result.weights.resize(unfolded.flows.size());
  for (std::size_t f = 0; f < unfolded.flows.size(); ++f)
    result.weights[colours.flow[f]] = unfolded.flows[f].weight;
  return result;
}

}  // namespace stratagem::sim
