// Parts summed on links, pair by pair.
#include "cost/all_to_all.hpp"

#include <algorithm>
#include <cmath>

#include "base/input_error.hpp"
#include "cost/link_loads.hpp"

namespace stratagem::cost {
namespace {

void check(const Parts& parts, std::size_t ranks) {
  const std::string expected = std::to_string(ranks) + " rows of " + std::to_string(ranks) +
                               " parts of 0 bytes or more, for as many ranks";
  if (parts.size() != ranks)
    throw InputError("", "/parts", expected, std::to_string(parts.size()) + " rows");
  for (std::size_t i = 0; i < ranks; ++i) {
    const auto valid = [](Bytes part) { return std::isfinite(part.value) && part.value >= 0; };
    if (parts[i].size() != ranks || !std::ranges::all_of(parts[i], valid))
      throw InputError("", "/parts/" + std::to_string(i), expected, "another row");
  }
}

}  // namespace

UnequalLoads all_to_all_loads(const topology::Cluster& cluster, const std::vector<int>& ranks,
                              const Parts& parts) {
  check(parts, ranks.size());
  UnequalLoads result;
  for (const std::vector<Bytes>& row : parts) {
    Bytes sum;
    for (const Bytes part : row) sum += part;
    result.payload = std::max(result.payload, sum);
  }
  LinkLoads loads;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (std::size_t j = 0; j < ranks.size(); ++j) {
      if (i == j || parts[i][j] == Bytes{}) continue;
      loads.add(cluster.route(ranks[i], ranks[j]), parts[i][j] / result.payload);
    }
  }
  result.loads = loads.list();
  return result;
}

}  // namespace stratagem::cost
