// Writes a model's forward pass as its file: equal segments in a row are one that is repeated.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/input_error.hpp"
#include "model/operator_kinds.hpp"
#include "model/written/form.hpp"

namespace stratagem::model {
namespace {

constexpr DataType values_type = DataType::fp16;

WrittenSize size_of(const Tensor& one, const Tensor& two, std::size_t d) {
  const std::int64_t size = one.shape[d];
  const bool grows = two.shape[d] != size;
  expects(!grows || two.shape[d] == 2 * size, "dimensions grow with the batch, or do not");
  return {.size = size, .each_sample = grows};
}

WrittenTensor tensor_of(const Tensor& one, const Tensor& two, const std::string& name) {
  WrittenTensor tensor{.name = name,
                       .role = one.role,
                       .frozen = one.role == Role::parameter && !one.requires_grad,
                       .filled = one.filled};
  for (std::size_t d = 0; d < one.shape.size(); ++d) tensor.shape.push_back(size_of(one, two, d));
  if (one.type != values_type) tensor.type = one.type;
  return tensor;
}

/// What a segment reads of others stands in a list, and its operators read "", one after another.
struct Stretch {
  WrittenSegment segment;
  std::vector<std::string> outside;  ///< in full, by place where it is read
};

class Stretches {
 public:
  Stretches(const Graph& one, const Graph& two) : one_(one), two_(two) {}

  [[nodiscard]] Stretch of(const Segment& segment) const {
    Stretch result{.segment = {.name = segment.name}, .outside = {}};
    const std::string prefix = segment.name + ".";
    for (std::size_t id = 0; id < one_.tensors.size(); ++id) {
      const Tensor& tensor = one_.tensors[id];
      if (tensor.name.starts_with(prefix) && is_forward(static_cast<TensorId>(id)))
        result.segment.tensors.push_back(
            tensor_of(tensor, two_.tensors[id], tensor.name.substr(prefix.size())));
    }
    for (const OpId id : segment.forward) {
      const Operator& op = one_.operators[id];
      WrittenOperator written{.name = op.name.substr(prefix.size()),
                              .kind = to_text(op.kind),
                              .annotation = op.annotation->text,
                              .window = op.window,
                              .documents = op.documents,
                              .cached = op.cached,
                              .image_rows = op.image.rows,
                              .window_side = op.image.side};
      for (const TensorId tensor : op.inputs) {
        const std::string& name = one_.tensors[tensor].name;
        const bool own = name.starts_with(prefix);
        written.reads.push_back(own ? name.substr(prefix.size()) : "");
        if (!own) result.outside.push_back(name);
      }
      for (const TensorId tensor : op.outputs)
        written.writes.push_back(one_.tensors[tensor].name.substr(prefix.size()));
      result.segment.operators.push_back(std::move(written));
    }
    return result;
  }

 private:
  [[nodiscard]] bool is_forward(TensorId tensor) const {
    return std::ranges::any_of(one_.operators, [&](const Operator& op) {
      return op.pass == Pass::forward && (std::ranges::count(op.inputs, tensor) > 0 ||
                                          std::ranges::count(op.outputs, tensor) > 0);
    });
  }

  const Graph& one_;
  const Graph& two_;
};

/// "layers.12" is number 12 of "layers".
struct Numbered {
  std::string base;
  std::int64_t number = -1;  ///< -1: none
};
Numbered numbered(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  const bool digits = dot != std::string::npos && dot + 1 < name.size() && name.size() - dot < 10 &&
                      name.find_first_not_of("0123456789", dot + 1) == std::string::npos;
  if (!digits) return {name};
  return {name.substr(0, dot), std::stoll(name.substr(dot + 1))};
}

/// Stretches that are turns of one segment.
class Turns {
 public:
  explicit Turns(Stretch first) : first_(std::move(first)), last_(first_) {}

  /// Takes the next stretch, if it is the next turn.
  bool take(const Stretch& next) {
    const Numbered before = numbered(last_.segment.name), now = numbered(next.segment.name);
    const bool equal = before.number >= 0 && now.base == before.base &&
                       now.number == before.number + 1 &&
                       next.segment.tensors == first_.segment.tensors &&
                       next.segment.operators == first_.segment.operators;
    if (!equal) return false;
    std::vector<std::string> then;  // "": what the turn before reads, too
    const std::string prefix = last_.segment.name + ".";
    for (std::size_t i = 0; i < next.outside.size(); ++i) {
      const std::string& name = next.outside[i];
      const bool carried = name.starts_with(prefix);
      if (!carried && name != last_.outside[i]) return false;
      then.push_back(carried ? name.substr(prefix.size()) : "");
    }
    if (count_ > 1 && then != then_) return false;
    then_ = std::move(then);
    last_ = next;
    ++count_;
    return true;
  }

  [[nodiscard]] WrittenSegment written() const {
    WrittenSegment segment = first_.segment;
    if (count_ > 1) {
      const Numbered name = numbered(segment.name);
      segment.name = name.base;
      segment.first = name.number;
      segment.repeat = count_;
    }
    std::size_t at = 0;
    for (WrittenOperator& op : segment.operators) {
      for (std::string& name : op.reads) {
        if (!name.empty()) continue;
        name = count_ > 1 && !then_[at].empty() ? taken(segment, at) : first_.outside[at];
        ++at;
      }
    }
    return segment;
  }

 private:
  /// The name by which the segment reads what it takes there.
  [[nodiscard]] std::string taken(WrittenSegment& segment, std::size_t at) const {
    for (const WrittenTaking& known : segment.takes) {
      if (known.from == first_.outside[at] && known.then == then_[at]) return known.name;
    }
    const std::string name = "taken." + std::to_string(segment.takes.size());
    segment.takes.push_back({name, first_.outside[at], then_[at]});
    return name;
  }

  Stretch first_, last_;
  std::vector<std::string> then_;
  std::int64_t count_ = 1;
};

Json names(const std::vector<std::string>& all) {
  Json list = Json::array();
  for (const std::string& name : all) list.push(name);
  return list;
}

std::string word_of(Role role) {
  switch (role) {
    case Role::input:
      return "input";
    case Role::cache:
      return "cache";
    case Role::parameter:
      return "parameter";
    case Role::statistic:
      return "statistic";
    case Role::mask:
      return "mask";
    case Role::activation:
    case Role::gradient:
      return "activation";
  }
  throw BrokenPromise("a role is one of its enumerators");
}

Json json_of(const WrittenTensor& tensor) {
  Json shape = Json::array();
  for (const WrittenSize& size : tensor.shape) {
    const std::string batch = size.size == 1 ? "batch" : std::to_string(size.size) + " batch";
    shape.push(size.each_sample ? Json(batch) : Json(size.size));
  }
  Json json = Json::object().set("name", tensor.name).set("shape", shape);
  if (tensor.role != Role::activation) json.set("role", word_of(tensor.role));
  if (tensor.type) json.set("type", to_text(*tensor.type));
  if (tensor.frozen) json.set("frozen", true);
  if (tensor.filled != 1) json.set("filled", tensor.filled);
  return json;
}

Json json_of(const WrittenOperator& op) {
  Json json = Json::object()
                  .set("name", op.name)
                  .set("kind", op.kind)
                  .set("annotation", op.annotation)
                  .set("reads", names(op.reads))
                  .set("writes", names(op.writes));
  if (op.window > 0) json.set("window", op.window);
  if (!op.documents.empty()) {
    Json lengths = Json::array();
    for (const std::int64_t length : op.documents) lengths.push(length);
    json.set("documents", std::move(lengths));
  }
  if (op.cached > 0) json.set("cached", op.cached);
  if (op.image_rows > 0) json.set("image_rows", op.image_rows).set("window_side", op.window_side);
  return json;
}

Json json_of(const WrittenTaking& taking) {
  Json json = Json::object();
  if (!taking.name.empty()) json.set("name", taking.name);
  return json.set("from", taking.from).set("then", taking.then);
}

/// A list with a line for each element.
template <typename T>
std::string lines_of(const std::vector<T>& all, const std::string& indent) {
  std::string text = "[";
  for (const T& one : all)
    text += (text == "[" ? "\n" : ",\n") + indent + "  " + json_of(one).text();
  return text + "]";
}

std::string text_of(const WrittenSegment& segment) {
  const std::string line = ",\n      ";
  std::string text = "    { \"name\": " + Json(segment.name).text();
  if (segment.repeat > 0) text += ", \"repeat\": " + std::to_string(segment.repeat);
  if (segment.first > 0) text += ", \"first\": " + std::to_string(segment.first);
  if (!segment.takes.empty()) text += line + "\"takes\": " + lines_of(segment.takes, "      ");
  text += line + "\"tensors\": " + lines_of(segment.tensors, "      ");
  return text + line + "\"operators\": " + lines_of(segment.operators, "      ") + " }";
}

}  // namespace

std::string written(const Graph& one, const Graph& two) {
  const Stretches stretches(one, two);
  std::vector<Turns> turns;
  for (const Segment& segment : one.segments) {
    const Stretch next = stretches.of(segment);
    if (turns.empty() || !turns.back().take(next)) turns.emplace_back(next);
  }
  std::vector<WrittenTaking> recycled;
  for (const auto& [from, then] : one.recycled)
    recycled.push_back({"", one.tensors[from].name, one.tensors[then].name});
  std::string text = "{\n  \"tokens\": " + std::to_string(one.sample_tokens) +
                     ",\n  \"loss\": " + Json(one.tensors[one.loss].name).text();
  if (one.forward_repeats > 1) text += ",\n  \"passes\": " + std::to_string(one.forward_repeats);
  if (!recycled.empty()) text += ",\n  \"recycled\": " + lines_of(recycled, "  ");
  text += ",\n  \"segments\": [\n";
  for (std::size_t i = 0; i < turns.size(); ++i)
    text += text_of(turns[i].written()) + (i + 1 < turns.size() ? ",\n" : "\n");
  return text + "  ]\n}\n";
}

}  // namespace stratagem::model
