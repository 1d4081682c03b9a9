// Shares of the peak by implementation, size of a head and number of keys.
#include "cost/attention.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "base/input_error.hpp"

namespace stratagem::cost {
namespace {

AttentionPass read_pass(const JsonReader& json) {
  return {.efficiency = read_share(json.at("efficiency")),
          .ramp = read_not_negative<double>(json.at("ramp")),
          .tile = read_not_negative<double>(json.at("tile"))};
}

Json to_json(const AttentionPass& pass) {
  return Json::object()
      .set("efficiency", cost::to_json(pass.efficiency))
      .set("ramp", cost::to_json(pass.ramp))
      .set("tile", cost::to_json(pass.tile));
}

std::map<int, AttentionPasses> read_sizes(const JsonReader& json) {
  std::map<int, AttentionPasses> sizes;
  for (const std::string& size : json.keys()) {
    const int number = std::atoi(size.c_str());
    if (number < 1 || std::to_string(number) != size)
      json.at(size).fail("the size of a head as key", "\"" + size + "\"");
    sizes[number] = {.forward = read_pass(json.at(size).at("forward")),
                     .backward = read_pass(json.at(size).at("backward"))};
  }
  if (sizes.empty()) json.fail("at least one size of heads", "{}");
  return sizes;
}

}  // namespace

double AttentionShape::seen() const {
  if (packed > 0) return packed;
  if (!causal) return keys;
  return window > 0 && window < keys ? window * (1 - (window - 1) / (2 * keys))
                                     : before + (keys - before) / 2;
}

double attention_share(const AttentionPass& pass, const AttentionShape& shape,
                       double multiprocessors) {
  constexpr double largest_block = 128;
  const double block = std::min(shape.queries, largest_block);
  const double blocks = shape.heads * shape.queries / block / multiprocessors;
  const double mean = shape.divides_keys ? std::max(1.0, blocks) : blocks;
  const double most = shape.window > 0 ? std::min(shape.window, shape.keys) : shape.keys;
  const double last = most / shape.seen();
  const double edges = shape.causal ? 1 + (1 - most / shape.keys) : 0;
  const double extra = pass.ramp.value + edges * pass.tile.value;
  return pass.efficiency.value / ((1 + extra / shape.seen()) * (1 + last / mean));
}

double attention_share(const std::map<int, AttentionPasses>& sizes, bool forward, double size,
                       const AttentionShape& shape, double multiprocessors) {
  const auto share = [&](const auto& at) {
    const AttentionPass& pass = forward ? at->second.forward : at->second.backward;
    return attention_share(pass, shape, multiprocessors);
  };
  const auto above = std::ranges::find_if(sizes, [&](const auto& at) { return at.first >= size; });
  if (above == sizes.begin()) return share(above);
  const auto below = std::prev(above);
  if (above == sizes.end()) return share(below);
  const double way = (size - below->first) / (above->first - below->first);
  return (1 - way) * share(below) + way * share(above);
}

Attentions::const_iterator chosen_attention(const Attentions& of_gpu,
                                            const std::vector<std::string>& preferred) {
  for (const std::string& name : preferred) {
    if (const auto found = of_gpu.find(name); found != of_gpu.end()) return found;
  }
  return of_gpu.size() == 1 ? of_gpu.begin() : of_gpu.end();
}

Attentions read_attentions(const JsonReader& json) {
  const std::vector<std::string> names(attention_implementations.begin(),
                                       attention_implementations.end());
  Attentions attentions;
  for (const std::string& name : json.keys()) {
    check_word(json.at(name), name, names, "one of the known implementations");
    attentions[name] = read_sizes(json.at(name));
  }
  return attentions;
}

Json to_json(const Attentions& attentions) {
  Json json = Json::object();
  for (const auto& [name, sizes] : attentions) {
    Json by_size = Json::object();
    for (const auto& [size, passes] : sizes)
      by_size.set(std::to_string(size), Json::object()
                                            .set("forward", to_json(passes.forward))
                                            .set("backward", to_json(passes.backward)));
    json.set(name, by_size);
  }
  return json;
}

}  // namespace stratagem::cost
