// Numbers the collectives of every sequence and compares those that match.
#include "program/check/rendezvous.hpp"

#include <algorithm>
#include <map>
#include <span>

#include "base/input_error.hpp"
#include "program/check/event_graph.hpp"

namespace stratagem::program {
namespace {

/// A collective where it is posted.
struct Posted {
  const Program& program;
  Call call;
  const Task& task;

  Posted(const Program& of, const Sequence& sequence, const TaskOfCall& place)
      : program(of), call(sequence.calls[place.call]), task(task_at(of, sequence, place)) {}

  [[nodiscard]] const Collective& collective() const { return std::get<Collective>(task.work); }
  /// What it moves: one who only receives says so by what it writes.
  [[nodiscard]] const std::vector<int>& slots() const {
    return task.reads.empty() ? task.writes : task.reads;
  }
  [[nodiscard]] model::TensorId tensor(int slot) const {
    return tensor_of(program, call, program.blocks[call.block].slots[slot].tensor);
  }
};

/// Devices of one communicator mean the same: of a transfer, the same tensor of the same
/// micro-batch.
bool equal(const Posted& a, const Posted& b) {
  const Collective& x = a.collective();
  const Collective& y = b.collective();
  if (x.kind != y.kind || x.combine != y.combine || x.payload != y.payload) return false;
  if (!transfers(a.task.stream) || !transfers(b.task.stream)) return true;
  return a.call.cell.micro_batch == b.call.cell.micro_batch &&
         a.call.cell.slice == b.call.cell.slice && a.call.cell.repeat == b.call.cell.repeat &&
         std::ranges::equal(
             a.slots(), b.slots(), {}, [&](int slot) { return a.tensor(slot); },
             [&](int slot) { return b.tensor(slot); });
}

/// By block: its collectives, as tasks.
std::vector<std::vector<int>> collectives_of_blocks(const Program& program) {
  std::vector<std::vector<int>> result;
  for (const Block& block : program.blocks) {
    std::vector<int>& tasks = result.emplace_back();
    for (std::size_t t = 0; t < block.tasks.size(); ++t) {
      if (std::holds_alternative<Collective>(block.tasks[t].work))
        tasks.push_back(static_cast<int>(t));
    }
  }
  return result;
}

/// Those of them that a launch has.
std::span<const int> in_launch(const std::vector<int>& tasks, const Launch& launch) {
  return {std::ranges::lower_bound(tasks, launch.first),
          std::ranges::lower_bound(tasks, launch.end)};
}

}  // namespace

Rendezvous::Rendezvous(const Program& program) : program_(program) {
  count_groups();
  post();
  check_bound();
  find_members();
  find_peers();
  compare();
}

void Rendezvous::count_groups() {
  for (const Device& device : program_.devices)
    groups_ = std::max(groups_, static_cast<int>(device.groups.size()));
  for (const Block& block : program_.blocks) {
    for (const Task& task : block.tasks) {
      if (const auto* collective = std::get_if<Collective>(&task.work))
        groups_ = std::max(groups_, collective->group + 1);
    }
  }
  posted_.resize(program_.sequences.size() * groups_);
}

void Rendezvous::post() {
  const std::vector<std::vector<int>> collectives = collectives_of_blocks(program_);
  for (std::size_t s = 0; s < program_.sequences.size(); ++s) {
    const Sequence& sequence = program_.sequences[s];
    for (int lag = 0; lag <= program_.lag; ++lag) {
      each_launch(program_, sequence, [&](const Launch& launch) {
        const StoredCall& call = sequence.calls.body(launch.call);
        if (call.lag != lag) return;
        for (const int task : in_launch(collectives[call.block], launch)) {
          const Task& posts = program_.blocks[call.block].tasks[task];
          const int group = std::get<Collective>(posts.work).group;
          posted_[endpoint(static_cast<int>(s), group)].push_back({launch.call, task});
        }
      });
    }
  }
}

/// Is every collective one of a communicator on every device that posts it?
void Rendezvous::check_bound() const {
  for (std::size_t d = 0; d < program_.devices.size(); ++d) {
    const Device& device = program_.devices[d];
    for (int group = 0; group < groups_; ++group) {
      const std::vector<TaskOfCall>& posted = posted_[endpoint(device.sequence, group)];
      const bool knows = group < static_cast<int>(device.groups.size()) &&
                         device.groups[group] >= 0 &&
                         device.groups[group] < static_cast<int>(program_.communicators.size());
      if (posted.empty() || knows) continue;
      throw InputError("", "",
                       "device " + std::to_string(d) + " to be of a communicator for " +
                           describe(program_, program_.sequences[device.sequence], posted.front()),
                       "none for group " + std::to_string(group));
    }
  }
}

void Rendezvous::find_members() {
  members_.resize(program_.communicators.size());
  for (std::size_t d = 0; d < program_.devices.size(); ++d) {
    const Device& device = program_.devices[d];
    for (std::size_t group = 0; group < device.groups.size(); ++group) {
      const int communicator = device.groups[group];
      if (communicator < 0) continue;
      members_[communicator].push_back(
          {static_cast<int>(d), endpoint(device.sequence, static_cast<int>(group))});
    }
  }
  for (std::size_t c = 0; c < members_.size(); ++c) {
    std::vector<int> ranks = program_.communicators[c].ranks;
    std::ranges::sort(ranks);
    std::vector<int> known;
    for (const Member& member : members_[c]) known.push_back(member.device);
    if (ranks == known) continue;
    std::vector<int> odd;
    std::ranges::set_symmetric_difference(ranks, known, std::back_inserter(odd));
    const bool missing = std::ranges::binary_search(ranks, odd.front());
    throw InputError("", "",
                     "the ranks of communicator " + std::to_string(c) +
                         " to be the devices that know it, each by one group",
                     "device " + std::to_string(odd.front()) +
                         (missing ? ", which does not know it" : ", which is not among them"));
  }
}

void Rendezvous::find_peers() {
  UnionFind joined(static_cast<int>(posted_.size()));
  for (const std::vector<Member>& members : members_) {
    for (const Member& one : members) joined.merge(members.front().endpoint, one.endpoint);
  }
  std::map<int, std::vector<int>> by_root;
  for (int endpoint = 0; endpoint < static_cast<int>(posted_.size()); ++endpoint)
    by_root[joined.root(endpoint)].push_back(endpoint);
  for (auto& [root, endpoints] : by_root) {
    if (endpoints.size() > 1) peer_sets_.push_back(std::move(endpoints));
  }
}

bool Rendezvous::same(int a, int b) const {
  return std::ranges::equal(posted_[a], posted_[b], [&](const TaskOfCall& x, const TaskOfCall& y) {
    return equal({program_, sequence_of(a), x}, {program_, sequence_of(b), y});
  });
}

/// Where peers disagree, two devices of one of their communicators do.
void Rendezvous::compare() const {
  const bool agreed = std::ranges::all_of(peer_sets_, [this](const std::vector<int>& peers) {
    return std::ranges::all_of(peers, [&](int endpoint) { return same(peers.front(), endpoint); });
  });
  if (agreed) return;
  for (std::size_t c = 0; c < members_.size(); ++c) compare(static_cast<int>(c));
}

void Rendezvous::compare(int communicator) const {
  const std::vector<Member>& ranks = members_[communicator];
  for (const Member& other : ranks) {
    const Member& first = ranks.front();
    if (same(first.endpoint, other.endpoint)) continue;
    const auto met = [&](const TaskOfCall& a, const TaskOfCall& b) {
      return equal({program_, sequence_of(first.endpoint), a},
                   {program_, sequence_of(other.endpoint), b});
    };
    const auto k = static_cast<std::size_t>(
        std::ranges::mismatch(posted_[first.endpoint], posted_[other.endpoint], met).in1 -
        posted_[first.endpoint].begin());
    throw InputError("", "",
                     "the devices of a communicator to post equal collectives in equal order",
                     text_of(first, k) + " as number " + std::to_string(k) +
                         " of an iteration, and " + text_of(other, k));
  }
}

std::string Rendezvous::text_of(const Member& member, std::size_t k) const {
  const std::string who = " on device " + std::to_string(member.device);
  const std::vector<TaskOfCall>& posted = posted_[member.endpoint];
  if (k >= posted.size()) return "nothing" + who;
  const Sequence& sequence = sequence_of(member.endpoint);
  const Collective& collective = Posted(program_, sequence, posted[k]).collective();
  const bool maximum = collective.combine == model::Combine::maximum;
  return cost::to_text(collective.kind) + (maximum ? " (maximum)" : "") + " of " +
         std::to_string(static_cast<std::int64_t>(collective.payload.value)) + " B" + who + " (" +
         describe(program_, sequence, posted[k]) + ")";
}

}  // namespace stratagem::program
