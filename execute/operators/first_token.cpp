// The first token of every sample: what a pooler reads.
#include <algorithm>

#include "execute/operators/application.hpp"

namespace stratagem::execute {
namespace {

/// (batch, tokens, width) -> (batch, width); backward, all other tokens get zeros.
template <typename T>
void first_token(const Application<T>& a) {
  const bool forward = a.is_forward();
  const std::vector<std::int64_t> all = (forward ? *a.inputs[0] : *a.outputs[0]).region.shape();
  const auto batch = static_cast<std::size_t>(all[0]), width = static_cast<std::size_t>(all[2]);
  const auto sample = static_cast<std::size_t>(all[1]) * width;
  if (!forward) std::ranges::fill(a.out(0), T{0});
  const std::size_t from = forward ? sample : width, to = forward ? width : sample;
  for (std::size_t b = 0; b < batch; ++b)
    std::ranges::copy(a.in(0).subspan(b * from, width), a.out(0).subspan(b * to).begin());
}

}  // namespace

std::vector<Execution> first_tokens() {
  Execution row = computed("first_token", [](const auto& a) { first_token(a); });
  row.not_on_gpu = "the pooler of a BERT on a GPU";
  return {row};
}

}  // namespace stratagem::execute
