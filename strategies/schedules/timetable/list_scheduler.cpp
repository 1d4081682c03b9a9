// List scheduling: the clock advances to the next end of a cell, and idle ranks choose their next
// cell.
#include "strategies/schedules/timetable/list_scheduler.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::strategies {

using placement::CellPass;

namespace {

using Time = std::int64_t;
constexpr Time never = std::numeric_limits<Time>::max();

/// One stage on a rank, and how many micro-batches have begun each of its passes.
struct Slot {
  int stage = 0;
  int first_micro_batch = 0;
  int micro_batches = 0;
  std::array<int, 3> begun{};  ///< by pass
  int held = 0;
};

struct Rank {
  std::vector<Slot> slots;
  std::size_t ordered = 0;  ///< cells begun of those in the kept order
  Time first_begin = never;
  Time busy = 0;
  Time free_at = 0;
};

class Scheduler {
 public:
  Scheduler(const Workload& workload, const Priority& priority);
  std::optional<Listed> run();

 private:
  [[nodiscard]] bool may_begin(const Candidate&, const Slot&) const;
  [[nodiscard]] bool is_next(const Candidate&) const;
  [[nodiscard]] bool has_room(int rank, int slot) const;
  [[nodiscard]] bool ended(int stage, int micro_batch, CellPass) const;
  [[nodiscard]] std::optional<Candidate> choose(int rank) const;
  [[nodiscard]] Time duration(CellPass) const;
  void begin(const Candidate&);
  [[nodiscard]] bool advance();
  [[nodiscard]] std::size_t index(int stage, int micro_batch, CellPass) const;

  const Workload& work_;
  const Priority& priority_;
  int stages_ = 0;
  int remaining_ = 0;
  bool weights_kept_ = false;  ///< the kept order holds weight cells
  Time now_ = 0;
  std::vector<Rank> ranks_;
  std::vector<Time> ends_;  ///< by (stage, micro-batch, pass)
  Timetable timetable_;
};

Scheduler::Scheduler(const Workload& workload, const Priority& priority)
    : work_(workload), priority_(priority) {
  const Pipeline& pipeline = work_.pipeline;
  const bool both_ways = work_.placement == Placement::bidirectional;
  const int slots = both_ways ? 2 : pipeline.chunks;
  stages_ = both_ways ? pipeline.ranks : pipeline.ranks * slots;
  const int share = both_ways ? pipeline.micro_batches / 2 : pipeline.micro_batches;
  for (int rank = 0; rank < pipeline.ranks; ++rank) {
    auto& target = ranks_.emplace_back();
    for (int slot = 0; slot < slots; ++slot) {
      const int stage = stage_of(work_.placement, pipeline.ranks, rank, slot);
      target.slots.push_back({stage, both_ways ? slot * share : 0, share, {}, 0});
    }
  }
  remaining_ = pipeline.ranks * slots * share * (work_.split ? 3 : 2);
  const auto is_weight = [](const placement::Cell& cell) { return cell.pass == CellPass::weight; };
  weights_kept_ = std::ranges::any_of(
      work_.kept_order, [&](const auto& cells) { return std::ranges::any_of(cells, is_weight); });
  ends_.assign(std::size_t{3} * stages_ * pipeline.micro_batches, never);
  timetable_.ranks.resize(pipeline.ranks);
}

std::optional<Listed> Scheduler::run() {
  while (remaining_ > 0) {
    bool began = false;
    for (int rank = 0; rank < work_.pipeline.ranks; ++rank) {
      if (ranks_[rank].free_at > now_) continue;
      if (const auto chosen = choose(rank)) {
        begin(*chosen);
        began = true;
      }
    }
    // Cells of no duration end at once: the clock stands until nothing begins.
    if (!began && !advance()) return std::nullopt;
  }
  Listed listed{std::move(timetable_), 0, 0};
  for (const Rank& rank : ranks_) {
    listed.makespan = std::max(listed.makespan, rank.free_at);
    listed.bubble = std::max(listed.bubble, rank.free_at - rank.first_begin - rank.busy);
  }
  return listed;
}

std::optional<Candidate> Scheduler::choose(int rank) const {
  std::optional<Candidate> best;
  Key best_key{};
  for (int slot = 0; slot < static_cast<int>(ranks_[rank].slots.size()); ++slot) {
    const Slot& place = ranks_[rank].slots[slot];
    for (const CellPass pass : {CellPass::forward, CellPass::backward, CellPass::weight}) {
      const int turn = place.begun[static_cast<int>(pass)];
      const Candidate candidate{
          {place.stage, place.first_micro_batch + turn, pass}, rank, slot, turn};
      if (!may_begin(candidate, place)) continue;
      const Key key = priority_(candidate);
      if (best && best_key <= key) continue;
      best = candidate;
      best_key = key;
    }
  }
  return best;
}

bool Scheduler::may_begin(const Candidate& candidate, const Slot& slot) const {
  const auto& [stage, micro_batch, pass, slice, repeat] = candidate.cell;
  if (candidate.turn >= slot.micro_batches) return false;
  if (!is_next(candidate)) return false;
  if (pass == CellPass::weight) return work_.split && ended(stage, micro_batch, CellPass::backward);
  if (pass == CellPass::backward) {
    const bool last = stage + 1 == stages_;
    return ended(stage, micro_batch, CellPass::forward) &&
           (last || ended(stage + 1, micro_batch, CellPass::backward));
  }
  const bool arrived = stage == 0 || ended(stage - 1, micro_batch, CellPass::forward);
  return arrived && has_room(candidate.rank, candidate.slot);
}

bool Scheduler::is_next(const Candidate& candidate) const {
  if (work_.kept_order.empty()) return true;
  if (candidate.cell.pass == CellPass::weight && !weights_kept_) return true;
  const auto& order = work_.kept_order[candidate.rank];
  const std::size_t next = ranks_[candidate.rank].ordered;
  return next < order.size() && order[next] == candidate.cell;
}

bool Scheduler::has_room(int rank, int slot) const {
  const auto allows = [&](const Limit& limit) {
    if (slot < limit.first || slot > limit.last) return true;
    int held = 0;
    for (int i = limit.first; i <= limit.last; ++i) held += ranks_[rank].slots[i].held;
    return held < limit.most;
  };
  return std::ranges::all_of(work_.limits[rank], allows);
}

Time Scheduler::duration(CellPass pass) const {
  const CellCosts& costs = work_.pipeline.costs;
  if (pass == CellPass::forward) return costs.forward;
  if (pass == CellPass::weight) return costs.weight;
  return costs.input + (work_.split ? 0 : costs.weight);
}

void Scheduler::begin(const Candidate& candidate) {
  const CellPass pass = candidate.cell.pass;
  Rank& rank = ranks_[candidate.rank];
  Slot& slot = rank.slots[candidate.slot];
  rank.first_begin = std::min(rank.first_begin, now_);
  rank.busy += duration(pass);
  rank.free_at = now_ + duration(pass);
  ends_[index(candidate.cell.stage, candidate.cell.micro_batch, pass)] = rank.free_at;
  ++slot.begun[static_cast<int>(pass)];
  if (pass != CellPass::weight || weights_kept_) ++rank.ordered;
  if (pass == CellPass::forward) ++slot.held;
  // The rank is busy until the activations are let go, so nobody sees that they go early here.
  if (pass == (work_.split ? CellPass::weight : CellPass::backward)) --slot.held;
  timetable_.ranks[candidate.rank].push_back(candidate.cell);
  --remaining_;
}

bool Scheduler::advance() {
  Time next = never;
  for (const Rank& rank : ranks_) {
    if (rank.free_at > now_) next = std::min(next, rank.free_at);
  }
  if (next == never) return false;
  now_ = next;
  return true;
}

bool Scheduler::ended(int stage, int micro_batch, CellPass pass) const {
  return ends_[index(stage, micro_batch, pass)] <= now_;
}

std::size_t Scheduler::index(int stage, int micro_batch, CellPass pass) const {
  const std::size_t row = std::size_t{1} * stage * work_.pipeline.micro_batches + micro_batch;
  return 3 * row + static_cast<int>(pass);
}

}  // namespace

std::vector<Limit> safe_limits(int chunks, int most) {
  std::vector<Limit> limits;
  limits.reserve(chunks);
  for (int chunk = 0; chunk < chunks; ++chunk)
    limits.push_back({0, chunk, most - (chunks - 1 - chunk)});
  return limits;
}

std::optional<Listed> list_schedule(const Workload& workload, const Priority& priority) {
  return Scheduler(workload, priority).run();
}

void Shortest::attempt(const Workload& workload, const Priority& priority) {
  offer(list_schedule(workload, priority));
  Workload even = workload;
  even.pipeline.costs = {1, 1, workload.split ? 1 : 0};
  auto listed = list_schedule(even, priority);
  if (!listed) return;
  even.pipeline.costs = workload.pipeline.costs;
  even.kept_order = std::move(listed->timetable.ranks);
  offer(list_schedule(even, priority));
}

Timetable Shortest::take() {
  expects(best_.has_value(), "one of the attempts at list scheduling ends");
  return std::move(best_->timetable);
}

void Shortest::offer(std::optional<Listed> found) {
  if (!found) return;
  if (best_ && std::tie(best_->makespan, best_->bubble) <= std::tie(found->makespan, found->bubble))
    return;
  best_ = std::move(found);
}

}  // namespace stratagem::strategies
