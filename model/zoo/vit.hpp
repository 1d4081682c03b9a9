// ViT: a transformer whose tokens are patches of an image.
#pragma once

#include <cstdint>

#include "model/graph.hpp"
#include "model/zoo/images.hpp"

namespace stratagem::model {

/// What an image's class is told from.
enum class ImagePool : std::uint8_t {
  class_token,  ///< a trained token before the patches
  mean          ///< of all patches
};

/// `batch` is the micro-batch over all data-parallel ranks together.
struct VitConfig {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t batch = 1;
  DataType type = DataType::fp16;
  Images images = {};
  std::int64_t intermediate = 0;  ///< width of the MLP; 0: four times the hidden size
  ImagePool pool = ImagePool::class_token;
  bool dropout = false;  ///< after the positions, on probabilities, before residual sums
  bool fused_attention = false;
  friend bool operator==(const VitConfig&, const VitConfig&) = default;
};

/// Layers as transformer.hpp has them, with norms before attention and MLP, between patches with
/// trained positions and a norm, of which one row is classified. Source: Dosovitskiy et al., An
/// Image is Worth 16x16 Words, arXiv:2010.11929, section 3.1; the head is that of fine-tuning, one
/// matrix.
Graph vit(const VitConfig& config);

}  // namespace stratagem::model
