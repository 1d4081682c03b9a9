// Reads a datasheet file; its constants have the form that profiles have.
#include "calibrate/datasheet.hpp"

#include <filesystem>
#include <utility>

#include "base/json_reader.hpp"
#include "base/quantity_text.hpp"

namespace stratagem::calibrate {
namespace {

/// Between a hundredth and a hundred times.
double read_times(const JsonReader& json) {
  const double times = json.number();
  if (times < 0.01 || times > 100) json.fail("0.01 to 100", json.dump());
  return times;
}

std::map<std::string, Likeness> read_likenesses(const JsonReader& json) {
  std::map<std::string, Likeness> likenesses;
  for (const std::string& key : json.keys()) {
    const JsonReader likeness = json.at(key);
    likenesses[key] = {
        .as = likeness.at("as").text(),
        .provenance = likeness.has("provenance") ? cost::read_provenance(likeness.at("provenance"))
                                                 : cost::Provenance::assumed,
        .because = likeness.at("because").text(),
        .times_as_long =
            likeness.has("times_as_long") ? read_times(likeness.at("times_as_long")) : 1};
  }
  return likenesses;
}

LinkFacts read_links(const JsonReader& json) {
  using cost::read_constant;
  const auto latency = [&](const char* key) {
    return read_if_there(json, key, &read_constant<Seconds>);
  };
  const auto share = [&](const char* key) {
    return read_if_there(json, key, &read_constant<double>);
  };
  return {.network_efficiency = read_constant<double>(json.at("network_efficiency")),
          .pcie_efficiency = read_constant<double>(json.at("pcie_efficiency")),
          .network_step = read_constant<Seconds>(json.at("network_step")),
          .node_link_latency = latency("node_link_latency"),
          .network_link_latency = latency("network_link_latency"),
          .nvlink_efficiency = share("nvlink_efficiency"),
          .compute_slowdown = share("compute_slowdown")};
}

std::map<std::string, cost::Constant<FlopsPerSecond>> read_peaks(const JsonReader& json) {
  std::map<std::string, cost::Constant<FlopsPerSecond>> peaks;
  for (const std::string& type : json.keys())
    peaks[type] = cost::read_constant<FlopsPerSecond>(json.at(type));
  return peaks;
}

/// Paths from the datasheet's folder.
std::vector<std::string> read_measurements_named(const JsonReader& json) {
  const std::filesystem::path folder = std::filesystem::path(json.file()).parent_path();
  std::vector<std::string> files;
  for (const JsonReader& file : json.elements())
    files.push_back((folder / file.text()).lexically_normal().string());
  return files;
}

}  // namespace

Datasheet read_datasheet(const std::string& file) {
  const JsonReader json = JsonReader::from_file(file);
  Datasheet datasheet{
      .file = file,
      .name = json.at("name").text(),
      .gpu = json.at("gpu").text(),
      .architecture = json.at("architecture").text(),
      .measurements = read_measurements_named(json.at("measurements")),
      .multiprocessors = cost::read_constant<double>(json.at("multiprocessors")),
      .peak = read_peaks(json.at("peak")),
      .memory = cost::read_device_memory(json),
      .like = {.gemm = read_or_empty(json, "gemm", &read_likenesses),
               .streaming = read_likenesses(json.at("streaming"))},
      .attention = read_or_empty(json, "attention", &cost::read_attentions),
      .links = read_links(json.at("collective")),
      .host = {.copy = cost::read_host_copy(json.at("host_copy")),
               .memory_bandwidth = read_if_there(json, "host_memory_bandwidth",
                                                 &cost::read_constant<BytesPerSecond>)},
      .launches = {.queue = read_if_there(json, "launch_queue", &cost::read_count),
                   .time = read_if_there(json, "launch", &cost::read_positive<Seconds>)},
      .speed_spread = read_if_there(json, "speed_spread", &cost::read_loss)};
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
      .set("memory_bandwidth", to_text(sheet.memory.bandwidth.value));
}

}  // namespace stratagem::calibrate
