// The machine-readable report.
#include <algorithm>
#include <string>

#include "report/report.hpp"
#include "report/why.hpp"
#include "report/workflows.hpp"
#include "study/simulate.hpp"
#include "topology/drives.hpp"

namespace stratagem::report {
namespace {

using study::Figure;
using study::Outcome;
using study::Result;

Json bytes_by_category(const sim::ByCategory& bytes) {
  Json json = Json::object();
  for (std::size_t c = 0; c < bytes.size(); ++c)
    json.set(program::category_names[c], bytes[c].value);
  return json;
}

std::string status_text(Outcome::Status status) {
  switch (status) {
    case Outcome::Status::ok:
      return "ok";
    case Outcome::Status::out_of_memory:
      return "out_of_memory";
    default:
      return "refused";
  }
}

Json provenance(const study::Weakest& weakest) {
  Json profile = Json::array();
  for (const std::string& path : weakest.profile) profile.push(path);
  Json stack = Json::array();
  for (const std::string& path : weakest.stack) stack.push(path);
  Json cluster = Json::array();
  for (const std::string& path : weakest.cluster) cluster.push(path);
  return Json::object()
      .set("weakest", cost::to_text(weakest.provenance))
      .set("profile", profile)
      .set("stack", stack)
      .set("cluster", cluster);
}

Json extrapolated(const study::Extrapolated& shares) {
  Json kinds = Json::object();
  for (const auto& [kind, share] : shares.by_kind) kinds.set(kind, share);
  return Json::object()
      .set("kernel_time", shares.kernel_time)
      .set("by_kind", kinds)
      .set("communicated_bytes", shares.bytes);
}

/// Every device, or one of those that are alike.
Json devices(const std::vector<sim::DeviceMemory>& memory) {
  Json list = Json::array();
  for (const sim::DeviceMemory& device : memory) {
    list.push(Json::object()
                  .set("device", device.device)
                  .set("count", device.count)
                  .set("resident_bytes", device.resident.value)
                  .set("peak_allocated_bytes", device.allocated.value)
                  .set("peak_reserved_bytes", device.reserved.value)
                  .set("peak_used_bytes", device.used().value)
                  .set("context_bytes", device.context.value)
                  .set("communicator_bytes", device.communicators.value)
                  .set("communicators", device.communicator_count)
                  .set("workspace_bytes", device.workspace.value)
                  .set("workspace_allocated", device.workspace_allocated)
                  .set("releases", device.releases)
                  .set("peak_s", to_seconds(device.peak.when - sim::Instant{0}).value)
                  .set("peak_at", device.at)
                  .set("memory_breakdown_bytes", bytes_by_category(device.peak.by_category))
                  .set("category_peak_bytes", bytes_by_category(device.peak.highest)));
  }
  return list;
}

/// Every server that holds something for its GPUs, or one of those that are alike.
Json servers(const std::vector<sim::HostMemory>& hosts) {
  Json list = Json::array();
  for (const sim::HostMemory& host : hosts) {
    list.push(Json::object()
                  .set("server", host.server)
                  .set("count", host.count)
                  .set("peak_bytes", host.peak.total.value)
                  .set("peak_s", to_seconds(host.peak.when - sim::Instant{0}).value)
                  .set("memory_breakdown_bytes", bytes_by_category(host.peak.by_category))
                  .set("category_peak_bytes", bytes_by_category(host.peak.highest)));
  }
  return list;
}

void add_speed(Json& json, const Result& result) {
  const study::Run& run = *result.run;
  const sim::Metrics& m = *result.outcome.metrics;
  const double period = m.iteration_time.value;
  const FlopsPerSecond model_rate = result.outcome.model_rate();
  const FlopsPerSecond hardware_rate = result.outcome.hardware_rate();
  const FlopsPerSecond peak =
      run.profile.peak.at(model::to_text(run.training.precision.products)).value;
  json.set("iteration_time_s", period);
  if (run.profile.pace) json.set("pace_s", run.profile.pace->value.value);
  json.set("makespan_s", m.makespan.value)
      .set("steady", m.steady)
      .set("samples_per_s", run.batch.global / period)
      .set("tokens_per_s", run.batch.global * static_cast<double>(run.batch.sequence) / period)
      .set("model_tflops_per_gpu", model_rate / 1_TFLOPps)
      .set("hardware_tflops_per_gpu", hardware_rate / 1_TFLOPps)
      .set("mfu", model_rate / peak)
      .set("hfu", hardware_rate / peak);
  if (const auto cost = study::cost_of_billion_tokens(run, result.outcome.gpus, m.iteration_time))
    json.set("cost_per_billion_tokens", *cost);
  for (const Figure& figure : result.figures) {
    const bool relative = figure.name == "scaling_efficiency" || figure.name == "speedup";
    if (relative && figure.predicted) json.set(figure.name, *figure.predicted);
  }
}

void add_metrics(Json& json, const Result& result) {
  add_speed(json, result);
  const study::Run& run = *result.run;
  const sim::Metrics& m = *result.outcome.metrics;
  Json communication = Json::object();
  for (const auto& [kind, bytes] : m.communication) communication.set(kind, bytes.value);
  json.set("bubble_fraction", m.bubble_fraction)
      .set("exposed_communication_s", m.exposed_communication.value)
      .set("peak_memory_bytes", m.peak.total.value)
      .set("peak_allocated_bytes", result.outcome.memory.allocated.value)
      .set("peak_reserved_bytes", result.outcome.memory.reserved.value)
      .set("peak_used_bytes", result.outcome.memory.used.value)
      .set("fits", result.outcome.status == Outcome::Status::ok)
      .set("tight", !result.outcome.tight.empty())
      .set("shortfall_bytes", result.outcome.gpu_shortfall.value)
      .set("context_bytes", run.profile.memory.context.value.value)
      .set("memory_breakdown_bytes", bytes_by_category(m.peak.by_category))
      .set("category_peak_bytes", bytes_by_category(m.peak.highest))
      .set("devices", devices(result.outcome.devices))
      .set("servers", servers(result.outcome.hosts))
      .set("host_shortfall_bytes", result.outcome.host_shortfall.value)
      .set("drives", servers(result.outcome.drives))
      .set("drives_shortfall_bytes", result.outcome.drives_shortfall.value)
      .set("communication_bytes", communication)
      .set("provenance", provenance(result.outcome.weakest))
      .set("extrapolated", extrapolated(result.outcome.extrapolated));
  if (const auto& memory = run.cluster.design().host_memory)
    json.set("host_memory_bytes", memory->value);
  if (run.cluster.design().drives)
    json.set("drives_bytes", topology::capacity_of_drives(run.cluster.design()).value);
}

Json remedies(const std::vector<study::Remedy>& remedies) {
  Json list = Json::array();
  for (const study::Remedy& remedy : remedies) {
    Json json = Json::object()
                    .set("settings", remedy.settings)
                    .set("iteration_time_s", remedy.iteration_time.value)
                    .set("peak_used_bytes", remedy.used.value);
    if (remedy.tight) json.set("tight", true);
    list.push(json);
  }
  return list;
}

void add_measured(Json& json, const Result& result) {
  Json measured = Json::object();
  Json error = Json::object();
  for (const Figure& figure : result.figures) {
    if (!figure.measured) continue;
    Json value = Json::object();
    value.set("value", figure.name == "fits" ? Json(*figure.measured == 1) : Json(*figure.measured))
        .set("from_memory", !figure.gates)
        .set("provenance", figure.provenance)
        .set("source", figure.source);
    if (figure.fitted) value.set("fitted", true);
    if (figure.device) value.set("device", *figure.device);
    measured.set(figure.name, value);
    if (figure.predicted) error.set(figure.name, figure.error());
  }
  if (!result.run->compared.measured.empty()) json.set("measured", measured).set("error", error);
}

}  // namespace

Json to_json(const study::Scenario& scenario, const std::vector<Result>& results) {
  Json runs = Json::array();
  for (const Result& result : results) {
    Json json = Json::object();
    json.set("name", result.run->name).set("resolved", result.run->resolved);
    json.set("status", status_text(result.outcome.status));
    if (!result.outcome.reason.empty()) json.set("reason", result.outcome.reason);
    const std::string assumed = result.run->compared.all_assumed();
    if (!assumed.empty()) json.set("assumed", assumed);
    if (result.outcome.gpus > 0) json.set("gpus", result.outcome.gpus);
    if (result.outcome.metrics) add_metrics(json, result);
    if (result.remedies) json.set("remedies", remedies(*result.remedies));
    if (result.gains) json.set("iteration_time_with_twice_s", to_json(*result.gains));
    add_measured(json, result);
    runs.push(json);
  }
  return Json::object()
      .set("schema", "stratagem/report/1")
      .set("scenario", scenario.file)
      .set("question", scenario.question)
      .set("runs", runs);
}

Json to_json(const study::Scenario& scenario, const study::Answers& answers) {
  Json json = to_json(scenario, answers.results);
  if (!answers.workflows.empty()) json.set("workflows", to_json(answers.workflows));
  return json;
}

}  // namespace stratagem::report
