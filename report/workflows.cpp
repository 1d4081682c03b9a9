// A table of phases for each workflow, and lines about its pools.
#include "report/workflows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity_text.hpp"
#include "report/wrapped.hpp"

namespace stratagem::report {
namespace {

using study::Generation;
using study::PhaseOutcome;
using study::PoolMemory;
using study::WorkflowOutcome;

/// "256", or "4 x 64".
std::string samples_text(const PhaseOutcome& phase) {
  return (phase.repeat > 1 ? fmt::format("{} x ", phase.repeat) : "") +
         std::to_string(phase.samples);
}

double answer_tokens_per_second(const PhaseOutcome& phase) {
  return 1.0 * phase.repeat * phase.samples * phase.answer_tokens / phase.time.value;
}

std::string generation_text(const PhaseOutcome& phase) {
  const Generation& one = *phase.generation;
  std::string text = fmt::format("    {:.0f} answer tokens/s; prefill {}",
                                 answer_tokens_per_second(phase), to_text(one.prefill));
  if (one.first > Seconds{}) {
    text += fmt::format(
        ", decode steps of {} to {} each, in the last one {:.0f} % exposed communication and "
        "{:.0f} % idle",
        to_text(one.first), to_text(one.last), 100 * one.exposed_communication, 100 * one.idle);
  }
  return text + "; lower bound by memory bandwidth " + to_text(one.memory_bound);
}

/// Widths of the columns of names and samples.
struct Widths {
  std::size_t phase = 5;
  std::size_t pool = 4;
  std::size_t samples = 7;
};

std::string phase_text(const PhaseOutcome& phase, const WorkflowOutcome& workflow,
                       const Widths& widths) {
  const auto pool = std::ranges::find(workflow.pools, phase.pool, &PoolMemory::pool);
  std::string text =
      fmt::format("  {:<{}}  {:<{}}  {:>{}} {:>10} {:>10} {:>6.1f} % {:>10}{}\n", phase.name,
                  widths.phase, phase.pool, widths.pool, samples_text(phase), widths.samples,
                  to_text(phase.begin), to_text(phase.time), 100 * (phase.time / workflow.time),
                  to_text(phase.used), phase.used > pool->memory ? " !" : "");
  if (phase.weight_transfer > Seconds{})
    text += "    of which transfer of new weights: " + to_text(phase.weight_transfer) + "\n";
  if (phase.generation) text += wrapped(generation_text(phase), 6);
  return text;
}

std::string pool_text(const PoolMemory& pool, const WorkflowOutcome& workflow) {
  std::string text = fmt::format("  Pool {}: peak {} of {} a GPU, in \"{}\": states of ", pool.pool,
                                 to_text(pool.used()), to_text(pool.memory), pool.phase);
  for (const auto& [model, bytes] : pool.states)
    text += fmt::format("{} {}, ", model, to_text(bytes));
  if (pool.copy > Bytes{}) text += fmt::format("a copy of the weights {}, ", to_text(pool.copy));
  if (pool.caches > Bytes{}) text += fmt::format("KV caches {}, ", to_text(pool.caches));
  text += "all else " + to_text(pool.other);
  if (!pool.fits()) text += fmt::format("; {} short", to_text(pool.used() - pool.memory));
  Seconds busy;
  for (const PhaseOutcome& phase : workflow.phases)
    if (phase.pool == pool.pool) busy += phase.time;
  if (workflow.pools.size() > 1)
    text += fmt::format("; without a phase {:.0f} % of the time", 100 * (1 - busy / workflow.time));
  return wrapped(text, 4);
}

std::string heading(const WorkflowOutcome& workflow) {
  std::string text =
      fmt::format("{}: {} GPUs, {}", workflow.name, workflow.gpus, to_text(workflow.time));
  if (workflow.answered() > 0)
    text += fmt::format(", {:.3g} samples/s", workflow.answered() / workflow.time.value);
  return text + (workflow.fits() ? "" : "; does not fit (!)") + "\n\n";
}

std::string text_of(const WorkflowOutcome& workflow) {
  if (workflow.refused) return wrapped(workflow.name + " is refused: " + *workflow.refused, 4);
  Widths widths;
  bool generates = false;
  for (const PhaseOutcome& phase : workflow.phases) {
    widths.phase = std::max(widths.phase, phase.name.size());
    widths.pool = std::max(widths.pool, phase.pool.size());
    widths.samples = std::max(widths.samples, samples_text(phase).size());
    generates = generates || phase.generation;
  }
  std::string text = heading(workflow);
  text +=
      fmt::format("  {:<{}}  {:<{}}  {:>{}} {:>10} {:>10}   of step {:>9}\n", "phase", widths.phase,
                  "pool", widths.pool, "samples", widths.samples, "begins", "time", "peak/GPU");
  for (const PhaseOutcome& phase : workflow.phases) text += phase_text(phase, workflow, widths);
  for (const PoolMemory& pool : workflow.pools) text += pool_text(pool, workflow);
  if (generates)
    text += "  Decode steps rest on assumptions: none was measured (docs/guide/rlhf.md).\n";
  return text;
}

Json json_of(const PhaseOutcome& phase) {
  Json json = Json::object()
                  .set("name", phase.name)
                  .set("run", phase.run)
                  .set("pool", phase.pool)
                  .set("repeat", phase.repeat)
                  .set("samples", phase.samples)
                  .set("begin_s", phase.begin.value)
                  .set("time_s", phase.time.value)
                  .set("weight_transfer_s", phase.weight_transfer.value)
                  .set("used_bytes", phase.used.value);
  if (const auto& one = phase.generation) {
    json.set("answer_tokens_per_s", answer_tokens_per_second(phase))
        .set("prefill_s", one->prefill.value)
        .set("first_decode_step_s", one->first.value)
        .set("last_decode_step_s", one->last.value)
        .set("memory_bound_s", one->memory_bound.value)
        .set("exposed_communication_share", one->exposed_communication)
        .set("idle_share", one->idle)
        .set("decode_steps_simulated", one->simulated);
  }
  return json;
}

Json json_of(const PoolMemory& pool) {
  Json states = Json::object();
  for (const auto& [model, bytes] : pool.states) states.set(model, bytes.value);
  return Json::object()
      .set("name", pool.pool)
      .set("gpus", pool.gpus)
      .set("fullest_gpu", pool.device)
      .set("phase", pool.phase)
      .set("states_bytes", states)
      .set("copy_bytes", pool.copy.value)
      .set("caches_bytes", pool.caches.value)
      .set("other_bytes", pool.other.value)
      .set("used_bytes", pool.used().value)
      .set("memory_bytes", pool.memory.value);
}

}  // namespace

std::string workflow_text(const std::vector<WorkflowOutcome>& workflows) {
  std::string text;
  for (const WorkflowOutcome& workflow : workflows) text += "\n" + text_of(workflow);
  return text;
}

Json to_json(const std::vector<WorkflowOutcome>& workflows) {
  Json list = Json::array();
  for (const WorkflowOutcome& workflow : workflows) {
    Json json = Json::object().set("name", workflow.name);
    if (workflow.refused) {
      list.push(json.set("refused", *workflow.refused));
      continue;
    }
    Json phases = Json::array(), pools = Json::array();
    for (const PhaseOutcome& phase : workflow.phases) phases.push(json_of(phase));
    for (const PoolMemory& pool : workflow.pools) pools.push(json_of(pool));
    list.push(json.set("gpus", workflow.gpus)
                  .set("time_s", workflow.time.value)
                  .set("samples_per_s", workflow.answered() / workflow.time.value)
                  .set("fits", workflow.fits())
                  .set("phases", phases)
                  .set("pools", pools));
  }
  return list;
}

}  // namespace stratagem::report
