// Configurations of other programs: what becomes of each of their settings.
#include <algorithm>
#include <set>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "base/read_file.hpp"
#include "imports/said.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "tests/imports/read.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem::imports {
namespace {

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
                                 "context_exchange": "ring", "sequence_parallel": true})");
  const auto exchanged = [&](const std::string& how) {
    const std::string script = read_file(folder + "megatron_context.sh");
    return run_of({script + " torchrun pretrain_gpt.py --context-parallel-size 8 " + how},
                  {"gpus=16"})
        .at("strategy");
  };
  CHECK(exchanged("--cp-comm-type a2a").at("ulysses").whole_number() == 8);
  CHECK_FALSE(exchanged("--cp-comm-type a2a").has("context"));
  CHECK_FALSE(exchanged("--cp-comm-type all_gather").has("context_exchange"));
  for (const char* no_ring :
       {"--transformer-impl local", "--window-size 128,0", "--softmax-type learnable"})
    CHECK_FALSE(exchanged(no_ring).has("context_exchange"));
  const JsonReader levels =
      exchanged("--cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 2 4");
  CHECK(levels.at("ulysses").whole_number() == 2);
  CHECK(levels.at("context").whole_number() == 4);
  CHECK(levels.at("context_exchange").text() == "ring");
  for (const std::string how : {"a2a+p2p --hierarchical-context-parallel-sizes 3 4", "a2a+p2p",
                                "p2p a2a p2p a2a", "another"})
    CHECK(exchanged("--cp-comm-type " + how).at("context").whole_number() == 8);
  // 50,257 entries as padded for two tensor ranks, to a multiple of 256.
  CHECK(context.at("model").at("vocabulary").whole_number() == 50432);
  CHECK_FALSE(context.at("model").at("dropout").boolean());
}

TEST_CASE("variables of the shell may be set on one line, and are told where nothing sets them") {
  const auto script = [](const std::string& stages) {
    return "TP=2; export PP=4\ntorchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 12 "
           "--hidden-size 512 --bf16 --num-attention-heads 8 --seq-length 1024 "
           "--micro-batch-size 4 --global-batch-size 32 --tensor-model-parallel-size $TP "
           "--pipeline-model-parallel-size " +
           stages;
  };
  const JsonReader strategy = run_of({script("$PP")}, {}).at("strategy");
  CHECK(strategy.at("tensor").whole_number() == 2);
  CHECK(strategy.at("pipeline").whole_number() == 4);
  const auto refused = [&](const char* stages, const char* found) {
    CHECK_THROWS_WITH(run_of({script(stages)}, {}),
                      ContainsSubstring(std::string("expected a number, found ") + found));
  };
  refused("$STAGES", "$STAGES, to which neither the file nor the environment");
  refused("$((PP*2))", "an expression of the shell, which is not computed");
  refused("", "nothing behind it");
  // Arguments that a variable holds are read where they stand.
  const JsonReader held =
      run_of({"A=\"--num-layers 12 --hidden-size 512 --num-attention-heads 8\"\n"
              "torchrun pretrain_gpt.py $A --seq-length 1024 --bf16 "
              "--micro-batch-size 4 --global-batch-size 32\n"},
             {});
  CHECK(held.at("model").at("layers").whole_number() == 12);
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
      "# --num-layers 1\nexport TP=4\nPP=${STAGES:-8}\nARGS=(\n"
      "  --tensor_model_parallel_size $TP  # of a server\n"
      "  --pipeline-model-parallel-size $PP --bf16 \\\n"
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
