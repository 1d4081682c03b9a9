// Reads measured all-reduces, and says what they mean for numbers of servers between them.
#include "topology/reductions.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/input_error.hpp"
#include "base/quantity_text.hpp"

namespace stratagem::topology {
namespace {

MeasuredReduction read_one(const JsonReader& item, BytesPerSecond ports) {
  constexpr int most = 100'000;
  const MeasuredReduction one{.servers = static_cast<int>(item.at("servers").between(2, most)),
                              .payload = item.at("payload").quantity<Bytes>(),
                              .bus_bandwidth = item.at("bus_bandwidth").quantity<BytesPerSecond>(),
                              .source = item.at("source").text()};
  if (one.payload <= Bytes{}) item.at("payload").fail("a size above 0");
  if (one.bus_bandwidth <= BytesPerSecond{} || one.bus_bandwidth > 2 * ports) {
    item.at("bus_bandwidth")
        .fail("a bandwidth above 0, of at most twice the " + to_text(ports) +
              " of a server's adapters");
  }
  if (one.source.empty()) item.at("source").fail("who measured it");
  return one;
}

}  // namespace

std::vector<MeasuredReduction> read_reductions(const JsonReader& reader, BytesPerSecond ports) {
  std::vector<MeasuredReduction> measured;
  for (const JsonReader& item : reader.elements()) {
    const MeasuredReduction one = read_one(item, ports);
    if (!measured.empty() && one.servers <= measured.back().servers)
      item.at("servers").fail("more servers than in the measurement before it");
    measured.push_back(one);
  }
  return measured;
}

MeasuredReduction reduction_over(const std::vector<MeasuredReduction>& measured, int servers) {
  expects(!measured.empty(), "a measurement to go by");
  const auto above = std::ranges::lower_bound(measured, servers, {}, &MeasuredReduction::servers);
  MeasuredReduction result = above == measured.begin() ? *above : *std::prev(above);
  if (above != measured.begin() && above != measured.end()) {
    const double way = std::log2(static_cast<double>(servers) / result.servers) /
                       std::log2(static_cast<double>(above->servers) / result.servers);
    result.bus_bandwidth =
        result.bus_bandwidth + (above->bus_bandwidth - result.bus_bandwidth) * way;
    if (above->servers == servers) result = *above;
  }
  result.servers = servers;
  return result;
}

}  // namespace stratagem::topology
