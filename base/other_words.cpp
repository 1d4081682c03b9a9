// The names of other programs' options and of formats, by ours.
#include "base/other_words.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace stratagem {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

// clang-format off
constexpr std::array pairs = {
    Pair{"tp", "tensor"}, Pair{"tensor_parallel", "tensor"},
    Pair{"tensor_model_parallel_size", "tensor"},
    Pair{"pp", "pipeline"}, Pair{"pipeline_parallel", "pipeline"},
    Pair{"pipeline_model_parallel_size", "pipeline"}, Pair{"stages", "pipeline"},
    Pair{"dp", "data"}, Pair{"data_parallel", "data"}, Pair{"data_parallel_size", "data"},
    Pair{"ep", "expert"}, Pair{"expert_parallel", "expert"},
    Pair{"expert_model_parallel_size", "expert"},
    Pair{"cp", "context"}, Pair{"context_parallel", "context"},
    Pair{"context_parallel_size", "context"},
    Pair{"sp", "sequence_parallel"},
    Pair{"vpp", "chunks"}, Pair{"virtual_stages", "chunks"}, Pair{"interleave", "chunks"},
    Pair{"zero_stage", "zero"}, Pair{"fsdp", "zero"},
    Pair{"checkpointing", "recompute"}, Pair{"activation_checkpointing", "recompute"},
    Pair{"recompute_granularity", "recompute"}, Pair{"recomputation", "recompute"},
    Pair{"bfloat16", "bf16"}, Pair{"float16", "fp16"}, Pair{"half", "fp16"},
    Pair{"float32", "fp32"}, Pair{"float", "fp32"}, Pair{"float8", "fp8"},
    Pair{"dtype", "precision"},
    Pair{"batch_size", "global_batch"}, Pair{"global_batch_size", "global_batch"},
    Pair{"micro_batch_size", "micro_batch"}, Pair{"mbs", "micro_batch"},
    Pair{"gbs", "global_batch"},
    Pair{"seq_len", "sequence"}, Pair{"seq_length", "sequence"},
    Pair{"sequence_length", "sequence"}, Pair{"num_layers", "layers"},
    Pair{"n_layers", "layers"}, Pair{"hidden_size", "hidden"}, Pair{"num_heads", "heads"},
    Pair{"num_attention_heads", "heads"}, Pair{"vocab_size", "vocabulary"},
    Pair{"ffn_hidden_size", "intermediate"}, Pair{"ffn_hidden", "intermediate"},
    Pair{"intermediate_size", "intermediate"}, Pair{"ffn", "intermediate"},
    Pair{"num_hidden_layers", "layers"}, Pair{"n_layer", "layers"}, Pair{"d_model", "hidden"},
    Pair{"n_embd", "hidden"}, Pair{"dim", "hidden"}, Pair{"n_heads", "heads"},
    Pair{"n_head", "heads"}, Pair{"num_key_value_heads", "kv_heads"},
    Pair{"num_query_groups", "kv_heads"}, Pair{"n_kv_heads", "kv_heads"},
    Pair{"head_dim", "head_width"}, Pair{"kv_channels", "head_width"},
    Pair{"vocab", "vocabulary"}, Pair{"seqlen", "sequence"},
    Pair{"max_position_embeddings", "sequence"}, Pair{"context_length", "sequence"},
    Pair{"tie_word_embeddings", "tied"}, Pair{"num_experts", "experts"},
    Pair{"num_local_experts", "experts"}, Pair{"top_k", "experts_per_token"},
    Pair{"num_experts_per_tok", "experts_per_token"}, Pair{"moe_router_topk", "experts_per_token"},
    Pair{"use_flash_attn", "attention"}, Pair{"flash_attention", "attention"},
    Pair{"flash", "fused"}, Pair{"eager", "unfused"},
    Pair{"train_batch_size", "global_batch"}, Pair{"batch", "global_batch"},
    Pair{"mixed_precision", "precision"}, Pair{"bf16_mixed", "bf16"}, Pair{"fp16_mixed", "fp16"},
    Pair{"gradient_checkpointing", "recompute"}, Pair{"activation_recompute", "recompute"},
    Pair{"virtual_pipeline_model_parallel_size", "chunks"},
    Pair{"num_layers_per_virtual_pipeline_stage", "chunks"},
    Pair{"distributed_optimizer", "zero"}, Pair{"use_distributed_optimizer", "zero"},
    Pair{"zero_optimization", "zero"}, Pair{"sharding_strategy", "zero"}, Pair{"hsdp", "zero"},
    Pair{"offload_optimizer", "offload"}, Pair{"cpu_offload", "offload"},
    Pair{"bucket_size", "bucket"}, Pair{"zero_bubble", "zb-h1"}, Pair{"zerobubble", "zb-h1"},
    Pair{"gpus_per_node", "gpus"}, Pair{"gpus", "profiles"}, Pair{"frameworks", "stacks"},
    Pair{"servers", "clusters"}, Pair{"presets", "models"},
    Pair{"linear", "contraction"}, Pair{"matmul", "contraction"}, Pair{"gemm", "contraction"},
    Pair{"layernorm", "layer_norm"}, Pair{"rmsnorm", "rms_norm"},
    Pair{"gpu", "profile"}, Pair{"framework", "stack"}, Pair{"num_gpus", "gpus"},
    Pair{"gpu_count", "gpus"},
    Pair{"patch_size", "patch"}, Pair{"image_size", "image"}, Pair{"num_classes", "classes"},
    Pair{"tensor_parallel_size", "tensor-model-parallel-size"},
    Pair{"tp", "tensor-model-parallel-size"}, Pair{"pp", "pipeline-model-parallel-size"},
    Pair{"pipeline_parallel_size", "pipeline-model-parallel-size"},
    Pair{"batch_size", "micro-batch-size"}, Pair{"mlp_dim", "intermediate"},
    Pair{"memory_limit", "what_if"},
    Pair{"world_size", "gpus"}, Pair{"num_nodes", "nodes"},
};
// clang-format on

}  // namespace

std::string folded(std::string_view word) {
  std::string result;
  for (const char one : word)
    result += one >= 'A' && one <= 'Z' ? static_cast<char>(one + 32) : one;
  std::ranges::replace(result, '-', '_');
  return result;
}

std::optional<std::string> meant_by(std::string_view written,
                                    const std::vector<std::string>& words) {
  const std::string word = folded(written);
  const auto find = [&](const auto& fits) -> std::optional<std::string> {
    const auto found = std::ranges::find_if(words, fits);
    return found == words.end() ? std::nullopt : std::optional(*found);
  };
  if (const auto same = find([&](const std::string& one) { return folded(one) == word; }))
    return same;
  for (const Pair& pair : pairs) {
    if (pair.first != word) continue;
    if (auto known = find([&](const std::string& one) { return one == pair.second; })) return known;
  }
  return std::nullopt;
}

}  // namespace stratagem
