// Rounds of a program, in which calls are of one iteration, or of several where iterations overlap.
#include <cmath>
#include <span>

#include "execute/interpreter.hpp"
#include "kernels/half.hpp"

namespace stratagem::execute {

using program::Sequence;

template <typename T>
double Interpreter<T>::iterate(const Watch& watch) {
  return overlap(1, watch).front();
}

template <typename T>
std::vector<double> Interpreter<T>::train(int iterations, const Watch& watch) {
  if (without_flush()) return overlap(iterations, watch);
  std::vector<double> losses;
  for (int i = 0; i < iterations; ++i) losses.push_back(iterate(watch));
  return losses;
}

/// Rounds until the last of the iterations has ended; the weights are those after all of them then.
template <typename T>
std::vector<double> Interpreter<T>::overlap(int iterations, const Watch& watch) {
  watch_ = watch;
  ends_.assign(static_cast<std::size_t>(iterations), Seconds{});
  const Sequence& sequence = program_.sequences[program_.devices[device_].sequence];
  engine_->start(recording_, program::task_count(program_, sequence));
  arena_.begin_peak();
  first_ = iteration_;
  values_.assign(program_.lag + 1, std::vector<Shared<T>>(buffers_.count()));
  for (round_ = 0; round_ < iterations + program_.lag; ++round_) {
    run_round(sequence, iterations);
    // What was sent so many rounds ago has been received in this one.
    if (program_.lag > 0) messages_.settle(static_cast<std::size_t>(program_.lag));
  }
  for (const std::size_t task : messages_.finish()) engine_->end(recording_, task);
  engine_->finish(recording_);
  values_.clear();
  gradients_.clear();
  std::vector<double> losses = engine_->noted(static_cast<std::size_t>(iterations));
  world_.all_reduce(kernels::Reduction::sum, std::span<double>(losses));
  place_.leave();
  for (std::size_t i = 0; i < losses.size(); ++i) {
    if (!std::isfinite(losses[i])) throw NotFinite(finite_.told(world_, losses[i], first_ + i));
  }
  iteration_ = first_ + static_cast<std::uint64_t>(iterations);
  return losses;
}

/// Of the calls those whose iteration has begun and is one of `iterations`.
template <typename T>
void Interpreter<T>::run_round(const Sequence& sequence, int iterations) {
  task_ = 0;
  program::each_launch(program_, sequence, [&](const program::Launch& launch) {
    const int of = round_ - sequence.calls.body(launch.call).lag;
    if (of < 0 || of >= iterations) {
      task_ += static_cast<std::size_t>(launch.end - launch.first);
      return;
    }
    iteration_ = first_ + static_cast<std::uint64_t>(of);
    run(launch);
    ends_[static_cast<std::size_t>(of)] = Seconds{recording_.now()};
  });
}

#define INSTANTIATE(T)                                                     \
  template double Interpreter<T>::iterate(const Watch&);                   \
  template std::vector<double> Interpreter<T>::train(int, const Watch&);   \
  template std::vector<double> Interpreter<T>::overlap(int, const Watch&); \
  template void Interpreter<T>::run_round(const program::Sequence&, int);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(kernels::Half)
INSTANTIATE(kernels::BFloat16)
#undef INSTANTIATE

}  // namespace stratagem::execute
