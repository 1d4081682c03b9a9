// Asks for the routes of every communicator and numbers the links on them.
#include "sim/folding/raw_flows.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/input_error.hpp"
#include "base/quantity_text.hpp"

namespace stratagem::sim {
namespace {

using program::Program;

/// Equal loads may differ in their last bits after summing in another order.
double rounded(double load) { return std::round(load * 0x1p40) * 0x1p-40; }

/// Which collectives the program asks of a group: payloads by kind.
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

/// Steps and links' latencies that add up.
Ticks countable(Seconds latency, cost::CollectiveKind kind) {
  if (latency < longest_task) return to_ticks(latency);
  throw InputError("", "/profile",
                   "latencies of links, and steps of collectives in the profile, with which " +
                       cost::to_text(kind) + " takes less than " + to_text(longest_task),
                   to_text(latency));
}

/// Numbers links, loads and payloads as flows bring them.
class Builder {
 public:
  explicit Builder(cost::Collectives& collectives)
      : collectives_(collectives), link_ids_(2 * collectives.cluster().links().size(), -1) {}

  void add_communicator(const std::vector<int>& ranks, int group, const Wanted& wanted) {
    for (const auto& [kind, payloads] : wanted) {
      for (const cost::Routed& routed :
           collectives_.routes(kind, ranks, {payloads.begin(), payloads.end()}))
        add(kind, group, routed);
    }
  }
  void end_communicator() {
    ++communicator_;
    result_.first_flow.push_back(static_cast<int>(result_.flows.size()));
  }

  RawFlows result() { return std::move(result_); }

 private:
  void add(cost::CollectiveKind kind, int group, const cost::Routed& routed) {
    RawFlow flow{.communicator = communicator_,
                 .group = group,
                 .kind = kind,
                 .payloads = number(routed.payloads),
                 .latency = countable(routed.route.latency, kind),
                 .weight = {},
                 .first_load = result_.loads.size()};
    double slowest = 1 / routed.route.limit.value;
    for (const cost::LinkLoad& load : routed.route.loads) {
      const int link = number(load.direction);
      const double amount = rounded(load.load);
      result_.loads.push_back({link, number(amount)});
      slowest = std::max(slowest, amount / result_.capacities[link].value);
    }
    flow.weight = {slowest > 0 ? 1 / slowest : 0};
    flow.end_of_loads = result_.loads.size();
    result_.flows.push_back(flow);
  }

  int number(topology::Direction direction) {
    int& id = link_ids_[2 * static_cast<std::size_t>(direction.link) + (direction.forward ? 1 : 0)];
    if (id < 0) {
      id = static_cast<int>(result_.capacities.size());
      result_.capacities.push_back(
          collectives_.usable(collectives_.cluster().links()[direction.link], direction.forward));
    }
    return id;
  }

  int number(double amount) {
    const auto [found, fresh] =
        amount_ids_.emplace(amount, static_cast<int>(result_.amounts.size()));
    if (fresh) result_.amounts.push_back(amount);
    return found->second;
  }

  int number(const std::vector<Bytes>& payloads) {
    const auto [found, fresh] =
        payload_ids_.emplace(payloads, static_cast<int>(result_.payloads.size()));
    if (fresh) result_.payloads.push_back(payloads);
    return found->second;
  }

  cost::Collectives& collectives_;
  RawFlows result_{
      .flows = {}, .first_flow = {0}, .loads = {}, .amounts = {}, .payloads = {}, .capacities = {}};
  int communicator_ = 0;
  std::vector<int> link_ids_;  ///< by link and direction
  std::unordered_map<double, int> amount_ids_;
  std::map<std::vector<Bytes>, int> payload_ids_;
};

}  // namespace

RawFlows raw_flows(const Program& program, cost::Collectives& collectives) {
  Builder builder(collectives);
  const auto wanted_by = wanted_by_group(program);
  const std::vector<int> groups = groups_of_communicators(program);
  for (std::size_t c = 0; c < program.communicators.size(); ++c) {
    const auto wanted = wanted_by.find(groups[c]);
    if (wanted != wanted_by.end())
      builder.add_communicator(program.communicators[c].ranks, groups[c], wanted->second);
    builder.end_communicator();
  }
  return builder.result();
}

}  // namespace stratagem::sim
