// Routes tokens to the slots of experts, and adds their weighted outputs up again.
#include "kernels/experts.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace stratagem::kernels {
namespace {

/// Calls `run(token of all samples, place of its weight, place of the slot's row)` for every slot
/// here that a token takes.
template <typename T, typename Run>
void for_each_taken(const ExpertSlots& shape, In<T> slots, const Run& run) {
  const std::int64_t tokens = shape.samples * shape.tokens;
  expect_size(tokens * shape.choices, slots);
  for (std::int64_t i = 0; i < tokens * shape.choices; ++i) {
    const auto slot = static_cast<std::int64_t>(slots[i]);
    const std::int64_t expert = slot / shape.capacity - shape.first_expert;
    if (slot < 0 || expert < 0 || expert >= shape.experts) continue;
    const std::int64_t token = i / shape.choices, sample = token / shape.tokens;
    run(token, token * shape.experts + expert,
        (expert * shape.samples + sample) * shape.capacity + slot % shape.capacity);
  }
}

/// Of rows of tokens and contents of slots; throws unless they fit each other and the shape.
template <typename Rows, typename Contents>
std::int64_t width_of(const ExpertSlots& shape, const Rows& rows, const Contents& contents) {
  const std::int64_t tokens = shape.samples * shape.tokens;
  const std::int64_t width = tokens == 0 ? 0 : static_cast<std::int64_t>(rows.size()) / tokens;
  expect_size(tokens * width, rows);
  expect_size(shape.experts * shape.samples * shape.capacity * width, contents);
  return width;
}

/// The experts of largest weight, largest first; of equal ones the first.
template <typename T>
std::vector<std::int64_t> largest(In<T> weights, std::int64_t choices) {
  std::vector<std::int64_t> experts(weights.size());
  std::iota(experts.begin(), experts.end(), 0);
  std::ranges::stable_sort(experts, std::ranges::greater(),
                           [&](std::int64_t expert) { return weights[expert]; });
  experts.resize(static_cast<std::size_t>(choices));
  return experts;
}

}  // namespace

template <typename T>
void choose_slots(const ExpertSlots& shape, In<T> weights, Out<T> slots) {
  expect_size(shape.samples * shape.tokens * shape.experts, weights);
  expect_size(shape.samples * shape.tokens * shape.choices, slots);
  expects(shape.choices <= shape.experts, "a token is sent to experts that there are");
  for (std::int64_t sample = 0; sample < shape.samples; ++sample) {
    std::vector<std::int64_t> taken(static_cast<std::size_t>(shape.experts));
    for (std::int64_t choice = 0; choice < shape.choices; ++choice) {
      for (std::int64_t t = 0; t < shape.tokens; ++t) {
        const std::int64_t token = sample * shape.tokens + t;
        const std::int64_t expert =
            largest<T>(weights.subspan(token * shape.experts, shape.experts), choice + 1).back();
        const bool free = taken[expert] < shape.capacity;
        slots[token * shape.choices + choice] =
            static_cast<T>(free ? expert * shape.capacity + taken[expert]++ : -1);
      }
    }
  }
}

template <typename T>
void to_slots(const ExpertSlots& shape, In<T> slots, In<T> rows, In<T> weights, Out<T> contents) {
  const std::int64_t width = width_of(shape, rows, contents);
  std::ranges::fill(contents, T{0});
  for_each_taken<T>(shape, slots, [&](std::int64_t token, std::int64_t at, std::int64_t slot) {
    const T weight = weights.empty() ? T{1} : weights[at];
    for (std::int64_t i = 0; i < width; ++i)
      contents[slot * width + i] = weight * rows[token * width + i];
  });
}

template <typename T>
void from_slots(const ExpertSlots& shape, In<T> slots, In<T> contents, In<T> weights, Out<T> rows) {
  const std::int64_t width = width_of(shape, rows, contents);
  std::ranges::fill(rows, T{0});
  for_each_taken<T>(shape, slots, [&](std::int64_t token, std::int64_t at, std::int64_t slot) {
    const T weight = weights.empty() ? T{1} : weights[at];
    for (std::int64_t i = 0; i < width; ++i)
      rows[token * width + i] += weight * contents[slot * width + i];
  });
}

template <typename T>
void slot_weights_gradient(const ExpertSlots& shape, In<T> slots, In<T> drows, In<T> contents,
                           Out<T> dweights) {
  const std::int64_t width = width_of(shape, drows, contents);
  expect_size(shape.samples * shape.tokens * shape.experts, dweights);
  std::ranges::fill(dweights, T{0});
  for_each_taken<T>(shape, slots, [&](std::int64_t token, std::int64_t at, std::int64_t slot) {
    for (std::int64_t i = 0; i < width; ++i)
      dweights[at] += drows[token * width + i] * contents[slot * width + i];
  });
}

#define INSTANTIATE(T)                                                          \
  template void choose_slots<T>(const ExpertSlots&, In<T>, Out<T>);             \
  template void to_slots<T>(const ExpertSlots&, In<T>, In<T>, In<T>, Out<T>);   \
  template void from_slots<T>(const ExpertSlots&, In<T>, In<T>, In<T>, Out<T>); \
  template void slot_weights_gradient<T>(const ExpertSlots&, In<T>, In<T>, In<T>, Out<T>);
STRATAGEM_FOR_ELEMENTS(INSTANTIATE)
#undef INSTANTIATE

}  // namespace stratagem::kernels
