// Which shapes a sweep of a processor has.
#include "calibrate/measure/cpu_experiments.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "calibrate/measure/cpu_kernels.hpp"

namespace stratagem::calibrate {
namespace {

using kernels::Rows;

/// The products of a layer and of the logits, each forward (NT), for inputs (NN) and weights (TN).
std::vector<Product> products(Sweep sweep) {
  using Sizes = std::vector<std::int64_t>;
  const bool quick = sweep == Sweep::quick;
  const Sizes widths = quick ? Sizes{256, 768} : Sizes{128, 255, 256, 384, 768, 1000, 1024, 2048};
  const Sizes tokens = quick ? Sizes{127, 512} : Sizes{32, 127, 128, 500, 512, 2048};
  std::vector<Product> result;
  for (const std::int64_t h : widths) {
    for (const std::int64_t t : tokens) {
      for (const std::int64_t out : {h, 4 * h}) {
        result.push_back({t, out, h, 1, "NT"});
        result.push_back({t, h, out, 1, "NN"});
        result.push_back({out, h, t, 1, "TN"});
      }
    }
  }
  for (const std::int64_t s : quick ? Sizes{128, 512} : Sizes{64, 128, 256, 500, 512, 1024}) {
    result.push_back({s, s, 64, 8, "NT"});
    result.push_back({s, 64, s, 8, "NN"});
    result.push_back({s, 64, s, 8, "TN"});
  }
  // Few rows, columns or products of numbers, whose operands are packed for little; and both
  // transposed, as no layer has it.
  for (const std::int64_t few : quick ? Sizes{4, 16} : Sizes{1, 4, 8, 16, 24, 48}) {
    result.push_back({few, 1000, 512, 1, "NT"});
    result.push_back({few, 512, 1000, 1, "NN"});
    result.push_back({1000, few, 512, 1, "NN"});
    result.push_back({1000, 512, few, 1, "TN"});
  }
  result.push_back({255, 500, 127, 1, "TT"});
  result.push_back({31, 768, 300, 1, "TT"});
  return result;
}

/// From what caches hold to what they do not.
std::vector<Rows> stream_sizes(Sweep sweep) {
  if (sweep == Sweep::quick)
    return {{64, 256}, {300, 83}, {512, 768}, {100, 1999}, {2048, 1000}, {4096, 2048}};
  return {{16, 128},    {64, 256},    {127, 768}, {512, 768}, {1000, 1000}, {2048, 1024},
          {4096, 2048}, {4096, 8192}, {300, 83},  {700, 333}, {100, 1999}};
}

}  // namespace

CpuExperiments cpu_experiments(Sweep sweep, Bytes cache, std::optional<Bytes> working_set) {
  const double summed = (working_set ? 0.125 * *working_set : cache).value / sizeof(float);
  const auto pool = std::make_shared<Pool>(cache, working_set);
  const auto rows_summed = static_cast<std::int64_t>(std::ceil(summed / 4096));
  CpuExperiments result{
      .peak = product({1536, 1536, 1536, 1, "NN"}, pool),
      .bandwidth =
          streaming(memory_kernels().front(), {std::max<std::int64_t>(rows_summed, 1), 4096}, pool),
      .all = {},
      .pool = pool};
  for (const Product& shape : products(sweep)) result.all.push_back(product(shape, pool));
  for (const MemoryKernel& stream : memory_kernels())
    for (const Rows& rows : stream_sizes(sweep))
      result.all.push_back(streaming(stream, rows, pool));
  return result;
}

}  // namespace stratagem::calibrate
