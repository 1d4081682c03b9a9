// Bisection: a larger slowdown never makes a run faster.
#include "study/fit_stack.hpp"

#include <algorithm>
#include <cmath>

#include "base/input_error.hpp"
#include "study/simulate.hpp"

namespace stratagem::study {
namespace {

double predicted_tflops(Run run, double slowdown) {
  run.stack.slowdown.value = slowdown;
  return simulate(run, {}).outcome.hardware_rate() / 1_TFLOPps;
}

}  // namespace

cost::Constant<double> fit_slowdown(const Run& run) {
  const auto measured = std::ranges::find(run.compared.measured, "tflops_per_gpu", &Measured::name);
  if (run.gpus != 1 || measured == run.compared.measured.end()) {
    throw InputError(run.strategy.file(), run.strategy.path(),
                     "a run on one GPU with a measured tflops_per_gpu, to fit a stack to",
                     run.name);
  }
  double low = 0.5;
  double high = 4;
  if (predicted_tflops(run, low) < measured->value ||
      predicted_tflops(run, high) > measured->value) {
    throw InputError(run.strategy.file(), run.strategy.path(),
                     "a measurement that a slowdown of 0.5 to 4 explains", run.name);
  }
  while (high - low > 1e-6) {
    const double middle = (low + high) / 2;
    (predicted_tflops(run, middle) > measured->value ? low : high) = middle;
  }
  return {.value = std::round(low * 1e4) / 1e4,
          .provenance = cost::Provenance::fitted,
          .source = "fitted to one run: " + run.name + ", " + measured->source};
}

}  // namespace stratagem::study
