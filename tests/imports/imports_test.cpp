// Configurations of other programs: what becomes of each of their settings.
#include <algorithm>
#include <map>
#include <set>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "base/read_file.hpp"
#include "imports/said.hpp"
#include "imports/scenario.hpp"
#include "model/zoo/presets.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem::imports {
namespace {

const std::string folder = "tests/imports/data/";

Settings read(const std::string& text) {
  const auto format =
      std::ranges::find_if(formats(), [&](const Format& one) { return one.is(text); });
  REQUIRE(format != formats().end());
  return format->read(text, "test");
}

/// The run, as JSON, of files and settings "tensor=2".
JsonReader run_of(const std::vector<std::string>& texts, const std::vector<std::string>& set = {}) {
  std::vector<Settings> files;
  for (const std::string& text : texts) files.push_back(read(text));
  std::vector<study::KeyValues> changes;
  for (const std::string& one : set) changes.push_back(study::read_change(one, false, "--set"));
  const Imported imported = scenario_of(merged(files), changes, "test");
  return JsonReader::from_text(imported.scenario.text(), "scenario").at("runs").elements().front();
}

/// Its members, in whatever order.
std::map<std::string, std::string> members(const JsonReader& object) {
  std::map<std::string, std::string> all;
  for (const std::string& key : object.keys()) all[key] = object.at(key).dump();
  return all;
}

void check(const JsonReader& run, const std::string& object, const std::string& expected) {
  CHECK(members(run.at(object)) == members(JsonReader::from_text(expected, "expected")));
}

TEST_CASE("a release run of Megatron-LM: interleaved, sharded states, gathers ahead") {
  const JsonReader run = run_of({read_file(folder + "megatron_gpt3_15b.sh")},
                                {"gpus=64", "global_batch=1152", "cluster.preset=dgx-h100"});
  check(run, "strategy",
        R"({"data": 8, "tensor": 4, "pipeline": 2, "sequence_parallel": true,
            "schedule": "interleaved", "chunks": 2, "zero": {"stage": 1, "prefetch": 1},
            "overlap_gradients": true, "bucket": "160 MB"})");
  check(run, "training", R"({"global_batch": 1152, "micro_batch": 4,
                             "precision": "bf16-fp32-gradients", "optimizer": "adam"})");
  CHECK(run.at("model").at("layers").whole_number() == 32);
  CHECK(run.at("stack").text() == "megatron-core-te");
}

TEST_CASE("Megatron-LM's recomputation, and ranks of context and tensors") {
  const JsonReader full = run_of({read_file(folder + "megatron_full_recompute.sh")}, {"gpus=8"});
  check(full, "strategy", R"({"data": 8, "tensor": 1, "pipeline": 1, "recompute": "full"})");
  const JsonReader context = run_of({read_file(folder + "megatron_context.sh")}, {"gpus=8"});
  check(context, "strategy", R"({"data": 2, "tensor": 2, "pipeline": 1, "context": 2,
                                 "sequence_parallel": true})");
  // 50,257 entries as padded for two tensor ranks, to a multiple of 256.
  CHECK(context.at("model").at("vocabulary").whole_number() == 50432);
  CHECK_FALSE(context.at("model").at("dropout").boolean());
}

TEST_CASE("copies of a distributed optimizer, of which each has its share of the data ranks") {
  const std::string script =
      "pretrain_gpt.py --num-layers 12 --hidden-size 512 --bf16 "
      "--num-attention-heads 8 --seq-length 1024 --micro-batch-size 4 "
      "--global-batch-size 32 --tensor-model-parallel-size 2 "
      "--use-distributed-optimizer --num-distributed-optimizer-instances 2 ";
  const std::string launched = "torchrun --nproc-per-node 8 " + script;
  check(run_of({launched}, {}), "strategy",
        R"({"data": 4, "tensor": 2, "zero": {"stage": 1, "ranks": 2}})");
  check(run_of({launched + "--overlap-param-gather"}, {}), "strategy",
        R"({"data": 4, "tensor": 2, "zero": {"stage": 1, "prefetch": 1, "ranks": 2}})");
  // Where the number of GPUs is not among the arguments, the shares are not known.
  check(run_of({script}, {"gpus=8"}), "strategy", R"({"data": 4, "tensor": 2, "zero": 1})");
}

TEST_CASE("what differs from GPT-3 is a key of gpt, and what is all Llama's is a llama") {
  const auto model = [](const std::string& more) {
    return run_of({"torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 12 --hidden-size 512 "
                   "--bf16 --num-attention-heads 8 --seq-length 1024 " +
                   more},
                  {});
  };
  const std::string sizes = R"("layers": 12, "hidden": 512, "heads": 8, "sequence": 1024,
                               "vocabulary": 50304, "attention": "fused")";
  check(model("--squared-relu --position-embedding-type rope --disable-bias-linear "
              "--qk-layernorm --group-query-attention --num-query-groups 4 --hidden-dropout 0 "
              "--attention-dropout 0.0"),
        "model", "{" + sizes + R"(, "family": "gpt", "activation": "squared-relu",
                 "positions": "rotary", "biases": false, "qk_norm": true, "kv_heads": 4,
                 "dropout": false})");
  check(model("--normalization RMSNorm --position-embedding-type none --attention-dropout 0.0"),
        "model", "{" + sizes + R"(, "family": "gpt", "norm": "rms", "positions": "none",
                 "dropout": true})");
  check(model("--normalization RMSNorm --position-embedding-type yarn --disable-bias-linear "
              "--swiglu --ffn-hidden-size 2048 --untie-embeddings-and-output-weights"),
        "model", "{" + sizes + R"(, "family": "llama", "intermediate": 2048})");
  CHECK(model("--transformer-impl local --attention-backend flash")
            .at("model")
            .at("attention")
            .text() == "unfused");
}

TEST_CASE("a vocabulary that only the kind of tokenizer says") {
  const auto vocabulary = [](const std::string& more) {
    return run_of({"torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 12 --hidden-size 512 "
                   "--bf16 --num-attention-heads 8 --seq-length 1024 " +
                   more},
                  {})
        .at("model")
        .at("vocabulary")
        .whole_number();
  };
  CHECK(vocabulary("") == 50304);
  CHECK(vocabulary("--tokenizer-type Llama2Tokenizer") == 32000);
  CHECK(vocabulary("--tokenizer-type NullTokenizer --vocab-size 131073") == 131200);
}

TEST_CASE("a Llama of Hugging Face under ZeRO-Infinity of DeepSpeed") {
  const JsonReader run = run_of(
      {read_file(folder + "llama_3_70b.json"), read_file(folder + "deepspeed_infinity.json")},
      {"gpus=64", "sequence=4096"});
  check(run, "model",
        R"({"sequence": 4096, "family": "llama", "hidden": 8192, "intermediate": 28672,
            "heads": 64, "layers": 80, "kv_heads": 8, "vocabulary": 128256})");
  check(run, "training", R"({"micro_batch": 4, "precision": "fp16", "optimizer": "adam",
                             "global_batch": 256})");
  check(run, "strategy", R"({"data": 64, "zero": {"stage": 3}, "overlap_gradients": true,
                             "bucket": "180 MB",
                             "offload": {"optimizer": "drives", "parameters": "drives"}})");
}

std::set<std::string> told(const Settings& settings) {
  std::set<std::string> all(settings.no_matter.begin(), settings.no_matter.end());
  for (const Note& note : settings.left_out) all.insert(note.what);
  return all;
}

std::string answer(const Settings& one) {
  Json all = Json::object().set("model", one.model).set("training", one.training);
  all.set("strategy", one.strategy).set("cluster", one.cluster);
  std::string text = all.text() + std::to_string(one.accumulation.value_or(0));
  for (const std::string& stack : one.stacks) text += " " + stack;
  for (const Note& note : one.left_out) text += "\n" + note.what + note.why;
  for (const Note& note : one.assumed) text += "\n" + note.what + note.why;
  return text;
}

/// Is a setting in the run? Then another value, or none, is another run.
bool acts(const Settings& before, const std::vector<std::string>& variants) {
  return std::ranges::any_of(variants, [&](const std::string& text) {
    try {
      return answer(read(text)) != answer(before);
    } catch (const InputError&) {
      return true;  // refused
    }
  });
}

TEST_CASE("every argument of a launch script is in the run or in a list of what is not") {
  for (const char* file :
       {"megatron_gpt3_15b.sh", "megatron_full_recompute.sh", "megatron_context.sh"}) {
    const std::string text = read_file(folder + file);
    const Settings settings = read(text);
    const std::set<std::string> listed = told(settings);
    int in_run = 0;
    for (const Said::Value& one : Said::arguments(text).left()) {
      if (std::ranges::any_of(listed, [&](const std::string& what) {
            return what == one.text || what == "--" + one.name;
          }))
        continue;
      CAPTURE(file, one.text);
      std::vector<std::string> variants;
      for (const char* other : {"3", "local", "RMSNorm", "block", "--"})
        variants.push_back(text + " --" + one.name + " " + other + "\n");
      const std::size_t at = text.find("--" + one.name);
      variants.push_back(text.substr(0, at) + text.substr(text.find('\n', at)));
      CHECK(acts(settings, variants));
      ++in_run;
    }
    CHECK(in_run >= 12);
  }
}

TEST_CASE("every member of a configuration is in the run or in a list of what is not") {
  for (const char* file : {"deepspeed_infinity.json", "llama_3_70b.json"}) {
    const std::string text = read_file(folder + file);
    const Settings settings = read(text);
    const std::set<std::string> listed = told(settings);
    int in_run = 0;
    for (const Said::Value& one : Said::json(text, file).left()) {
      if (listed.contains(one.text)) continue;
      CAPTURE(file, one.text);
      const std::string key = "\"" + one.name.substr(one.name.rfind('.') + 1) + "\"";
      const std::size_t value = text.find(key) + key.size() + 2;
      const std::size_t end = text.find_first_of(",\n", value);
      std::vector<std::string> variants;
      for (const char* other : {"7", "true", "false", "\"cpu\"", "\"none\"", "\"float16\"", "0.5"})
        variants.push_back(text.substr(0, value) + other + text.substr(end));
      CHECK(acts(settings, variants));
      ++in_run;
    }
    CHECK(in_run >= 7);
  }
}

TEST_CASE("words of scripts are found as a shell would see them") {
  Said said = Said::arguments(
      "# --num-layers 1\nexport TP=4\nPP=${PP:-8}\nARGS=(\n"
      "  --tensor_model_parallel_size $TP  # of a server\n"
      "  --pipeline-model-parallel-size ${PP:-8} --bf16 \\\n"
      "  --seq-length=2048\n)\nX=\"--hidden-size 64 --hidden-size 128\"\n"
      "torchrun --nproc_per_node 8 pretrain_gpt.py $ARGS\n");
  CHECK_FALSE(said.has("num-layers"));
  CHECK(said.number("tensor-model-parallel-size") == 4);
  CHECK(said.number("pipeline-model-parallel-size") == 8);
  CHECK(said.number("seq-length") == 2048);
  CHECK(said.flag("bf16"));
  CHECK(said.number("hidden-size") == 128);
  CHECK(said.number("nproc-per-node") == 8);
  CHECK(said.left().empty());
  CHECK_THROWS_AS(Said::arguments("--num-layers many").number("num-layers"), InputError);
}

TEST_CASE("DeepSpeed adds gradients of bf16 up in fp32 without ZeRO, or where it is told to") {
  const auto precision = [](const std::string& more) {
    const Settings settings =
        read(R"({"train_batch_size": 8, "bf16": {"enabled": true})" + more + "}");
    return JsonReader::from_text(settings.training.text(), "").at("precision").text();
  };
  CHECK(precision("") == "bf16-fp32-gradients");
  CHECK(precision(R"(, "zero_optimization": {"stage": 1})") == "bf16");
  CHECK(precision(
            R"(, "zero_optimization": {"stage": 2}, "data_types": {"grad_accum_dtype": "fp32"})") ==
        "bf16-fp32-gradients");
}

TEST_CASE("BERT and T5 are read from their programs' arguments, BERT from its config.json, too") {
  const std::string script =
      "torchrun --nproc-per-node 8 pretrain_bert.py --num-layers 24 --hidden-size 1024 "
      "--num-attention-heads 16 --seq-length 512 --max-position-embeddings 512 "
      "--micro-batch-size 4 --global-batch-size 128 --bf16 --tensor-model-parallel-size 2 ";
  const auto model = [&](const std::string& more) {
    return run_of({script + more}, {"cluster.preset=dgx-a100"});
  };
  check(model("--attention-backend unfused --bert-no-binary-head"), "model",
        R"({"family": "bert", "norms": "before", "layers": 24, "hidden": 1024, "heads": 16,
            "sequence": 512, "attention": "unfused", "vocabulary": 30720, "dropout": true,
            "next_sentence": false})");  // 30522 entries, padded to a multiple of 2 * 128
  CHECK(model("").at("model").at("attention").text() == "fused");
  CHECK(model("--spec local").at("model").at("attention").text() == "unfused");
  CHECK(model("--tokenizer-type BertWordPieceCase").at("model").at("vocabulary").whole_number() ==
        29184);
  const JsonReader t5 = run_of(
      {"torchrun --nproc-per-node 8 pretrain_t5.py --encoder-num-layers 12 --decoder-num-layers 10 "
       "--hidden-size 768 --num-attention-heads 12 --kv-channels 64 --ffn-hidden-size 3072 "
       "--encoder-seq-length 512 --decoder-seq-length 128 --max-position-embeddings 512 "
       "--micro-batch-size 4 --global-batch-size 32 --bf16 --transformer-impl local "
       "--tokenizer-type BertWordPieceCase --vocab-extra-ids 100"},
      {"cluster.preset=dgx-a100"});
  check(t5, "model",
        R"({"family": "t5", "kind": "megatron", "activation": "gelu", "layers": 12,
            "decoder_layers": 10, "hidden": 768, "heads": 12, "head_width": 64,
            "intermediate": 3072, "sequence": 512, "decoder_sequence": 128,
            "vocabulary": 29184, "dropout": true})");  // 28996 and 100, a multiple of 128
  // Comments name no program, variants of layers are told, and other programs are, too.
  const auto reported = [&](const std::string& text) {
    std::set<std::string> names;
    for (const auto& one : read(text).left_out) names.insert(one.what);
    return names;
  };
  CHECK(read("# as pretrain_bert.py\ntorchrun pretrain_gpt.py --num-layers 2 --hidden-size 64")
            .model.text()
            .find("\"gpt\"") != std::string::npos);
  CHECK(reported(script + "--swiglu --num-query-groups 4") ==
        std::set<std::string>{"--swiglu", "--num-query-groups 4"});
  CHECK(reported(script + "--normalization LayerNorm --position-embedding-type learned_absolute")
            .empty());
  CHECK(
      reported("pretrain_mamba.py --num-layers 2 --hidden-size 64").contains("pretrain_mamba.py"));
  CHECK_FALSE(model("--untie-embeddings-and-output-weights").at("model").at("tied").boolean());
  const JsonReader deep =
      run_of({"torchrun --nproc-per-node 8 pretrain_t5.py --num-layers 12 --hidden-size 768 "
              "--num-attention-heads 12 --seq-length 512 --decoder-seq-length 128 "
              "--max-position-embeddings 512 --micro-batch-size 4 --global-batch-size 32 --bf16 "
              "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 3 "
              "--ffn-hidden-size 3072 --attention-backend unfused "
              "--untie-embeddings-and-output-weights --tokenizer-type BertWordPieceCase"},
             {"cluster.preset=dgx-a100"});
  CHECK(deep.at("model").at("decoder_layers").whole_number() == 12);
  CHECK(deep.at("model").at("sequence").whole_number() == 512);
  CHECK_FALSE(deep.at("model").at("tied").boolean());
  CHECK(deep.at("strategy").at("chunks").whole_number() == 2);
  const Settings released = read(R"({"model_type": "bert", "num_hidden_layers": 24,
    "hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 4096,
    "max_position_embeddings": 512, "vocab_size": 30522, "type_vocab_size": 2,
    "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
    "position_embedding_type": "absolute"})");
  CHECK(released.left_out.empty());
  CHECK(members(JsonReader::from_text(released.model.text(), "model")) ==
        members(JsonReader::from_text(
            R"({"family": "bert", "layers": 24, "hidden": 1024, "heads": 16, "sequence": 512,
                "intermediate": 4096, "vocabulary": 30522, "dropout": true,
                "attention": "fused"})",
            "expected")));
}

/// Are these the keys of a preset, but for the length of samples?
void check_preset(Settings settings, const std::string& preset) {
  INFO(preset);
  const auto known = std::ranges::find(model::presets(), preset, &model::Preset::name);
  REQUIRE(known != model::presets().end());
  auto read = members(JsonReader::from_text(settings.model.text(), "read"));
  auto expected = members(JsonReader::from_text(known->keys, "preset"));
  for (auto* one : {&read, &expected}) one->erase("sequence");
  for (const auto& [key, value] : expected) {
    INFO(key);
    // What a family has by default may be said or not.
    if (read.contains(key)) CHECK(read.at(key) == value);
    if (!read.contains(key)) CHECK((key == "tied" || key == "head_width"));
  }
  for (const auto& [key, value] : read) {
    INFO(key);
    CHECK((expected.contains(key) || key == "attention" || key == "weigh"));
  }
}

TEST_CASE("mixtures of today are read from their config.json as the presets of their names") {
  // Members as released; what says nothing of the network is left out here.
  const Settings deepseek = read(R"({"model_type": "deepseek_v3", "num_hidden_layers": 61,
    "hidden_size": 7168, "num_attention_heads": 128, "num_key_value_heads": 128,
    "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
    "v_head_dim": 128, "intermediate_size": 18432, "moe_intermediate_size": 2048,
    "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8,
    "first_k_dense_replace": 3, "moe_layer_freq": 1, "n_group": 8, "topk_group": 4,
    "head_dim": 64, "qk_head_dim": 192, "norm_topk_prob": true, "routed_scaling_factor": 2.5,
    "topk_method": "noaux_tc", "num_nextn_predict_layers": 1, "hidden_act": "silu",
    "attention_bias": false, "attention_dropout": 0.0, "tie_word_embeddings": false,
    "max_position_embeddings": 163840, "vocab_size": 129280})");
  check_preset(deepseek, "deepseek-v3");
  std::set<std::string> told;
  for (const auto& one : deepseek.left_out) told.insert(one.what);
  CHECK(told ==
        std::set<std::string>{"n_group: 8", "topk_group: 4", "num_nextn_predict_layers: 1"});
  const Settings kimi = read(R"({"model_type": "kimi_k2", "n_group": 1, "topk_group": 1,
    "num_nextn_predict_layers": 0, "first_k_dense_replace": 0, "scoring_func": "softmax"})");
  CHECK(kimi.left_out.empty());
  CHECK(kimi.model.text().find("plain_layers") == std::string::npos);
  CHECK(kimi.model.text().find("sigmoid") == std::string::npos);
  const Settings qwen = read(R"({"model_type": "qwen3_moe", "num_hidden_layers": 48,
    "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
    "intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128,
    "num_experts_per_tok": 8, "decoder_sparse_step": 1, "mlp_only_layers": [],
    "use_sliding_window": false, "sliding_window": 4096, "hidden_act": "silu",
    "max_position_embeddings": 40960, "vocab_size": 151936, "tie_word_embeddings": false})");
  check_preset(qwen, "qwen3-30b-a3b");
  CHECK(qwen.left_out.empty());
  const Settings oss = read(R"({"model_type": "gpt_oss", "num_hidden_layers": 24,
    "hidden_size": 2880, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
    "intermediate_size": 2880, "num_local_experts": 32, "num_experts_per_tok": 4,
    "experts_per_token": 4, "sliding_window": 128, "attention_bias": true, "hidden_act": "silu",
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention",
    "full_attention"], "max_position_embeddings": 131072, "vocab_size": 201088,
    "tie_word_embeddings": false, "attention_dropout": 0.0})");
  check_preset(oss, "gpt-oss-20b");
  CHECK(oss.left_out.empty());
  const Settings brief = read(R"({"model_type": "gpt_oss"})");
  CHECK(JsonReader::from_text(brief.model.text(), "model").at("window").whole_number() == 128);
  CHECK(read(R"({"model_type": "gpt_oss", "layer_types":
    ["sliding_attention", "full_attention", "sliding_attention", "sliding_attention"]})")
            .left_out.size() == 1);
  const auto window = [](const std::string& more) {
    const Settings settings =
        read(R"({"model_type": "mistral", "max_position_embeddings": 8192)" + more + "}");
    CHECK(settings.left_out.empty());
    return JsonReader::from_text(settings.model.text(), "model").has("window");
  };
  CHECK(window(R"(, "sliding_window": 4096)"));
  CHECK_FALSE(window(R"(, "sliding_window": 8192)"));
  CHECK_FALSE(window(R"(, "sliding_window": null)"));
}

TEST_CASE("Megatron-LM's arguments of latent attention, mixtures and windows are read") {
  const std::string script =
      "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 61 --hidden-size 7168 "
      "--num-attention-heads 128 --kv-channels 128 --seq-length 4096 --micro-batch-size 1 "
      "--global-batch-size 8 --bf16 --swiglu --normalization RMSNorm --disable-bias-linear "
      "--position-embedding-type rope --untie-embeddings-and-output-weights --attention-dropout 0 "
      "--hidden-dropout 0 --ffn-hidden-size 18432 --vocab-size 129280 "
      "--make-vocab-size-divisible-by 1 --num-experts 256 --moe-router-topk 8 "
      "--moe-ffn-hidden-size 2048 --moe-shared-expert-intermediate-size 2048 "
      "--moe-layer-freq ([0]*3+[1]*58) --moe-router-score-function sigmoid "
      "--moe-router-enable-expert-bias --multi-latent-attention --kv-lora-rank 512 "
      "--q-lora-rank 1536 --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128 "
      "--qk-layernorm --group-query-attention --num-query-groups 8 --recompute-granularity "
      "selective --recompute-modules moe mla_up_proj layernorm";
  const Settings deepseek = read(script);
  check_preset(deepseek, "deepseek-v3");
  const JsonReader strategy = JsonReader::from_text(deepseek.strategy.text(), "strategy");
  CHECK(strategy.at("recompute").at("results").text() == "dropped");
  CHECK(strategy.at("recompute").at("operators").dump() ==
        R"(["layers.*.attention.up.*","layers.*.input_norm","layers.*.mlp_norm"])");
  REQUIRE(deepseek.left_out.size() == 1);
  CHECK(deepseek.left_out[0].what == "--recompute-modules moe");
  const auto model = [](const std::string& more) {
    const std::string text = read(
                                 "pretrain_gpt.py --num-layers 2 --hidden-size 64 "
                                 "--num-attention-heads 4 --seq-length 128 " +
                                 more)
                                 .model.text();
    return JsonReader::from_text(text, "model");
  };
  const JsonReader windows =
      model("--window-size (63,0) --window-attn-skip-freq 2 --softmax-type learnable");
  CHECK(windows.at("window").whole_number() == 64);
  CHECK(windows.at("full_every").whole_number() == 2);
  CHECK(windows.at("sinks").boolean());
  CHECK(model("--kv-channels 32").at("head_width").whole_number() == 32);
  CHECK_FALSE(model("--kv-channels 16").has("head_width"));
  const Settings whole = read(
      "pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-experts 8 "
      "--tensor-model-parallel-size "
      "2 --expert-tensor-parallel-size 1 --expert-model-parallel-size 4 --swiglu");
  const JsonReader divided = JsonReader::from_text(whole.strategy.text(), "strategy");
  CHECK(divided.at("expert").whole_number() == 2);  // each divides two tensor ranks' experts
  CHECK(divided.at("operators").at("layers.*.mlp.gate_up").text() == "expert");
  CHECK(model("--num-experts 4").at("experts_per_token").whole_number() == 2);  // their default
  CHECK_FALSE(model("--moe-router-topk 4 --moe-ffn-hidden-size 100").has("experts_per_token"));
  // Layers 1, 3, ... of two are the first alone: mixtures that no key says.
  const auto left_out = [](const std::string& more) {
    return read(
               "pretrain_gpt.py --num-layers 3 --hidden-size 64 --num-attention-heads 4 "
               "--seq-length 128 " +
               more)
        .left_out;
  };
  CHECK(left_out("--num-experts 4 --moe-layer-freq [0]+[1]*2").empty());
  CHECK(left_out("--num-experts 4 --moe-layer-freq [1]*3").empty());
  CHECK(left_out("--num-experts 4 --moe-layer-freq [0,1,1]").empty());
  CHECK(left_out("--num-experts 4 --moe-layer-freq [1]*4").size() == 1);
  CHECK(left_out("--num-experts 4 --moe-layer-freq [1,0,1]").size() == 1);
  CHECK(left_out("--num-experts 4 --moe-layer-freq 2").size() == 1);
  // What the family or unfused attention has no keys for is told, and written nowhere.
  CHECK(left_out("--window-size 7,0 --transformer-impl local").size() == 1);
  CHECK(left_out("--softmax-type learnable --transformer-impl local").size() == 1);
  CHECK(left_out("--window-size 7,0 --window-attn-skip-freq [1,0]*2").size() == 1);
  CHECK(left_out("--multi-latent-attention --kv-lora-rank 512").size() >= 1);
}

TEST_CASE("heads of another width than their share have it, and words are no numbers") {
  const auto model = [](const std::string& head_dim) {
    const Settings settings = read(R"({"model_type": "llama", "hidden_size": 64,
      "num_attention_heads": 4, "head_dim": )" +
                                   head_dim + "}");
    CHECK(settings.left_out.empty());
    return JsonReader::from_text(settings.model.text(), "model");
  };
  CHECK_FALSE(model("16").has("head_width"));
  CHECK(model("32").at("head_width").whole_number() == 32);
  CHECK_THROWS_AS(read(R"({"model_type": "gpt2", "resid_pdrop": "much"})"), InputError);
  CHECK_THROWS_AS(
      read("--num-layers 2 --hidden-size 64 --num-experts 2 --moe-expert-capacity-factor much"),
      InputError);
}

TEST_CASE("what nobody says is assumed, and what is set is not") {
  const std::string text = read_file(folder + "llama_3_70b.json");
  const Imported imported = scenario_of(
      read(text), {study::read_change("sequence=2048", false, "--set")}, "a model alone");
  std::set<std::string> assumed;
  for (const Note& note : imported.settings.assumed)
    assumed.insert(note.what.substr(0, note.what.find(' ')));
  CHECK(assumed == std::set<std::string>{"global_batch", "gpus", "micro_batch", "optimizer",
                                         "precision", "preset", "stack"});
  CHECK_THROWS_AS(scenario_of(Settings{}, {}, "nothing"), InputError);
  CHECK_THROWS_AS(run_of({text}, {"tensor=8", "gpus=12"}), InputError);
}

TEST_CASE("an imported scenario is one that is answered") {
  const TemporaryFolder written;
  const Imported imported = scenario_of(read(read_file(folder + "megatron_context.sh")),
                                        {study::read_change("gpus=8", false, "--set")}, "context");
  written.write("a.json", imported.scenario.text(2));
  const study::Scenario scenario = study::read_scenario((written.path() / "a.json").string());
  REQUIRE(scenario.runs.size() == 1);
  const study::Outcome outcome = study::simulate(scenario.runs.front(), {}).outcome;
  CHECK(outcome.status == study::Outcome::Status::ok);
  CHECK(outcome.gpus == 8);
}

}  // namespace
}  // namespace stratagem::imports
