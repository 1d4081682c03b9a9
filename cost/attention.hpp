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

/// What a kernel computes: the heads of all samples together, and the queries and keys of one head.
struct AttentionShape {
  double heads;
  double queries;
  double keys;
  bool causal;
  double window = 0;          ///< of causal: how many of the last keys a query sees; 0: all
  double packed = 0;          ///< of packed documents: mean number of keys that a query sees
  double before = 0;          ///< of causal, without a window: keys before the first query's own
  bool divides_keys = false;  ///< are keys divided, too, where blocks are few?

  /// Mean number of keys that a query sees. Of packed documents it is told; else behind a causal
  /// mask half of those of its tokens and all before these, with a window w
  /// w (1 - (w - 1) / (2 keys)). Ranks that divide queries are assumed to have equal work.
  [[nodiscard]] double seen() const;
};

/// One pass of an implementation with heads of one size. Its products reach this share of the peak:
///
///     efficiency / ((1 + extra / seen) (1 + last / mean))
///
/// A multiprocessor computes blocks of up to 128 queries. The mean number of its blocks is
///
///     mean = heads * queries / block / multiprocessors,   block = min(queries, 128)
///
/// The kernel ends with the fullest multiprocessor, which has up to one block more than the mean. A
/// whole one is counted, the one that sees most keys: `last` is these over the mean, 1 without a
/// mask and 2 behind a causal one. The factor has no fitted constant. Of 24
/// times of attention in layers on an H100, to which nothing is fitted, the mean absolute error is
/// 4 % (scenarios/records/h100_layers.json); those have 5.8 to 15.5 blocks. With fewer nothing was
/// measured, and a whole block may be too much. The backward pass is counted in blocks of queries,
/// too, though FlashAttention-2 divides its keys: that differs where there are more of either.
/// Source of the blocks: Dao, FlashAttention-2, arXiv:2307.08691, section 3.2.
///
/// A kernel that reads a cache divides keys, too, where `mean` is less than 1, so that all
/// multiprocessors have the same: it then counts as 1 (Flash-Decoding; flash_attn_with_kvcache of
/// FlashAttention-2; assumed, not measured).
///
/// `extra` is `ramp` without a mask and ramp + tile behind a causal mask. A window adds a second
/// edge: one `tile` more for the share 1 - window / keys of the queries, which do not see the first
/// key. `ramp` is the cost of beginning and ending the loop over keys, as a number of keys. `tile`
/// is the cost of the tiles on the diagonal, where the mask hides part of what is computed; it is a
/// number of keys too. Pairs of tokens that the mask hides do not count as work. Windows were not
/// measured.
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

/// The share of the peak that a pass reaches.
double attention_share(const AttentionPass& pass, const AttentionShape& shape,
                       double multiprocessors);

/// The share of heads of any size: linear between those that are known, and beyond them that of the
/// nearest. Expects at least one size.
double attention_share(const std::map<int, AttentionPasses>& sizes, bool forward, double size,
                       const AttentionShape& shape, double multiprocessors);

/// The first of these that a GPU has constants for; without any of them the only one that it has;
/// its end where that is no help.
Attentions::const_iterator chosen_attention(const Attentions& of_gpu,
                                            const std::vector<std::string>& preferred);

/// {"cuDNN": {"128": {"forward": {"efficiency", "ramp", "tile"}, "backward": {...}}}}
Attentions read_attentions(const JsonReader& json);
Json to_json(const Attentions& attentions);

}  // namespace stratagem::cost
