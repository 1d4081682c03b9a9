// torchtitan's TOML (torchtitan/config/job_config.py, until its configurations became Python in
// February of 2026). Of older names the batch's is read; others are told as not known.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/json_reader.hpp"
#include "imports/documents.hpp"
#include "imports/experts.hpp"
#include "imports/format.hpp"
#include "imports/known.hpp"
#include "imports/said.hpp"
#include "imports/sort.hpp"
#include "model/zoo/presets.hpp"

namespace stratagem::imports {
namespace {

constexpr std::string_view no_matter[] = {"job.*",
                                          "profiling.*",
                                          "metrics.*",
                                          "model.hf_assets_path",
                                          "model.tokenizer_path",
                                          "model.print_after_conversion",
                                          "optimizer.lr",
                                          "optimizer.eps",
                                          "optimizer.beta*",
                                          "optimizer.weight_decay",
                                          "lr_scheduler.*",
                                          "training.steps",
                                          "training.dataset*",
                                          "training.seed",
                                          "training.deterministic",
                                          "training.gc_*",
                                          "training.dataloader.*",
                                          "checkpoint.*",
                                          "validation.*",
                                          "comm.*",
                                          "memory_estimation.*",
                                          "fault_tolerance.enable",
                                          "activation_checkpoint.preserve_rng_state",
                                          "activation_checkpoint.determinism_check",
                                          "activation_checkpoint.debug",
                                          "compile.components",
                                          "debug.*"};
constexpr Missing missing[] = {
    {"training.max_norm", "the stack says whether gradients are clipped"},
    {"optimizer.implementation", "the stack says how steps are launched"},
    {"optimizer.early_step_in_backward", "steps follow the backward pass"},
    {"parallelism.enable_async_tensor_parallel",
     "collectives of tensor ranks run beside nothing here"},
    {"parallelism.disable_loss_parallel", "tensor ranks divide the loss"},
    {"parallelism.context_parallel_load_balancer",
     "context ranks have equal shares of a causal mask"},
    {"parallelism.expert_parallel_comm_backend", "all-to-alls send each copy of a token"},
    {"parallelism.module_fqns_per_model_part", "say it as \"layers_per_stage\""},
    {"parallelism.pipeline_parallel_split_points", "say it as \"layers_per_stage\""},
    {"parallelism.pipeline_parallel_schedule_csv", "say it as a plan"},
    {"quantize.*", "a precision says which products are in fp8, and how scales are found"},
    {"float8.*", "a precision says which products are in fp8, and how scales are found"},
    {"compile.*", "no stack has kernels that a compiler fused"},
    {"training.compile", "no stack has kernels that a compiler fused"},
};

/// Models by name and flavor (torchtitan/models/*/__init__.py), as presets.
const std::map<std::string, std::string> flavors = {{"llama3 8B", "llama-3-8b"},
                                                    {"llama3 70B", "llama-3-70b"},
                                                    {"llama3 405B", "llama-3-405b"},
                                                    {"qwen3 8B", "qwen3-8b"},
                                                    {"qwen3 14B", "qwen3-14b"},
                                                    {"qwen3 30B-A3B", "qwen3-30b-a3b"},
                                                    {"qwen3 235B-A22B", "qwen3-235b-a22b"},
                                                    {"deepseek_v3 671B", "deepseek-v3"},
                                                    {"gpt_oss 20B", "gpt-oss-20b"},
                                                    {"gpt_oss 120B", "gpt-oss-120b"}};

/// Schedules of torch.distributed.pipelining, and chunks of a rank where nothing says how many.
struct Schedule {
  std::string ours;
  int chunks;
};
const std::map<std::string, Schedule> schedules = {{"gpipe", {"gpipe", 1}},
                                                   {"1f1b", {"1f1b", 1}},
                                                   {"interleaved1f1b", {"interleaved", 2}},
                                                   {"zbvzerobubble", {"zb-v", 2}},
                                                   {"dualpipev", {"dualpipe-v", 2}}};

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char one) { return std::tolower(one); });
  return text;
}

class Torchtitan {
 public:
  explicit Torchtitan(Said said) : said_(std::move(said)) {}

  Settings read() && {
    read_model();
    read_degrees();
    read_batch();
    read_precision();
    read_pipeline();
    read_recomputation();
    settings_.stacks = {"llm-foundry", "pytorch-eager"};
    sort_left(said_, no_matter, missing, settings_);
    return std::move(settings_);
  }

 private:
  void leave_out(const std::string& what, const std::string& why) {
    settings_.left_out.push_back({what, why});
  }
  std::string word(const std::string& name, const std::string& otherwise) {
    return said_.take(name).value_or(otherwise);
  }
  std::string type(const std::string& name, const std::string& otherwise) {
    const std::map<std::string, std::string> types = {{"float32", "float32"},
                                                      {"bfloat16", "bfloat16"}};
    return known_value(said_, name, types, otherwise + " stands in", settings_).value_or(otherwise);
  }
  int degree(const std::string& name) { return said_.number("parallelism." + name).value_or(1); }

  void read_model() {
    const std::string name = word("model.name", "llama3"), flavor = word("model.flavor", "");
    const auto known = flavors.find(name + " " + flavor);
    if (known == flavors.end()) {
      std::string names;
      for (const auto& [one, preset] : flavors) names += (names.empty() ? "" : ", ") + one;
      leave_out(fmt::format("model.flavor: {} {}", name, flavor),
                "sizes are in torchtitan's code; known are those of " + names +
                    "; for another give its config.json, or --set model.preset=NAME");
    } else {
      settings_.model.set("preset", known->second);
      const auto preset = std::ranges::find(model::presets(), known->second, &model::Preset::name);
      layers_ = static_cast<int>(
          JsonReader::from_text(preset->keys, "preset").at("layers").whole_number());
    }
    if (!said_.has("training.seq_len"))
      settings_.assumed.push_back({"sequence", "torchtitan's default, 2048"});
    settings_.model.set("sequence", said_.number("training.seq_len").value_or(2048));
  }

  /// Wherever tensor ranks divide a layer, they divide the tokens of its norms and residual sums.
  void read_degrees() {
    Json& strategy = settings_.strategy;
    const int tensor = degree("tensor_parallel_degree"),
              context = degree("context_parallel_degree");
    tensor_ = tensor;
    pipeline_ = degree("pipeline_parallel_degree");
    strategy.set("tensor", tensor).set("pipeline", pipeline_);
    if (tensor > 1) strategy.set("sequence_parallel", true);
    if (context > 1) strategy.set("context", context);
    const std::string rotates = word("parallelism.context_parallel_rotate_method", "allgather");
    if (context > 1 && rotates == "alltoall") strategy.set("context_exchange", "ring");
    read_experts(tensor);
    read_shards(tensor, context);
  }

  void read_experts(int tensor) {
    const int ranks = degree("expert_parallel_degree");
    const int own = degree("expert_tensor_parallel_degree");
    if (ranks == 1) return;
    settings_.strategy.set("expert", ranks);
    if (own == 1 && tensor > 1) return share_out_experts(true, ranks, tensor, settings_);
    if (own != tensor)
      leave_out(fmt::format("parallelism.expert_tensor_parallel_degree: {}", own),
                "tensor ranks divide experts as they divide MLPs, or have them whole");
  }

  /// Ranks that divide tokens divide weights, too. In a pipeline weights by default stay whole from
  /// the first forward pass to the last backward pass, and gradients are reduced behind that: as in
  /// ZeRO 1.
  void read_shards(int tensor, int context) {
    const int replicas = degree("data_parallel_replicate_degree");
    const int shards = said_.number("parallelism.data_parallel_shard_degree", -1).value_or(-1);
    if (shards > 0) settings_.strategy.set("data", replicas * shards);
    divides_weights_ = shards != 1 || context > 1;
    if (!divides_weights_) {
      // bucket_cap_mb of apply_ddp, torchtitan/models/llama3/infra/parallelize.py.
      settings_.strategy.set("overlap_gradients", true).set("bucket", "100 MiB");
      settings_.assumed.push_back({"bucket 100 MiB", "torchtitan's for replicas"});
      if (replicas > 1 && (tensor > 1 || pipeline_ > 1))
        leave_out("parallelism.data_parallel_shard_degree: 1",
                  "torchtitan refuses replicas of a model that tensor or pipeline ranks divide");
      return;
    }
    const std::string reshards = word("parallelism.fsdp_reshard_after_forward", "default");
    const bool whole = pipeline_ > 1 && reshards != "always";
    Json zero = Json::object().set("stage", whole ? 1 : 3);
    if (whole)
      settings_.assumed.push_back({"zero 1", "weights stay whole over an iteration's passes"});
    if (replicas > 1 && shards > 0 && context == 1) zero.set("ranks", shards);
    if (replicas > 1 && (shards < 0 || context > 1))
      leave_out(fmt::format("parallelism.data_parallel_replicate_degree: {}", replicas),
                "how many ranks keep a copy together: say it as \"zero\": {\"stage\": 3, "
                "\"ranks\": N}");
    if (!whole && reshards == "never") zero.set("reshard_after_forward", false);
    settings_.strategy.set("zero", zero);
    if (said_.flag("training.enable_cpu_offload")) settings_.strategy.set("offload", "parameters");
  }

  /// A data rank's batch is one micro-batch, or is cut for the pipeline.
  void read_batch() {
    const std::string name =
        said_.has("training.batch_size") ? "training.batch_size" : "training.local_batch_size";
    if (!said_.has(name)) settings_.assumed.push_back({name, "torchtitan's default, 8"});
    const int local = said_.number(name).value_or(8);
    const int cut = degree("pipeline_parallel_microbatch_size");
    const int micro = pipeline_ > 1 ? cut : local;
    settings_.training.set("micro_batch", micro);
    const int global = said_.number("training.global_batch_size", -1).value_or(-1);
    if (pipeline_ > 1 && local % micro != 0)
      leave_out(fmt::format("{}: {}", name, local), "torchtitan wants a multiple of micro-batches");
    if (global <= 0) {
      settings_.accumulation = std::max(1, local / micro);
      return;
    }
    settings_.training.set("global_batch", global);
    if (pipeline_ > 1)
      leave_out(fmt::format("{}: {}", name, local),
                "each of it is a pipeline of its own there; here all micro-batches of the batch "
                "pass through one");
  }

  /// FSDP keeps shards in fp32, gathers copies in bf16 and reduces gradients in fp32.
  void read_precision() {
    const std::string held = type("training.dtype", "float32");
    const std::string computed = type("training.mixed_precision_param", "bfloat16");
    const std::string reduced = type("training.mixed_precision_reduce", "float32");
    const std::string converters = word("model.converters", "[]");
    const bool fp8 = converters.find("float8") != std::string::npos;
    const bool mx = converters.find("mx") != std::string::npos;
    const std::string type = mx ? "mxfp8" : fp8 ? "fp8-current" : "bf16";
    // Without shards products are in 16 bits on one axis alone (maybe_enable_amp).
    const bool mixed = divides_weights_ || (tensor_ == 1 && pipeline_ == 1);
    const bool wide = held == "float32" && (computed == "float32" || !mixed);
    settings_.training.set("precision", wide                   ? "fp32"
                                        : reduced == "float32" ? type + "-fp32-gradients"
                                                               : type);
    if (held != "float32")
      leave_out("training.dtype: " + held, "weights are held once more in fp32, for the steps");
    else if (!wide && divides_weights_)
      leave_out(
          "training.dtype: float32",
          "shards of weights are held in bf16 beside those in fp32: 2 bytes more a parameter");
    const std::map<std::string, std::string> optimizers = {{"Adam", "adam"}, {"AdamW", "adamw"}};
    settings_.training.set(
        "optimizer", known_value(said_, "optimizer.name", optimizers, "AdamW stands in", settings_)
                         .value_or("adamw"));
  }

  /// Embedding and head count as so many layers of the first and the last stage.
  void read_pipeline() {
    const std::string named = word("parallelism.pipeline_parallel_schedule", "1F1B");
    const int first =
        said_.number("parallelism.pipeline_parallel_first_stage_less_layers", 0).value_or(1);
    const int last =
        said_.number("parallelism.pipeline_parallel_last_stage_less_layers", 0).value_or(1);
    const auto each = said_.number("parallelism.pipeline_parallel_layers_per_stage");
    if (pipeline_ == 1) {
      said_.take("parallelism.pipeline_parallel_expert_parallel_overlap");
      return;
    }
    const auto known = schedules.find(lower(named));
    if (known == schedules.end())
      leave_out("parallelism.pipeline_parallel_schedule: " + named, "1F1B stands in");
    const Schedule& schedule = known == schedules.end() ? schedules.at("1f1b") : known->second;
    settings_.strategy.set("schedule", schedule.ours);
    const int counted = layers_ + first + last;
    const int stages = each ? (counted + *each - 1) / *each : pipeline_ * schedule.chunks;
    const int chunks = std::max(1, stages / pipeline_);
    if (each && (stages % pipeline_ != 0 || (chunks > 1 && schedule.chunks == 1)))
      leave_out(fmt::format("parallelism.pipeline_parallel_layers_per_stage: {}", *each),
                fmt::format("torchtitan refuses {} stages with this schedule", stages));
    if (schedule.ours == "interleaved") settings_.strategy.set("chunks", chunks);
    if (layers_ == 0)
      leave_out("parallelism.pipeline_parallel_layers_per_stage",
                "how many layers there are is not known: say them as \"layers_per_stage\"");
    else
      deal_out(counted, pipeline_ * (schedule.chunks == 1 ? 1 : chunks), first, last);
  }

  /// The first stages have a layer more where it does not come out even.
  void deal_out(int counted, int stages, int first, int last) {
    Json layers = Json::array();
    for (int stage = 0; stage < stages; ++stage) {
      const int all = counted / stages + (stage < counted % stages ? 1 : 0);
      layers.push(all - (stage == 0 ? first : 0) - (stage == stages - 1 ? last : 0));
    }
    settings_.strategy.set("layers_per_stage", layers);
  }

  void read_recomputation() {
    const std::string mode = word("activation_checkpoint.mode", "selective");
    const std::string option = word("activation_checkpoint.selective_ac_option", "2");
    const std::string named = fmt::format("activation_checkpoint.mode: {} ({})", mode, option);
    if (mode == "none") return;
    if (mode == "full" || (mode == "selective" && option == "1"))
      settings_.strategy.set("recompute", "full");
    else if (mode != "selective" && mode != "memory_budget")
      settings_.left_out.push_back(unknown_value("activation_checkpoint.mode: " + mode, mode,
                                                 {"none", "full", "selective"},
                                                 "nothing runs again"));
    else if (mode == "memory_budget" || option == "op")
      leave_out(named, "no key says which results of single operators are kept: all are");
    else if (layers_ == 0)
      leave_out(named, "how many layers there are is not known: say it as \"recompute\"");
    else
      recompute_every(said_.number("activation_checkpoint.selective_ac_option").value_or(2));
  }

  /// Layers every - 1, 2 every - 1, ... run again.
  void recompute_every(int every) {
    Json layers = Json::array();
    for (int layer = every - 1; every > 0 && layer < layers_; layer += every)
      layers.push(fmt::format("layers.{}.*", layer));
    settings_.strategy.set("recompute", Json::object().set("operators", layers));
  }

  Said said_;
  Settings settings_;
  int layers_ = 0;  ///< 0: not known
  int tensor_ = 1, pipeline_ = 1;
  bool divides_weights_ = true;
};

bool is_torchtitan(const std::string& text) {
  return text.find("[parallelism]") != std::string::npos ||
         (text.find("[training]") != std::string::npos &&
          text.find("seq_len") != std::string::npos);
}

}  // namespace

Format torchtitan() {
  return {"torchtitan", "a TOML configuration of torchtitan", &is_torchtitan,
          [](const std::string& text, const std::string& file) {
            return Torchtitan(Said::json(json_of_toml(text, file), file)).read();
          }};
}

}  // namespace stratagem::imports
