// Losses of heads that predict numbers.
#include <cmath>

#include "execute/operators/application.hpp"

namespace stratagem::execute {
namespace {

/// The square of the difference of a value and a return; its gradient is of the value.
template <typename T>
void squared_error(const Application<T>& a) {
  const bool forward = a.is_forward();
  const auto values = a.in(forward ? 0 : 1), returns = a.in(forward ? 1 : 2);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T difference = values[i] - returns[i];
    a.out(0)[i] = forward ? difference * difference : 2 * difference * a.in(0)[i];
  }
}

/// Of answers that stand in the order of preference, the mean over their pairs of
/// -log sigmoid(preferred - other) = log(1 + exp(other - preferred)).
template <typename T>
void pairwise_loss(const Application<T>& a) {
  const bool forward = a.is_forward();
  const auto rewards = a.in(forward ? 0 : 1);
  const std::size_t prompts = forward ? a.out(0).size() : a.in(0).size();
  const std::size_t answers = prompts == 0 ? 0 : rewards.size() / prompts;
  const T share = T{2} / static_cast<T>(answers * (answers - 1));
  for (std::size_t prompt = 0; prompt < prompts; ++prompt) {
    const std::size_t first = prompt * answers;
    for (std::size_t i = first; i < first + answers; ++i) {
      for (std::size_t j = i + 1; j < first + answers; ++j) {
        const T ahead = rewards[i] - rewards[j];
        if (forward) {
          const T least = std::log1p(std::exp(-std::abs(ahead)));
          a.out(0)[prompt] += share * (ahead < 0 ? least - ahead : least);
          continue;
        }
        const T slope = a.in(0)[prompt] * share / (1 + std::exp(ahead));
        a.out(0)[i] -= slope;
        a.out(0)[j] += slope;
      }
    }
  }
}

}  // namespace

std::vector<Execution> losses_of_numbers() {
  std::vector<Execution> rows = {
      computed("squared_error", [](const auto& a) { squared_error(a); }),
      computed("pairwise_loss", [](const auto& a) { pairwise_loss(a); })};
  for (Execution& row : rows) row.not_on_gpu = "a head of values or rewards on a GPU";
  return rows;
}

}  // namespace stratagem::execute
