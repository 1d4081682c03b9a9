// Work in whole millionths of a picosecond; an event for each actor that computes.
#include "sim/slowed_kernels.hpp"

#include <algorithm>
#include <cmath>

#include "base/input_error.hpp"

namespace stratagem::sim {
namespace {

constexpr std::int64_t million = 1'000'000;

[[noreturn]] void refuse() {
  throw InputError("", "", "a simulation of less than 106 days", "a longer one");
}

std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) refuse();
  return result;
}

std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) refuse();
  return result;
}

/// (a * p + b * q) / divisor, rounded up. p, q and divisor are at most a million, divisor more than
/// 0; only the result needs to fit.
std::int64_t weighted(std::int64_t a, std::int64_t p, std::int64_t b, std::int64_t q,
                      std::int64_t divisor) {
  const std::int64_t whole = sum(product(a / divisor, p), product(b / divisor, q));
  const std::int64_t rest = (a % divisor) * p + (b % divisor) * q;
  return sum(whole, rest / divisor + (rest % divisor > 0 ? 1 : 0));
}

}  // namespace

int to_millionths(double share) {
  if (!(share >= 0 && share < 1))
    throw InputError("", "", "a slow-down of at least 0 and less than 1", std::to_string(share));
  return static_cast<int>(std::min<std::int64_t>(std::llround(share * million), million - 1));
}

Instant SlowedWork::end() const {
  if (slowed_.count == 0) return from_ + amount_;
  return from_ + amount_ + Ticks{weighted(slowed_.count, millionths_, 0, 0, million)};
}

Instant SlowedWork::end(Instant since) const {
  const Instant slow_from = std::max(since, from_);
  const Instant fast = end();
  if (fast <= slow_from) return fast;
  // What is left is amount - elapsed + s * slowed; it is done at the rate 1 - s.
  const std::int64_t not_elapsed = amount_.count - (slow_from - from_).count;
  return slow_from +
         Ticks{weighted(not_elapsed, million, slowed_.count, millionths_, million - millionths_)};
}

void SlowedWork::slow(Instant since, Instant until) {
  const Instant slow_from = std::max(since, from_);
  const Instant slow_until = std::min(until, end(since));
  if (slow_until > slow_from) slowed_.count += (slow_until - slow_from).count;
}

void SlowedKernels::begin(int actor, const SlowedKernel& kernel) {
  Communicating& state = states_[actor];
  const auto place =
      std::ranges::upper_bound(state.kernels, kernel.queue, {}, &SlowedKernel::queue);
  state.kernels.insert(place, kernel);
  state.changed = true;
}

Instant SlowedKernels::end_of(const Communicating& state, const SlowedKernel& kernel) {
  if (state.collectives == 0) return std::max(kernel.all.end(), kernel.last.end());
  return std::max(kernel.all.end(state.since), kernel.last.end(state.since));
}

SlowedKernels::Next SlowedKernels::next_of(const Communicating& state) {
  Next next{.kernel = 0, .end = end_of(state, state.kernels.front())};
  for (std::size_t k = 1; k < state.kernels.size(); ++k) {
    const Instant end = end_of(state, state.kernels[k]);
    if (end < next.end) next = {k, end};
  }
  return next;
}

SlowedKernels::Ended SlowedKernels::end_next(int actor) {
  Communicating& state = states_[actor];
  const Next next = next_of(state);
  const Ended ended{.actor = actor, .kernel = state.kernels[next.kernel], .end = next.end};
  state.kernels.erase(state.kernels.begin() + static_cast<std::ptrdiff_t>(next.kernel));
  state.changed = true;
  return ended;
}

void SlowedKernels::begin_communication(int actor, Instant now) {
  Communicating& state = states_[actor];
  if (state.collectives++ > 0) return;
  state.since = now;
  state.changed = true;
  schedule(actor);
}

void SlowedKernels::end_communication(int actor, Instant now) {
  Communicating& state = states_[actor];
  if (--state.collectives > 0) return;
  for (SlowedKernel& kernel : state.kernels) {
    kernel.all.slow(state.since, now);
    kernel.last.slow(state.since, now);
  }
  state.changed = true;
  schedule(actor);
}

void SlowedKernels::schedule(int actor) {
  Communicating& state = states_[actor];
  if (!state.changed) return;
  state.changed = false;
  state.event = number_++;
  if (!state.kernels.empty()) events_.push({next_of(state).end, state.event, actor});
  drop_outdated();
}

std::optional<SlowedKernels::Ended> SlowedKernels::end_at(Instant now) {
  if (events_.empty() || events_.top().when > now) return std::nullopt;
  const int actor = events_.top().actor;
  events_.pop();
  drop_outdated();
  return end_next(actor);
}

void SlowedWork::write(RelativeState& state) const {
  state.add(from_);
  state.add(amount_.count);
  state.add(millionths_);
  state.add(slowed_.count);
}

void SlowedKernels::write(RelativeState& state) const {
  std::vector<std::pair<std::int64_t, std::int64_t>> events;  // with their actors
  for (std::size_t a = 0; a < states_.size(); ++a) {
    const Communicating& one = states_[a];
    expects(!one.changed, "events are up to date");
    state.add(one.collectives);
    if (one.collectives > 0) state.add(one.since);
    state.add(static_cast<std::int64_t>(one.kernels.size()));
    for (const SlowedKernel& kernel : one.kernels) {
      state.add(kernel.queue);
      kernel.all.write(state);
      kernel.last.write(state);
    }
    if (!one.kernels.empty()) events.emplace_back(one.event, a);
  }
  std::ranges::sort(events);
  for (const auto& [number, actor] : events) state.add(actor);
}

void SlowedKernels::drop_outdated() {
  while (!events_.empty() && states_[events_.top().actor].event != events_.top().number)
    events_.pop();
}

}  // namespace stratagem::sim
