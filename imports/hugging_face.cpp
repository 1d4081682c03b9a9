// A model's config.json of Hugging Face's transformers.
#include <algorithm>
#include <map>
#include <regex>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "base/nearest.hpp"
#include "imports/format.hpp"
#include "imports/known.hpp"
#include "imports/said.hpp"
#include "imports/sort.hpp"

namespace stratagem::imports {
namespace {

/// Names, tokens, initial values, generation and the angles of rotary positions.
constexpr std::string_view no_matter[] = {"_*",
                                          "architectures",
                                          "auto_map*",
                                          "*_token_id",
                                          "bos_*",
                                          "eos_*",
                                          "init_std",
                                          "initializer_range",
                                          "layer_norm_eps*",
                                          "layer_norm_epsilon",
                                          "output_*",
                                          "pretraining_tp",
                                          "prefix",
                                          "rms_norm_eps",
                                          "rope_*",
                                          "router_aux_loss_coef",
                                          "summary_*",
                                          "task_specific_params*",
                                          "transformers_version",
                                          "use_cache",
                                          "vocab_pad*",
                                          "initializer_factor",
                                          "n_ctx",
                                          "scale_attn_weights",
                                          "max_window_layers",
                                          "aux_loss_alpha",
                                          "seq_aux",
                                          "norm_topk_prob",
                                          "routed_scaling_factor",
                                          "topk_method",
                                          "ep_size",
                                          "encoder_stride",
                                          "id2label*",
                                          "label2id*",
                                          "pooler_*",
                                          "problem_type",
                                          "initial_context_length"};
constexpr Missing missing[] = {
    {"sliding_window", "attention is over all earlier tokens"},
    {"swiglu_limit", "gates are not clamped"},
    {"*quantization*", "weights are trained, not quantised"},
};

/// What a member must be for a family to stand for the model.
void expect(Said& said, Settings& settings, const std::string& name,
            const std::vector<std::string>& usual, const std::string& why) {
  const auto value = said.take(name);
  if (!value || std::ranges::find(usual, *value) != usual.end()) return;
  settings.left_out.push_back({name + ": " + *value, why});
}

void read_gpt(Said& said, Settings& settings) {
  const std::string activation = said.take("activation_function").value_or("gelu_new");
  settings.model.set("activation", activation == "relu" ? "relu" : "gelu");
  bool dropout = false;
  for (const char* name : {"resid_pdrop", "embd_pdrop", "attn_pdrop", "dropout",
                           "attention_dropout", "activation_dropout"}) {
    dropout = said.real(name).value_or(0) > 0 || dropout;
  }
  settings.model.set("dropout", dropout).set("attention", "fused");
  if (!said.flag("tie_word_embeddings") && said.has("tie_word_embeddings"))
    settings.model.set("tied", false);
  expect(said, settings, "do_layer_norm_before", {"true"}, "norms come before");
  expect(said, settings, "reorder_and_upcast_attn", {"false"}, "scores are in the products' type");
  const auto width = said.take("word_embed_proj_dim");
  if (width && width != said.take("hidden_size"))
    settings.left_out.push_back(
        {"word_embed_proj_dim: " + *width, "embeddings have the hidden size"});
}

/// Training is that of BertForPreTraining, or of words alone.
void read_heads(Said& said, Settings& settings) {
  const std::string classes = said.take("architectures").value_or("BertForPreTraining");
  if (classes.find("BertForMaskedLM") != std::string::npos) {
    settings.model.set("next_sentence", false);
    settings.left_out.push_back({"architectures", "without the pooler tokens have no types here"});
  } else if (classes.find("BertForPreTraining") == std::string::npos) {
    settings.left_out.push_back({"architectures: " + classes, "both heads of pre-training are"});
  }
}

void read_bert(Said& said, Settings& settings) {
  read_heads(said, settings);
  expect(said, settings, "hidden_act", {"gelu"}, "the MLP's activation is GELU");
  expect(said, settings, "position_embedding_type", {"absolute"}, "positions are a table");
  expect(said, settings, "type_vocab_size", {"2"}, "a sample has up to two sentences");
  if (said.has("tie_word_embeddings") && !said.flag("tie_word_embeddings"))
    settings.model.set("tied", false);
  const bool hidden = said.real("hidden_dropout_prob").value_or(0.1) > 0;
  const bool attention = said.real("attention_probs_dropout_prob").value_or(0.1) > 0;
  settings.model.set("dropout", hidden || attention).set("attention", "fused");
  if (hidden != attention)
    settings.left_out.push_back({"hidden_dropout_prob", "dropout is everywhere or nowhere"});
}

/// Where heads do not have their share of the hidden size.
void read_head_width(Said& said, Settings& settings) {
  const auto hidden = said.number("hidden_size"), heads = said.number("num_attention_heads");
  const auto width = said.number("head_dim");
  if (hidden && heads && width && *width * *heads != *hidden)
    settings.model.set("head_width", *width);
}

/// What Llamas and models of its kind say alike.
void read_variant(Said& said, Settings& settings) {
  if (said.flag("tie_word_embeddings")) settings.model.set("tied", true);
  expect(said, settings, "hidden_act", {"silu"}, "the MLP's activation is SiLU");
  for (const char* name : {"attention_bias", "mlp_bias"})
    expect(said, settings, name, {"false"}, "llama has no biases");
  expect(said, settings, "attention_dropout", {"0.0", "0"}, "llama has no dropout");
}

void read_llama(Said& said, Settings& settings) {
  read_variant(said, settings);
  read_head_width(said, settings);
}

/// What Qwens say of windows that they do not use.
void skip_unused_windows(Said& said) {
  if (said.flag("use_sliding_window")) return;
  for (const char* unused : {"sliding_window", "max_window_layers", "layer_types"})
    said.take(unused);
}

/// A Llama but for biases of queries, keys and values.
void read_qwen2(Said& said, Settings& settings) {
  read_llama(said, settings);
  settings.left_out.push_back(
      {"model_type: qwen2", "biases of queries, keys and values, which llama does not have"});
  skip_unused_windows(said);
}

void read_qwen3(Said& said, Settings& settings) {
  read_llama(said, settings);
  skip_unused_windows(said);
  settings.model.set("qk_norm", true);
}

/// All layers have it, where it is less than the sequence.
void read_window(Said& said, Settings& settings) {
  const auto window = said.number("sliding_window"), all = said.number("max_position_embeddings");
  if (window && all && *window < *all) settings.model.set("window", *window);
}

void read_mistral(Said& said, Settings& settings) {
  read_llama(said, settings);
  read_window(said, settings);
}

/// Of Qwen3's mixtures, all layers of which have experts.
void read_qwen3_moe(Said& said, Settings& settings) {
  read_qwen3(said, settings);
  expect(said, settings, "decoder_sparse_step", {"1"}, "all layers are mixtures");
  expect(said, settings, "mlp_only_layers", {"[]"}, "all layers are mixtures");
  if (said.flag("use_sliding_window")) read_window(said, settings);
  said.take("sliding_window");
}

void read_deepseek(Said& said, Settings& settings) {
  read_variant(said, settings);
  Json latent = Json::object();
  said.copy("kv_lora_rank", latent, "key_rank");
  said.copy("q_lora_rank", latent, "query_rank");
  said.copy("qk_rope_head_dim", latent, "rotary");
  said.copy("v_head_dim", latent, "values");
  settings.model.set("latent", latent);
  said.take("num_key_value_heads");  // as many as heads
  expect(said, settings, "moe_layer_freq", {"1"}, "all layers after the first are mixtures");
  for (const char* groups : {"n_group", "topk_group"})
    expect(said, settings, groups, {"1"}, "tokens are sent to any experts");
  expect(said, settings, "num_nextn_predict_layers", {"0"}, "one next token is predicted");
  for (const char* unused : {"head_dim", "qk_head_dim"}) said.take(unused);  // sums of others
  if (said.take("scoring_func").value_or("sigmoid") == "sigmoid")
    settings.model.set("router", "sigmoid").set("router_bias", true);
}

/// Do windows and full attention take turns, from the first layer on?
bool alternate(const std::string& layers) {
  static const std::regex turns(R"(\[("sliding_attention","full_attention",?)*\])");
  return layers.empty() || std::regex_match(layers, turns);
}

void read_gpt_oss(Said& said, Settings& settings) {
  settings.model.set("norm", "rms").set("positions", "rotary").set("activation", "swiglu");
  settings.model.set("dropout", false).set("attention", "fused").set("sinks", true);
  settings.model.set("router_bias", true).set("tied", said.flag("tie_word_embeddings"));
  expect(said, settings, "hidden_act", {"silu"}, "the MLP's activation is SiLU");
  expect(said, settings, "attention_bias", {"true"}, "all linear layers have biases");
  expect(said, settings, "attention_dropout", {"0.0", "0"}, "there is no dropout");
  settings.model.set("window", said.number("sliding_window").value_or(128)).set("full_every", 2);
  std::string layers = said.take("layer_types").value_or("");
  if (!alternate(layers))
    settings.left_out.push_back({"layer_types", "every second layer sees all tokens"});
  said.take("experts_per_token");
  read_head_width(said, settings);
}

/// Of classifiers of images: what they have in common. Classes are counted by their labels.
void read_images(Said& said, Settings& settings) {
  expect(said, settings, "hidden_act", {"gelu"}, "the MLP's activation is GELU");
  expect(said, settings, "qkv_bias", {"true"}, "all linear layers have biases");
  const auto labels = std::ranges::count_if(
      said.left(), [](const Said::Value& value) { return value.name.starts_with("id2label."); });
  if (labels > 1) settings.model.set("classes", static_cast<int>(labels));
}

void read_vit(Said& said, Settings& settings) {
  read_images(said, settings);
  const bool hidden = said.real("hidden_dropout_prob").value_or(0) > 0;
  const bool attention = said.real("attention_probs_dropout_prob").value_or(0) > 0;
  settings.model.set("dropout", hidden || attention).set("attention", "fused");
}

/// Whole numbers of a list.
std::vector<std::int64_t> numbers(Said& said, const std::string& name) {
  std::vector<std::int64_t> all;
  const auto list = said.take(name);
  if (!list) return all;
  for (const JsonReader& one : JsonReader::from_text(*list, name).elements())
    all.push_back(one.whole_number());
  return all;
}

void read_swin(Said& said, Settings& settings) {
  read_images(said, settings);
  Json depths = Json::array();
  for (const std::int64_t layers : numbers(said, "depths")) depths.push(layers);
  settings.model.set("depths", depths);
  const std::vector<std::int64_t> heads = numbers(said, "num_heads");
  if (!heads.empty()) settings.model.set("heads", heads.front());
  for (std::size_t level = 1; level < heads.size(); ++level) {
    if (heads[level] != heads[0] << level)
      settings.left_out.push_back(
          {"num_heads", "each level has twice the heads of the one before"});
  }
  const double ratio = said.real("mlp_ratio").value_or(4);
  settings.model.set("mlp_ratio", static_cast<std::int64_t>(ratio));
  for (const char* derived : {"hidden_size", "num_layers"}) said.take(derived);
  expect(said, settings, "use_absolute_embeddings", {"false"}, "positions are offsets in windows");
  expect(said, settings, "drop_path_rate", {"0.0", "0"}, "no path is dropped");
  for (const char* name : {"hidden_dropout_prob", "attention_probs_dropout_prob"})
    expect(said, settings, name, {"0.0", "0"}, "there is no dropout");
}

/// Values of transformers' names as our keys of a family.
struct Names {
  std::string family;
  std::map<std::string, std::string> keys;  ///< theirs, ours
  void (*read)(Said&, Settings&);           ///< all but keys
};

const std::map<std::string, Names> models = [] {
  using Keys = std::map<std::string, std::string>;
  const Keys sizes = {{"num_hidden_layers", "layers"},
                      {"hidden_size", "hidden"},
                      {"num_attention_heads", "heads"},
                      {"max_position_embeddings", "sequence"},
                      {"vocab_size", "vocabulary"}};
  const auto with = [](Keys keys, const Keys& more) {
    keys.insert(more.begin(), more.end());
    return keys;
  };
  const Keys bert = with(sizes, {{"intermediate_size", "intermediate"}});
  const Keys llama = with(bert, {{"num_key_value_heads", "kv_heads"}});
  const Keys mixtral =
      with(llama, {{"num_local_experts", "experts"}, {"num_experts_per_tok", "experts_per_token"}});
  const Keys moe = with(llama, {{"num_experts_per_tok", "experts_per_token"}});
  const Keys qwen =
      with(moe, {{"num_experts", "experts"}, {"moe_intermediate_size", "expert_width"}});
  const Keys deepseek = with(bert, {{"n_routed_experts", "experts"},
                                    {"num_experts_per_tok", "experts_per_token"},
                                    {"moe_intermediate_size", "expert_width"},
                                    {"n_shared_experts", "shared_experts"},
                                    {"first_k_dense_replace", "plain_layers"},
                                    {"qk_nope_head_dim", "head_width"}});
  const Keys oss = with(moe, {{"num_local_experts", "experts"}});
  const Keys images = {
      {"image_size", "image"}, {"patch_size", "patch"}, {"num_channels", "channels"}};
  const Keys vit = with(images, {{"num_hidden_layers", "layers"},
                                 {"hidden_size", "hidden"},
                                 {"num_attention_heads", "heads"},
                                 {"intermediate_size", "intermediate"}});
  const Keys swin = with(images, {{"embed_dim", "hidden"}, {"window_size", "window"}});
  const Keys opt = with(sizes, {{"ffn_dim", "intermediate"}});
  const Keys gpt2 = {{"n_layer", "layers"},       {"n_embd", "hidden"},
                     {"n_head", "heads"},         {"n_inner", "intermediate"},
                     {"n_positions", "sequence"}, {"vocab_size", "vocabulary"}};
  return std::map<std::string, Names>{{"llama", {"llama", llama, &read_llama}},
                                      {"mistral", {"llama", llama, &read_mistral}},
                                      {"mixtral", {"llama", mixtral, &read_mistral}},
                                      {"qwen2", {"llama", llama, &read_qwen2}},
                                      {"qwen3", {"llama", llama, &read_qwen3}},
                                      {"gpt2", {"gpt", gpt2, &read_gpt}},
                                      {"opt", {"gpt", opt, &read_gpt}},
                                      {"bert", {"bert", bert, &read_bert}},
                                      {"qwen3_moe", {"llama", qwen, &read_qwen3_moe}},
                                      {"deepseek_v3", {"llama", deepseek, &read_deepseek}},
                                      {"kimi_k2", {"llama", deepseek, &read_deepseek}},
                                      {"vit", {"vit", vit, &read_vit}},
                                      {"swin", {"swin", swin, &read_swin}},
                                      {"gpt_oss", {"gpt", oss, &read_gpt_oss}}};
}();

/// A model without these sizes is none, whatever defaults its class has in transformers.
void check_sizes(const Said& said, const std::string& file,
                 const std::map<std::string, std::string>& keys) {
  constexpr std::string_view needed[] = {"layers", "hidden", "heads"};
  for (const auto& [theirs, ours] : keys) {
    if (std::ranges::count(needed, ours) == 0 || said.has(theirs)) continue;
    std::string found = "nothing";
    for (const Said::Value& one : said.left()) {
      if (is_written_for(one.name, theirs)) found = one.name;
    }
    throw InputError(file, "/" + theirs, "a whole number", found);
  }
}

Settings read(const std::string& text, const std::string& file) {
  Said said = Said::json(text, file);
  const std::string type = said.take("model_type").value_or("");
  const auto known = models.find(type);
  if (known == models.end()) {
    std::string types;
    for (const auto& [name, names] : models) types += (types.empty() ? "" : ", ") + name;
    throw InputError(file, "/model_type", "one of " + types, type.empty() ? "none" : type);
  }
  const Names& names = known->second;
  Settings settings;
  settings.model.set("family", names.family);
  check_sizes(said, file, names.keys);
  for (const auto& [theirs, ours] : names.keys) {
    if (const auto value = said.number(theirs, 0); value && *value > 0)
      settings.model.set(ours, *value);
  }
  names.read(said, settings);
  expect(said, settings, "gradient_checkpointing", {"false"}, "say it as \"recompute\"");
  expect(said, settings, "layerdrop", {"0.0", "0"}, "no layer is left out");
  const auto is_sequence = [](const auto& key) { return key.second == "sequence"; };
  if (std::ranges::any_of(names.keys, is_sequence))
    settings.assumed.push_back(
        {"sequence", "the longest that the model takes; --set model.sequence=4096 says another"});
  said.rename("dtype", "torch_dtype");
  const std::map<std::string, std::string> precisions = {
      {"bfloat16", "bf16"}, {"float16", "fp16"}, {"float32", "bf16"}};
  if (const auto precision =
          known_value(said, "torch_dtype", precisions, "bf16 stands in", settings)) {
    settings.training.set("precision", *precision);
    settings.assumed.push_back({"precision", "as the checkpoint is stored; bf16 if that is fp32"});
  }
  sort_left(said, no_matter, missing, settings);
  return settings;
}

}  // namespace

Format hugging_face() {
  return {"hugging-face", "a model's config.json, of transformers",
          [](const std::string& text) { return text.find("\"model_type\"") != std::string::npos; },
          &read};
}

}  // namespace stratagem::imports
