// Counts what the devices of every stage hold in the order of cells; then the stages that lend
// choose, one after another.
#include "lowering/peers.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/input_error.hpp"
#include "lowering/updates/optimizer.hpp"
#include "placement/distribution.hpp"

namespace stratagem::lowering {

using placement::Cell;
using placement::CellPass;
using placement::Grid;
using strategies::Keep;
using strategies::Residency;

namespace {

/// By place in the order of all cells: what comes there, less what goes.
using Changes = std::map<int, Bytes>;

/// What a stage can lend by itself: a segment of all micro-batches, or all segments of one.
struct Unit {
  int stage = 0;
  int segment = -1;
  int micro_batch = -1;
};

Bytes peak(const Changes& held) {
  Bytes now, most;
  for (const auto& [place, bytes] : held) most = std::max(most, now += bytes);
  return most;
}

/// What a segment's forward run leaves for its backward run, on each device of its one grid.
Bytes left_by_forward(const SequenceContext& context, int segment) {
  const placement::Grid& grid = context.stages.grid_of_segment(segment);
  Bytes bytes;
  if (!grid.listed.empty()) return bytes;
  for (const auto& [table, border] : context.slices.front()->left_by_forward(segment)) {
    const model::TensorId tensor = context.stages.facts(segment).tensors[table];
    bytes += local_bytes(context.plan.graph().tensors[tensor], border.layout, grid);
  }
  return bytes;
}

class Peers {
 public:
  Peers(const SequenceContext& context, const Neighbours& neighbours)
      : c_(context), neighbours_(neighbours), held_(context.order.rounds.size()) {
    for (std::size_t device_class = 0; device_class < held_.size(); ++device_class) {
      Bytes& lives = lived_.emplace_back();
      const SequenceDraft draft(c_, static_cast<int>(device_class));
      for (const program::Resident& one : resident_buffers(c_, draft, 1)) {
        if (one.place == program::Residence::device) lives += one.bytes;
      }
      for (const ScheduledCell& of : c_.order.rounds[device_class]) places_[of.cell] = of.place;
    }
    for (int segment = 0; segment < static_cast<int>(c_.stages.facts().size()); ++segment) {
      const Keep* rule = c_.residency.of_segment(segment);
      const int stage = c_.stages.of(segment);
      if (rule == nullptr || rule->where == Keep::Where::peers) hold({{stage, segment}}, stage);
    }
    for (const Keep& rule : c_.residency.rules()) {
      if (rule.where == Keep::Where::stage) hold(units(rule), rule.stage);
    }
  }

  Residency chosen() {
    Residency chosen;
    for (const Keep& rule : c_.residency.rules()) {
      if (rule.where != Keep::Where::peers) {
        chosen.keep(rule);
        continue;
      }
      for (const Keep& part : parts(rule)) chosen.keep(part);
    }
    return chosen;
  }

 private:
  [[nodiscard]] std::vector<Unit> units(const Keep& rule) const {
    std::vector<Unit> result;
    for (const int segment : rule.segments) result.push_back({c_.stages.of(segment), segment});
    for (const auto& [stage, micro_batch] : rule.cells) result.push_back({stage, -1, micro_batch});
    return result;
  }

  [[nodiscard]] const Grid& grid(int replica) const { return c_.stages.replicas()[replica].grid; }
  [[nodiscard]] int replica(int stage, int micro_batch) const {
    return c_.stages.replica(stage, c_.plan.copy_of(stage, micro_batch));
  }
  [[nodiscard]] int class_of(int replica) const {
    return c_.stages.class_of_device()[grid(replica).devices().front()];
  }

  /// What the devices of a stage hold of units, by device class: from the last forward cell of a
  /// micro-batch to its last backward cell.
  [[nodiscard]] std::map<int, Changes> changes(const std::vector<Unit>& units, int holder) const {
    std::map<int, Changes> result;
    for (const Unit& unit : units) {
      Bytes bytes;
      for (const int segment : c_.plan.stages[unit.stage]) {
        if (unit.segment < 0 || unit.segment == segment) bytes += left_by_forward(c_, segment);
      }
      for (int m = 0; m < c_.plan.micro_batches; ++m) {
        if (unit.micro_batch >= 0 && unit.micro_batch != m) continue;
        Changes& held = result[class_of(replica(holder, m))];
        const bool split = c_.plan.splits_backward(unit.stage, m);
        const CellPass last = split ? CellPass::weight : CellPass::backward;
        const int repeat = c_.plan.graph().forward_repeats - 1;
        held[places_.at({.stage = unit.stage, .micro_batch = m, .repeat = repeat})] += bytes;
        held[places_.at({.stage = unit.stage, .micro_batch = m, .pass = last})] -= bytes;
      }
    }
    return result;
  }

  void hold(const std::vector<Unit>& units, int holder) {
    for (const auto& [device_class, more] : changes(units, holder)) {
      for (const auto& [place, bytes] : more) held_[device_class][place] += bytes;
    }
  }

  /// The most that a device of a stage has with some units more, or fewer.
  [[nodiscard]] Bytes most(int holder, const std::vector<Unit>& units = {}, double sign = 1) const {
    std::map<int, Changes> all = changes(units, holder);
    Bytes most;
    for (int m = 0; m < c_.plan.micro_batches; ++m) all[class_of(replica(holder, m))];
    for (auto& [device_class, held] : all) {
      for (auto& [place, bytes] : held) bytes = sign * bytes;
      for (const auto& [place, bytes] : held_[device_class]) held[place] += bytes;
      most = std::max(most, lived_[device_class] + peak(held));
    }
    return most;
  }

  /// A rule for peers as rules for stages.
  std::vector<Keep> parts(const Keep& rule) {
    std::map<int, std::vector<Unit>> lent;
    for (const Unit& unit : units(rule)) lent[unit.stage].push_back(unit);
    std::optional<Bytes> room = neighbours_.memory;
    if (!rule.cells.empty()) {
      Bytes level;
      for (int stage = 0; stage < c_.stages.count(); ++stage)
        level = std::max(level, most(stage, lent[stage], -1));
      room = std::min(level, room.value_or(level));
    }
    std::vector<Keep> result;
    for (auto& [stage, units] : lent) {
      if (units.empty()) continue;
      for (const int peer : ranked(stage, rule.said)) {
        if (units.empty()) break;
        Keep taken = rule;
        taken.where = Keep::Where::stage;
        taken.stage = peer;
        take(units, room, taken);
        if (!taken.segments.empty() || !taken.cells.empty()) result.push_back(std::move(taken));
      }
      if (!rule.segments.empty() && !units.empty()) {
        throw InputError("", rule.said,
                         "room on other stages for what stage " + std::to_string(stage) + " swaps",
                         "none for " + std::to_string(units.size()) + " of its segments");
      }
    }
    return result;
  }

  /// Moves the units that a peer has room for to its rule.
  void take(std::vector<Unit>& units, const std::optional<Bytes>& room, Keep& taken) {
    const auto fits = [&](const std::vector<Unit>& some) {
      return !room || most(taken.stage, some) <= *room;
    };
    const bool all = fits(units);
    taken.segments.clear();
    taken.cells.clear();
    std::erase_if(units, [&](const Unit& unit) {
      if (!all && !fits({unit})) return false;
      hold({unit}, taken.stage);
      if (unit.segment >= 0) taken.segments.push_back(unit.segment);
      if (unit.micro_batch >= 0) taken.cells.emplace_back(unit.stage, unit.micro_batch);
      return true;
    });
  }

  /// The peers of a stage, the best one first. `said`: where the user asked for them.
  [[nodiscard]] std::vector<int> ranked(int stage, const std::string& said) const {
    std::vector<std::tuple<BytesPerSecond, Bytes, int>> peers;
    for (int peer = 0; peer < c_.stages.count(); ++peer) {
      if (const auto speed = speed_between(stage, peer))
        peers.emplace_back(*speed, -1.0 * most(peer), peer);
    }
    if (peers.empty()) {
      throw InputError("", said, "a stage of as many other devices, to hold what another one lends",
                       "none for stage " + std::to_string(stage));
    }
    std::ranges::sort(peers, std::greater<>());
    std::vector<int> result;
    for (const auto& [speed, idle, peer] : peers) result.push_back(peer);
    return result;
  }

  /// The slowest link between devices that stand for each other; nullopt where two stages have not
  /// as many devices, or share one.
  [[nodiscard]] std::optional<BytesPerSecond> speed_between(int stage, int peer) const {
    BytesPerSecond slowest{std::numeric_limits<double>::infinity()};
    std::set<std::pair<int, int>> seen;
    for (int m = 0; m < c_.plan.micro_batches; ++m) {
      if (!seen.emplace(replica(stage, m), replica(peer, m)).second) continue;
      const Grid& from = grid(replica(stage, m));
      const Grid& to = grid(replica(peer, m));
      const std::vector<int> here = from.devices(), there = to.devices();
      const auto is_there = [&](int device) { return std::ranges::count(there, device) > 0; };
      if (from.axes != to.axes || !from.listed.empty() || std::ranges::any_of(here, is_there))
        return std::nullopt;
      for (std::size_t i = 0; neighbours_.link && i < here.size(); ++i)
        slowest = std::min(slowest, neighbours_.link(here[i], there[i]));
    }
    return slowest;
  }

  const SequenceContext& c_;
  const Neighbours& neighbours_;
  std::vector<Changes> held_;  ///< by device class
  std::vector<Bytes> lived_;   ///< by device class: what lives there all the time
  std::map<Cell, int> places_;
};

}  // namespace

Residency with_peers(const SequenceContext& context, const Neighbours& neighbours) {
  const auto to_peers = [](const Keep& rule) { return rule.where == Keep::Where::peers; };
  if (std::ranges::none_of(context.residency.rules(), to_peers)) return context.residency;
  return Peers(context, neighbours).chosen();
}

}  // namespace stratagem::lowering
