// YAML of NeMo (Hydra configurations, up to NeMo 2) and of Megatron-Bridge (a ConfigContainer, or
// what goes over one), and commands of Megatron-Bridge's scripts/training/train.sh. Both run
// Megatron-Core: their settings are read as the arguments of Megatron-LM that mean the same.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <regex>

#include "base/pattern.hpp"
#include "imports/documents.hpp"
#include "imports/format.hpp"
#include "imports/known.hpp"
#include "imports/megatron.hpp"
#include "imports/said.hpp"
#include "imports/sort.hpp"

namespace stratagem::imports {
namespace {

/// Launchers, logs, data, checkpoints and learning rates, by whole names.
constexpr std::string_view no_matter[] = {
    // Hydra's and NeMo's launcher
    "defaults", "hydra.*", "run.*", "name", "exp_manager.*", "*nsys_profile.*", "trainer.logger",
    "trainer.accelerator", "trainer.enable_*", "trainer.use_distributed_sampler", "trainer.max_*",
    "trainer.log_*", "trainer.val_*", "trainer.limit_*", "trainer.benchmark",
    "trainer.accumulate_grad_batches", "model.data.*", "model.optim.sched.*", "model.optim.lr",
    "model.optim.weight_decay", "model.optim.betas", "model.restore_from_*", "model.ffn_dropout",
    "model.resume_from_checkpoint", "model.init_method_std", "model.use_scaled_init_method",
    "model.layernorm_epsilon", "model.native_amp_*", "model.hysteresis", "model.seed",
    "model.use_cpu_initialization", "model.onnx_safe", "model.apex_transformer_log_level",
    "model.gc_interval", "model.pre_process", "model.post_process", "model.tokenizer.*",
    "model.do_layer_norm_weight_decay", "model.fp8_margin", "model.fp8_interval",
    "model.fp8_amax_*", "model.fp8_e4m3", "model.fp8_hybrid", "model.rotary_percentage",
    "model.attention_type", "model.sharp", "model.apply_query_key_layer_scaling",
    "model.normalize_attention_scores", "model.get_attention_mask_from_fusion",
    // Megatron-Bridge
    "*_target_", "*_call_", "_*", "checkpoint.*", "logger.*", "rng.*", "scheduler.*",
    "validation.*", "profiling.*", "dataset.*", "dist.*", "rerun_state_machine.*",
    "train.train_iters", "train.eval_*", "train.manual_gc*", "optimizer.lr", "optimizer.min_lr",
    "optimizer.weight_decay", "optimizer.adam_*", "tokenizer.*", "*init_method*", "ddp.check_for_*",
    // its launcher
    "wait", "max-steps", "lr", "min-lr", "warmup-iters", "save-dir", "save-interval", "load-dir",
    "pretrained-checkpoint", "dataset", "account", "partition", "container-image", "time", "mount",
    "env", "experiment-name", "step-func", "srun-arg", "gres", "dry-run", "detach"};

constexpr std::string_view is_code =
    "a recipe is Python: give the config.json of its model, too, and for its plan what a run of it "
    "writes to logger.save_config_filepath";

/// What has no argument of Megatron-LM's.
constexpr Missing missing[] = {
    {"recipe", is_code},
    {"model", is_code},
    {"mode", "say it as \"lora\" of the model, unless all of it is trained"},
    {"trainer.gradient_clip_val", "the stack says whether gradients are clipped"},
    {"optimizer.clip_grad", "the stack says whether gradients are clipped"},
    {"model.gradient_as_bucket_view", "the stack says where gradients are"},
    {"model.optim.contiguous_*", "the stack says where gradients are"},
    {"model.grad_allreduce_chunk_size_mb", "of an optimizer without shards: say it as \"bucket\""},
    {"model.optim.bucket_cap_mb", "Megatron-Core's buckets are counted in elements"},
    {"model.num_micro_batches_with_partial_activation_checkpoints", "all micro-batches are alike"},
    {"model.activations_checkpoint_layers_per_pipeline", "say it as \"recompute\""},
    {"model.fsdp*", "say it as \"zero\": 3"},
    {"model.cpu_offloading*", "say it as \"swap\""},
    {"*.bias_*_fusion", "the stack says what is fused"},
    {"*.persist_layer_norm", "the stack says which kernels norms have"},
    {"*.grad_div_ar_fusion", "gradients are not divided by a kernel of their own"},
    {"*p2p_comm", "the stack says how messages are sent"},
    {"*.megatron_amp_O2", "weights are in 16 bits, and once more in fp32"},
    {"*.defer_embedding_wgrad_compute", "the embedding's weight gradient is not deferred"},
    {"*.wgrad_deferral_limit", "the embedding's weight gradient is not deferred"},
    {"*.transformer_block_type", "only layers with norms before them are there"},
    {"peft.*", "say it as \"lora\" of the model"},
    {"comm_overlap.*", "a stack says what overlaps, such as megatron-core-te-overlap"},
};

/// Features that are off by default: false asks for nothing.
constexpr std::string_view off[] = {"*.headscale",
                                    "*.openai_gelu",
                                    "*.fp32_residual_connection",
                                    "*.fp16_lm_cross_entropy",
                                    "*.sync_batch_comm",
                                    "*.reduce_amax",
                                    "*.use_emha",
                                    "*.deterministic_mode",
                                    "*.fsdp",
                                    "*.fsdp_sharded_checkpoint",
                                    "*.ub_tp_comm_overlap",
                                    "*.cross_entropy_loss_fusion",
                                    "*.cpu_offloading"};

bool is_off(const Said::Value& setting) {
  const auto fits = [&](std::string_view pattern) { return matches(setting.name, pattern); };
  return setting.text.ends_with("false") && std::ranges::any_of(off, fits);
}

/// What a setting is among Megatron-LM's arguments.
struct Translation {
  std::string_view pattern;  ///< of whole names
  std::string_view argument;
  bool opposite = false;  ///< is the argument there where the setting is false?
};
constexpr Translation translations[] = {
    {"*.encoder_seq_length", "seq-length"},
    {"dataset.seq_length", "seq-length"},
    {"dataset.sequence_length", "seq-length"},
    {"*virtual_pipeline_model_parallel_size", "num-virtual-stages-per-pipeline-rank"},
    {"virtual-pipeline-model-parallel-size", "num-virtual-stages-per-pipeline-rank"},
    {"*.num_layers_in_first_pipeline_stage", "decoder-first-pipeline-num-layers"},
    {"*.num_layers_in_last_pipeline_stage", "decoder-last-pipeline-num-layers"},
    {"*.num_moe_experts", "num-experts"},
    {"*.activations_checkpoint_granularity", "recompute-granularity"},
    {"*.activations_checkpoint_method", "recompute-method"},
    {"*.activations_checkpoint_num_layers", "recompute-num-layers"},
    {"*.share_embeddings_and_output_weights", "untie-embeddings-and-output-weights", true},
    {"model.bias", "disable-bias-linear", true},
    {"*.add_bias_linear", "disable-bias-linear", true},
    {"*.gated_linear_unit", "swiglu"},
    {"*.grad_reduce_in_fp32", "grad-reduce-in-bf16", true},
    {"*.overlap_grad_sync", "overlap-grad-reduce"},
    {"*.overlap_param_sync", "overlap-param-gather"},
    {"ddp.bucket_size", "ddp-bucket-size"},
    {"*.ub_tp_comm_overlap", "tp-comm-overlap"},
    {"*.use_flash_attention", "use-flash-attn"},
    {"*.mcore_gpt", "use-mcore-models"},
    {"*.ddp_bucket_size", "ddp-bucket-size"},
    {"*.gradient_accumulation_fusion", "no-gradient-accumulation-fusion", true},
    {"*.masked_softmax_fusion", "no-masked-softmax-fusion", true},
    {"*.apply_rope_fusion", "no-rope-fusion", true},
    {"*.fp8", "fp8-format"},
    {"*.fp4", "fp4-format"},
    {"trainer.num_nodes", "nnodes"},
    {"trainer.devices", "nproc-per-node"},
    {"nodes", "nnodes"},
    {"gpus-per-node", "nproc-per-node"},
    {"*.tokenizer.type", "tokenizer-type"},
    {"tokenizer.tokenizer_type", "tokenizer-type"},
    {"tokenizer.tokenizer_model", "tokenizer-model"},
    {"tokenizer.vocab_size", "vocab-size"}};

/// Sections whose other settings are called as Megatron-LM's arguments are.
constexpr std::string_view of_megatron[] = {"model.*", "train.*", "ddp.*", "optimizer.*",
                                            "mixed_precision.*"};

/// Elements of a list of words; a list of numbers, one argument of Megatron-LM's, stays together.
std::vector<std::string> words_of(const std::string& value) {
  if (!value.starts_with("[") || !value.ends_with("]")) return {value};
  std::vector<std::string> words(1);
  for (const char one : value.substr(1, value.size() - 2)) {
    if (one == ',')
      words.emplace_back();
    else if (one != '"' && one != '\'' && one != ' ')
      words.back() += one;
  }
  const auto is_number = [](const std::string& word) {
    return std::ranges::all_of(word, [](unsigned char c) { return std::isdigit(c) != 0; });
  };
  if (!std::ranges::all_of(words, is_number)) return words;
  return {fmt::format("[{}]", fmt::join(words, ","))};
}

std::string as_argument(const std::string& name) {
  std::string argument = name.substr(name.rfind('.') + 1);
  std::ranges::replace(argument, '_', '-');
  return argument;
}

/// Recipes of Bridge (megatron/bridge/training/mixed_precision.py) and of NeMo's trainer:
/// what is before "_mixed", and how linear layers in 8 bits are scaled.
struct Recipe {
  std::string_view name;
  std::string_view type;
  std::string_view scaling;  ///< "": in 16 or 32 bits
};
constexpr Recipe recipes[] = {{"bf16", "bf16", ""},
                              {"fp16", "fp16", ""},
                              {"16", "fp16", ""},
                              {"32", "fp32", ""},
                              {"bf16_with_fp8_delayed_scaling", "bf16", "delayed"},
                              {"fp16_with_fp8_delayed_scaling", "fp16", "delayed"},
                              {"bf16_with_fp8_current_scaling", "bf16", "tensorwise"},
                              {"fp16_with_fp8_current_scaling", "fp16", "tensorwise"},
                              {"nemotron_h_bf16_with_fp8_current_scaling", "bf16", "tensorwise"},
                              {"nanov2_bf16_with_fp8_current_scaling", "bf16", "blockwise"},
                              {"bf16_with_fp8_subchannel_scaling", "bf16", "blockwise"},
                              {"fp16_with_fp8_subchannel_scaling", "fp16", "blockwise"},
                              {"bf16_with_mxfp8", "bf16", "mxfp8"},
                              {"fp16_with_mxfp8", "fp16", "mxfp8"},
                              {"bf16_with_nvfp4", "bf16", "nvfp4"}};

/// A recipe that is not known is told, and products stay in bf16.
void read_precision(std::string name, const std::string& text, Said& arguments,
                    std::vector<Note>& unknown) {
  std::ranges::replace(name, '-', '_');
  for (const std::string_view end : {"_mixed", "_true"})
    if (name.ends_with(end)) name.resize(name.size() - end.size());
  const auto* const recipe = std::ranges::find(recipes, name, &Recipe::name);
  if (recipe == std::end(recipes)) {
    std::vector<std::string> known;
    for (const Recipe& one : recipes) known.emplace_back(one.name);
    unknown.push_back(unknown_value(text, name, known, "bf16 stands in"));
    return arguments.add("bf16", {}, text);
  }
  arguments.add(std::string(recipe->type), {}, text);
  if (recipe->scaling == "nvfp4") return arguments.add("fp4-format", {"e2m1"}, text);
  if (recipe->scaling.empty()) return;
  arguments.add("fp8-format", {"hybrid"}, text);
  arguments.add("fp8-recipe", {std::string(recipe->scaling)}, text);
}

/// Turns settings into arguments of Megatron-LM.
class Translator {
 public:
  Translator(Said& said, Said& arguments) : said_(said), arguments_(arguments) {}

  /// Returns what is not known.
  std::vector<Note> read() {
    std::vector<Note> unknown;
    for (const char* name : {"trainer.precision", "mixed_precision"})
      if (const auto recipe = said_.take(name))
        read_precision(*recipe, written(name, *recipe), arguments_, unknown);
    read_activation();
    read_optimizer();
    if (const auto norm = said_.take("model.normalization"))
      add("normalization", norm->starts_with("rms") || *norm == "RMSNorm" ? "RMSNorm" : "LayerNorm",
          "model.normalization", *norm);
    if (const auto engine = said_.take("model.transformer_engine"))
      add("transformer-impl", *engine == "true" ? "transformer_engine" : "local",
          "model.transformer_engine", *engine);
    if (const auto fp8 = said_.take("model.fp8"); fp8 && *fp8 != "false")
      add("fp8-format", "hybrid", "model.fp8", *fp8);
    if (const auto groups = said_.take("model.num_query_groups")) {
      add("group-query-attention", "", "model.num_query_groups", *groups);
      add("num-query-groups", *groups, "model.num_query_groups", *groups);
    }
    // A precision as an object goes over what the other sections say, wherever it stands.
    const auto of_precision = [](const Said::Value& one) {
      return one.name.starts_with("mixed_precision.");
    };
    std::vector<Said::Value> left = said_.left();
    std::stable_partition(left.begin(), left.end(), std::not_fn(of_precision));
    for (const Said::Value& one : left) translate(one);
    return unknown;
  }

 private:
  static std::string written(const std::string& name, const std::string& value) {
    return name + ": " + value;
  }
  void add(const std::string& argument, const std::string& value, const std::string& name,
           const std::string& theirs) {
    std::vector<std::string> words;
    if (!value.empty()) words.push_back(value);
    arguments_.add(argument, std::move(words), written(name, theirs));
  }

  void read_activation() {
    const std::string named = "model.activation", called = "model.activation_func._target_";
    const bool is_named = said_.has(named);
    const auto function = said_.take(is_named ? named : called);
    if (!function) return;
    const std::string& name = is_named ? named : called;
    const bool silu = function->ends_with("swiglu") || function->ends_with("silu");
    if (is_named && silu) add("swiglu", "", name, *function);
    if (function->ends_with("squared-relu") || function->ends_with("squared_relu"))
      add("squared-relu", "", name, *function);
    else if (!silu && !function->ends_with("gelu"))
      add("activation", *function, name, *function);  // which nothing reads: it is told
  }

  void read_optimizer() {
    const std::string name = "model.optim.name", sums = "model.optim.grad_sync_dtype";
    if (const auto optimizer = said_.take(name)) {
      const bool divided = optimizer->find("distributed") != std::string::npos;
      const bool adam = divided || optimizer->find("adam") != std::string::npos;
      add("optimizer", adam ? "adam" : *optimizer, name, *optimizer);
      if (divided) add("use-distributed-optimizer", "", name, *optimizer);
    }
    if (const auto type = said_.take(sums); type && *type != "fp32")
      add("grad-reduce-in-bf16", "", sums, *type);
  }

  void translate(const Said::Value& one) {
    if (is_off(one) || (one.name.starts_with("dataset.") && said_.has("model.seq_length"))) return;
    const auto fits = [&](std::string_view pattern) { return matches(one.name, pattern); };
    const auto* const known = std::ranges::find_if(translations, fits, &Translation::pattern);
    if (known != std::end(translations)) {
      std::vector<std::string> words = words_of(*said_.take(one.name));
      if (known->opposite) words = {words.front() == "true" ? "false" : "true"};
      arguments_.add(std::string(known->argument), std::move(words), one.text);
    } else if (is_of_megatron(one.name)) {
      arguments_.add(as_argument(one.name), words_of(*said_.take(one.name)), one.text);
    }
  }

  /// Flags of a command have no section.
  static bool is_of_megatron(const std::string& name) {
    const auto fits = [&](std::string_view pattern) { return matches(name, pattern); };
    return (name.find('.') == std::string::npos || std::ranges::any_of(of_megatron, fits)) &&
           std::ranges::none_of(no_matter, fits) &&
           std::ranges::none_of(missing, fits, &Missing::pattern);
  }

  Said& said_;
  Said& arguments_;
};

/// Settings that ask for nothing more than the default do not matter.
void skip_defaults(Said& said, Settings& settings) {
  for (const Said::Value& one : said.left()) {
    const bool trains_all = one.text == "--mode pretrain" || one.text == "--mode sft";
    if (is_off(one) || trains_all) {
      said.take(one.name);
      settings.no_matter.push_back(one.text);
    }
  }
}

/// Packing is a setting of the data, and acts on time.
void tell_packing(Said& said, Settings& settings) {
  for (const Said::Value& one : said.left()) {
    if (!matches(one.name, "*pack*") || one.text.ends_with("false")) continue;
    said.take(one.name);
    settings.left_out.push_back(
        {one.text, "samples are one document each; --set documents=N packs N of equal length"});
  }
}

bool is_command(const std::string& text) {
  const Said words = Said::arguments(text);
  return (words.has("recipe") || words.has("model")) &&
         (words.has("nodes") || words.has("gpus-per-node"));
}

/// "-tp 8" as "--tensor_model_parallel_size 8" (scripts/training/run_recipe.py).
std::string with_long_flags(std::string text) {
  constexpr std::pair<const char*, const char*> flags[] = {
      {"tp", "tensor_model_parallel_size"},
      {"pp", "pipeline_model_parallel_size"},
      {"cp", "context_parallel_size"},
      {"ep", "expert_model_parallel_size"},
      {"etp", "expert_tensor_parallel_size"},
      {"vp", "virtual_pipeline_model_parallel_size"},
      {"mb", "micro_batch_size"},
      {"gb", "global_batch_size"},
      {"sl", "seq_length"},
      {"ms", "max_steps"}};
  for (const auto& [brief, whole] : flags)
    text = std::regex_replace(text, std::regex(std::string("(\\s)-") + brief + "(?=\\s)"),
                              std::string("$1--") + whole);
  return text;
}

/// Flags of its own and overrides of the configuration.
Said command_settings(const std::string& text) {
  Said said = Said::overrides(text);
  for (const Said::Value& one : Said::arguments(with_long_flags(text)).left()) {
    const std::string value = one.text.substr(std::min(one.text.size(), one.name.size() + 3));
    said.add(one.name, {value}, one.text);
  }
  return said;
}

bool is_nemo(const std::string& text) {
  static const std::regex setting(
      R"((^|\n)\s+(tensor_model_parallel_size|micro_batch_size|global_batch_size):)");
  return is_command(text) || (text.find("model:") != std::string::npos && text.find('{') != 0 &&
                              std::regex_search(text, setting));
}

Settings read(const std::string& text, const std::string& file) {
  Said said =
      is_command(text) ? command_settings(text) : Said::json(json_of_yaml(text, file), file);
  Said arguments;
  const std::vector<Note> unknown = Translator(said, arguments).read();
  Settings settings = read_megatron("gpt", std::move(arguments));
  settings.left_out.insert(settings.left_out.end(), unknown.begin(), unknown.end());
  skip_defaults(said, settings);
  tell_packing(said, settings);
  sort_left(said, no_matter, missing, settings);
  return settings;
}

}  // namespace

Format nemo() {
  return {"nemo",
          "YAML of NeMo or Megatron-Bridge, or a command of the latter's scripts/training/train.sh",
          &is_nemo, &read};
}

}  // namespace stratagem::imports
