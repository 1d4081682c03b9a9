// DeepSpeed's JSON configuration (deepspeed/runtime/config.py and zero/config.py).
#include <fmt/format.h>

#include <map>

#include "imports/format.hpp"
#include "imports/said.hpp"
#include "imports/sort.hpp"

namespace stratagem::imports {
namespace {

constexpr std::string_view no_matter[] = {
    "steps_per_print",
    "dump_state",
    "scheduler.*",
    "optimizer.params.*",
    "tensorboard.*",
    "wandb.*",
    "csv_monitor.*",
    "comms_logger.*",
    "flops_profiler.*",
    "fp16.loss_scale*",
    "fp16.initial_scale_power",
    "fp16.hysteresis",
    "fp16.min_loss_scale",
    "fp16.auto_cast",
    "zero_allow_untested_optimizer",
    "zero_force_ds_cpu_optimizer",
    "checkpoint.*",
    "prescale_gradients",
    "gradient_predivide_factor",
    "memory_breakdown",
    "zero_optimization.elastic_checkpoint",
    "zero_optimization.stage3_gather_16bit_weights_on_model_save",
    "zero_optimization.ignore_unused_parameters"};
constexpr Missing missing[] = {
    {"gradient_clipping", "the stack says whether gradients are clipped"},
    {"wall_clock_breakdown", "the stack says where hosts wait for devices"},
    {"zero_optimization.round_robin_gradients", "gradients leave for the host in their order"},
    {"zero_optimization.contiguous_gradients", "gradients have buffers of their own here"},
    {"zero_optimization.reduce_scatter", "gradients are reduced to shards"},
    {"zero_optimization.allgather_*", "parameters are gathered after the step, whole"},
    {"zero_optimization.stage3_max_live_parameters", "say it as \"zero\": {\"prefetch\": N}"},
    {"zero_optimization.stage3_max_reuse_distance", "a layer is gathered for each pass"},
    {"zero_optimization.stage3_prefetch_bucket_size", "say it as \"zero\": {\"prefetch\": N}"},
    {"zero_optimization.sub_group_size", "steps are of whole segments"},
    {"zero_optimization.offload_*", "buffers on the host are pinned"},
    {"zero_optimization.zero_quantized_*", "nothing is quantised for communication"},
    {"activation_checkpointing.*", "recomputation is the model's: say it as \"recompute\""},
    {"communication_data_type", "gradients are reduced in the type of the precision"},
    {"sparse_attention.*", "attention is dense"},
    {"aio.*", "drives read and write at the rates of their server"},
    {"compression_training.*", "nothing is compressed"},
};

/// "auto" is for a trainer to fill in.
std::optional<int> number(Said& said, const std::string& name) {
  const auto value = said.take(name);
  if (!value || *value == "auto") return std::nullopt;
  return said.number(name);
}

void read_batch(Said& said, Settings& settings) {
  if (const auto each = number(said, "train_micro_batch_size_per_gpu"))
    settings.training.set("micro_batch", *each);
  if (const auto all = number(said, "train_batch_size"))
    settings.training.set("global_batch", *all);
  settings.accumulation = number(said, "gradient_accumulation_steps");
}

/// Where a part of ZeRO's states lives: "cpu", "nvme" or "none".
std::string device(Said& said, const std::string& part) {
  return said.take("zero_optimization." + part + ".device").value_or("none");
}

void read_zero(Said& said, Settings& settings) {
  const std::string of = "zero_optimization.";
  const auto stage = said.number(of + "stage", 0).value_or(0);
  if (stage == 0) return;
  Json zero = Json::object().set("stage", stage);
  if (const auto ranks = number(said, of + "zero_hpz_partition_size"); ranks && *ranks > 1)
    zero.set("reshard_after_forward", *ranks);
  if (const auto small = number(said, of + "stage3_param_persistence_threshold");
      small && stage == 3)
    zero.set("whole_below", *small);
  settings.strategy.set("zero", zero);
  const auto overlaps = said.take(of + "overlap_comm");
  if (overlaps) settings.strategy.set("overlap_gradients", *overlaps == "true");
  if (const auto elements = number(said, of + "reduce_bucket_size"))
    settings.strategy.set("bucket", fmt::format("{} MB", 2.0 * *elements / 1e6));
  const std::map<std::string, std::string> places = {{"cpu", "memory"}, {"nvme", "drives"}};
  const std::string optimizer = device(said, "offload_optimizer");
  const std::string parameters = device(said, "offload_param");
  if (!places.contains(optimizer) && !places.contains(parameters)) return;
  if (!places.contains(optimizer)) {
    settings.left_out.push_back({of + "offload_param", "parameters go only with the optimizer"});
    return;
  }
  Json offload = Json::object().set("optimizer", places.at(optimizer));
  if (places.contains(parameters)) offload.set("parameters", places.at(parameters));
  settings.strategy.set("offload", offload);
}

Settings read(const std::string& text, const std::string& file) {
  Said said = Said::json(text, file);
  Settings settings;
  read_batch(said, settings);
  read_zero(said, settings);
  const bool bf16 = said.take("bf16.enabled").value_or("false") == "true";
  const bool fp16 = said.take("fp16.enabled").value_or("false") == "true";
  // Without ZeRO gradients of bf16 are added up in fp32 (get_data_types of runtime/engine.py).
  const int stage = said.number("zero_optimization.stage", 0).value_or(0);
  const std::string sums =
      said.take("data_types.grad_accum_dtype").value_or(stage == 0 ? "fp32" : "bf16");
  if (bf16) settings.training.set("precision", sums == "fp32" ? "bf16-fp32-gradients" : "bf16");
  if (fp16 && !bf16) settings.training.set("precision", "fp16");
  if (const auto type = said.take("optimizer.type")) {
    const std::map<std::string, std::string> ours = {
        {"Adam", "adam"}, {"AdamW", "adamw"}, {"FusedAdam", "adam"}, {"SGD", "sgd"}};
    if (ours.contains(*type))
      settings.training.set("optimizer", ours.at(*type));
    else
      settings.left_out.push_back({"optimizer.type: " + *type, "not known here"});
  }
  settings.stacks = {"megatron-deepspeed-fp16", "megatron-deepspeed-bf16"};
  sort_left(said, no_matter, missing, settings);
  return settings;
}

bool is_deepspeed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] != '{') return false;  // a script may write one
  return text.find("\"zero_optimization\"") != std::string::npos ||
         text.find("\"train_micro_batch_size_per_gpu\"") != std::string::npos ||
         text.find("\"train_batch_size\"") != std::string::npos;
}

}  // namespace

Format deepspeed() {
  return {"deepspeed", "a DeepSpeed configuration; the model comes from another file",
          &is_deepspeed, &read};
}

}  // namespace stratagem::imports
