// The Evoformer of AlphaFold2: a trunk over aligned sequences and pairs of residues.
#pragma once

#include <cstdint>

#include "model/graph.hpp"

namespace stratagem::model {

/// `batch` is the micro-batch over all data-parallel ranks together. Widths as in AlphaFold2.
struct EvoformerConfig {
  std::int64_t layers = 48;
  std::int64_t msa_rows = 0;  ///< aligned sequences
  std::int64_t residues = 0;
  std::int64_t msa_width = 256;
  std::int64_t pair_width = 128;
  std::int64_t msa_heads = 8;
  std::int64_t pair_heads = 4;
  std::int64_t head_width = 32;
  std::int64_t outer_width = 32;  ///< of the two factors of the outer product
  int passes = 1;                 ///< forward passes before the one backward pass
  std::int64_t batch = 1;
  DataType type = DataType::bf16;
  friend bool operator==(const EvoformerConfig&, const EvoformerConfig&) = default;
};

/// One segment for the inputs, one per block, one for the head. A block, of the representations
/// m (rows, residues) and z (residues, residues):
///   m += row attention with pair bias;  m += column attention;  m += transition
///   z += outer product mean of m;  z += triangle multiplication, outgoing, then incoming
///   z += triangle attention around the starting, then the ending node;  z += transition
/// with the dropouts of the paper (masks shared along one axis). Attentions compute queries, keys
/// and values with one matrix. An identity ends m's way through a block, so that what the next
/// block keeps is not what the outer product keeps: one copy of m too many per block where no plan
/// changes its layout there. Inputs are one matrix each over 49 features of m and 65 of z (the
/// relative positions), and the norm of the pairs of the pass before; the head is the distogram's
/// matrix and cross-entropy (64 bins). Templates, extra sequences, the structure module, the other
/// losses and the recycled first row and positions are left out. Source: Jumper et al., Nature
/// 596, 2021, supplement 1.6, algorithms 6 to 15 and 32.
Graph evoformer(const EvoformerConfig& config);

}  // namespace stratagem::model
