// What Megatron-LM's arguments say of the network: of pretrain_gpt.py, pretrain_bert.py and
// pretrain_t5.py.
#include "imports/megatron_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "base/pattern.hpp"
#include "imports/known.hpp"
#include "imports/megatron_layers.hpp"

namespace stratagem::imports {
namespace {

/// Which of its programs runs.
enum class Network : std::uint8_t { gpt, bert, t5 };
Network network_of(const std::string& program) {
  if (program == "bert") return Network::bert;
  return program == "t5" ? Network::t5 : Network::gpt;
}

/// Entries of a tokenizer whose file is not said.
struct Tokenizer {
  std::string_view name;  ///< a pattern: of Megatron-LM's types, or of files of Hugging Face
  int entries;
  std::string_view of;
};
const Tokenizer& usual_tokenizer(const std::string& name, Network network) {
  static constexpr Tokenizer known[] = {{"GPT2BPETokenizer", 50257, "GPT-2"},
                                        {"Llama2Tokenizer", 32000, "Llama 2"},
                                        {"BertWordPieceLowerCase", 30522, "uncased BERT"},
                                        {"BertWordPieceCase", 28996, "cased BERT"},
                                        {"*Llama-2-*", 32000, "Llama 2"},
                                        {"*Llama-3*", 128256, "Llama 3"},
                                        {"*Qwen3-*", 151936, "Qwen3"}};
  const std::string_view wanted = name.empty() && network != Network::gpt ? known[2].name : name;
  const auto* const found =
      std::ranges::find_if(known, [&](const Tokenizer& one) { return matches(wanted, one.name); });
  return found == std::end(known) ? known[0] : *found;
}

class Model {
 public:
  Model(const std::string& program, Said& words, Settings& settings)
      : program_(program), network_(network_of(program)), words_(words), settings_(settings) {}

  void read() {
    if (network_ == Network::gpt && !program_.empty() && program_ != "gpt")
      settings_.left_out.push_back(
          {"pretrain_" + program_ + ".py", "its model is read as pretrain_gpt.py's"});
    switch (network_) {
      case Network::gpt:
        return read_gpt();
      case Network::bert:
        return read_bert();
      case Network::t5:
        return read_t5();
    }
  }

 private:
  void copy(const std::string& from, const std::string& key) {
    words_.copy(from, settings_.model, key);
  }
  void leave_out(const std::string& what, const std::string& why) {
    settings_.left_out.push_back({words_.as_written(what), why});
  }

  /// Where norms, positions, MLPs and biases are Llama's, it is one; any other is a GPT, whose keys
  /// say what differs from GPT-3.
  void read_gpt() {
    Json& model = settings_.model;
    const bool gated = words_.flag("swiglu");
    const std::map<std::string, bool> norms = {{"LayerNorm", false}, {"RMSNorm", true}};
    const bool rms = known_value(words_, "normalization", norms, "LayerNorm stands in", settings_)
                         .value_or(false);
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
    const bool fused = read_attention(has_engine());
    const LayerKind kind{
        .llama = llama, .gated = gated, .biases = biases, .fused_attention = fused};
    read_megatron_heads(kind, words_, settings_);
    read_vocabulary();
    if (const bool untied = words_.flag("untie-embeddings-and-output-weights"); untied == !llama)
      model.set("tied", !untied);
    read_dropout(llama);
    read_megatron_experts(kind, words_, settings_);
    read_loss();
    read_table_of_positions(positions == "learned", "seq-length");
  }

  void read_sizes() {
    copy("num-layers", "layers");
    copy("hidden-size", "hidden");
    copy("num-attention-heads", "heads");
    copy("seq-length", "sequence");
  }

  /// examples/bert/pretrain_bert.py. Sizes, dropout and the vocabulary are read, variants of layers
  /// are not.
  void read_bert() {
    settings_.model.set("family", "bert").set("norms", "before");
    read_sizes();
    read_width(false);
    settings_.passes_keys = read_attention(words_.take("spec").value_or("") != "local");
    read_vocabulary();
    read_dropout(false);
    leave_out_variants();
    if (words_.flag("untie-embeddings-and-output-weights")) settings_.model.set("tied", false);
    if (const auto layers = words_.take("transformer-impl"))
      settings_.no_matter.push_back(words_.as_written("transformer-impl " + *layers));
    if (words_.flag("bert-no-binary-head")) settings_.model.set("next_sentence", false);
    read_table_of_positions(true, "seq-length");
  }

  /// examples/t5/pretrain_t5.py, likewise.
  void read_t5() {
    Json& model = settings_.model;
    model.set("family", "t5").set("kind", "megatron").set("activation", "gelu");
    for (const char* layers : {"num-layers", "encoder-num-layers"}) {
      copy(layers, "layers");
      copy(layers, "decoder_layers");
    }
    copy("decoder-num-layers", "decoder_layers");
    copy("hidden-size", "hidden");
    copy("num-attention-heads", "heads");
    copy("kv-channels", "head_width");
    for (const char* sequence : {"seq-length", "encoder-seq-length"}) copy(sequence, "sequence");
    copy("decoder-seq-length", "decoder_sequence");
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

  /// Transformer Engine's loss leaves the gradient; how another is computed says the stack.
  void read_loss() {
    const bool fused = words_.flag("cross-entropy-loss-fusion");
    const auto by = words_.take("cross-entropy-fusion-impl");
    if (fused && by == "te") {
      settings_.model.set("loss", "fused");
      return;
    }
    const std::string why = "the stack says how the loss is computed";
    if (fused) leave_out("cross-entropy-loss-fusion", why);
    if (by) leave_out("cross-entropy-fusion-impl " + *by, why);
  }

  void read_table_of_positions(bool learned, const std::string& sequence) {
    const auto positions = words_.take("max-position-embeddings");
    if (!positions) return;
    if (!learned || positions == words_.take(sequence)) {
      settings_.no_matter.push_back(words_.as_written("max-position-embeddings " + *positions));
    } else {
      leave_out("max-position-embeddings", "the table of positions is as long as the sequence");
    }
  }

  bool read_attention(bool engine) {
    const bool fused = fuses_attention(engine);
    settings_.model.set("attention", fused ? "fused" : "unfused");
    return fused;
  }
  [[nodiscard]] bool has_engine() {
    const std::map<std::string, bool> engines = {
        {"transformer_engine", true}, {"inference_optimized", true}, {"local", false}};
    return known_value(words_, "transformer-impl", engines, "transformer_engine stands in",
                       settings_)
        .value_or(true);
  }

  /// Is attention one kernel, where layers are Transformer Engine's (`engine`) or not? Proposes
  /// stacks.
  bool fuses_attention(bool engine) {
    const std::map<std::string, std::string> backends = {{"flash", "flash"},
                                                         {"fused", "fused"},
                                                         {"auto", "auto"},
                                                         {"local", "local"},
                                                         {"unfused", "unfused"}};
    const std::string backend =
        known_value(words_, "attention-backend", backends, "auto stands in", settings_)
            .value_or("");
    const bool flash = words_.flag("use-flash-attn");
    const bool asked = flash || backend == "flash" || backend == "fused";
    if (flash && engine) settings_.no_matter.push_back(words_.as_written("use-flash-attn"));
    const bool fused = engine && (asked || (backend != "unfused" && backend != "local"));
    if (asked && !engine) leave_out("attention-backend", "local layers compute attention in parts");
    settings_.stacks = {"megatron-core-te", "megatron-lm-2022", "megatron-2019"};
    if (!engine) settings_.stacks.erase(settings_.stacks.begin());
    return fused;
  }

  /// As padded: megatron/training/tokenizer.
  void read_vocabulary() {
    const int tensor = words_.number("tensor-model-parallel-size").value_or(1);
    const int multiple = words_.number("make-vocab-size-divisible-by").value_or(128) * tensor;
    auto entries = words_.number("vocab-size");
    if (!entries) {
      std::string tokenizer = words_.take("tokenizer-type").value_or("");
      if (tokenizer == "HuggingFaceTokenizer")
        tokenizer = words_.take("tokenizer-model").value_or(tokenizer);
      const Tokenizer& usual = usual_tokenizer(tokenizer, network_);
      if (!matches(tokenizer, usual.name) && !tokenizer.empty())
        settings_.no_matter.push_back(words_.as_written("tokenizer-type " + tokenizer));
      entries = usual.entries;
      if (tokenizer.starts_with("BertWordPiece"))
        *entries += words_.number("vocab-extra-ids", 0).value_or(0);
      settings_.assumed.push_back(
          {"--vocab-size",
           fmt::format("{}, as {}'s; it is in the tokenizer's files", *entries, usual.of)});
    }
    settings_.model.set("vocabulary", (*entries + multiple - 1) / multiple * multiple);
  }

  const std::string& program_;  ///< "gpt" of pretrain_gpt.py; "": not said
  Network network_;
  Said& words_;
  Settings& settings_;
};

}  // namespace

void read_megatron_model(const std::string& program, Said& words, Settings& settings) {
  Model(program, words, settings).read();
}

}  // namespace stratagem::imports
