// Reads measured collectives.
#include "topology/measured_collectives.hpp"

#include <string>

#include "base/input_error.hpp"
#include "base/quantity_text.hpp"

namespace stratagem::topology {
namespace {

MeasuredCollective read_one(const JsonReader& item, BytesPerSecond ports) {
  constexpr int most = 100'000;
  const MeasuredCollective one{.servers = static_cast<int>(item.at("servers").between(2, most)),
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

std::vector<MeasuredCollective> read_list(const JsonReader& reader, BytesPerSecond ports) {
  std::vector<MeasuredCollective> measured;
  for (const JsonReader& item : reader.elements()) {
    const MeasuredCollective one = read_one(item, ports);
    if (!measured.empty() && one.servers <= measured.back().servers)
      item.at("servers").fail("more servers than in the measurement before it");
    measured.push_back(one);
  }
  return measured;
}

}  // namespace

MeasuredCollectives read_measured(const JsonReader& file, BytesPerSecond ports) {
  MeasuredCollectives measured;
  for (const MeasuredKind& kind : measured_kinds) {
    const auto list = file.find(std::string(kind.key));
    if (!list) continue;
    if (ports <= BytesPerSecond{}) list->fail("adapters among the vertices, which it measures");
    measured.*kind.list = read_list(*list, ports);
    if (measured.all_reduces.empty()) list->fail("all_reduces, too");
  }
  return measured;
}

}  // namespace stratagem::topology
