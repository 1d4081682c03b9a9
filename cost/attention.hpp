// How long fused attention takes: what its implementations reach, by the size of a head.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.hpp"
#include "base/json_writer.hpp"
#include "cost/constant.hpp"

namespace stratagem::cost {

/// Programs that compute attention in one kernel: FlashAttention by version, cuDNN's, xFormers'
/// memory-efficient one as PyTorch has it, and this product's own.
inline constexpr std::array<std::string_view, 6> attention_implementations{
    "FlashAttention-1", "FlashAttention-2", "FlashAttention-3", "cuDNN",
    "memory-efficient", "stratagem"};
/// What runs where a stack says nothing.
inline constexpr std::string_view usual_attention = "FlashAttention-2";

/// One pass of an implementation with heads of one size. Its products reach this share of the peak:
///
///     efficiency / (1 + extra / keys)
///
/// `extra` is `ramp` without a mask and 2 (ramp + tile) behind a causal mask.
/// `ramp` is the cost of beginning and ending the loop over keys, as a number of keys. `tile` is the
/// cost of the tiles on the diagonal, where the mask hides part of what is computed; it is a number
/// of keys too. Pairs of tokens that the mask hides do not count as work: behind a causal mask the
/// same cost is spread over half as many keys, which is the factor 2.
struct AttentionPass {
  Constant<double> efficiency;  ///< share of the peak that endless sequences reach, 0..1
  Constant<double> ramp;        ///< 0 or more
  Constant<double> tile;        ///< 0 or more
};
struct AttentionPasses {
  AttentionPass forward, backward;
};

/// By implementation, by the size of a head.
using Attentions = std::map<std::string, std::map<int, AttentionPasses>>;

/// The share of the peak that a pass reaches over so many keys.
double attention_share(const AttentionPass& pass, double keys, bool causal);

/// The share of heads of any size: linear between those that are known, and beyond them that of the
/// nearest. Behind a causal mask. Expects at least one size.
double attention_share(const std::map<int, AttentionPasses>& sizes, bool forward, double size,
                       double keys);

/// The first of these that a GPU has constants for; without any of them the only one that it has;
/// its end where that is no help.
Attentions::const_iterator chosen_attention(const Attentions& of_gpu,
                                            const std::vector<std::string>& preferred);

/// {"cuDNN": {"128": {"forward": {"efficiency", "ramp", "tile"}, "backward": {...}}}}
Attentions read_attentions(const JsonReader& json);
Json to_json(const Attentions& attentions);

}  // namespace stratagem::cost
