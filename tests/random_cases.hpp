// Properties on random cases, always the same ones, with RapidCheck.
#pragma once

#include <rapidcheck.h>

#include <numeric>
#include <sstream>
#include <utility>
#include <vector>

#include "tests/catch.hpp"

namespace stratagem {

/// RapidCheck's own listener writes to the terminal.
struct Silent : rc::detail::TestListener {
  void onTestCaseFinished(const rc::detail::CaseDescription& /*unused*/) override {}
  void onShrinkTried(const rc::detail::CaseDescription& /*unused*/, bool /*unused*/) override {}
  void onTestFinished(const rc::detail::TestMetadata& /*unused*/,
                      const rc::detail::TestResult& /*unused*/) override {}
};

/// Checks a property on random cases, always the same ones; the smallest failing case is printed.
/// With sanitizers, which take many times as long, on the first sixteenth of them.
template <typename Property>
void always(Property property, int cases) {
  rc::detail::TestParams parameters;
  parameters.seed = 20241029;
#ifdef __SANITIZE_ADDRESS__
  parameters.maxSuccess = (cases + 15) / 16;
#else
  parameters.maxSuccess = cases;
#endif
  Silent listener;
  const auto result =
      rc::detail::checkTestable(property, rc::detail::TestMetadata{}, parameters, listener);
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  INFO(text.str());
  CHECK(result.template is<rc::detail::SuccessResult>());
}

/// From low to high, both included, all equally often from the first case on; shrinks towards low.
template <typename Int>
Int pick(Int low, Int high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<Int>(low, high + 1));
}
template <typename T>
T one_of(const std::vector<T>& choices) {
  return choices[pick<std::size_t>(0, choices.size() - 1)];
}

/// 0 to count - 1 in a random order.
inline std::vector<int> shuffled(int count) {
  std::vector<int> names(static_cast<std::size_t>(count));
  std::iota(names.begin(), names.end(), 0);
  for (std::size_t i = names.size(); i > 1; --i)
    std::swap(names[i - 1], names[pick<std::size_t>(0, i - 1)]);
  return names;
}

}  // namespace stratagem
