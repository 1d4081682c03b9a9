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
#include "cost/kernel.hpp"
#include "model/tensor.hpp"

namespace stratagem::cost {
namespace {

/// Those that a precision multiplies in.
std::vector<std::string> data_types() {
  std::vector<std::string> names;
  for (const auto type : {model::DataType::fp32, model::DataType::tf32, model::DataType::fp16,
                          model::DataType::bf16, model::DataType::fp8}) {
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

Constant<double> read_share(const JsonReader& json) {
  auto share = read_constant<double>(json);
  if (!(share.value > 0 && share.value <= 1)) {
    json.at("value").fail("a share of more than 0 and at most 1", json.at("value").dump());
  }
  return share;
}

template <typename T>
Constant<T> read_positive(const JsonReader& json) {
  auto constant = read_constant<T>(json);
  if (!(constant.value > T{}))
    json.at("value").fail("a value of more than 0", json.at("value").dump());
  return constant;
}

template <typename T>
Constant<T> read_not_negative(const JsonReader& json) {
  auto constant = read_constant<T>(json);
  if (constant.value < T{}) json.at("value").fail("a value of at least 0", json.at("value").dump());
  return constant;
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

/// Of which something must be left.
Constant<double> read_loss(const JsonReader& json) {
  auto loss = read_constant<double>(json);
  if (!(loss.value >= 0 && loss.value < 1))
    json.at("value").fail("a share of at least 0 and less than 1", json.at("value").dump());
  return loss;
}

std::optional<Constant<Seconds>> read_latency(const std::optional<JsonReader>& json) {
  return json ? std::optional(read_not_negative<Seconds>(*json)) : std::nullopt;
}

std::optional<Constant<double>> read_compute_slowdown(const JsonReader& collective) {
  const auto json = collective.find("compute_slowdown");
  return json ? std::optional(read_loss(*json)) : std::nullopt;
}

GemmConstants read_gemm(const JsonReader& json) {
  return {.efficiency = read_share(json.at("efficiency")),
          .half_intensity = read_not_negative<double>(json.at("half_intensity")),
          .ramp = read_not_negative<double>(json.at("ramp")),
          .streaming = read_share(json.at("streaming")),
          .fixed = read_not_negative<Seconds>(json.at("fixed"))};
}

PassShares read_passes(const JsonReader& json) {
  return {.forward = read_share(json.at("forward")), .gradient = read_share(json.at("gradient"))};
}

std::optional<NcclConstants> read_nccl(const std::optional<JsonReader>& json) {
  if (!json) return std::nullopt;
  return NcclConstants{.added = read_not_negative<Seconds>(json->at("added")),
                       .latency_factor = read_positive<double>(json->at("latency_factor")),
                       .bandwidth_factor = read_positive<double>(json->at("bandwidth_factor")),
                       .copy = read_positive<BytesPerSecond>(json->at("copy"))};
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
std::map<std::string, CollectiveTimes> read_times_by_kind(const std::optional<JsonReader>& json) {
  if (!json) return {};
  return read_table<CollectiveTimes>(
      *json,
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
  std::optional<Constant<double>> memory;
  if (const auto share = json.find("memory_efficiency")) memory = read_share(*share);
  return {.nvlink_efficiency = read_share(json.at("nvlink_efficiency")),
          .network_efficiency = read_share(json.at("network_efficiency")),
          .pcie_efficiency = read_share(json.at("pcie_efficiency")),
          .memory_efficiency = memory,
          .base = read_not_negative<Seconds>(json.at("base")),
          .node_step = read_not_negative<Seconds>(json.at("node_step")),
          .network_step = read_not_negative<Seconds>(json.at("network_step")),
          .node_link_latency = read_latency(json.find("node_link_latency")),
          .network_link_latency = read_latency(json.find("network_link_latency")),
          .nccl = read_nccl(json.find("nccl")),
          .times = read_times_by_kind(json.find("times")),
          .compute_slowdown = read_compute_slowdown(json)};
}

Json to_json(const HostCopyConstants& copy) {
  Json json = Json::object()
                  .set("latency", cost::to_json(copy.latency))
                  .set("bandwidth", cost::to_json(copy.bandwidth));
  if (copy.link_latency) json.set("link_latency", cost::to_json(*copy.link_latency));
  return json;
}

Json to_json(const GemmConstants& gemm) {
  return Json::object()
      .set("efficiency", cost::to_json(gemm.efficiency))
      .set("half_intensity", cost::to_json(gemm.half_intensity))
      .set("ramp", cost::to_json(gemm.ramp))
      .set("streaming", cost::to_json(gemm.streaming))
      .set("fixed", cost::to_json(gemm.fixed));
}

Json to_json(const PassShares& shares) {
  return Json::object()
      .set("forward", cost::to_json(shares.forward))
      .set("gradient", cost::to_json(shares.gradient));
}

Json to_json(const NcclConstants& nccl) {
  return Json::object()
      .set("added", cost::to_json(nccl.added))
      .set("latency_factor", cost::to_json(nccl.latency_factor))
      .set("bandwidth_factor", cost::to_json(nccl.bandwidth_factor))
      .set("copy", cost::to_json(nccl.copy));
}

template <typename Q>
std::string exact_text(Q quantity);

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
  if (collective.node_link_latency)
    json.set("node_link_latency", cost::to_json(*collective.node_link_latency));
  if (collective.network_link_latency)
    json.set("network_link_latency", cost::to_json(*collective.network_link_latency));
  if (collective.memory_efficiency)
    json.set("memory_efficiency", cost::to_json(*collective.memory_efficiency));
  if (collective.nccl) json.set("nccl", to_json(*collective.nccl));
  if (!collective.times.empty()) {
    Json times = Json::object();
    for (const auto& [kind, of_kind] : collective.times) times.set(kind, to_json(of_kind));
    json.set("times", times);
  }
  if (collective.compute_slowdown)
    json.set("compute_slowdown", cost::to_json(*collective.compute_slowdown));
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

template <typename Q>
constexpr auto units = std::array<std::string_view, 0>{};
template <>
constexpr auto units<Seconds> = std::array<std::string_view, 5>{"us", "ms", "s", "ns", "ps"};
template <>
constexpr auto units<Bytes> =
    std::array<std::string_view, 7>{"GB", "GiB", "MB", "MiB", "KiB", "KB", "B"};
template <>
constexpr auto units<BytesPerSecond> = std::array<std::string_view, 3>{"GB/s", "MB/s", "B/s"};
template <>
constexpr auto units<FlopsPerSecond> =
    std::array<std::string_view, 3>{"TFLOP/s", "GFLOP/s", "FLOP/s"};

/// The shortest text that reads back the same, up to the rounding of one multiplication; times in
/// the unit that people use for them.
template <typename Q>
std::string exact_text(Q quantity) {
  const auto reads_back = [quantity](const std::string& text) {
    const auto back = parse_quantity<Q>(text);
    return back && std::abs(back->value - quantity.value) <= 4e-16 * std::abs(quantity.value);
  };
  if constexpr (std::is_same_v<Q, Seconds>) {
    if (reads_back(to_text(quantity))) return to_text(quantity);
  }
  std::string best;
  for (const std::string_view unit : units<Q>) {
    const Q one = *parse_quantity<Q>("1 " + std::string(unit));
    for (const double number : {quantity / one, std::round(quantity / one * 1e6) / 1e6}) {
      const std::string text = Json(number).text() + " " + std::string(unit);
      if (reads_back(text) && (best.empty() || text.size() < best.size())) best = text;
    }
  }
  expects(!best.empty(), "every finite quantity has a text that reads back the same");
  return best;
}

}  // namespace

std::string to_text(Provenance provenance) {
  switch (provenance) {
    case Provenance::measured:
      return "measured";
    case Provenance::published:
      return "published";
    case Provenance::fitted:
      return "fitted";
    case Provenance::datasheet:
      return "datasheet";
    case Provenance::assumed:
      return "assumed";
  }
  throw BrokenPromise("a provenance is one of its enumerators");
}

Provenance read_provenance(const JsonReader& json) {
  std::vector<std::string> words;
  words.reserve(provenances.size());
  for (const Provenance provenance : provenances) words.push_back(to_text(provenance));
  const auto found = std::ranges::find(words, json.one_of(words));
  return provenances.at(static_cast<std::size_t>(found - words.begin()));
}

template <typename T>
Constant<T> read_constant(const JsonReader& json) {
  Constant<T> constant;
  if constexpr (std::is_same_v<T, double>) {
    constant.value = json.at("value").number();
  } else {
    constant.value = json.at("value").quantity<T>();
  }
  constant.provenance = read_provenance(json.at("provenance"));
  constant.source = json.at("source").text();
  if (constant.source.empty()) json.at("source").fail("where the value comes from", "\"\"");
  if (const auto error = json.find("error")) constant.error = error->number();
  return constant;
}

template <typename T>
Json to_json(const Constant<T>& constant) {
  Json json = Json::object();
  if constexpr (std::is_same_v<T, double>) {
    json.set("value", constant.value);
  } else {
    json.set("value", exact_text(constant.value));
  }
  json.set("provenance", to_text(constant.provenance)).set("source", constant.source);
  if (constant.error != 0) json.set("error", constant.error);
  return json;
}

template Constant<double> read_constant(const JsonReader&);
template Constant<Seconds> read_constant(const JsonReader&);
template Constant<Bytes> read_constant(const JsonReader&);
template Constant<BytesPerSecond> read_constant(const JsonReader&);
template Constant<FlopsPerSecond> read_constant(const JsonReader&);
template Json to_json(const Constant<double>&);
template Json to_json(const Constant<Seconds>&);
template Json to_json(const Constant<Bytes>&);
template Json to_json(const Constant<BytesPerSecond>&);
template Json to_json(const Constant<FlopsPerSecond>&);

HostCopyConstants read_host_copy(const JsonReader& json) {
  return {.latency = read_not_negative<Seconds>(json.at("latency")),
          .bandwidth = read_positive<BytesPerSecond>(json.at("bandwidth")),
          .link_latency = read_latency(json.find("link_latency"))};
}

CommunicatorConstants read_communicator(const JsonReader& json) {
  return {.fixed = read_not_negative<Bytes>(json.at("fixed")),
          .peer = read_not_negative<Bytes>(json.at("peer"))};
}

AttentionConstants read_attention(const JsonReader& json) {
  return {.forward = read_share(json.at("forward")), .backward = read_share(json.at("backward"))};
}

Profile read_profile(const std::string& file) { return read_profile(JsonReader::from_file(file)); }

Profile read_profile(const JsonReader& json) {
  Profile profile{
      .name = json.at("name").text(),
      .gpu = json.at("gpu").text(),
      .multiprocessors = read_positive<double>(json.at("multiprocessors")),
      .peak = read_table<Constant<FlopsPerSecond>>(json.at("peak"), data_types(),
                                                   &read_positive<FlopsPerSecond>),
      .memory = read_positive<Bytes>(json.at("memory")),
      .memory_bandwidth = read_positive<BytesPerSecond>(json.at("memory_bandwidth")),
      .gemm = read_table<GemmConstants>(json.at("gemm"), data_types(), &read_gemm),
      .streaming =
          read_table<Constant<double>>(json.at("streaming"), streaming_kinds(), &read_share),
      .kernel_floor = read_not_negative<Seconds>(json.at("kernel_floor")),
      .launch = read_not_negative<Seconds>(json.at("launch")),
      .collective = read_collective(json.at("collective")),
      .host_copy = read_host_copy(json.at("host_copy")),
      .context = read_not_negative<Bytes>(json.at("context")),
  };
  if (const auto passes = json.find("streaming_by_pass"))
    profile.streaming_by_pass = read_table<PassShares>(*passes, kinds_with_passes(), &read_passes);
  if (const auto attention = json.find("attention")) profile.attention = read_attention(*attention);
  if (const auto bandwidth = json.find("host_memory_bandwidth"))
    profile.host_memory_bandwidth = read_positive<BytesPerSecond>(*bandwidth);
  if (const auto communicator = json.find("communicator"))
    profile.communicator = read_communicator(*communicator);
  if (const auto evidence = json.find("evidence"))
    profile.evidence = read_evidence_by_kind(*evidence);
  if (const auto busy = json.find("busy_ranks")) profile.busy_ranks = read_busy_ranks(*busy);
  if (const auto queue = json.find("launch_queue")) profile.launch_queue = read_count(*queue);
  if (const auto pace = json.find("pace")) profile.pace = read_positive<Seconds>(*pace);
  profile.collective.host_step = profile.host_copy.latency;
  profile.collective.host_link_latency = profile.host_copy.link_latency;
  for (const std::string& kind : streaming_kinds())
    static_cast<void>(json.at("streaming").at(kind));
  for (const auto& [type, gemm] : profile.gemm) {
    if (!profile.peak.contains(type)) json.at("gemm").at(type).fail("a data type that has a peak");
  }
  json.finish();
  return profile;
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
      .set("memory", to_json(profile.memory))
      .set("memory_bandwidth", to_json(profile.memory_bandwidth))
      .set("gemm", table_to_json(profile.gemm, data_types()))
      .set("streaming", table_to_json(profile.streaming, streaming_kinds()));
  if (!profile.streaming_by_pass.empty())
    json.set("streaming_by_pass", table_to_json(profile.streaming_by_pass, streaming_kinds()));
  if (profile.attention) {
    json.set("attention", Json::object()
                              .set("forward", to_json(profile.attention->forward))
                              .set("backward", to_json(profile.attention->backward)));
  }
  json.set("kernel_floor", to_json(profile.kernel_floor)).set("launch", to_json(profile.launch));
  if (profile.launch_queue) json.set("launch_queue", to_json(*profile.launch_queue));
  json.set("collective", to_json(profile.collective)).set("host_copy", to_json(profile.host_copy));
  if (profile.host_memory_bandwidth)
    json.set("host_memory_bandwidth", to_json(*profile.host_memory_bandwidth));
  json.set("context", to_json(profile.context));
  if (profile.communicator) {
    json.set("communicator", Json::object()
                                 .set("fixed", to_json(profile.communicator->fixed))
                                 .set("peer", to_json(profile.communicator->peer)));
  }
  if (!profile.busy_ranks.empty()) {
    Json numbers = Json::array();
    for (const int number : profile.busy_ranks) numbers.push(number);
    json.set("busy_ranks", numbers);
  }
  if (profile.pace) json.set("pace", to_json(*profile.pace));
  if (!profile.evidence.empty())
    json.set("evidence", table_to_json(profile.evidence, fitted_kinds()));
  return json;
}

}  // namespace stratagem::cost
