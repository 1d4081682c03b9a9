// Arguments of Megatron-LM's pretrain_gpt.py, pretrain_bert.py and pretrain_t5.py
// (megatron/training/arguments.py), with torchrun's.
#include "imports/megatron.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <regex>
#include <string_view>
#include <vector>

#include "base/input_error.hpp"
#include "base/nearest.hpp"
#include "imports/format.hpp"
#include "imports/known.hpp"
#include "imports/megatron_model.hpp"
#include "imports/megatron_stages.hpp"
#include "imports/said.hpp"
#include "imports/shell.hpp"
#include "imports/sort.hpp"

namespace stratagem::imports {
namespace {

/// Data, checkpoints, logs, learning rates and random numbers.
constexpr std::string_view no_matter[] = {"*ckpt*",
                                          "vocab-extra-ids",
                                          "*checkpoint*",
                                          "*-path",
                                          "adam-beta*",
                                          "adam-eps",
                                          "async-save",
                                          "data-path",
                                          "data-cache-path",
                                          "data-args-path",
                                          "data-parallel-random-init",
                                          "dataloader-type",
                                          "decoupled-*",
                                          "distributed-backend",
                                          "distributed-timeout*",
                                          "eval-*",
                                          "exit-*",
                                          "fim-*",
                                          "finetune",
                                          "init-method-std",
                                          "load",
                                          "log-*",
                                          "lr",
                                          "lr-*",
                                          "manual-gc*",
                                          "master-*",
                                          "merge-file",
                                          "min-lr",
                                          "mmap-*",
                                          "mock-data",
                                          "no-load-*",
                                          "no-mmap-*",
                                          "no-position-embedding",
                                          "no-save-*",
                                          "norm-epsilon",
                                          "num-workers",
                                          "override-opt*",
                                          "rdzv-*",
                                          "reset-*",
                                          "rotary-base",
                                          "rotary-percent",
                                          "rotary-interleaved",
                                          "save",
                                          "save-*",
                                          "seed",
                                          "split",
                                          "straggler-*",
                                          "tensorboard-*",
                                          "test-mode",
                                          "tiktoken-*",
                                          "timing-*",
                                          "tokenizer-*",
                                          "train-iters",
                                          "train-samples",
                                          "use-mcore-models",
                                          "use-legacy-models",
                                          "verify-integrity",
                                          "vocab-file",
                                          "wandb-*",
                                          "weight-decay*",
                                          "node-rank",
                                          "rerun-mode",
                                          "start-weight-decay",
                                          "end-weight-decay",
                                          "check-weight-hash*"};

/// What acts, and why it is not in a scenario.
constexpr Missing missing[] = {
    Missing{"tp-comm-overlap*", "collectives of tensor ranks run beside nothing here"},
    Missing{"clip-grad", "the stack says whether gradients are clipped"},
    Missing{"attention-softmax-in-fp32", "softmax reads and writes the products' type"},
    Missing{"deterministic-mode", "kernels that are always the same may be slower"},
    Missing{"no-gradient-accumulation-fusion", "the stack says how gradients are added up"},
    Missing{"no-masked-softmax-fusion", "the stack says what is fused"},
    Missing{"no-rope-fusion", "the stack says what is fused"},
    Missing{"cuda-graph*", "a stack says what graphs have, such as megatron-core-te-graphs"},
    Missing{"delay-wgrad-compute", "gradients of weights are not computed later than others"},
    Missing{"use-megatron-fsdp", "say it as \"zero\": 3"},
    Missing{"zero-stage", "say it as \"zero\""},
    Missing{"order", "say it as \"rank_order\""},
};

/// What each of `--recompute-modules` runs again, by CheckpointWithoutOutput. Not there: whole MLPs
/// and mixtures.
const std::map<std::string, std::vector<const char*>> operators_of_modules = {
    {"core_attn", {"layers.*.attention.core"}},
    {"mla_up_proj", {"layers.*.attention.up.*"}},
    {"layernorm", {"layers.*.input_norm", "layers.*.mlp_norm"}},
    {"moe_act", {"layers.*.mlp.swiglu"}}};

/// Recipes of `--fp8-recipe` as our precisions.
const std::map<std::string, std::string> narrow_precisions = {{"delayed", "fp8"},
                                                              {"tensorwise", "fp8-current"},
                                                              {"blockwise", "fp8-blocks"},
                                                              {"mxfp8", "mxfp8"}};

/// Arguments of older versions, and of launchers, by those that mean the same.
constexpr std::pair<const char*, const char*> other_names[] = {
    {"activations-checkpoint-method", "recompute-method"},
    {"activations-checkpoint-num-layers", "recompute-num-layers"},
    {"checkpoint-num-layers", "recompute-num-layers"},
    {"num-gpus", "nproc-per-node"},
    {"gpus-per-node", "nproc-per-node"},
    {"num-nodes", "nnodes"},
    {"nodes", "nnodes"}};

/// Arguments of older versions that ask for full recomputation.
constexpr const char* full_recomputation[] = {"checkpoint-activations",
                                              "deepspeed-activation-checkpointing",
                                              "activations-checkpoint-method"};

/// What `--recompute-granularity` asks for.
const std::map<std::string, std::string> granularities = {
    {"full", "full"}, {"selective", "selective"}, {"none", ""}};

/// Which `--recompute-method` runs so many layers of each stage again.
const std::map<std::string, bool> block_methods = {{"block", true}, {"uniform", false}};

/// Does any argument say the size of the network?
bool says_network(const Said& words) {
  return (words.has("num-layers") || words.has("encoder-num-layers")) && words.has("hidden-size");
}

/// Throws InputError if sizes of the network are there under names that are slips.
void check_network(const Said& words) {
  for (const char* size : {"num-layers", "hidden-size"}) {
    if (words.has(size)) continue;
    for (const Said::Value& one : words.left()) {
      if (is_written_for(one.name, size))
        throw InputError("", "", fmt::format("--{} in place of --{}", size, one.name), one.text);
    }
  }
}

/// The precision of linear layers in 8 or 4 bits; "" where they have more.
std::string narrow_precision(Said& words, Settings& settings) {
  const auto fp8 = words.take("fp8-format");
  const auto fp4 = words.take("fp4-format");
  if (fp4) return "nvfp4";
  if (!fp8) return "";
  return known_value(words, "fp8-recipe", narrow_precisions, "delayed scaling stands in", settings)
      .value_or("fp8");
}

/// Sets the stage of ZeRO that `--data-parallel-sharding-strategy` of Megatron's own FSDP means.
/// Returns whether there is one.
bool set_sharding(Said& words, Settings& settings) {
  const std::map<std::string, int> stages = {
      {"no_shard", 0}, {"optim", 1}, {"optim_grads", 2}, {"optim_grads_params", 3}};
  const int stage =
      known_value(words, "data-parallel-sharding-strategy", stages, "nothing is divided", settings)
          .value_or(0);
  if (stage == 0) return false;
  settings.strategy.set("zero", stage);
  words.take("use-megatron-fsdp");
  return true;
}

/// Settings of a recomputation that is not asked for do not matter.
void skip_recomputation(Said& words, Settings& settings) {
  for (const char* unused : {"recompute-method", "recompute-num-layers", "recompute-modules"}) {
    if (const auto value = words.take(unused))
      settings.no_matter.push_back(words.as_written(fmt::format("{} {}", unused, *value)));
  }
}

class Megatron {
 public:
  Megatron(const std::string& program, Said words)
      : words_(std::move(words)), whole_(says_network(words_)) {
    for (const char* old : full_recomputation) recomputes_ = words_.flag(old) || recomputes_;
    for (const auto& [other, name] : other_names) words_.rename(other, name);
    if (whole_) {
      read_megatron_model(program, words_, settings_);
      return;
    }
    words_.copy("seq-length", settings_.model, "sequence");
    words_.copy("expert-model-parallel-size", settings_.strategy, "expert");
    settings_.stacks = {"megatron-core-te", "megatron-lm-2022"};
    settings_.passes_keys = true;
  }

  Settings read() && {
    read_training();
    read_degrees();
    read_pipeline();
    read_recomputation();
    read_data_parallelism();
    read_graphs();
    sort_left(words_, no_matter, missing, settings_);
    return std::move(settings_);
  }

 private:
  void leave_out(const std::string& what, const std::string& why) {
    settings_.left_out.push_back({words_.as_written(what), why});
  }

  void read_training() {
    Json& training = settings_.training;
    words_.copy("micro-batch-size", training, "micro_batch");
    words_.copy("global-batch-size", training, "global_batch");
    read_precision();
    const auto optimizer = words_.take("optimizer");
    if (whole_ || optimizer) training.set("optimizer", optimizer.value_or("adam"));
  }

  /// With bf16 gradients are added up and reduced in fp32 unless they are told to be in bf16.
  void read_precision() {
    const bool bf16 = words_.flag("bf16"), fp16 = words_.flag("fp16");
    const bool fp32 = words_.flag("fp32");
    if (bf16 && fp16) throw InputError("", "/fp16", "fp16 or bf16, not both", "both");
    const bool sums = words_.flag("accumulate-allreduce-grads-in-fp32");
    const bool short_sums = words_.flag("grad-reduce-in-bf16");
    const std::string narrow = narrow_precision(words_, settings_);
    if (!whole_ && !bf16 && !fp16 && !fp32 && narrow.empty()) return;
    const std::string type = !narrow.empty() ? narrow : bf16 ? "bf16" : fp16 ? "fp16" : "fp32";
    const bool wide = type != "fp32" && !short_sums && (type != "fp16" || sums);
    casts_ = !narrow.empty();
    settings_.training.set("precision", wide ? type + "-fp32-gradients" : type);
    gradient_bytes_ = wide || type == "fp32" ? 4 : 2;
  }

  void read_degrees() {
    words_.copy("tensor-model-parallel-size", settings_.strategy, "tensor");
    words_.copy("pipeline-model-parallel-size", settings_.strategy, "pipeline");
    read_context();
    if (words_.flag("sequence-parallel") &&
        words_.number("tensor-model-parallel-size").value_or(1) > 1)
      settings_.strategy.set("sequence_parallel", true);
    if (words_.flag("use-tp-pp-dp-mapping")) settings_.strategy.set("rank_order", "tp-sp-cp-pp-dp");
    const auto nodes = words_.number("nnodes");
    const auto each = words_.number("nproc-per-node");
    const auto world = words_.number("world-size");
    gpus_ = each ? nodes.value_or(1) * *each : world.value_or(0);
    if (gpus_ > 0) settings_.cluster.set("gpus", gpus_);
  }

  /// Of the ranks that divide the tokens, how many exchange tokens for heads in all-to-alls; the
  /// others pass keys and values around a ring. Of two levels neighbours exchange.
  int exchanging_ranks(const std::string& types, int ranks) {
    const auto neighbours = words_.number("hierarchical-context-parallel-sizes");
    if (types.empty() || types == "p2p" || types == "all_gather") return 1;
    if (types == "a2a") return ranks;
    if (types == "a2a+p2p" && neighbours && ranks % *neighbours == 0) return *neighbours;
    const bool by_layer = types.find(' ') != std::string::npos;
    leave_out("cp-comm-type " + types,
              types == "a2a+p2p"
                  ? "hierarchical-context-parallel-sizes does not say how many ranks "
                    "exchange heads: keys and values pass around one ring"
              : by_layer ? "all layers exchange in one way here: keys and values pass "
                           "around a ring"
                         : "known are p2p, all_gather, a2a, a2a+p2p: p2p stands in");
    return 1;
  }

  void read_context() {
    const int ranks = words_.number("context-parallel-size").value_or(1);
    const std::string types = fmt::format("{}", fmt::join(words_.take_all("cp-comm-type"), " "));
    const int exchanging = exchanging_ranks(types, ranks);
    if (exchanging > 1) settings_.strategy.set("ulysses", exchanging);
    if (ranks <= exchanging) return;
    settings_.strategy.set("context", ranks / exchanging);
    if (types == "all_gather") return;
    if (settings_.passes_keys) {
      settings_.strategy.set("context_exchange", "ring");
    } else {
      leave_out("cp-comm-type p2p",
                "attention in parts, with windows or with sinks reads gathered keys and values");
    }
  }

  void read_pipeline() {
    const int pipeline = words_.number("pipeline-model-parallel-size").value_or(1);
    const auto each = words_.number("num-layers-per-virtual-pipeline-stage");
    auto chunks = words_.number("num-virtual-stages-per-pipeline-rank");
    const auto layers =
        words_.number(words_.has("num-layers") ? "num-layers" : "decoder-num-layers");
    if (each && layers && *layers % (pipeline * *each) != 0)
      throw InputError("", "/num-layers-per-virtual-pipeline-stage",
                       fmt::format("a divisor of the {} layers of a rank", *layers / pipeline),
                       std::to_string(*each));
    if (each) chunks = std::max(1, layers.value_or(1) / (pipeline * *each));
    const bool combined = words_.flag("overlap-moe-expert-parallel-comm");
    if (combined)
      settings_.strategy.set("schedule", "combined-1f1b").set("chunks", chunks.value_or(1));
    if (pipeline == 1) return;
    if (chunks && *chunks > 1 && !combined)
      settings_.strategy.set("schedule", "interleaved").set("chunks", *chunks);
    read_uneven_stages(words_, pipeline, chunks.value_or(1), layers.value_or(0), settings_);
  }

  /// Graphs of mixtures choose a stack that has them.
  void read_graphs() {
    const auto how = words_.take("cuda-graph-impl");
    if (!how || *how == "none") return;
    const std::vector<std::string> of = words_.take_all("cuda-graph-modules");
    const std::vector<std::string> router = {"moe_router", "moe_preprocess"};
    const bool attention = of == std::vector<std::string>{"attn", router[0], router[1]};
    if (*how != "transformer_engine" || !(attention || of == router)) {
      return leave_out("cuda-graph-impl " + *how,
                       "a stack says what graphs have, such as megatron-core-te-graphs");
    }
    settings_.stacks.insert(settings_.stacks.begin(), attention ? "megatron-core-te-graphs"
                                                                : "megatron-core-te-router-graphs");
  }

  void read_recomputation() {
    const bool selective = words_.flag("recompute-activations");
    const std::string granularity =
        known_value(words_, "recompute-granularity", granularities, "nothing runs again", settings_)
            .value_or(recomputes_ ? "full"
                      : selective ? "selective"
                                  : "");
    for (const char* parts :
         {"distribute-checkpointed-activations", "distribute-saved-activations"})
      if (words_.flag(parts))
        leave_out(parts, "say it as \"partition_checkpoints\" of \"recompute\"");
    if (granularity == "selective") return read_modules();
    if (granularity == "full") return read_full_recomputation();
    skip_recomputation(words_, settings_);
  }

  void read_full_recomputation() {
    const auto block =
        known_value(words_, "recompute-method", block_methods, "uniform stands in", settings_);
    const int layers = words_.number("recompute-num-layers").value_or(1);
    if (block.value_or(false)) {
      settings_.strategy.set("recompute",
                             Json::object().set("layers", layers).set("method", "block"));
    } else if (layers > 1) {
      settings_.strategy.set("recompute", Json::object().set("every", layers));
    } else {
      settings_.strategy.set("recompute", "full");
    }
  }

  /// Of selective recomputation, by default the core of attention.
  void read_modules() {
    const std::vector<std::string> modules = words_.take_all("recompute-modules");
    if (modules.empty() || modules == std::vector<std::string>{"core_attn"}) {
      settings_.strategy.set("recompute", "selective");
      return;
    }
    Json patterns = Json::array();
    for (const std::string& module : modules) {
      const auto known = operators_of_modules.find(module);
      if (known == operators_of_modules.end())
        leave_out("recompute-modules " + module, "it is kept");
      else
        for (const char* pattern : known->second) patterns.push(pattern);
    }
    if (patterns.text() != "[]")
      settings_.strategy.set("recompute",
                             Json::object().set("operators", patterns).set("results", "dropped"));
  }

  /// Ranks that share the states of an optimizer of which there are so many copies; nullopt: all.
  std::optional<int> shard_ranks(int copies) {
    if (copies == 1) return std::nullopt;
    int data = gpus_;
    for (const char* degree :
         {"tensor-model-parallel-size", "pipeline-model-parallel-size", "context-parallel-size"})
      data /= words_.number(degree).value_or(1);
    if (data == 0) {
      leave_out(
          "num-distributed-optimizer-instances",
          "how many GPUs there are is not said; say it as \"zero\": {\"stage\": 1, \"ranks\": N}");
      return std::nullopt;
    }
    if (data % copies != 0)
      leave_out("num-distributed-optimizer-instances", "they do not divide the data ranks");
    return std::max(1, data / copies);
  }

  void read_data_parallelism() {
    if (set_sharding(words_, settings_)) return;
    const bool sharded = words_.flag("use-distributed-optimizer");
    bool ahead = words_.flag("overlap-param-gather");
    if (ahead && !sharded)
      leave_out("overlap-param-gather", "it wants --use-distributed-optimizer");
    if (ahead && sharded && casts_) {
      leave_out("overlap-param-gather",
                "weights are whole where products cast them to 8 or 4 bits: they are gathered "
                "behind the step");
      ahead = false;
    }
    const auto copies = words_.number("num-distributed-optimizer-instances");
    const auto ranks = shard_ranks(copies.value_or(1));
    if (sharded && (ahead || ranks)) {
      Json zero = Json::object().set("stage", 1);
      if (ahead) zero.set("prefetch", 1);
      if (ranks) zero.set("ranks", *ranks);
      settings_.strategy.set("zero", zero);
    } else if (sharded) {
      settings_.strategy.set("zero", 1);
    }
    if (words_.flag("overlap-grad-reduce")) {
      // DistributedDataParallelConfig, for up to 40 data ranks; more have larger buckets.
      const int elements = words_.number("ddp-bucket-size").value_or(40'000'000);
      settings_.strategy.set("overlap_gradients", true)
          .set("bucket", fmt::format("{} MB", gradient_bytes_ * elements / 1e6));
    }
  }

  Said words_;
  bool whole_;               ///< is it a whole run, whose arguments have Megatron-LM's defaults?
  bool recomputes_ = false;  ///< in full, by an argument of older versions?
  Settings settings_;
  double gradient_bytes_ = 4;
  bool casts_ = false;  ///< are products in 8 or 4 bits?
  int gpus_ = 0;        ///< 0: not said
};

/// NAME of each `pretrain_NAME.py` that is not in a comment.
std::vector<std::string> programs_in(const std::string& text) {
  static const std::regex comment(R"((^|\s)#[^\n]*)"), program(R"(pretrain_(\w+)\.py)");
  const std::string code = std::regex_replace(text, comment, "\n");
  std::vector<std::string> names;
  for (std::sregex_iterator one(code.begin(), code.end(), program), end; one != end; ++one)
    names.push_back((*one)[1]);
  return names;
}

/// What no shell would read so: arguments of all branches and launches are read as those of one.
void tell_of_script(const std::string& text, std::size_t launches, Settings& settings) {
  if (has_branches(text))
    settings.assumed.push_back(
        {"all branches",
         "the script has if or case: arguments of each are read, and of a variable "
         "the last value"});
  if (launches > 1)
    settings.assumed.push_back(
        {"one launch", fmt::format("arguments of {} are read as if they were one's: a file with "
                                   "one of them says which",
                                   launches)});
}

}  // namespace

Settings read_megatron(const std::string& program, Said words) {
  return Megatron(program, std::move(words)).read();
}

Format megatron() {
  return {"megatron",
          "arguments of Megatron-LM's pretrain_gpt.py, pretrain_bert.py or pretrain_t5.py, in a "
          "launch script or alone",
          [](const std::string& text) {
            return !programs_in(text).empty() || says_network(Said::arguments(text));
          },
          [](const std::string& text, const std::string&) {
            Said words = Said::arguments(text);
            if (!says_network(words)) check_network(words);
            const std::vector<std::string> programs = programs_in(text);
            Settings settings =
                read_megatron(programs.empty() ? "" : programs.back(), std::move(words));
            tell_of_script(text, programs.size(), settings);
            return settings;
          }};
}

}  // namespace stratagem::imports
