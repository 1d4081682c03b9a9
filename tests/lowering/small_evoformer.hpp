// An Evoformer of small sizes that two and four axial ranks divide.
#pragma once

#include "model/zoo/evoformer.hpp"

namespace stratagem::lowering {

inline constexpr model::EvoformerConfig small_evoformer{.layers = 3,
                                                        .msa_rows = 16,
                                                        .residues = 24,
                                                        .msa_width = 40,
                                                        .pair_width = 20,
                                                        .msa_heads = 4,
                                                        .pair_heads = 2,
                                                        .head_width = 7,
                                                        .outer_width = 6,
                                                        .batch = 2};

}  // namespace stratagem::lowering
