// DeepSpeed's JSON configuration (deepspeed/runtime/config.py and zero/config.py).
#include <fmt/format.h>

#include <cstdint>
#include <map>

#include "base/input_error.hpp"
#include "imports/format.hpp"
#include "imports/known.hpp"
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
    {"activation_checkpointing.*",
     "recomputation is the model's: say it as \"recompute\", which has \"partition_checkpoints\" "
     "and \"cpu_checkpointing\""},
    {"zero_optimization.cpu_offload*", "say it as \"offload\""},
    {"communication_data_type", "gradients are reduced in the type of the precision"},
    {"sparse_attention.*", "attention is dense"},
    {"aio.*", "drives read and write at the rates of their server"},
    {"compression_training.*", "nothing is compressed"},
};

/// The settings but those that are "auto", which a trainer fills in: these are told.
Said without_auto(Said all, Settings& settings) {
  Said said;
  for (const Said::Value& one : all.left()) {
    const std::string value = all.take(one.name).value_or("");
    if (value == "auto")
      settings.left_out.push_back({one.text, "a trainer fills it in: say what it becomes"});
    else
      said.add(one.name, {value}, one.text);
  }
  return said;
}

bool enabled(Said& said, const std::string& type) { return said.flag(type + ".enabled"); }

/// All three sizes of a batch say the number of data ranks, too.
void read_batch(Said& said, Settings& settings) {
  const auto each = said.number("train_micro_batch_size_per_gpu");
  const auto all = said.number("train_batch_size");
  settings.accumulation = said.number("gradient_accumulation_steps");
  if (each) settings.training.set("micro_batch", *each);
  if (all) settings.training.set("global_batch", *all);
  if (!each || !all || !settings.accumulation) return;
  const std::int64_t step = std::int64_t{*each} * *settings.accumulation;
  if (*all % step != 0) {
    throw InputError("", "/train_batch_size",
                     fmt::format("a multiple of train_micro_batch_size_per_gpu x "
                                 "gradient_accumulation_steps = {}",
                                 step),
                     std::to_string(*all));
  }
  settings.strategy.set("data", *all / step);
}

/// Where a part of ZeRO's states lives here; "" where it stays on the device.
std::string place(Said& said, const std::string& part, Settings& settings) {
  const std::string name = "zero_optimization." + part + ".device";
  const std::map<std::string, std::string> places = {
      {"cpu", "memory"}, {"nvme", "drives"}, {"none", ""}};
  return known_value(said, name, places, "it stays on the GPU", settings).value_or("");
}

void read_zero(Said& said, Settings& settings) {
  const std::string of = "zero_optimization.";
  const auto stage = said.number(of + "stage", 0).value_or(0);
  if (stage == 0) return;
  Json zero = Json::object().set("stage", stage);
  if (const auto ranks = said.number(of + "zero_hpz_partition_size"); ranks && *ranks > 1)
    zero.set("reshard_after_forward", *ranks);
  if (const auto small = said.number(of + "stage3_param_persistence_threshold");
      small && stage == 3)
    zero.set("whole_below", *small);
  settings.strategy.set("zero", zero);
  if (said.has(of + "overlap_comm"))
    settings.strategy.set("overlap_gradients", said.flag(of + "overlap_comm"));
  if (const auto elements = said.number(of + "reduce_bucket_size"))
    settings.strategy.set("bucket", fmt::format("{} MB", 2.0 * *elements / 1e6));
  const std::string optimizer = place(said, "offload_optimizer", settings);
  const std::string parameters = place(said, "offload_param", settings);
  if (optimizer.empty() && parameters.empty()) return;
  if (optimizer.empty()) {
    settings.left_out.push_back({of + "offload_param", "parameters go only with the optimizer"});
    return;
  }
  Json offload = Json::object().set("optimizer", optimizer);
  if (!parameters.empty()) offload.set("parameters", parameters);
  settings.strategy.set("offload", offload);
}

Settings read(const std::string& text, const std::string& file) {
  Settings settings;
  Said said = without_auto(Said::json(text, file), settings);
  read_batch(said, settings);
  read_zero(said, settings);
  const bool bf16 = enabled(said, "bf16"), fp16 = enabled(said, "fp16");
  if (bf16 && fp16) throw InputError("", "/fp16/enabled", "fp16 or bf16, not both", "both");
  // Without ZeRO gradients of bf16 are added up in fp32 (get_data_types of runtime/engine.py).
  const int stage = said.number("zero_optimization.stage", 0).value_or(0);
  const std::string sums =
      said.take("data_types.grad_accum_dtype").value_or(stage == 0 ? "fp32" : "bf16");
  if (bf16) settings.training.set("precision", sums == "fp32" ? "bf16-fp32-gradients" : "bf16");
  if (fp16) settings.training.set("precision", "fp16");
  if (!bf16 && !fp16 && (said.has("bf16.enabled") || said.has("fp16.enabled")))
    settings.training.set("precision", "fp32");
  const std::map<std::string, std::string> optimizers = {
      {"Adam", "adam"}, {"AdamW", "adamw"}, {"FusedAdam", "adam"}, {"SGD", "sgd"}};
  if (const auto type = known_value(said, "optimizer.type", optimizers, "Adam stands in", settings))
    settings.training.set("optimizer", *type);
  settings.stacks = {"megatron-deepspeed-fp16", "megatron-deepspeed-bf16"};
  sort_left(said, no_matter, missing, settings);
  return settings;
}

bool is_deepspeed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] != '{')
    return false;  // a script may hold a configuration
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
