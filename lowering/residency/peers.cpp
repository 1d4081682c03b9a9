// Walks the cells of all device classes and counts what they hold; then every stage that lends
// chooses in turn.
#include "lowering/residency/peers.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/input_error.hpp"
#include "lowering/updates/optimizer.hpp"
#include "placement/local_part.hpp"
#include "strategies/parallel/options.hpp"

namespace stratagem::lowering {

using placement::Cell;
using placement::CellPass;
using placement::Grid;
using strategies::Keep;
using strategies::Residency;

namespace {

/// By place in the order of all cells: what comes there, less what goes.
using Changes = std::map<int, Bytes>;

Bytes peak(Changes held, const Changes& more) {
  for (const auto& [place, bytes] : more) held[place] += bytes;
  Bytes now;
  Bytes most;
  for (const auto& [place, bytes] : held) most = std::max(most, now += bytes);
  return most;
}

class Peers {
 public:
  Peers(const SequenceContext& context, const Neighbours& neighbours)
      : c_(context), neighbours_(neighbours), held_(context.order.rounds.size()) {
    for (std::size_t device_class = 0; device_class < held_.size(); ++device_class) {
      lived_.push_back(resident(static_cast<int>(device_class)));
      for (const ScheduledCell& of : c_.order.rounds[device_class]) {
        places_[of.cell] = of.place;
        hold_own(held_[device_class], of);
      }
    }
  }

  Residency chosen() {
    Residency chosen;
    for (const Keep& rule : c_.residency.rules()) {
      if (rule.where == Keep::Where::peers) continue;
      chosen.keep(rule);
      if (rule.where == Keep::Where::stage) {
        take_in(units(rule), rule.stage);
      }
    }
    for (const Keep& rule : c_.residency.rules()) {
      if (rule.where != Keep::Where::peers) continue;
      std::map<int, std::vector<Keep>> lent;
      for (Keep& unit : units(rule)) lent[stage_of(unit)].push_back(std::move(unit));
      for (auto& [stage, all] : lent) lend(stage, std::move(all), chosen);
    }
    return chosen;
  }

 private:
  [[nodiscard]] int stage_of(const Keep& unit) const {
    return unit.cells.empty() ? c_.stages.of(unit.segments.front()) : unit.cells.front().first;
  }

  /// A rule for each segment or cell.
  [[nodiscard]] static std::vector<Keep> units(const Keep& rule) {
    std::vector<Keep> result;
    Keep one = rule;
    one.segments.clear();
    one.cells.clear();
    for (const int segment : rule.segments) result.emplace_back(one).segments = {segment};
    for (const auto& cell : rule.cells) result.emplace_back(one).cells = {cell};
    return result;
  }

  [[nodiscard]] Bytes resident(int device_class) const {
    Bytes bytes;
    for (const program::Resident& one : resident_buffers(c_, SequenceDraft(c_, device_class), 1)) {
      if (one.place == program::Residence::device) bytes += one.bytes;
    }
    return bytes;
  }

  /// What a cell's stage keeps of it from its last forward pass to its last backward pass. What it
  /// lends counts, too: a stage that has too little is no peer.
  void hold_own(Changes& held, const ScheduledCell& of) const {
    const Cell& cell = of.cell;
    const bool forward = cell.pass == CellPass::forward;
    if (forward ? cell.repeat + 1 < c_.plan.graph().forward_repeats : !weighs(c_.plan, cell))
      return;
    for (const int segment : c_.plan.stages[cell.stage]) {
      const Keep* rule = c_.residency.of_segment(segment);
      const bool away = rule != nullptr && rule->where != Keep::Where::peers;
      if (away || c_.stages.irregular(cell.stage)) continue;
      held[of.place] += (forward ? 1.0 : -1.0) * left_by_forward(c_, segment);
    }
  }

  /// By device class: what a peer holds of some units of a stage, and when.
  [[nodiscard]] std::map<int, Changes> changes(const std::vector<Keep>& units, int peer) const {
    std::map<int, Changes> result;
    for (const Keep& unit : units) {
      const int stage = stage_of(unit);
      Bytes bytes;
      for (const int segment : unit.cells.empty() ? unit.segments : c_.plan.stages[stage])
        bytes += left_by_forward(c_, segment);
      for (int m = 0; m < c_.plan.micro_batches; ++m) {
        if (!unit.cells.empty() && unit.cells.front().second != m) continue;
        Changes& held = result[class_of(replica(peer, m))];
        const int last = c_.plan.graph().forward_repeats - 1;
        held[places_.at({.stage = stage, .micro_batch = m, .repeat = last})] += bytes;
        held[places_.at({.stage = stage, .micro_batch = m, .pass = CellPass::backward})] -= bytes;
      }
    }
    return result;
  }

  [[nodiscard]] int replica(int stage, int micro_batch) const {
    return c_.stages.replica(stage, c_.plan.copy_of(stage, micro_batch));
  }
  [[nodiscard]] const Grid& grid(int replica) const { return c_.stages.replicas()[replica].grid; }
  [[nodiscard]] int class_of(int replica) const {
    return c_.stages.class_of_device()[grid(replica).devices().front()];
  }

  void take_in(const std::vector<Keep>& units, int peer) {
    for (const auto& [device_class, more] : changes(units, peer)) {
      for (const auto& [place, bytes] : more) held_[device_class][place] += bytes;
    }
  }

  [[nodiscard]] bool has_room(const std::vector<Keep>& units, int peer) const {
    return !neighbours_.memory || std::ranges::all_of(changes(units, peer), [&](const auto& one) {
      const auto& [device_class, more] = one;
      return lived_[device_class] + peak(held_[device_class], more) <= *neighbours_.memory;
    });
  }

  void lend(int stage, std::vector<Keep> units, Residency& chosen) {
    for (const int peer : ranked(stage)) {
      const bool all = has_room(units, peer);
      std::vector<Keep> left;
      Keep taken = units.front();
      taken.where = Keep::Where::stage;
      taken.stage = peer;
      taken.segments.clear();
      taken.cells.clear();
      for (const Keep& unit : units) {
        if (!all && !has_room({unit}, peer)) {
          left.push_back(unit);
          continue;
        }
        take_in({unit}, peer);
        taken.segments.insert(taken.segments.end(), unit.segments.begin(), unit.segments.end());
        taken.cells.insert(taken.cells.end(), unit.cells.begin(), unit.cells.end());
      }
      if (!taken.segments.empty() || !taken.cells.empty()) chosen.keep(std::move(taken));
      if (left.empty()) return;
      units = std::move(left);
    }
  }

  /// The replicas of two stages that work on the same micro-batch.
  [[nodiscard]] std::set<std::pair<int, int>> meetings(int stage, int peer) const {
    std::set<std::pair<int, int>> result;
    for (int m = 0; m < c_.plan.micro_batches; ++m)
      result.emplace(replica(stage, m), replica(peer, m));
    return result;
  }

  /// The peers of a stage, the best one first.
  [[nodiscard]] std::vector<int> ranked(int stage) const {
    std::vector<std::tuple<BytesPerSecond, Bytes, int>> peers;
    for (int peer = 0; peer < c_.stages.count(); ++peer) {
      const std::optional<BytesPerSecond> speed = speed_between(stage, peer);
      if (!speed) continue;
      Bytes most;
      for (const auto& [here, there] : meetings(stage, peer)) {
        const int held = class_of(there);
        most = std::max(most, lived_[held] + peak(held_[held], {}));
      }
      peers.emplace_back(*speed, -1.0 * most, peer);
    }
    if (peers.empty()) {
      throw InputError("", path_of(&strategies::Options::swap) + "/to",
                       "a stage of as many other devices, to hold what another one lends",
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
    for (const auto& [from, to] : meetings(stage, peer)) {
      const std::vector<int> here = grid(from).devices(), there = grid(to).devices();
      const auto is_there = [&](int device) { return std::ranges::count(there, device) > 0; };
      if (grid(from).axes != grid(to).axes || !grid(from).listed.empty() ||
          std::ranges::any_of(here, is_there))
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

Bytes left_by_forward(const SequenceContext& context, int segment) {
  Bytes bytes;
  for (const auto& [table, border] : context.slices.front()->left_by_forward(segment)) {
    const model::TensorId tensor = context.stages.facts(segment).tensors[table];
    bytes += local_bytes(context.plan.graph().tensors[tensor], border.layout,
                         context.stages.grid_of_segment(segment));
  }
  return bytes;
}

}  // namespace stratagem::lowering
