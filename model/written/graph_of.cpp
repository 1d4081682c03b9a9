// Builds a graph of what a model's file says, and refuses what no graph can be made of.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/input_error.hpp"
#include "model/builder.hpp"
#include "model/operator_kinds.hpp"
#include "model/written/checks.hpp"
#include "model/written/form.hpp"

namespace stratagem::model {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& expected,
                       const std::string& found) {
  throw InputError("", path, expected, found);
}

std::string place(const std::string& list, std::size_t number) {
  return "/" + list + "/" + std::to_string(number);
}

/// Refuses numbers of operands that a kind does not have: "3-4" of "3-4>2".
void check_count(std::string_view range, std::size_t found, const std::string& path,
                 const std::string& what) {
  const std::size_t dash = range.find('-');
  const auto least = std::stoul(std::string(range.substr(0, dash)));
  const auto most =
      dash == std::string_view::npos ? least : std::stoul(std::string(range.substr(dash + 1)));
  if (found < least || found > most)
    fail(path, "as many tensors as " + what + " (" + std::string(range) + ")",
         std::to_string(found));
}

class WrittenGraph {
 public:
  WrittenGraph(const WrittenModel& model, std::int64_t batch, DataType values)
      : m_(model), batch_(batch), values_(values), build_("operators") {}

  Graph build() && {
    for (std::size_t i = 0; i < m_.segments.size(); ++i) {
      const WrittenSegment& segment = m_.segments[i];
      if (segment.repeat == 0 && !segment.takes.empty())
        fail(place("segments", i) + "/takes", "the key repeat in a segment that has takes", "");
      turn_before_.clear();
      for (std::int64_t turn = 0; turn < std::max<std::int64_t>(1, segment.repeat); ++turn)
        add_turn(segment, place("segments", i), turn);
    }
    for (const auto& [id, known] : tensors_) {
      if (!is_given(id) && !known.written)
        fail(known.path, "a tensor that an operator writes", build_[id].name);
    }
    return finished();
  }

 private:
  using Names = std::map<std::string, TensorId>;

  /// What is known of a tensor.
  struct Known {
    std::string path;      ///< in the file
    std::size_t home = 0;  ///< its segment
    bool written = false;
    bool read = false;
    std::optional<std::size_t> reader = {};  ///< another segment, which reads an activation
  };

  /// Inputs and parameters are there from the start.
  [[nodiscard]] bool is_given(TensorId id) const {
    return model::is_given(build_[id].role) || build_[id].role == Role::parameter;
  }

  void add_turn(const WrittenSegment& segment, const std::string& path, std::int64_t turn) {
    const std::string name =
        segment.name + (segment.repeat > 0 ? "." + std::to_string(segment.first + turn) : "");
    if (segment.name.empty() || !segments_.insert(name).second)
      fail(path + "/name", "a name that no segment before it has", name);
    build_.begin_segment(name);
    here_.clear();
    own_.clear();
    operators_.clear();
    for (std::size_t t = 0; t < segment.takes.size(); ++t)
      take(segment.takes[t], path + place("takes", t), turn);
    for (std::size_t t = 0; t < segment.tensors.size(); ++t)
      add_tensor(segment.tensors[t], path + place("tensors", t), name);
    for (std::size_t o = 0; o < segment.operators.size(); ++o)
      add_operator(segment.operators[o], path + place("operators", o));
    turn_before_ = own_;
  }

  void take(const WrittenTaking& taking, const std::string& path, std::int64_t turn) {
    const Names& known = turn == 0 ? all_ : turn_before_;
    const std::string& wanted = turn == 0 ? taking.from : taking.then;
    const auto found = known.find(wanted);
    if (found == known.end())
      fail(path + (turn == 0 ? "/from" : "/then"),
           turn == 0 ? "a tensor of an earlier segment, segment.tensor" : "a tensor of the segment",
           wanted);
    if (!here_.emplace(taking.name, found->second).second)
      fail(path + "/name", "a name that nothing else has", taking.name);
  }

  void add_tensor(const WrittenTensor& tensor, const std::string& path,
                  const std::string& segment) {
    std::vector<std::int64_t> shape;
    for (const WrittenSize& size : tensor.shape) {
      const std::int64_t times = size.each_sample ? batch_ : 1;
      if (static_cast<double>(size.size) * static_cast<double>(times) > 1e15)
        fail(path + "/shape", "sizes of at most 1e15 for all samples", std::to_string(size.size));
      shape.push_back(size.size * times);
    }
    const TensorId id = sized(tensor, std::move(shape), path);
    if (tensor.frozen && tensor.role != Role::parameter)
      fail(path + "/frozen", "the role parameter beside it", "");
    if (tensor.frozen) build_.freeze(id);
    if (tensor.name.empty() || !here_.emplace(tensor.name, id).second)
      fail(path + "/name", "a name that no tensor of the segment has", tensor.name);
    own_.emplace(tensor.name, id);
    if (!all_.emplace(segment + "." + tensor.name, id).second)
      fail(path + "/name", "a name that no other tensor has, with its segment before it",
           segment + "." + tensor.name);
    tensors_.emplace(id, Known{.path = path, .home = segments_.size() - 1});
    check_tensor(tensor, path);
  }

  static void check_tensor(const WrittenTensor& tensor, const std::string& path) {
    const bool grows = std::ranges::any_of(tensor.shape, &WrittenSize::each_sample);
    if (tensor.role == Role::parameter && grows)
      fail(path + "/shape", "sizes of a parameter that do not grow with the batch", "batch");
    if (model::is_given(tensor.role) && !grows)
      fail(path + "/shape",
           "a size of " + std::string(tensor.role == Role::cache ? "a cache" : "an input") +
               " that grows with the batch, such as \"batch\"",
           "none");
    const bool numbers = tensor.role == Role::parameter || tensor.role == Role::activation ||
                         tensor.role == Role::cache;
    if (numbers && tensor.type && *tensor.type != DataType::fp32)
      fail(path + "/type", "values or fp32 of a parameter, an activation or a cache",
           to_text(*tensor.type));
  }

  TensorId sized(const WrittenTensor& tensor, std::vector<std::int64_t> shape,
                 const std::string& path) {
    try {
      return build_.tensor(tensor.name, std::move(shape), tensor.type.value_or(values_),
                           tensor.role, tensor.filled);
    } catch (const InputError& error) {
      fail(path + "/shape", error.expected, error.found);
    }
  }

  [[nodiscard]] TensorId read(const std::string& name, const std::string& path) const {
    const auto here = here_.find(name);
    const auto known = here != here_.end() ? here : all_.find(name);
    if (here == here_.end() && known == all_.end())
      fail(path, "a tensor of the segment, or of an earlier one, segment.tensor", name);
    if (!is_given(known->second) && !tensors_.at(known->second).written)
      fail(path, "a tensor that an operator before this one writes", name);
    return known->second;
  }

  TensorId write(const std::string& name, const std::string& path) {
    const auto own = own_.find(name);
    if (own == own_.end()) fail(path, "a tensor of the segment", name);
    if (is_given(own->second))
      fail(path, "a tensor that is neither an input nor a parameter", name);
    if (std::exchange(tensors_.at(own->second).written, true))
      fail(path, "a tensor that no other operator writes", name);
    return own->second;
  }

  void add_operator(const WrittenOperator& op, const std::string& path) {
    if (op.name.empty() || !operators_.insert(op.name).second)
      fail(path + "/name", "a name that no operator of the segment before it has", op.name);
    const OpKind kind = operator_named(op.kind);
    const SharedAnnotation annotation = annotation_of(op, path);
    std::vector<TensorId> inputs, outputs;
    for (std::size_t i = 0; i < op.reads.size(); ++i)
      inputs.push_back(read(op.reads[i], path + place("reads", i)));
    for (std::size_t i = 0; i < op.writes.size(); ++i)
      outputs.push_back(write(op.writes[i], path + place("writes", i)));
    const auto tensors = [&](const std::vector<TensorId>& ids) {
      std::vector<const Tensor*> all;
      for (const TensorId id : ids) all.push_back(&build_[id]);
      return all;
    };
    check_operands({op, *annotation, tensors(inputs), tensors(outputs), path});
    for (std::size_t i = 0; i < inputs.size(); ++i)
      note_reader(inputs[i], path + place("reads", i));
    if (op.kind == "split_heads") cut_.emplace_back(path, outputs);
    const Combine combine = kind == OpKind::row_max ? Combine::maximum : Combine::sum;
    const OpId id =
        build_.add(kind, op.name, op.annotation, std::move(inputs), std::move(outputs), combine);
    build_.set_window(id, op.window);
    build_.set_documents(id, op.documents);
    build_.set_cached(id, op.cached);
    build_.set_image(id, {.rows = op.image_rows, .side = op.window_side});
  }

  /// Of an activation two segments may be readers, its own and another one.
  void note_reader(TensorId tensor, const std::string& path) {
    Known& known = tensors_.at(tensor);
    known.read = true;
    const std::size_t here = segments_.size() - 1;
    if (!known.written || known.home == here) return;
    if (known.reader.value_or(here) != here)
      fail(path, "a tensor that no other segment reads but its own; hand on a copy (identity)",
           build_[tensor].name);
    known.reader = here;
  }

  /// The annotation of an operator that has as many operands as its kind and its annotation.
  static SharedAnnotation annotation_of(const WrittenOperator& op, const std::string& path) {
    const std::string_view counts = row_of(operator_named(op.kind)).operands.counts;
    const std::size_t arrow = counts.find('>');
    check_count(counts.substr(0, arrow), op.reads.size(), path + "/reads", op.kind + " reads");
    check_count(counts.substr(arrow + 1), op.writes.size(), path + "/writes", op.kind + " writes");
    SharedAnnotation annotation;
    try {
      annotation = read_annotation(op.annotation);
    } catch (const InputError& error) {
      fail(path + "/annotation", error.expected, op.annotation);
    }
    if (annotation->inputs.size() != op.reads.size() ||
        annotation->outputs.size() != op.writes.size())
      fail(path + "/annotation", "one group of dimensions for each tensor", op.annotation);
    return annotation;
  }

  Graph finished() {
    const auto loss = all_.find(m_.loss);
    if (loss == all_.end() || build_[loss->second].role != Role::activation ||
        build_[loss->second].type != DataType::fp32 ||
        tensors_.at(loss->second).home + 1 != segments_.size())
      fail("/loss", "an activation of the last segment in fp32, segment.tensor", m_.loss);
    for (const auto& [path, heads] : cut_) {
      for (std::size_t i = 0; i < heads.size(); ++i) {
        if (!tensors_.at(heads[i]).read)
          fail(path + place("writes", i), "a tensor that an operator reads", build_[heads[i]].name);
      }
    }
    Graph graph = std::move(build_).finish(loss->second);
    for (const auto& [id, known] : tensors_) {
      const Tensor& tensor = graph.tensors[id];
      if (tensor.role == Role::parameter && tensor.requires_grad && graph.gradient_of[id] < 0)
        fail(known.path, "a parameter that the loss depends on, or \"frozen\": true", tensor.name);
    }
    graph.sample_tokens = m_.tokens;
    graph.forward_repeats = static_cast<int>(m_.passes);
    for (std::size_t i = 0; i < m_.recycled.size(); ++i)
      graph.recycled.push_back(recycled(graph, m_.recycled[i], place("recycled", i)));
    return graph;
  }

  /// What an operator writes becomes an input that one reads.
  [[nodiscard]] std::pair<TensorId, TensorId> recycled(const Graph& graph,
                                                       const WrittenTaking& pair,
                                                       const std::string& path) const {
    const auto from = all_.find(pair.from), then = all_.find(pair.then);
    if (from == all_.end() || !tensors_.at(from->second).written)
      fail(path + "/from", "a tensor that an operator writes, segment.tensor", pair.from);
    if (then == all_.end() || graph.tensors[then->second].role != Role::input ||
        !tensors_.at(then->second).read)
      fail(path + "/then", "an input that an operator reads, segment.tensor", pair.then);
    const Tensor &one = graph.tensors[from->second], &other = graph.tensors[then->second];
    if (one.shape != other.shape || one.type != other.type)
      fail(path, "from and then of the same shape and type", pair.from + " and " + pair.then);
    return {from->second, then->second};
  }

  const WrittenModel& m_;
  std::int64_t batch_;
  DataType values_;
  Builder build_;
  std::set<std::string> segments_;
  Names all_;                                                       ///< in full
  Names own_;                                                       ///< tensors of the segment
  Names here_;                                                      ///< the same, and what it takes
  Names turn_before_;                                               ///< tensors of the turn before
  std::set<std::string> operators_;                                 ///< of the segment
  std::map<TensorId, Known> tensors_;                               ///< of all segments so far
  std::vector<std::pair<std::string, std::vector<TensorId>>> cut_;  ///< heads, by their operator
};

}  // namespace

Graph graph_of(const WrittenModel& model, std::int64_t batch, DataType values) {
  return WrittenGraph(model, batch, values).build();
}

}  // namespace stratagem::model
