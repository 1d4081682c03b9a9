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

std::string generation_text(const Generation& one) {
  std::string text = "    prompts " + to_text(one.prompt);
  if (one.first > Seconds{})
    text += ", then tokens of " + to_text(one.first) + " to " + to_text(one.last);
  if (one.first > Seconds{})
    text += fmt::format(" ({:.0f} % communicating alone, {:.0f} % waiting for launches)",
                        100 * one.communicating, 100 * one.waiting);
  return text + "; what all of it reads and writes takes " + to_text(one.traffic) +
         " at the memory's full bandwidth";
}

/// Widths of the columns of names.
struct Widths {
  std::size_t phase = 5;
  std::size_t pool = 4;
};

std::string phase_text(const PhaseOutcome& phase, Seconds whole, const Widths& widths) {
  std::string text =
      fmt::format("  {:<{}}  {:<{}} {:>6} {:>10} {:>10} {:>5.1f} % {:>10}\n", phase.name,
                  widths.phase, phase.pool, widths.pool, phase.repeat, to_text(phase.begin),
                  to_text(phase.time), 100 * (phase.time / whole), to_text(phase.used));
  if (phase.weights > Seconds{})
    text += "      of these, until new weights are there: " + to_text(phase.weights) + "\n";
  if (phase.generation) text += wrapped(generation_text(*phase.generation), 6);
  return text;
}

std::string pool_text(const PoolMemory& pool) {
  std::string text = fmt::format("  A GPU of {} needs {} of {} in {}: ", pool.pool,
                                 to_text(pool.used()), to_text(pool.memory), pool.phase);
  for (const auto& [model, bytes] : pool.weights)
    text += fmt::format("{} {}, ", model, to_text(bytes));
  if (pool.caches > Bytes{}) text += fmt::format("caches {}, ", to_text(pool.caches));
  text += "all else " + to_text(pool.beside);
  if (pool.used() > pool.memory)
    text += fmt::format("; it lacks {}", to_text(pool.used() - pool.memory));
  return wrapped(text, 4);
}

std::string text_of(const WorkflowOutcome& workflow) {
  if (workflow.refused) return wrapped(workflow.name + " is refused: " + *workflow.refused, 4);
  std::string text = fmt::format("{}: {} GPUs, {}{}\n\n", workflow.name, workflow.gpus,
                                 to_text(workflow.time), workflow.fits() ? "" : ", does not fit");
  Widths widths;
  for (const PhaseOutcome& phase : workflow.phases) {
    widths.phase = std::max(widths.phase, phase.name.size());
    widths.pool = std::max(widths.pool, phase.pool.size());
  }
  text += fmt::format("  {:<{}}  {:<{}} {:>6} {:>10} {:>10}   share {:>10}\n", "phase",
                      widths.phase, "pool", widths.pool, "repeat", "begins", "time", "memory");
  for (const PhaseOutcome& phase : workflow.phases)
    text += phase_text(phase, workflow.time, widths);
  for (const PoolMemory& pool : workflow.pools) text += pool_text(pool);
  return text;
}

Json json_of(const PhaseOutcome& phase) {
  Json json = Json::object()
                  .set("name", phase.name)
                  .set("run", phase.run)
                  .set("pool", phase.pool)
                  .set("repeat", phase.repeat)
                  .set("begin_s", phase.begin.value)
                  .set("time_s", phase.time.value)
                  .set("weights_s", phase.weights.value)
                  .set("used_bytes", phase.used.value);
  if (const auto& one = phase.generation) {
    json.set("prompt_s", one->prompt.value)
        .set("first_token_s", one->first.value)
        .set("last_token_s", one->last.value)
        .set("traffic_s", one->traffic.value)
        .set("communicating", one->communicating)
        .set("waiting", one->waiting)
        .set("passes_simulated", one->simulated);
  }
  return json;
}

Json json_of(const PoolMemory& pool) {
  Json weights = Json::object();
  for (const auto& [model, bytes] : pool.weights) weights.set(model, bytes.value);
  return Json::object()
      .set("name", pool.pool)
      .set("gpus", pool.gpus)
      .set("fullest_gpu", pool.device)
      .set("phase", pool.phase)
      .set("weights_bytes", weights)
      .set("caches_bytes", pool.caches.value)
      .set("beside_bytes", pool.beside.value)
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
                  .set("fits", workflow.fits())
                  .set("phases", phases)
                  .set("pools", pools));
  }
  return list;
}

}  // namespace stratagem::report
