// Swin: attention within windows of an image, which shrinks from level to level.
#pragma once

#include <cstdint>
#include <vector>

#include "model/graph.hpp"
#include "model/zoo/images.hpp"

namespace stratagem::model {

/// `batch` is the micro-batch over all data-parallel ranks together.
struct SwinConfig {
  std::vector<std::int64_t> depths = {};  ///< layers of each level
  std::int64_t hidden = 0;                ///< of the first level; every further one has twice
  std::int64_t heads = 0;                 ///< of the first level; every further one has twice
  std::int64_t batch = 1;
  DataType type = DataType::fp16;
  Images images = {.patch = 4};
  std::int64_t window = 7;     ///< side of a window, in tokens; at most a level's image
  std::int64_t mlp_ratio = 4;  ///< width of an MLP over the hidden size
  friend bool operator==(const SwinConfig&, const SwinConfig&) = default;
};

/// Level by level, layers
///   x = x + W_o attention(norm(x)) within windows;  x = x + mlp(norm(x))
/// where every second layer moves the image by half a window before, and back after it. Scores get
/// a trained bias for each offset and head, and in moved images a mask. Between levels four
/// neighbours become one row, its norm, and a matrix that halves it: these stand before the next
/// level's first layer, in its segment. The head classifies the mean of the last tokens' norms.
///
/// As in the published code, a level whose image is one window is not moved. Not modelled: dropped
/// paths. Scores are scaled by their softmax, behind the bias, not with the queries, and masks are
/// computed, not read: neither moves a large tensor. Source: Liu et al., Swin Transformer,
/// arXiv:2103.14030, section 3, and github.com/microsoft/Swin-Transformer.
Graph swin(const SwinConfig& config);

}  // namespace stratagem::model
