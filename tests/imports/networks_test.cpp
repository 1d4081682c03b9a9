// Networks of other programs' configurations: mixtures, latent attention, windows, widths of heads.
#include <set>

#include "base/input_error.hpp"
#include "model/zoo/presets.hpp"
#include "tests/imports/read.hpp"

namespace stratagem::imports {
namespace {

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

void check_model(const Settings& settings, const std::string& expected) {
  CHECK(members(JsonReader::from_text(settings.model.text(), "read")) ==
        members(JsonReader::from_text(expected, "expected")));
}

TEST_CASE("classifiers of images are read from their config.json") {
  // google/vit-large-patch16-224 and microsoft/swin-large-patch4-window7-224, as released, less
  // what says nothing of the network; three labels stand for all.
  const Settings vit = read(R"({"model_type": "vit", "architectures": ["ViTForImageClassification"],
    "num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16,
    "intermediate_size": 4096, "image_size": 224, "patch_size": 16, "num_channels": 3,
    "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
    "layer_norm_eps": 1e-12, "qkv_bias": true, "encoder_stride": 16,
    "id2label": {"0": "tench", "1": "goldfish", "2": "shark"}, "label2id": {"tench": 0}})");
  CHECK(vit.left_out.empty());
  check_model(vit, R"({"family": "vit", "layers": 24, "hidden": 1024, "heads": 16,
    "intermediate": 4096, "image": 224, "patch": 16, "channels": 3, "classes": 3,
    "dropout": false, "attention": "fused"})");
  const Settings swin = read(R"({"model_type": "swin", "depths": [2, 2, 18, 2], "embed_dim": 192,
    "num_heads": [6, 12, 24, 48], "window_size": 7, "image_size": 224, "patch_size": 4,
    "num_channels": 3, "mlp_ratio": 4.0, "qkv_bias": true, "hidden_act": "gelu",
    "drop_path_rate": 0.1, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
    "use_absolute_embeddings": false, "hidden_size": 1536, "num_layers": 4})");
  REQUIRE(swin.left_out.size() == 1);
  CHECK(swin.left_out.front().what == "drop_path_rate: 0.1");
  check_model(swin, R"({"family": "swin", "depths": [2, 2, 18, 2], "hidden": 192, "heads": 6,
    "window": 7, "image": 224, "patch": 4, "channels": 3, "mlp_ratio": 4})");
  // Heads that do not double are not those of the family.
  CHECK(read(R"({"model_type": "swin", "embed_dim": 96, "depths": [2, 2], "num_heads": [3, 3]})")
            .left_out.size() == 1);
}

TEST_CASE("stages of unequally many layers are read as Megatron-LM deals them out") {
  const auto stages = [](const std::string& more) {
    const Settings settings = read(
        "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 30 "
        "--hidden-size 512 --num-attention-heads 8 --seq-length 1024 "
        "--micro-batch-size 1 --global-batch-size 8 --bf16 "
        "--pipeline-model-parallel-size 4 " +
        more);
    const JsonReader strategy = JsonReader::from_text(settings.strategy.text(), "read");
    const auto list = strategy.find("layers_per_stage");
    return list ? list->dump() : "";
  };
  CHECK(stages("").empty());
  CHECK(stages("--decoder-first-pipeline-num-layers 6") == "[6,8,8,8]");
  CHECK(stages("--decoder-last-pipeline-num-layers 6") == "[8,8,8,6]");
  CHECK(stages("--decoder-first-pipeline-num-layers 8 --decoder-last-pipeline-num-layers 4") ==
        "[8,9,9,4]");
  CHECK(stages("--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split") ==
        "[7,8,8,7]");
  CHECK(stages("--decoder-first-pipeline-num-layers 6 --num-virtual-stages-per-pipeline-rank 2") ==
        "[3,4,4,4,3,4,4,4]");
  CHECK(stages("--decoder-first-pipeline-num-layers 7").empty());
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
  const Settings kimi = read(R"({"model_type": "kimi_k2", "num_hidden_layers": 2,
    "hidden_size": 64, "num_attention_heads": 4, "n_group": 1, "topk_group": 1,
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
  const std::string sizes =
      R"(, "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4)";
  const Settings brief = read(R"({"model_type": "gpt_oss")" + sizes + "}");
  CHECK(JsonReader::from_text(brief.model.text(), "model").at("window").whole_number() == 128);
  CHECK(read(R"({"model_type": "gpt_oss", "layer_types":
    ["sliding_attention", "full_attention", "sliding_attention", "sliding_attention"])" +
             sizes + "}")
            .left_out.size() == 1);
  const auto window = [&](const std::string& more) {
    const Settings settings =
        read(R"({"model_type": "mistral", "max_position_embeddings": 8192)" + sizes + more + "}");
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
  const Settings combined = read(
      "pretrain_gpt.py --num-layers 8 --hidden-size 64 --num-experts 8 "
      "--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 4 "
      "--expert-model-parallel-size 2 --overlap-moe-expert-parallel-comm");
  const JsonReader pairs = JsonReader::from_text(combined.strategy.text(), "strategy");
  CHECK(pairs.at("schedule").text() == "combined-1f1b");
  const auto stack = [](const std::string& graphs) {
    return read("pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-experts 8 " + graphs)
        .stacks.front();
  };
  CHECK(stack("--cuda-graph-impl none") == "megatron-core-te");
  CHECK(stack("--cuda-graph-impl transformer_engine --cuda-graph-modules attn moe_router "
              "moe_preprocess") == "megatron-core-te-graphs");
  CHECK(stack("--cuda-graph-impl transformer_engine --cuda-graph-modules moe_router "
              "moe_preprocess") == "megatron-core-te-router-graphs");
  CHECK(pairs.at("chunks").whole_number() == 4);
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
  CHECK_FALSE(left_out("--multi-latent-attention --kv-lora-rank 512").empty());
}

TEST_CASE("heads of another width than their share have it, and words are no numbers") {
  const auto model = [](const std::string& head_dim) {
    const Settings settings = read(R"({"model_type": "llama", "hidden_size": 64,
      "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": )" +
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

TEST_CASE("slips of the fingers are told with the name that was meant") {
  const auto why = [](const std::string& text, const std::string& name) {
    const Settings settings = read(text);
    const auto fits = [&](const Note& note) { return note.what.find(name) != std::string::npos; };
    const auto note = std::ranges::find_if(settings.left_out, fits);
    return note == settings.left_out.end() ? "" : note->why;
  };
  const std::string script =
      "pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 ";
  CHECK_THAT(why(script + "--micro-bach-size 2", "micro-bach"),
             ContainsSubstring("did you mean --micro-batch-size?"));
  CHECK(why(script + "--no-such-thing 2", "no-such") == "not known here");
  CHECK_THAT(why(script + "--recompute-granularity fully", "fully"),
             ContainsSubstring("known are full, none, selective (did you mean full?)"));
  const std::string llama = R"("model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2)";
  CHECK_THAT(why("{" + llama + R"(, "num_attention_heads": 4, "vocab_siz": 32})", "vocab_siz"),
             ContainsSubstring("did you mean vocab_size?"));
  CHECK_THROWS_WITH(read("{" + llama + R"(, "num_atention_heads": 4})"),
                    ContainsSubstring("/num_attention_heads: expected a whole number, found "
                                      "num_atention_heads"));
  const std::string zero = R"({"train_batch_size": 8, "zero_optimization": {"stage": 2, )";
  CHECK_THAT(
      why(zero + R"("offload_optimizer": {"device": "gpu"}}})", "gpu"),
      ContainsSubstring("known are cpu, none, nvme") && ContainsSubstring("stays on the GPU"));
  CHECK_THAT(why(zero + R"("overlap_comm": "auto"}})", "auto"), ContainsSubstring("fills it in"));
  CHECK_THROWS_WITH(read(zero + R"("overlap_comm": "yes please"}})"),
                    ContainsSubstring("true or false"));
  CHECK_THROWS_WITH(read(script + "--bf16 --fp16"), ContainsSubstring("not both"));
  CHECK_THAT(why("model:\n  num_layers: 2\n  hidden_size: 64\n  num_attention_heads: 4\n"
                 "  micro_batch_size: 1\ntrainer:\n  precision: bf17\n",
                 "bf17"),
             ContainsSubstring("bf16 stands in"));
}

TEST_CASE("shell scripts: arithmetic, the environment, branches, several launches") {
  const std::string core =
      "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 --hidden-size 64 "
      "--num-attention-heads 4 --seq-length 32 ";
  const auto batch = [&](const std::string& before) {
    const Settings settings = read(before + "\n" + core + "--global-batch-size $GBS");
    return JsonReader::from_text(settings.training.text(), "read").at("global_batch").dump();
  };
  CHECK(batch("N=4\nGBS=$((8 * $N))") == "32");
  CHECK(batch("GBS=${GBS:-\"16\"}") == "16");
  CHECK(batch("OTHER=64\nGBS=$OTHER") == "64");
  CHECK_THROWS_WITH(read(core + "--global-batch-size $NOWHERE_SET"),
                    ContainsSubstring("neither the file nor the environment"));
  setenv("STRATAGEM_TEST_BATCH", "48", 1);
  CHECK(batch("GBS=$STRATAGEM_TEST_BATCH") == "48");
  unsetenv("STRATAGEM_TEST_BATCH");
  const auto assumed = [&](const std::string& script) {
    std::set<std::string> all;
    for (const Note& note : read(script).assumed) all.insert(note.what);
    return all;
  };
  CHECK(assumed("if [ a = b ]; then\nX=1\nfi\n" + core).contains("all branches"));
  CHECK(assumed(core + "\n" + core).contains("one launch"));
  CHECK_FALSE(assumed(core).contains("one launch"));
  CHECK_FALSE(assumed(core).contains("all branches"));
}

TEST_CASE("arguments of older versions mean what they meant") {
  const std::string core =
      "pretrain_gpt.py --num-layers 24 --hidden-size 64 --num-attention-heads 4 --bf16 ";
  const auto recompute = [&](const std::string& more) {
    const Settings settings = read(core + more);
    const JsonReader strategy = JsonReader::from_text(settings.strategy.text(), "read");
    const auto found = strategy.find("recompute");
    return found ? found->dump() : "";
  };
  CHECK(recompute("").empty());
  CHECK(recompute("--checkpoint-activations") == "\"full\"");
  CHECK(recompute("--checkpoint-activations --checkpoint-num-layers 2") == R"({"every":2})");
  CHECK(recompute("--activations-checkpoint-method block --activations-checkpoint-num-layers 3") ==
        R"({"layers":3,"method":"block"})");
  CHECK_THROWS_WITH(read(core + "--pipeline-model-parallel-size 4 "
                                "--num-layers-per-virtual-pipeline-stage 4"),
                    ContainsSubstring("a divisor of the 6 layers of a rank, found 4"));
  // Weights that are cast to 8 bits are gathered whole behind the step.
  const auto zero = [&](const std::string& type) {
    const Settings settings =
        read(core + type + " --use-distributed-optimizer --overlap-param-gather");
    return JsonReader::from_text(settings.strategy.text(), "read").at("zero").dump();
  };
  CHECK(zero("") == R"({"stage":1,"prefetch":1})");
  CHECK(zero("--fp8-format hybrid") == "1");
}

TEST_CASE("a model that is set takes the place of the files'") {
  const JsonReader run =
      run_of({"pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 "
              "--seq-length 32 --bf16"},
             {"model=llama-3-8b", "gpus=8"});
  CHECK(run.at("model").dump() == R"({"preset":"llama-3-8b","sequence":32})");
}

TEST_CASE("a script's lines for Slurm say the GPUs, unless its launcher does") {
  const std::string model =
      "pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 "
      "--max-position-embeddings 32 --micro-batch-size 1 --global-batch-size 64 --bf16\n";
  const auto gpus = [&](const std::string& lines, const std::string& launcher) {
    const Settings settings = read("#!/bin/bash\n" + lines + launcher + " " + model);
    for (const std::string& what : told(settings)) {
      INFO(what);
      CHECK_FALSE(what.starts_with("--nodes"));
      CHECK_FALSE(what.starts_with("--gpus-per-node"));
    }
    const auto found = JsonReader::from_text(settings.cluster.text(), "read").find("gpus");
    return found ? found->whole_number() : 0;
  };
  const std::string slurm =
      "#SBATCH --nodes=4\n#SBATCH --gres=gpu:h100:8\n#SBATCH --time=01:00:00\n";
  CHECK(gpus(slurm, "srun python") == 32);
  CHECK(gpus("#SBATCH -N 2\n#SBATCH --gpus-per-node=4\n", "srun python") == 8);
  CHECK(gpus(slurm, "torchrun --nnodes $SLURM_NNODES --nproc-per-node $SLURM_GPUS_ON_NODE") == 32);
  CHECK(gpus(slurm, "torchrun --nnodes 2 --nproc-per-node 4") == 8);
  CHECK(gpus(slurm + "export NCCL_DEBUG=INFO\n", "srun python") == 32);
  CHECK(gpus("# SBATCH --nodes=4\n#SBATCH --job-name=n\n", "srun python") == 0);
}

TEST_CASE("DeepSpeed's three sizes of a batch say the data ranks, and must agree") {
  const auto config = [](int all, int each, int steps) {
    return "{\"train_batch_size\": " + std::to_string(all) +
           ", \"train_micro_batch_size_per_gpu\": " + std::to_string(each) +
           ", \"gradient_accumulation_steps\": " + std::to_string(steps) + "}";
  };
  const JsonReader run = run_of({config(64, 2, 4)}, {"model=llama-3-8b"});
  CHECK(run.at("cluster").at("gpus").whole_number() == 8);
  CHECK(run.at("training").at("global_batch").whole_number() == 64);
  CHECK_THROWS_AS(read(config(60, 2, 4)), InputError);
}

TEST_CASE("DeepSpeed without 16 bits trains in 32") {
  const auto precision = [](const std::string& more) {
    const Settings settings = read(R"({"train_batch_size": 8)" + more + "}");
    const JsonReader training = JsonReader::from_text(settings.training.text(), "read");
    const auto found = training.find("precision");
    return found ? found->text() : "";
  };
  CHECK(precision(R"(, "bf16": {"enabled": false})") == "fp32");
  CHECK(precision(R"(, "fp16": {"enabled": true})") == "fp16");
  CHECK(precision("").empty());
}

}  // namespace
}  // namespace stratagem::imports
