// Arguments of Megatron-LM's pretrain_gpt.py, pretrain_bert.py and pretrain_t5.py
// (megatron/training/arguments.py), with torchrun's.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>
#include <string_view>

#include "base/pattern.hpp"
#include "imports/format.hpp"
#include "imports/said.hpp"
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
                                          "data-*",
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
    Missing{"cross-entropy-*", "the stack says how the loss is computed"},
    Missing{"cuda-graph*", "launches are counted as without graphs"},
    Missing{"multi-latent-attention", "no family has latent attention"},
    Missing{"*-lora-rank", "no family has latent attention"},
    Missing{"use-megatron-fsdp", "say it as \"zero\": 3"},
    Missing{"decoder-*-pipeline-num-layers", "say it as \"layers_per_stage\""},
};

/// Which of its programs runs.
enum class Network : std::uint8_t { gpt, bert, t5 };
Network network_of(const std::string& program) {
  if (program == "bert") return Network::bert;
  return program == "t5" ? Network::t5 : Network::gpt;
}

/// NAME of the last `pretrain_NAME.py` that is not in a comment; "" where there is none.
std::string program_in(const std::string& text) {
  static const std::regex comment(R"((^|\s)#[^\n]*)"), program(R"(pretrain_(\w+)\.py)");
  const std::string code = std::regex_replace(text, comment, "\n");
  std::string name;
  for (std::sregex_iterator one(code.begin(), code.end(), program), end; one != end; ++one)
    name = (*one)[1];
  return name;
}

class Megatron {
 public:
  explicit Megatron(const std::string& text)
      : words_(Said::arguments(text)), program_(program_in(text)), network_(network_of(program_)) {}

  Settings read() && {
    if (network_ == Network::gpt && !program_.empty() && program_ != "gpt")
      leave_out("pretrain_" + program_ + ".py", "its model is read as pretrain_gpt.py's");
    switch (network_) {
      case Network::gpt:
        read_gpt();
        break;
      case Network::bert:
        read_bert();
        break;
      case Network::t5:
        read_t5();
        break;
    }
    read_training();
    read_degrees();
    read_pipeline();
    read_recomputation();
    read_data_parallelism();
    sort_left(words_, no_matter, missing, settings_);
    return std::move(settings_);
  }

 private:
  void copy(const std::string& from, Json& object, const std::string& key) {
    if (const auto value = words_.number(from)) object.set(key, *value);
  }
  void leave_out(const std::string& what, const std::string& why) {
    settings_.left_out.push_back({what.ends_with(".py") ? what : "--" + what, why});
  }

  /// Where norms, positions, MLPs and biases are Llama's, it is one; any other is a GPT, whose keys
  /// say what differs from GPT-3.
  void read_gpt() {
    Json& model = settings_.model;
    const bool gated = words_.flag("swiglu");
    const bool rms = words_.take("normalization").value_or("LayerNorm") == "RMSNorm";
    const std::string positions = read_positions();
    const bool biases = !words_.flag("disable-bias-linear");
    const bool llama = gated && rms && positions == "rotary" && !biases;
    model.set("family", llama ? "llama" : "gpt");
    read_sizes();
    if (!llama) {
      if (rms) model.set("norm", "rms");
      if (positions != "learned") model.set("positions", positions);
      if (!biases) model.set("biases", false);
      if (gated) model.set("activation", "swiglu");
      if (words_.flag("squared-relu")) {
        if (gated) leave_out("swiglu", "squared ReLUs are not gated");
        model.set("activation", "squared-relu");
      }
    }
    read_width(gated);
    read_keys();
    read_attention(has_engine());
    read_vocabulary();
    if (const bool untied = words_.flag("untie-embeddings-and-output-weights"); untied == !llama)
      model.set("tied", !untied);
    read_dropout(llama);
    read_experts();
    read_table_of_positions(positions == "learned", "seq-length");
  }

  void read_sizes() {
    copy("num-layers", settings_.model, "layers");
    copy("hidden-size", settings_.model, "hidden");
    copy("num-attention-heads", settings_.model, "heads");
    copy("seq-length", settings_.model, "sequence");
  }

  /// examples/bert/pretrain_bert.py. Sizes, dropout and the vocabulary are read, variants of layers
  /// are not.
  void read_bert() {
    settings_.model.set("family", "bert").set("norms", "before");
    read_sizes();
    read_width(false);
    read_attention(words_.take("spec").value_or("") != "local");
    read_vocabulary();
    read_dropout(false);
    leave_out_variants();
    if (words_.flag("untie-embeddings-and-output-weights")) settings_.model.set("tied", false);
    if (const auto layers = words_.take("transformer-impl"))
      settings_.no_matter.push_back("--transformer-impl " + *layers);
    if (words_.flag("bert-no-binary-head")) settings_.model.set("next_sentence", false);
    read_table_of_positions(true, "seq-length");
  }

  /// examples/t5/pretrain_t5.py, likewise.
  void read_t5() {
    Json& model = settings_.model;
    model.set("family", "t5").set("kind", "megatron").set("activation", "gelu");
    for (const char* layers : {"num-layers", "encoder-num-layers"}) {
      copy(layers, model, "layers");
      copy(layers, model, "decoder_layers");
    }
    copy("decoder-num-layers", model, "decoder_layers");
    copy("hidden-size", model, "hidden");
    copy("num-attention-heads", model, "heads");
    copy("kv-channels", model, "head_width");
    for (const char* sequence : {"seq-length", "encoder-seq-length"})
      copy(sequence, model, "sequence");
    copy("decoder-seq-length", model, "decoder_sequence");
    read_width(false);
    if (fuses_attention(has_engine()))
      leave_out("attention-backend", "attention of an encoder and a decoder is computed in parts");
    read_vocabulary();
    read_dropout(false);
    leave_out_variants();
    if (words_.flag("untie-embeddings-and-output-weights")) model.set("tied", false);
    read_table_of_positions(true, words_.has("seq-length") ? "seq-length" : "encoder-seq-length");
  }

  void leave_out_variants() {
    for (const char* variant :
         {"swiglu", "squared-relu", "normalization", "position-embedding-type",
          "use-rotary-position-embeddings", "group-query-attention", "num-query-groups",
          "qk-layernorm", "disable-bias-linear", "num-experts"}) {
      const auto value = words_.take(variant);
      const bool usual = value == "LayerNorm" || value == "learned_absolute" || value == "false";
      if (value && !usual)
        leave_out(value->empty() ? variant : fmt::format("{} {}", variant, *value),
                  "this family has no such variant");
    }
  }

  std::string read_positions() {
    const std::string type = words_.take("position-embedding-type").value_or("learned_absolute");
    const bool stretched = type == "yarn" || type == "mrope";
    const bool rotary =
        words_.flag("use-rotary-position-embeddings") || type == "rope" || stretched;
    if (stretched)
      leave_out("position-embedding-type", "plain rotary positions stand in, which take as long");
    if (!rotary && type != "none" && type != "learned_absolute")
      leave_out("position-embedding-type", "positions are learned, rotary, or there are none");
    return rotary ? "rotary" : type == "none" ? "none" : "learned";
  }

  void read_width(bool gated) {
    if (const auto ffn = words_.number("ffn-hidden-size")) {
      settings_.model.set("intermediate", *ffn);
    } else if (const auto hidden = words_.number("hidden-size"); gated && hidden) {
      settings_.model.set("intermediate", 4 * *hidden * 2 / 3 / 64 * 64);
      settings_.assumed.push_back(
          {"--ffn-hidden-size", "8/3 of the hidden size, a multiple of 64"});
    }
  }

  void read_dropout(bool llama) {
    const bool hidden = words_.real("hidden-dropout").value_or(0.1) > 0;
    const bool attention = words_.real("attention-dropout").value_or(0.1) > 0;
    if (!llama) settings_.model.set("dropout", hidden || attention);
    if (llama && (hidden || attention)) leave_out("hidden-dropout", "llama has no dropout");
    if (!llama && hidden != attention)
      leave_out(hidden ? "attention-dropout" : "hidden-dropout",
                "dropout is everywhere or nowhere, here everywhere");
  }

  void read_table_of_positions(bool learned, const std::string& sequence) {
    const auto positions = words_.take("max-position-embeddings");
    if (!positions) return;
    if (!learned || positions == words_.take(sequence)) {
      settings_.no_matter.push_back("--max-position-embeddings " + *positions);
    } else {
      leave_out("max-position-embeddings", "the table of positions is as long as the sequence");
    }
  }

  void read_keys() {
    const auto groups = words_.number("num-query-groups");
    if (words_.flag("group-query-attention") && groups) settings_.model.set("kv_heads", *groups);
    if (words_.flag("qk-layernorm")) settings_.model.set("qk_norm", true);
  }

  void read_attention(bool engine) {
    settings_.model.set("attention", fuses_attention(engine) ? "fused" : "unfused");
  }
  [[nodiscard]] bool has_engine() {
    return words_.take("transformer-impl").value_or("transformer_engine") != "local";
  }

  /// Is attention one kernel, where layers are Transformer Engine's (`engine`) or not? Proposes
  /// stacks.
  bool fuses_attention(bool engine) {
    const std::string backend = words_.take("attention-backend").value_or("");
    const bool asked = words_.flag("use-flash-attn") || backend == "flash" || backend == "fused";
    const bool fused = engine && (asked || (backend != "unfused" && backend != "local"));
    if (asked && !engine) leave_out("attention-backend", "local layers compute attention in parts");
    settings_.stacks = {"megatron-core-te", "megatron-lm-2022", "megatron-2019"};
    if (!engine) settings_.stacks.erase(settings_.stacks.begin());
    return fused;
  }

  /// Entries of a tokenizer whose file is not said.
  struct Tokenizer {
    std::string_view name;
    int entries;
    std::string_view of;
  };
  [[nodiscard]] const Tokenizer& usual_tokenizer(const std::string& name) const {
    static constexpr Tokenizer known[] = {{"", 50257, "GPT-2"},
                                          {"Llama2Tokenizer", 32000, "Llama 2"},
                                          {"BertWordPieceLowerCase", 30522, "uncased BERT"},
                                          {"BertWordPieceCase", 28996, "cased BERT"}};
    const std::string_view wanted = name.empty() && network_ != Network::gpt ? known[2].name : name;
    const auto* const found = std::ranges::find(known, wanted, &Tokenizer::name);
    return found == std::end(known) ? known[0] : *found;
  }

  /// As padded: megatron/training/tokenizer.
  void read_vocabulary() {
    const int tensor = words_.number("tensor-model-parallel-size").value_or(1);
    const int multiple = words_.number("make-vocab-size-divisible-by").value_or(128) * tensor;
    auto entries = words_.number("vocab-size");
    if (!entries) {
      const std::string tokenizer = words_.take("tokenizer-type").value_or("");
      const Tokenizer& usual = usual_tokenizer(tokenizer);
      if (usual.name != tokenizer && !tokenizer.empty())
        settings_.no_matter.push_back("--tokenizer-type " + tokenizer);
      entries = usual.entries;
      if (tokenizer.starts_with("BertWordPiece"))
        *entries += words_.number("vocab-extra-ids", 0).value_or(0);
      settings_.assumed.push_back(
          {"--vocab-size",
           fmt::format("{}, as {}'s; it is in the tokenizer's files", *entries, usual.of)});
    }
    settings_.model.set("vocabulary", (*entries + multiple - 1) / multiple * multiple);
  }

  void read_experts() {
    copy("num-experts", settings_.model, "experts");
    copy("moe-router-topk", settings_.model, "experts_per_token");
    copy("moe-layer-freq", settings_.model, "moe_every");
    copy("expert-model-parallel-size", settings_.strategy, "expert");
    if (const auto factor = words_.real("moe-expert-capacity-factor"))
      settings_.model.set("capacity_factor", *factor);
  }

  void read_training() {
    Json& training = settings_.training;
    copy("micro-batch-size", training, "micro_batch");
    copy("global-batch-size", training, "global_batch");
    const bool bf16 = words_.flag("bf16"), fp16 = words_.flag("fp16");
    const bool sums = words_.flag("accumulate-allreduce-grads-in-fp32");
    const auto fp8 = words_.take("fp8-format");
    // With bf16 gradients are added up and reduced in fp32 whether or not that is asked for.
    const std::string type = fp8 ? "fp8" : bf16 ? "bf16" : fp16 ? "fp16" : "fp32";
    const bool wide = type == "fp8" || type == "bf16" || (type == "fp16" && sums);
    training.set("precision", wide ? type + "-fp32-gradients" : type);
    gradient_bytes_ = wide || type == "fp32" ? 4 : 2;
    training.set("optimizer", words_.take("optimizer").value_or("adam"));
  }

  void read_degrees() {
    copy("tensor-model-parallel-size", settings_.strategy, "tensor");
    copy("pipeline-model-parallel-size", settings_.strategy, "pipeline");
    copy("context-parallel-size", settings_.strategy, "context");
    if (words_.flag("sequence-parallel") &&
        words_.number("tensor-model-parallel-size").value_or(1) > 1)
      settings_.strategy.set("sequence_parallel", true);
    if (words_.flag("use-tp-pp-dp-mapping")) settings_.strategy.set("rank_order", "tp-cp-pp-dp");
    const auto nodes = words_.number("nnodes");
    const auto each = words_.number("nproc-per-node");
    const auto world = words_.number("world-size");
    gpus_ = each ? nodes.value_or(1) * *each : world.value_or(0);
    if (gpus_ > 0) settings_.cluster.set("gpus", gpus_);
  }

  void read_pipeline() {
    const int pipeline = words_.number("pipeline-model-parallel-size").value_or(1);
    const auto each = words_.number("num-layers-per-virtual-pipeline-stage");
    auto chunks = words_.number("num-virtual-stages-per-pipeline-rank");
    const auto layers =
        words_.number(words_.has("num-layers") ? "num-layers" : "decoder-num-layers");
    if (each) chunks = std::max(1, layers.value_or(1) / (pipeline * *each));
    if (chunks && *chunks > 1 && pipeline > 1)
      settings_.strategy.set("schedule", "interleaved").set("chunks", *chunks);
  }

  void read_recomputation() {
    const bool selective = words_.flag("recompute-activations");
    const std::string granularity =
        words_.take("recompute-granularity").value_or(selective ? "selective" : "");
    const std::string method = words_.take("recompute-method").value_or("uniform");
    const int layers = words_.number("recompute-num-layers").value_or(1);
    if (granularity == "selective") settings_.strategy.set("recompute", "selective");
    if (granularity != "full") return;
    if (method == "block") {
      settings_.strategy.set("recompute",
                             Json::object().set("layers", layers).set("method", "block"));
    } else if (layers > 1) {
      settings_.strategy.set("recompute", Json::object().set("every", layers));
    } else {
      settings_.strategy.set("recompute", "full");
    }
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
    const bool sharded = words_.flag("use-distributed-optimizer");
    const bool ahead = words_.flag("overlap-param-gather");
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
  std::string program_;  ///< "gpt" of pretrain_gpt.py; "": not said
  Network network_;
  Settings settings_;
  double gradient_bytes_ = 4;
  int gpus_ = 0;  ///< 0: not said
};

bool is_megatron(const std::string& text) {
  const Said words = Said::arguments(text);
  const bool layers = words.has("num-layers") || words.has("encoder-num-layers");
  return layers && words.has("hidden-size");
}

}  // namespace

Format megatron() {
  return {"megatron",
          "arguments of Megatron-LM's pretrain_gpt.py, pretrain_bert.py or pretrain_t5.py, in a "
          "launch script or alone",
          &is_megatron,
          [](const std::string& text, const std::string&) { return Megatron(text).read(); }};
}

}  // namespace stratagem::imports
