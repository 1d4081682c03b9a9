// One token of every sample: the first, which a pooler reads, or the last.
#include <algorithm>

#include "execute/operators/application.hpp"

namespace stratagem::execute {
namespace {

/// (batch, tokens, width) -> (batch, width); backward, all other tokens get zeros.
template <typename T>
void one_token(const Application<T>& a, bool last) {
  const bool forward = a.is_forward();
  const std::vector<std::int64_t> all = (forward ? *a.inputs[0] : *a.outputs[0]).region.shape();
  const auto batch = static_cast<std::size_t>(all[0]), width = static_cast<std::size_t>(all[2]);
  const auto sample = static_cast<std::size_t>(all[1]) * width;
  if (!forward) std::ranges::fill(a.out(0), T{0});
  const std::size_t place = last ? sample - width : 0;
  for (std::size_t b = 0; b < batch; ++b) {
    const std::size_t within = b * sample + place, alone = b * width;
    std::ranges::copy(a.in(0).subspan(forward ? within : alone, width),
                      a.out(0).subspan(forward ? alone : within).begin());
  }
}

}  // namespace

std::vector<Execution> single_tokens() {
  std::vector<Execution> rows = {
      computed("first_token", [](const auto& a) { one_token(a, false); }),
      computed("last_token", [](const auto& a) { one_token(a, true); })};
  rows[0].not_on_gpu = "the pooler of a BERT on a GPU";
  rows[1].not_on_gpu = "a head of rewards on a GPU";
  return rows;
}

}  // namespace stratagem::execute
