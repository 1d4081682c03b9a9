// Reads a datasheet file; its constants have the form that profiles have.
#include "calibrate/datasheet.hpp"

#include <filesystem>
#include <utility>

#include "base/json_reader.hpp"
#include "base/quantity_text.hpp"

namespace stratagem::calibrate {
namespace {

std::map<std::string, Likeness> read_likenesses(const JsonReader& json) {
  std::map<std::string, Likeness> likenesses;
  for (const std::string& key : json.keys()) {
    const JsonReader likeness = json.at(key);
    likenesses[key] = {.as = likeness.at("as").text(),
                       .provenance = likeness.has("provenance")
                                         ? cost::read_provenance(likeness.at("provenance"))
                                         : cost::Provenance::assumed,
                       .because = likeness.at("because").text()};
  }
  return likenesses;
}

}  // namespace

Datasheet read_datasheet(const std::string& file) {
  const JsonReader json = JsonReader::from_file(file);
  const JsonReader collective = json.at("collective");
  Datasheet datasheet{
      .file = file,
      .name = json.at("name").text(),
      .gpu = json.at("gpu").text(),
      .architecture = json.at("architecture").text(),
      .measurements = {},
      .multiprocessors = cost::read_constant<double>(json.at("multiprocessors")),
      .peak = {},
      .memory = cost::read_constant<Bytes>(json.at("memory")),
      .memory_bandwidth = cost::read_constant<BytesPerSecond>(json.at("memory_bandwidth")),
      .gemm =
          json.has("gemm") ? read_likenesses(json.at("gemm")) : std::map<std::string, Likeness>{},
      .streaming = read_likenesses(json.at("streaming")),
      .attention = {},
      .network_efficiency = cost::read_constant<double>(collective.at("network_efficiency")),
      .pcie_efficiency = cost::read_constant<double>(collective.at("pcie_efficiency")),
      .network_step = cost::read_constant<Seconds>(collective.at("network_step")),
      .node_link_latency = {},
      .network_link_latency = {},
      .nvlink_efficiency = {},
      .compute_slowdown = {},
      .host_copy = cost::read_host_copy(json.at("host_copy")),
      .host_memory_bandwidth = {},
      .context = cost::read_constant<Bytes>(json.at("context")),
      .communicator = {},
      .kernel_floor = {},
      .launch = {},
      .collective = {},
  };
  if (const auto latency = collective.find("node_link_latency"))
    datasheet.node_link_latency = cost::read_constant<Seconds>(*latency);
  if (const auto latency = collective.find("network_link_latency"))
    datasheet.network_link_latency = cost::read_constant<Seconds>(*latency);
  if (const auto share = collective.find("nvlink_efficiency"))
    datasheet.nvlink_efficiency = cost::read_constant<double>(*share);
  if (const auto slowdown = collective.find("compute_slowdown"))
    datasheet.compute_slowdown = cost::read_constant<double>(*slowdown);
  if (const auto attention = json.find("attention"))
    datasheet.attention = cost::read_attention(*attention);
  if (const auto bandwidth = json.find("host_memory_bandwidth"))
    datasheet.host_memory_bandwidth = cost::read_constant<BytesPerSecond>(*bandwidth);
  if (const auto queue = json.find("launch_queue"))
    datasheet.launch_queue = cost::read_count(*queue);
  if (const auto communicator = json.find("communicator"))
    datasheet.communicator = cost::read_communicator(*communicator);
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  for (const JsonReader& measurements : json.at("measurements").elements()) {
    datasheet.measurements.push_back((folder / measurements.text()).lexically_normal().string());
  }
  for (const std::string& type : json.at("peak").keys()) {
    datasheet.peak[type] = cost::read_constant<FlopsPerSecond>(json.at("peak").at(type));
  }
  json.finish();
  return datasheet;
}

Json measured_device(const Datasheet& sheet, const std::string& gpu) {
  Json peak = Json::object();
  for (const auto& [type, rate] : sheet.peak) peak.set(type, to_text(rate.value));
  return Json::object()
      .set("gpu", gpu)
      .set("architecture", sheet.architecture)
      .set("multiprocessors", static_cast<int>(sheet.multiprocessors.value))
      .set("peak", std::move(peak))
      .set("memory_bandwidth", to_text(sheet.memory_bandwidth.value));
}

}  // namespace stratagem::calibrate
