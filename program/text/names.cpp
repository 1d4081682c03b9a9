// Words of names are what spaces, colons and commas leave.
#include "program/text/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>

namespace stratagem::program {
namespace {

std::vector<std::string_view> words(std::string_view text) {
  constexpr std::string_view between = " :,";
  std::vector<std::string_view> result;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of(between, begin), text.size());
    if (end > begin) result.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

}  // namespace

GraphNames::GraphNames(const model::Graph& graph) : graph_(graph) {
  for (const model::Segment& segment : graph.segments) segments_.insert(segment.name);
  for (const model::Tensor& tensor : graph.tensors) tensors_.push_back(tensor.name);
  number_equals(tensors_);
}

std::string GraphNames::segment(int segment) const {
  const bool known = segment >= 0 && segment < static_cast<int>(graph_.segments.size());
  return known ? graph_.segments[segment].name : fmt::format("segment {}", segment);
}

std::string GraphNames::tensor(model::TensorId tensor) const {
  const bool known = tensor >= 0 && tensor < static_cast<int>(tensors_.size());
  return known ? tensors_[tensor] : fmt::format("tensor {}", tensor);
}

std::string GraphNames::operation(int segment, int place) const {
  if (segment < 0 || segment >= static_cast<int>(graph_.segments.size()))
    return std::to_string(place);
  const model::Segment& of = graph_.segments[segment];
  const auto forward = static_cast<int>(of.forward.size());
  const std::vector<model::OpId>& ops = place < forward ? of.forward : of.backward;
  const int at = place < forward ? place : place - forward;
  if (at < 0 || at >= static_cast<int>(ops.size())) return std::to_string(place);
  return without_segments(graph_.operators[ops[at]].name, of.name);
}

std::size_t GraphNames::length_of_segment(std::string_view word) const {
  for (std::size_t length = word.size(); length > 0 && length != std::string_view::npos;
       length = word.rfind('.', length - 1)) {
    if (segments_.contains(word.substr(0, length))) return length;
  }
  return 0;
}

std::string GraphNames::segment_in(const std::string& text) const {
  for (const std::string_view word : words(text)) {
    if (const std::size_t length = length_of_segment(word); length > 0)
      return std::string(word.substr(0, length));
  }
  return "";
}

std::string GraphNames::without_segments(const std::string& text, const std::string& own) const {
  std::string result;
  std::size_t done = 0;
  for (const std::string_view word : words(text)) {
    const auto begin = static_cast<std::size_t>(word.data() - text.data());
    result += text.substr(done, begin - done);
    done = begin + word.size();
    const std::size_t length = length_of_segment(word);
    if (length == 0) {
      result += word;
    } else if (word.substr(0, length) != own) {
      result += "^";
    } else {
      result += length == word.size() ? "*" : word.substr(length + 1);
    }
  }
  return result + text.substr(done);
}

std::string GraphNames::tensor_within(model::TensorId tensor, int segment) const {
  const bool known = tensor >= 0 && tensor < static_cast<int>(tensors_.size());
  const std::string name = known ? graph_.tensors[tensor].name : this->tensor(tensor);
  return segment < 0 ? name : without_segments(name, this->segment(segment));
}

void number_equals(std::vector<std::string>& names) {
  std::unordered_map<std::string, int> count;
  for (std::string& name : names) {
    const int number = ++count[name];
    if (number > 1) name += fmt::format(" ({})", number);
  }
}

std::string text_of_ranks(const std::vector<int>& ranks) {
  std::string text;
  const auto out = std::back_inserter(text);
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    const int step = first + 1 < ranks.size() ? ranks[first + 1] - ranks[first] : 0;
    while (step > 0 && last + 1 < ranks.size() && ranks[last + 1] - ranks[last] == step) ++last;
    if (last - first < 2) last = first;
    fmt::format_to(out, "{}{}", text.empty() ? "" : ",", ranks[first]);
    if (last > first) fmt::format_to(out, "-{}", ranks[last]);
    if (last > first && step > 1) fmt::format_to(out, "/{}", step);
    first = last + 1;
  }
  return text;
}

std::string text_of_grid(const placement::Grid& grid) {
  std::string text = std::to_string(grid.first_device);
  const auto out = std::back_inserter(text);
  for (const placement::Axis& axis : grid.axes) {
    if (axis.size > 1) fmt::format_to(out, " {} {}*{}", axis.name, axis.size, axis.stride);
  }
  if (!grid.listed.empty()) fmt::format_to(out, " listed {}", text_of_ranks(grid.listed));
  return text;
}

namespace {

/// Weights and their gradients may lie on other grids.
std::string name_of_axis(const placement::Grid& grid, std::size_t axis) {
  return axis < grid.axes.size() ? grid.axes[axis].name : std::to_string(axis);
}

std::string text_of(const placement::Mask& mask) {
  std::string text = "[";
  const auto out = std::back_inserter(text);
  for (const placement::Range& range : mask.ranges)
    fmt::format_to(out, "{}{}:{}", text.size() == 1 ? "" : " ", range.begin, range.end);
  if (mask.value.count != 1) fmt::format_to(out, " part {}/{}", mask.value.index, mask.value.count);
  return text + "]";
}

}  // namespace

std::string text_of_part(const placement::Layout& layout, const std::vector<int>& shards,
                         const std::vector<placement::Mask>& masks, const placement::Grid& grid) {
  std::string roles;
  for (std::size_t axis = 0; axis < layout.size(); ++axis) {
    const placement::AxisRole& role = layout[axis];
    if (role.dim == placement::AxisRole::replica) continue;
    const std::string does = role.dim == placement::AxisRole::partial
                                 ? "V"
                                 : std::to_string(role.dim) + (role.inner ? " inner" : "");
    roles += (roles.empty() ? "" : " ") + name_of_axis(grid, axis) + ":" + does;
  }
  std::string text = roles.empty() ? "" : " {" + roles + "}";
  if (!shards.empty()) text += " shards";
  for (const int axis : shards) text += " " + name_of_axis(grid, static_cast<std::size_t>(axis));
  for (const placement::Mask& mask : masks) text += " " + text_of(mask);
  return text;
}

}  // namespace stratagem::program
