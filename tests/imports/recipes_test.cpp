// Configurations of NeMo, Megatron-Bridge and torchtitan: what becomes of each of their settings.
#include <regex>

#include "base/read_file.hpp"
#include "imports/documents.hpp"
#include "imports/said.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "tests/imports/read.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem::imports {
namespace {

/// A text in which the value of a setting is another one: what follows its sections' names and its
/// own, in this order, up to the line's end.
std::string with_value(const std::string& text, const std::string& name, const std::string& value) {
  std::size_t at = 0;
  std::size_t end = 0;
  for (std::size_t from = 0; from <= name.size(); from = end + 1) {
    end = std::min(name.find('.', from), name.size());
    const std::regex line(R"((^|\n)[ \[]*([\w.]+\.)?)" + name.substr(from, end - from) +
                          R"((:|\]| =|=))");
    std::smatch match;
    const std::string rest = text.substr(at);
    REQUIRE(std::regex_search(rest, match, line));
    at += match.position() + match.length();
  }
  return text.substr(0, at) + " " + value + text.substr(std::min(text.find('\n', at), text.size()));
}

void check_all_told(const std::string& text, const Said& said, int least) {
  const Settings settings = read(text);
  const std::set<std::string> listed = told(settings);
  int in_run = 0;
  for (const Said::Value& one : said.left()) {
    if (listed.contains(one.text)) continue;
    CAPTURE(one.text);
    std::vector<std::string> variants;
    for (const char* other : {"3", "7", "true", "false", "\"full\"", "\"fp16\"", "\"alltoall\"",
                              "\"GPipe\"", "\"bfloat16\"", "[\"float8\"]", "\"local\""})
      variants.push_back(with_value(text, one.name, other));
    CHECK(acts(settings, variants));
    ++in_run;
  }
  CHECK(in_run >= least);
}

TEST_CASE("every setting of NeMo's and torchtitan's files is in the run or in a list") {
  const std::string nemo = read_file(folder + "nemo_llama3_70b.yaml");
  check_all_told(nemo, Said::json(json_of_yaml(nemo, "test"), "test"), 24);
  const std::string bridge = read_file(folder + "bridge_llama32_1b.yaml");
  check_all_told(bridge, Said::json(json_of_yaml(bridge, "test"), "test"), 6);
  const std::string titan = read_file(folder + "torchtitan_llama3_70b.toml");
  check_all_told(titan, Said::json(json_of_toml(titan, "test"), "test"), 10);
}

TEST_CASE("NeMo's Llama 3 70B on 1,024 GPUs, in bf16 and in fp8") {
  const std::string text = read_file(folder + "nemo_llama3_70b.yaml");
  const JsonReader run = run_of({text});
  // 128,256 entries, padded to a multiple of 128 for each of four tensor ranks.
  check(run, "model",
        R"({"family": "llama", "layers": 80, "hidden": 8192, "heads": 64, "kv_heads": 8,
            "sequence": 8192, "intermediate": 28672, "attention": "fused", "vocabulary": 128512})");
  check(run, "training", R"({"micro_batch": 1, "global_batch": 2048,
                             "precision": "bf16-fp32-gradients", "optimizer": "adam"})");
  check(run, "strategy",
        R"({"data": 32, "tensor": 4, "pipeline": 4, "context": 2, "context_exchange": "ring",
            "sequence_parallel": true, "schedule": "interleaved", "chunks": 5,
            "zero": {"stage": 1, "prefetch": 1}, "overlap_gradients": true, "bucket": "160 MB"})");
  CHECK(run.at("cluster").at("gpus").whole_number() == 1024);
  const auto precision = [&](const std::string& name, const std::string& value) {
    return run_of({with_value(text, name, value)}).at("training").at("precision").text();
  };
  CHECK(precision("model.fp8", "true") == "fp8-fp32-gradients");
  CHECK(precision("trainer.precision", "16-mixed") == "fp16");
  CHECK(precision("trainer.precision", "32") == "fp32");
  CHECK(precision("model.optim.overlap_grad_sync", "true\n    grad_sync_dtype: bf16") == "bf16");
}

TEST_CASE("what Megatron-Bridge overrides of a recipe goes over a model's config.json") {
  const JsonReader run = run_of(
      {read_file(folder + "llama_3_70b.json"), read_file(folder + "bridge_llama32_1b.yaml") +
                                                   "\nmixed_precision: "
                                                   "bf16_with_fp8_current_scaling_mixed\n"
                                                   "ddp:\n  use_distributed_optimizer: true\n"
                                                   "  grad_reduce_in_fp32: false\n"},
      {"gpus=8"});
  CHECK(run.at("model").at("sequence").whole_number() == 4096);
  CHECK(run.at("model").at("layers").whole_number() == 80);
  check(run, "training", R"({"micro_batch": 1, "global_batch": 8, "precision": "fp8-current",
                             "optimizer": "adam"})");
  check(run, "strategy", R"({"data": 8, "tensor": 1, "pipeline": 1, "zero": 1})");
}

TEST_CASE("commands of Megatron-Bridge say GPUs, degrees and lengths, and that a recipe is code") {
  const auto command = [](const std::string& file, const std::string& preset) {
    return run_of({read_file(folder + file)}, {"model.preset=" + preset});
  };
  const JsonReader exchanged = command("bridge_gpt_oss_20b_32k.sh", "gpt-oss-20b");
  check(exchanged, "strategy", R"({"data": 1, "tensor": 4, "ulysses": 2,
                                   "sequence_parallel": true, "recompute": "full"})");
  CHECK(exchanged.at("model").at("sequence").whole_number() == 32768);
  CHECK(exchanged.at("cluster").at("gpus").whole_number() == 8);
  const JsonReader ring = command("bridge_qwen3_30b_32k.sh", "qwen3-30b-a3b");
  check(ring, "strategy", R"({"data": 1, "tensor": 8, "pipeline": 1, "context": 2, "expert": 8,
                              "context_exchange": "ring", "recompute": "full"})");
  const Settings alone = read(read_file(folder + "bridge_gpt_oss_120b_gb200.sh"));
  check(run_of({read_file(folder + "bridge_gpt_oss_120b_gb200.sh")}, {"model.preset=gpt-oss-120b"}),
        "cluster", R"({"gpus": 64, "preset": "dgx-h100"})");
  REQUIRE(alone.left_out.size() == 1);
  CHECK(alone.left_out.front().what == "--recipe gpt_oss_120b_pretrain_64gpu_gb200_bf16_config");
}

TEST_CASE("every flag and every override of a command is in the run or in a list") {
  for (const char* file :
       {"bridge_gpt_oss_20b_32k.sh", "bridge_qwen3_30b_32k.sh", "bridge_gpt_oss_120b_gb200.sh"}) {
    // As the importer takes it: brief flags by their whole names.
    std::string text = read_file(folder + file);
    for (const auto& [brief, whole] : {std::pair{"-tp", "--tensor_model_parallel_size"},
                                       {"-pp", "--pipeline_model_parallel_size"},
                                       {"-ep", "--expert_model_parallel_size"}})
      text = std::regex_replace(text, std::regex(std::string(" ") + brief + " "),
                                std::string(" ") + whole + " ");
    const Settings settings = read(text);
    const std::set<std::string> listed = told(settings);
    const auto check_told = [&](const Said& said, const std::string& before,
                                const std::string& between) {
      for (const Said::Value& one : said.left()) {
        if (listed.contains(one.text)) continue;
        CAPTURE(file, one.text);
        std::vector<std::string> variants;  // the last of several counts
        for (const char* other : {"3", "selective", "block", "all_gather", "false"})
          variants.push_back(text + " " + before + one.name + between + other);
        CHECK(acts(settings, variants));
      }
    };
    check_told(Said::overrides(text), "", "=");
    check_told(Said::arguments(text), "--", " ");
  }
}

TEST_CASE("torchtitan's Llama 3 70B: FSDP, tensor ranks with divided sequences, full checkpoints") {
  const std::string text = read_file(folder + "torchtitan_llama3_70b.toml");
  const JsonReader run = run_of({text}, {"gpus=64"});
  check(run, "strategy", R"({"data": 8, "tensor": 8, "pipeline": 1, "sequence_parallel": true,
                             "zero": {"stage": 3}, "recompute": "full"})");
  check(run, "training", R"({"micro_batch": 8, "global_batch": 64,
                             "precision": "bf16-fp32-gradients", "optimizer": "adamw"})");
  check(run, "model", R"({"preset": "llama-3-70b", "sequence": 8192})");
  const auto strategy = [&](const std::string& name, const std::string& value) {
    return run_of({with_value(text, name, value)}, {"gpus=128"}).at("strategy");
  };
  CHECK(strategy("parallelism.data_parallel_shard_degree", "16").at("data").whole_number() == 16);
  const JsonReader hybrid =
      run_of({with_value(with_value(text, "parallelism.data_parallel_replicate_degree", "2"),
                         "parallelism.data_parallel_shard_degree", "8")},
             {"gpus=128"})
          .at("strategy");
  CHECK(hybrid.at("zero").at("ranks").whole_number() == 8);
  CHECK(hybrid.at("data").whole_number() == 16);
  // 80 layers, embedding and head on 4 stages: 20.5 each, of which the first two have 21.
  const JsonReader stages = strategy("parallelism.pipeline_parallel_degree", "2");
  CHECK(stages.at("layers_per_stage").dump() == "[40,40]");
  CHECK(stages.at("zero").dump() == R"({"stage":1})");
  const JsonReader deep = strategy("parallelism.pipeline_parallel_degree",
                                   "4\npipeline_parallel_schedule = \"Interleaved1F1B\"\n"
                                   "pipeline_parallel_layers_per_stage = 7");
  CHECK(deep.at("schedule").text() == "interleaved");
  CHECK(deep.at("chunks").whole_number() == 3);
  CHECK(deep.at("layers_per_stage").dump() == "[6,7,7,7,7,7,7,7,7,7,6,5]");
  const JsonReader every = strategy("activation_checkpoint.mode", "\"selective\"");
  CHECK(every.at("recompute").at("operators").elements().size() == 40);
  CHECK(every.at("recompute").at("operators").elements().front().text() == "layers.1.*");
}

TEST_CASE("context ranks divide weights, too, and experts may have a rank each") {
  const std::string text = read_file(folder + "torchtitan_llama3_70b.toml");
  const std::string context = with_value(text, "parallelism.context_parallel_degree", "2");
  const JsonReader alone =
      run_of({with_value(context, "parallelism.data_parallel_shard_degree", "1")}, {"gpus=16"})
          .at("strategy");
  CHECK(alone.at("zero").at("stage").whole_number() == 3);
  const JsonReader experts =
      run_of(
          {with_value(text, "parallelism.tensor_parallel_degree", "4\nexpert_parallel_degree = 8")},
          {"gpus=16"})
          .at("strategy");
  CHECK(experts.at("expert").whole_number() == 2);
  CHECK(experts.at("operators").at("layers.*.mlp.down").text() == "expert");
  const Settings replicas =
      read(with_value(with_value(text, "parallelism.data_parallel_shard_degree", "1"),
                      "parallelism.data_parallel_replicate_degree", "2"));
  CHECK(told(replicas).contains("parallelism.data_parallel_shard_degree: 1"));
  CHECK(replicas.training.text().find("\"fp32\"") != std::string::npos);
}

TEST_CASE("what is not known of a recipe is told, and false is false in all of YAML's words") {
  const std::string text = read_file(folder + "nemo_llama3_70b.yaml");
  const auto listed = [&](const std::string& name, const std::string& value) {
    return told(read(with_value(text, name, value)));
  };
  CHECK(listed("trainer.precision", "bf17").contains("trainer.precision: bf17"));
  CHECK(listed("model.activations_checkpoint_granularity", "selectve")
            .contains("model.activations_checkpoint_granularity: selectve"));
  CHECK_FALSE(run_of({with_value(text, "model.sequence_parallel", "off")})
                  .at("strategy")
                  .has("sequence_parallel"));
  // A number of layers of recomputation that is not asked for says nothing.
  CHECK_FALSE(run_of({with_value(text, "model.activations_checkpoint_num_layers", "0")})
                  .at("strategy")
                  .has("recompute"));
  const std::string command = "train.sh --nodes 1 --gpus-per-node 8 --recipe x ";
  const auto strategy = [&](const std::string& more) {
    return run_of({command + more}, {"model.preset=llama-3-8b"}).at("strategy");
  };
  CHECK(strategy("ddp.data_parallel_sharding_strategy=optim_grads").at("zero").whole_number() == 2);
  CHECK(strategy("model.recompute_granularity=selective 'model.recompute_modules=[core_attn]'")
            .at("recompute")
            .text() == "selective");
  CHECK(told(read(command + "dataset.enable_offline_packing=true"))
            .contains("dataset.enable_offline_packing=true"));
  // As long as it may be.
  CHECK_FALSE(read(command + std::string(1'000'000, 'x')).left_out.empty());
}

TEST_CASE("what a later file assumes does not go over what an earlier one says") {
  const JsonReader run =
      run_of({read_file(folder + "bridge_llama32_1b.yaml") + "\nmixed_precision: bf16_mixed\n",
              read_file(folder + "llama_3_70b.json")},
             {"gpus=8"});
  CHECK(run.at("model").at("sequence").whole_number() == 4096);
  CHECK(run.at("training").at("precision").text() == "bf16-fp32-gradients");
}

TEST_CASE("what FSDP cuts for the pipeline is micro-batches of a data rank's batch") {
  const std::string text = read_file(folder + "torchtitan_llama3_70b.toml");
  const JsonReader run = run_of({with_value(text, "parallelism.pipeline_parallel_degree",
                                            "4\npipeline_parallel_microbatch_size = 2")},
                                {"gpus=64"});
  check(run, "training", R"({"micro_batch": 2, "global_batch": 16,
                             "precision": "bf16-fp32-gradients", "optimizer": "adamw"})");
}

TEST_CASE("imported recipes are answered") {
  const TemporaryFolder written;
  const auto answered = [&](const std::vector<std::string>& texts,
                            const std::vector<std::string>& set) {
    std::vector<Settings> files;
    for (const std::string& text : texts) files.push_back(read(text));
    std::vector<study::KeyValues> changes;
    for (const std::string& one : set) changes.push_back(study::read_change(one, false, "--set"));
    written.write("a.json", scenario_of(merged(files), changes, "run").scenario.text());
    const study::Scenario scenario = study::read_scenario((written.path() / "a.json").string());
    return study::simulate(scenario.runs.front(), {}).outcome.status == study::Outcome::Status::ok;
  };
  CHECK(answered({read_file(folder + "nemo_llama3_70b.yaml")}, {}));
  CHECK(answered({read_file(folder + "torchtitan_llama3_70b.toml")}, {"gpus=64"}));
  CHECK(answered(
      {read_file(folder + "llama_3_70b.json"), read_file(folder + "bridge_llama32_1b.yaml")},
      {"gpus=8", "layers=2"}));
}

}  // namespace
}  // namespace stratagem::imports
