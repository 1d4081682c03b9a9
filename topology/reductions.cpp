// Reads measured all-reduces.
#include "topology/reductions.hpp"

namespace stratagem::topology {

std::vector<MeasuredReduction> read_reductions(const JsonReader& reader) {
  constexpr int most = 100'000;
  std::vector<MeasuredReduction> measured;
  for (const JsonReader& item : reader.elements()) {
    const JsonReader servers = item.at("servers");
    const MeasuredReduction one{
        .servers = static_cast<int>(servers.between(2, most)),
        .payload = item.at("payload").quantity<Bytes>(),
        .bus_bandwidth = item.at("bus_bandwidth").quantity<BytesPerSecond>(),
        .source = item.at("source").text()};
    if (one.payload <= Bytes{}) item.at("payload").fail("a size above 0");
    if (one.bus_bandwidth <= BytesPerSecond{}) item.at("bus_bandwidth").fail("a bandwidth above 0");
    if (!measured.empty() && one.servers <= measured.back().servers)
      servers.fail("more servers than in the measurement before it");
    measured.push_back(one);
  }
  return measured;
}

}  // namespace stratagem::topology
