// Profile files: reading with checks of every constant, and writing in the same format.
#include "cost/profile.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <type_traits>

#include "base/input_error.hpp"
#include "base/quantity_text.hpp"
#include "cost/kernel_kind.hpp"
#include "model/tensor.hpp"

namespace stratagem::cost {
namespace {

/// Those that a precision multiplies in.
std::vector<std::string> data_types() {
  std::vector<std::string> names;
  for (const auto type : {model::DataType::fp32, model::DataType::tf32, model::DataType::fp16,
                          model::DataType::bf16, model::DataType::fp8, model::DataType::fp8_blocks,
                          model::DataType::mxfp8, model::DataType::nvfp4}) {
    names.push_back(model::to_text(type));
  }
  return names;
}

/// Kinds whose kernels say which pass they are of; optimizer steps are of none.
std::vector<std::string> kinds_with_passes() {
  std::vector<std::string> names = streaming_kinds();
  std::erase(names, "optimizer");
  return names;
}

/// What evidence can be of.
std::vector<std::string> fitted_kinds() {
  std::vector<std::string> names;
  for (const std::string& type : data_types()) names.push_back("gemm " + type);
  for (const std::string& kind : streaming_kinds()) names.push_back(kind);
  for (const char* kind : {"attention", "attention_backward", "all_reduce", "nccl all_reduce"})
    names.emplace_back(kind);
  return names;
}

/// Reads an object whose keys are among `names`.
template <typename T, typename Read>
std::map<std::string, T> read_table(const JsonReader& json, const std::vector<std::string>& names,
                                    Read read) {
  std::map<std::string, T> table;
  for (const std::string& key : json.keys()) {
    check_word(json.at(key), key, names, "one of the known keys");
    table.emplace(key, read(json.at(key)));
  }
  return table;
}

std::map<std::string, Evidence> read_evidence_by_kind(const JsonReader& json) {
  std::map<std::string, Evidence> evidence;
  for (const std::string& what : json.keys()) {
    check_word(json.at(what), what, fitted_kinds(), "one of the known keys");
    const Fitted fitted = what.starts_with("gemm ")      ? Fitted::products
                          : what.ends_with("all_reduce") ? Fitted::collectives
                                                         : Fitted::kernels;
    evidence.emplace(what, read_evidence(json.at(what), fitted));
  }
  return evidence;
}

std::map<int, Constant<double>> read_unaligned(const JsonReader& json) {
  std::map<int, Constant<double>> shares;
  for (const auto& [bytes, share] :
       read_table<Constant<double>>(json, {"2", "4", "8"}, &read_share))
    shares.emplace(std::stoi(bytes), share);
  return shares;
}

GemmConstants read_gemm(const JsonReader& json) {
  return {.efficiency = read_share(json.at("efficiency")),
          .half_intensity = read_not_negative<double>(json.at("half_intensity")),
          .ramp = read_not_negative<double>(json.at("ramp")),
          .streaming = read_share(json.at("streaming")),
          .fixed = read_not_negative<Seconds>(json.at("fixed")),
          .unaligned = read_or_empty(json, "unaligned", &read_unaligned)};
}

PassShares read_passes(const JsonReader& json) {
  return {.forward = read_share(json.at("forward")), .gradient = read_share(json.at("gradient"))};
}

NcclConstants read_nccl(const JsonReader& json) {
  return {.added = read_not_negative<Seconds>(json.at("added")),
          .latency_factor = read_positive<double>(json.at("latency_factor")),
          .bandwidth_factor = read_positive<double>(json.at("bandwidth_factor")),
          .copy = read_positive<BytesPerSecond>(json.at("copy"))};
}

/// Pairs [payload, time], by number of ranks.
CollectiveTimes read_times(const JsonReader& json) {
  CollectiveTimes times{.by_ranks = {},
                        .provenance = read_provenance(json.at("provenance")),
                        .source = json.at("source").text()};
  if (const auto error = json.find("error")) times.error = error->number();
  for (const std::string& ranks : json.at("ranks").keys()) {
    const JsonReader pairs = json.at("ranks").at(ranks);
    const int number = std::atoi(ranks.c_str());
    if (number < 2) pairs.fail("a number of at least 2 ranks as key", "\"" + ranks + "\"");
    std::vector<TimedPayload>& points = times.by_ranks[number];
    for (const JsonReader& pair : pairs.elements()) {
      const auto cells = pair.elements();
      if (cells.size() != 2) pair.fail("a payload and a time", pair.dump());
      const TimedPayload point{.payload = cells[0].quantity<Bytes>(),
                               .time = cells[1].quantity<Seconds>()};
      if (!(point.payload > (points.empty() ? Bytes{} : points.back().payload)))
        cells[0].fail("payloads in ascending order", cells[0].dump());
      if (!(point.time > Seconds{})) cells[1].fail("a time of more than 0", cells[1].dump());
      points.push_back(point);
    }
    if (points.empty()) pairs.fail("at least one payload and time", "[]");
  }
  return times;
}

/// By kind of collective; those that concern the host are none of ranks.
std::map<std::string, CollectiveTimes> read_times_by_kind(const JsonReader& json) {
  return read_table<CollectiveTimes>(
      json,
      {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "send"},
      &read_times);
}

std::vector<int> read_busy_ranks(const JsonReader& json) {
  std::vector<int> numbers;
  for (const JsonReader& number : json.elements()) {
    numbers.push_back(static_cast<int>(number.at_least(1)));
    if (numbers.size() > 1 && numbers.back() <= numbers[numbers.size() - 2])
      number.fail("numbers of ranks in ascending order", number.dump());
  }
  if (numbers.empty()) json.fail("at least one number of ranks", json.dump());
  return numbers;
}

CollectiveConstants read_collective(const JsonReader& json) {
  const auto latency = [&](const char* key) {
    return read_if_there(json, key, &read_not_negative<Seconds>);
  };
  return {.nvlink_efficiency = read_share(json.at("nvlink_efficiency")),
          .network_efficiency = read_share(json.at("network_efficiency")),
          .pcie_efficiency = read_share(json.at("pcie_efficiency")),
          .memory_efficiency = read_if_there(json, "memory_efficiency", &read_share),
          .base = read_not_negative<Seconds>(json.at("base")),
          .node_step = read_not_negative<Seconds>(json.at("node_step")),
          .network_step = read_not_negative<Seconds>(json.at("network_step")),
          .node_link_latency = latency("node_link_latency"),
          .network_link_latency = latency("network_link_latency"),
          .nccl = read_if_there(json, "nccl", &read_nccl),
          .times = read_or_empty(json, "times", &read_times_by_kind),
          .compute_slowdown = read_if_there(json, "compute_slowdown", &read_loss)};
}

/// Every kind of streaming kernel has a share, and every type that is multiplied in a peak.
KernelConstants read_kernels(const JsonReader& json) {
  const JsonReader gemm = json.at("gemm"), streaming = json.at("streaming");
  const auto passes = [](const JsonReader& kinds) {
    return read_table<PassShares>(kinds, kinds_with_passes(), &read_passes);
  };
  KernelConstants kernels{
      .gemm = read_table<GemmConstants>(gemm, data_types(), &read_gemm),
      .streaming = read_table<Constant<double>>(streaming, streaming_kinds(), &read_share),
      .by_pass = read_or_empty(json, "streaming_by_pass", passes),
      .attention = read_or_empty(json, "attention", &read_attentions),
      .floor = read_not_negative<Seconds>(json.at("kernel_floor"))};
  for (const std::string& kind : streaming_kinds()) static_cast<void>(streaming.at(kind));
  for (const auto& [type, constants] : kernels.gemm) {
    if (!json.at("peak").has(type)) gemm.at(type).fail("a data type that has a peak");
    if (!constants.unaligned.empty() && type != "fp16" && type != "bf16")
      gemm.at(type).at("unaligned").fail("no such key but of types of 16 bits");
  }
  return kernels;
}

Json to_json(const GemmConstants& gemm) {
  Json json = Json::object()
                  .set("efficiency", cost::to_json(gemm.efficiency))
                  .set("half_intensity", cost::to_json(gemm.half_intensity))
                  .set("ramp", cost::to_json(gemm.ramp))
                  .set("streaming", cost::to_json(gemm.streaming))
                  .set("fixed", cost::to_json(gemm.fixed));
  Json unaligned = Json::object();
  for (const auto& [bytes, share] : gemm.unaligned)
    unaligned.set(std::to_string(bytes), cost::to_json(share));
  if (!gemm.unaligned.empty()) json.set("unaligned", unaligned);
  return json;
}

Json to_json(const PassShares& shares) {
  return Json::object()
      .set("forward", cost::to_json(shares.forward))
      .set("gradient", cost::to_json(shares.gradient));
}

Json to_json(const CommunicatorConstants& communicator) {
  return Json::object()
      .set("fixed", cost::to_json(communicator.fixed))
      .set("peer", cost::to_json(communicator.peer));
}

Json to_json(const NcclConstants& nccl) {
  return Json::object()
      .set("added", cost::to_json(nccl.added))
      .set("latency_factor", cost::to_json(nccl.latency_factor))
      .set("bandwidth_factor", cost::to_json(nccl.bandwidth_factor))
      .set("copy", cost::to_json(nccl.copy));
}

template <typename T>
void set_if_there(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json.set(key, to_json(*value));
}

Json to_json(const HostCopyConstants& copy) {
  Json json = Json::object()
                  .set("latency", cost::to_json(copy.latency))
                  .set("bandwidth", cost::to_json(copy.bandwidth));
  set_if_there(json, "link_latency", copy.link_latency);
  return json;
}

Json to_json(const CollectiveTimes& times) {
  Json by_ranks = Json::object();
  for (const auto& [ranks, points] : times.by_ranks) {
    Json pairs = Json::array();
    for (const TimedPayload& point : points)
      pairs.push(Json::array().push(exact_text(point.payload)).push(exact_text(point.time)));
    by_ranks.set(std::to_string(ranks), pairs);
  }
  Json json = Json::object();
  json.set("provenance", to_text(times.provenance)).set("source", times.source);
  if (times.error != 0) json.set("error", times.error);
  return json.set("ranks", by_ranks);
}

Json to_json(const CollectiveConstants& collective) {
  Json json = Json::object();
  json.set("nvlink_efficiency", cost::to_json(collective.nvlink_efficiency))
      .set("network_efficiency", cost::to_json(collective.network_efficiency))
      .set("pcie_efficiency", cost::to_json(collective.pcie_efficiency))
      .set("base", cost::to_json(collective.base))
      .set("node_step", cost::to_json(collective.node_step))
      .set("network_step", cost::to_json(collective.network_step));
  set_if_there(json, "node_link_latency", collective.node_link_latency);
  set_if_there(json, "network_link_latency", collective.network_link_latency);
  set_if_there(json, "memory_efficiency", collective.memory_efficiency);
  set_if_there(json, "nccl", collective.nccl);
  if (!collective.times.empty()) {
    Json times = Json::object();
    for (const auto& [kind, of_kind] : collective.times) times.set(kind, to_json(of_kind));
    json.set("times", times);
  }
  set_if_there(json, "compute_slowdown", collective.compute_slowdown);
  return json;
}

/// Members in the order of `names`.
template <typename T>
Json table_to_json(const std::map<std::string, T>& table, const std::vector<std::string>& names) {
  Json json = Json::object();
  for (const std::string& name : names) {
    if (const auto found = table.find(name); found != table.end())
      json.set(name, to_json(found->second));
  }
  return json;
}

}  // namespace

HostCopyConstants read_host_copy(const JsonReader& json) {
  return {.latency = read_not_negative<Seconds>(json.at("latency")),
          .bandwidth = read_positive<BytesPerSecond>(json.at("bandwidth")),
          .link_latency = read_if_there(json, "link_latency", &read_not_negative<Seconds>)};
}

MemoryConstants read_device_memory(const JsonReader& profile) {
  const auto communicator = [](const JsonReader& json) {
    return CommunicatorConstants{.fixed = read_not_negative<Bytes>(json.at("fixed")),
                                 .peer = read_not_negative<Bytes>(json.at("peer"))};
  };
  return {.size = read_positive<Bytes>(profile.at("memory")),
          .bandwidth = read_positive<BytesPerSecond>(profile.at("memory_bandwidth")),
          .context = read_not_negative<Bytes>(profile.at("context")),
          .communicator = read_if_there(profile, "communicator", communicator)};
}

Profile read_profile(const std::string& file) { return read_profile(JsonReader::from_file(file)); }

Profile read_profile(const JsonReader& json) {
  Profile profile{
      .name = json.at("name").text(),
      .gpu = json.at("gpu").text(),
      .multiprocessors = read_positive<double>(json.at("multiprocessors")),
      .peak = read_table<Constant<FlopsPerSecond>>(json.at("peak"), data_types(),
                                                   &read_positive<FlopsPerSecond>),
      .memory = read_device_memory(json),
      .kernels = read_kernels(json),
      .launch = read_not_negative<Seconds>(json.at("launch")),
      .launch_queue = read_if_there(json, "launch_queue", &read_count),
      .speed_spread = read_if_there(json, "speed_spread", &read_loss),
      .collective = read_collective(json.at("collective")),
      .host_copy = read_host_copy(json.at("host_copy")),
      .host_memory_bandwidth =
          read_if_there(json, "host_memory_bandwidth", &read_positive<BytesPerSecond>),
      .evidence = read_or_empty(json, "evidence", &read_evidence_by_kind),
      .busy_ranks = read_or_empty(json, "busy_ranks", &read_busy_ranks),
      .pace = read_if_there(json, "pace", &read_positive<Seconds>),
  };
  profile.collective.host_step = profile.host_copy.latency;
  profile.collective.host_link_latency = profile.host_copy.link_latency;
  json.finish();
  return profile;
}

Constant<double> read_loss(const JsonReader& json) {
  auto loss = read_constant<double>(json);
  if (!(loss.value >= 0 && loss.value < 1))
    json.at("value").fail("a share of at least 0 and less than 1", json.at("value").dump());
  return loss;
}

Constant<double> read_count(const JsonReader& json) {
  auto count = read_constant<double>(json);
  if (!(count.value >= 1 && count.value <= 1e9 && count.value == std::floor(count.value)))
    json.at("value").fail("a whole number of at least 1", json.at("value").dump());
  return count;
}

int launch_queue_of(const Profile& profile) {
  constexpr int about = 1000;
  return profile.launch_queue ? static_cast<int>(profile.launch_queue->value) : about;
}

Json to_json(const Profile& profile) {
  Json json = Json::object();
  json.set("name", profile.name)
      .set("gpu", profile.gpu)
      .set("multiprocessors", to_json(profile.multiprocessors))
      .set("peak", table_to_json(profile.peak, data_types()))
      .set("memory", to_json(profile.memory.size))
      .set("memory_bandwidth", to_json(profile.memory.bandwidth))
      .set("gemm", table_to_json(profile.kernels.gemm, data_types()))
      .set("streaming", table_to_json(profile.kernels.streaming, streaming_kinds()));
  if (!profile.kernels.by_pass.empty())
    json.set("streaming_by_pass", table_to_json(profile.kernels.by_pass, streaming_kinds()));
  if (!profile.kernels.attention.empty()) json.set("attention", to_json(profile.kernels.attention));
  json.set("kernel_floor", to_json(profile.kernels.floor)).set("launch", to_json(profile.launch));
  set_if_there(json, "launch_queue", profile.launch_queue);
  set_if_there(json, "speed_spread", profile.speed_spread);
  json.set("collective", to_json(profile.collective)).set("host_copy", to_json(profile.host_copy));
  set_if_there(json, "host_memory_bandwidth", profile.host_memory_bandwidth);
  json.set("context", to_json(profile.memory.context));
  set_if_there(json, "communicator", profile.memory.communicator);
  if (!profile.busy_ranks.empty()) {
    Json numbers = Json::array();
    for (const int number : profile.busy_ranks) numbers.push(number);
    json.set("busy_ranks", numbers);
  }
  set_if_there(json, "pace", profile.pace);
  if (!profile.evidence.empty())
    json.set("evidence", table_to_json(profile.evidence, fitted_kinds()));
  return json;
}

}  // namespace stratagem::cost
