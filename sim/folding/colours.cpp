// In each round every colour takes in the colours around it.
#include "sim/folding/colours.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "sim/folding/signature.hpp"

namespace stratagem::sim {
namespace {

std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }

/// A colour and the load by which it is a neighbour.
std::uint64_t neighbour(int colour, int amount) {
  return static_cast<std::uint64_t>(colour) << 32 | static_cast<std::uint32_t>(amount);
}

Signature signature_of(int colour) {
  Signature result;
  result.append(static_cast<std::uint64_t>(colour));
  return result;
}

class Refinement {
 public:
  Refinement(const program::Program& program, const RawFlows& raw) : program_(program), raw_(raw) {
    start();
    for (int before = 0, now = count(); now != before; now = count()) {
      before = now;
      refine();
    }
    colours_.communicators = communicators();
  }

  Colours result() { return std::move(colours_); }

 private:
  /// How many colours there are.
  [[nodiscard]] int count() const {
    int sum = 0;
    for (const auto* colours : {&colours_.devices, &colours_.flows, &colours_.links})
      sum += colours->empty() ? 0 : 1 + *std::ranges::max_element(*colours);
    return sum;
  }

  void start() {
    std::vector<Signature> devices;
    for (const program::Device& device : program_.devices)
      devices.push_back(signature_of(device.sequence));
    std::vector<Signature> flows;
    for (const RawFlow& flow : raw_.flows) {
      flows.push_back(signature_of(static_cast<int>(flow.kind)));
      flows.back().append(static_cast<std::uint64_t>(flow.group));
      flows.back().append(static_cast<std::uint64_t>(flow.latency.count));
      flows.back().append(bits(flow.weight.value));
      flows.back().append(static_cast<std::uint64_t>(flow.payloads));
    }
    std::vector<Signature> links(raw_.capacities.size());
    for (std::size_t l = 0; l < links.size(); ++l) links[l].append(bits(raw_.capacities[l].value));
    set(devices, flows, links);
  }

  void refine() {
    std::vector<Signature> links = signatures_of_links();
    std::vector<Signature> flows;
    flows.reserve(raw_.flows.size());
    for (std::size_t f = 0; f < raw_.flows.size(); ++f) flows.push_back(signature_of_flow(f));
    std::vector<Signature> devices;
    devices.reserve(program_.devices.size());
    for (std::size_t d = 0; d < program_.devices.size(); ++d)
      devices.push_back(signature_of_device(static_cast<int>(d)));
    set(devices, flows, links);
  }

  void set(const std::vector<Signature>& devices, const std::vector<Signature>& flows,
           const std::vector<Signature>& links) {
    colours_.devices = number(devices);
    colours_.flows = number(flows);
    colours_.links = number(links);
  }

  [[nodiscard]] std::vector<Signature> signatures_of_links() const {
    std::vector<Signature> users(raw_.capacities.size());
    for (std::size_t f = 0; f < raw_.flows.size(); ++f) {
      for (const auto& [link, amount] : raw_.loads_of(raw_.flows[f]))
        users[link].include(neighbour(colours_.flows[f], amount));
    }
    std::vector<Signature> links;
    links.reserve(users.size());
    for (std::size_t l = 0; l < users.size(); ++l) {
      links.push_back(signature_of(colours_.links[l]));
      links.back().append(users[l]);
    }
    return links;
  }

  [[nodiscard]] Signature signature_of_flow(std::size_t f) const {
    const RawFlow& flow = raw_.flows[f];
    Signature loads;
    for (const auto& [link, amount] : raw_.loads_of(flow))
      loads.include(neighbour(colours_.links[link], amount));
    Signature result = signature_of(colours_.flows[f]);
    result.append(signature_of_members(flow));
    result.append(loads);
    return result;
  }

  /// Source and destination of a send differ; members of other collectives do not.
  [[nodiscard]] Signature signature_of_members(const RawFlow& flow) const {
    Signature members;
    for (const int rank : program_.communicators[flow.communicator].ranks) {
      const auto colour = static_cast<std::uint64_t>(colours_.devices[rank]);
      if (flow.kind == cost::CollectiveKind::send) {
        members.append(colour);
      } else {
        members.include(colour);
      }
    }
    return members;
  }

  [[nodiscard]] Signature signature_of_device(int d) const {
    Signature result = signature_of(colours_.devices[d]);
    for (const int communicator : program_.devices[d].groups) {
      if (communicator < 0) continue;
      const std::vector<int>& ranks = program_.communicators[communicator].ranks;
      for (int f = raw_.first_flow[communicator]; f < raw_.first_flow[communicator + 1]; ++f) {
        result.append(static_cast<std::uint64_t>(colours_.flows[f]));
        if (raw_.flows[f].kind == cost::CollectiveKind::send)
          result.append(ranks.front() == d ? 1 : 0);
      }
    }
    return result;
  }

  [[nodiscard]] std::vector<int> communicators() const {
    std::vector<Signature> signatures(program_.communicators.size());
    for (std::size_t f = 0; f < raw_.flows.size(); ++f) {
      signatures[raw_.flows[f].communicator].append(static_cast<std::uint64_t>(colours_.flows[f]));
    }
    return number(signatures);
  }

  const program::Program& program_;
  const RawFlows& raw_;
  Colours colours_;
};

}  // namespace

Colours colours_of(const program::Program& program, const RawFlows& raw) {
  return Refinement(program, raw).result();
}

}  // namespace stratagem::sim
