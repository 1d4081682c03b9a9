// Strategies that a test of all programs walks through.
#pragma once

#include <string>
#include <vector>

#include "tests/sanitized.hpp"

namespace stratagem::lowering {

/// A strategy of a scenario with a number of micro-batches; each fits small_gpt. With sanitizers a
/// third of them.
struct Variant {
  std::string strategy;
  int micro_batches = 1;
};

inline const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = {
      {"{}", 1},
      {"{}", 3},
      {R"({"recompute": "full"})", 2},
      {R"({"recompute": "selective"})", 2},
      {R"({"tensor": 2})", 1},
      {R"({"tensor": 8, "recompute": "full"})", 2},
      {R"({"tensor": 4, "sequence_parallel": true})", 2},
      {R"({"tensor": 2, "sequence_parallel": true, "recompute": "full", "data": 2})", 1},
      {R"({"context": 5})", 2},
      {R"({"context": 2, "tensor": 2, "sequence_parallel": true, "pipeline": 2})", 3},
      {R"({"data": 3})", 2},
      {R"({"data": 3, "overlap_gradients": true, "bucket": "16 KiB"})", 2},
      {R"({"data": 2, "tensor": 4, "overlap_gradients": true, "bucket": "1 B"})", 1},
      {R"({"data": 3, "zero": 1})", 2},
      {R"({"data": 2, "zero": 1, "pipeline": 2, "bucket": "8 KiB"})", 3},
      {R"({"data": 3, "zero": 2})", 2},
      {R"({"data": 2, "zero": 2, "bucket": "8 KiB", "tensor": 2, "sequence_parallel": true})", 2},
      {R"({"data": 2, "zero": 2, "overlap_gradients": false, "pipeline": 2, "recompute": "full"})",
       3},
      {R"({"data": 3, "zero": 3})", 2},
      {R"({"data": 3, "zero": {"stage": 3, "prefetch": 0}, "recompute": "full"})", 2},
      {R"({"data": 2, "zero": {"stage": 3, "prefetch": 9}, "tensor": 2, "pipeline": 2})", 3},
      {R"({"data": 4, "zero": {"stage": 3, "ranks": 2}, "bucket": "8 KiB"})", 2},
      {R"({"data": 3, "zero": {"stage": 3, "reshard_after_forward": false}})", 2},
      {R"({"data": 4, "zero": {"stage": 3, "reshard_after_forward": 2}, "recompute": "full"})", 2},
      {R"({"context": 2, "data": 2, "zero": 3, "pipeline": 2, "schedule": "gpipe"})", 2},
      {R"({"swap": 4})", 2},
      {R"({"swap": {"layers": 3, "prefetch": 0}, "recompute": "full", "tensor": 2})", 2},
      {R"({"swap": {"layers": 4, "prefetch": 2}, "pipeline": 2, "data": 2, "zero": 3})", 3},
      {R"({"swap": 2, "pipeline": 2, "zero": 2, "data": 2, "schedule": "gpipe"})", 3},
      {R"({"data": 2, "pipeline": 2, "zero": 1, "rank_order": "pp-dp"})", 3},
      {R"({"offload": "optimizer"})", 2},
      {R"({"offload": "optimizer", "overlap_gradients": false, "bucket": "8 KiB"})", 2},
      {R"({"data": 3, "zero": 2, "offload": "optimizer", "bucket": "8 KiB"})", 2},
      {R"({"data": 3, "zero": 2, "offload": {"of": "optimizer", "delayed_update": true}})", 2},
      {R"({"zero": {"stage": 3, "prefetch": 2}, "offload": "parameters"})", 2},
      {R"({"data": 2, "zero": 3, "offload": "parameters", "tensor": 2, "recompute": "full"})", 3},
      {R"({"data": 2, "zero": 3, "offload": "optimizer", "tensor": 2, "sequence_parallel": true})",
       2},
      {R"({"offload": {"optimizer": "drives"}})", 2},
      {R"({"data": 2, "zero": 2, "offload": {"optimizer": "drives", "gradients": "drives"}})", 3},
      {R"({"data": 3, "zero": 2, "offload": {"optimizer": "drives", "delayed_update": true}})", 2},
      {R"({"data": 3, "zero": 3, "offload": {"optimizer": "drives", "parameters": "memory"}})", 2},
      {R"({"zero": {"stage": 3, "prefetch": 2},
           "offload": {"optimizer": "memory", "parameters": "drives"}})",
       2},
      {R"({"data": 2, "zero": 3, "tensor": 2, "recompute": "full",
           "offload": {"optimizer": "drives", "parameters": "drives"}})",
       3},
      {R"({"pipeline": 2, "schedule": "gpipe"})", 3},
      {R"({"pipeline": 4, "schedule": "1f1b"})", 6},
      {R"({"pipeline": 4, "schedule": "1f1b"})", 2},
      {R"({"pipeline": 4, "schedule": "gpipe", "recompute": "full"})", 3},
      {R"({"token_slices": [12, 8], "tensor": 2})", 2},
      {R"({"pipeline": 4, "schedule": "gpipe", "token_slices": [8, 6, 4, 2]})", 2},
      {R"({"pipeline": 2, "tensor": 2, "data": 3, "recompute": "full"})", 4},
      {R"({"pipeline": 2, "tensor": 2, "data": 2, "overlap_gradients": true, "bucket": "8 KiB"})",
       4},
      {R"({"pipeline": 4, "data": 2, "schedule": "gpipe", "overlap_gradients": true})", 3},
      {R"({"pipeline": 2, "tensor": 2, "recompute": "selective"})", 3},
      {R"({"pipeline": 2, "replicas_per_stage": [2, 1]})", 4},
      {R"({"pipeline": 4, "replicas_per_stage": [2, 1, 3, 1], "tensor": 2, "data": 2})", 6},
      {R"({"pipeline": 2, "replicas_per_stage": [1, 3], "recompute": "full",
           "overlap_gradients": true, "bucket": "8 KiB"})",
       3},
      {R"({"pipeline": 1, "replicas_per_stage": [4], "token_slices": [12, 8]})", 4},
      {R"({"recompute": {"every": 2}})", 2},
      {R"({"recompute": {"every": 3}, "tensor": 2, "pipeline": 2, "data": 2})", 3},
      {R"({"recompute": {"layers": 1, "method": "block"}, "pipeline": 2, "tensor": 2})", 3},
      {R"({"recompute": {"layers": 4, "method": "uniform"}, "data": 3, "zero": 3})", 2},
      {R"({"recompute": {"every": 2}, "zero": {"stage": 3, "prefetch": 0}, "data": 2})", 2},
      {R"({"recompute": {"every": 2}, "data": 2, "overlap_gradients": true, "bucket": "8 KiB"})",
       2},
      {R"({"recompute": {"every": 2}, "tensor": 4, "sequence_parallel": true})", 2},
      {R"({"recompute": {"every": 2}, "swap": 4})", 2},
      {R"({"recompute": {"operators": ["layers.*.mlp.*", "layers.*.attention.softmax"]}})", 2},
      {R"({"recompute": {"operators": ["*"]}, "tensor": 2})", 2},
      {R"({"recompute": "full", "tensor": 4, "partition_checkpoints": true})", 2},
      {R"({"recompute": {"every": 2}, "tensor": 2, "pipeline": 2, "partition_checkpoints": true})",
       3},
      {R"({"recompute": {"operators": ["*.mlp.*"]}, "tensor": 2, "partition_checkpoints": true})",
       2},
      {R"({"recompute": "full", "tensor": 2, "partition_checkpoints": true, "swap": 3})", 2},
      {R"({"recompute": "selective", "tensor": 2, "partition_checkpoints": true})", 2},
      {R"({"pipeline": 4, "swap": {"layers": 3, "to": "peer"}})", 6},
      {R"({"pipeline": 2, "tensor": 2, "swap": {"layers": 2, "to": "peer", "prefetch": 0}})", 4},
      {R"({"pipeline": 2, "data": 2, "zero": 1, "swap": {"layers": 4, "to": "peer"}})", 3},
      {R"({"pipeline": 2, "recompute": {"every": 2}, "swap": {"layers": 2, "to": "peer"}})", 3},
      {R"({"pipeline": 2, "schedule": "interleaved", "swap": {"layers": 3, "to": "peer"}})", 4},
      {R"({"pipeline": 2, "tensor": 2, "recompute": "full", "partition_checkpoints": true,
           "swap": {"layers": 2, "to": "peer"}})",
       3},
      {R"({"coshard": 4})", 2},
      {R"({"coshard": 2, "tensor": 2, "data": 2, "pipeline": 2, "recompute": "full"})", 3},
  };
  static const std::vector<Variant> looked_at = [] {
    std::vector<Variant> some;
    for (std::size_t i = 0; i < all.size(); i += stride(3)) some.push_back(all[i]);
    return some;
  }();
  return looked_at;
}

}  // namespace stratagem::lowering
