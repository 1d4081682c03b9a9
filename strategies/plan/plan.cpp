// Records what the three primitives say, and refuses op-trans that no operator allows.
#include "strategies/plan/plan.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::strategies {
namespace {

/// The next size that divides into so many parts, and the next numbers of parts that divide this
/// one, for an error: "(48 does; 40 divides into 10 or 20)". Outputs of linear layers (n) are often
/// those of several, and their sum is no key of a model: of these only the latter.
std::string what_divides(const std::string& dim, std::int64_t size, std::int64_t parts) {
  std::int64_t fewer = std::min(parts, size), more = parts;
  while (size % fewer != 0) --fewer;
  while (more < size && size % more != 0) ++more;
  std::string numbers = fewer > 1 ? std::to_string(fewer) : "";
  if (more < size) numbers += (numbers.empty() ? "" : " or ") + std::to_string(more);
  std::string text = dim == "n" ? "" : std::to_string((size / parts + 1) * parts) + " does";
  if (!numbers.empty())
    text += (text.empty() ? "" : "; ") + std::to_string(size) + " divides into " + numbers;
  return text.empty() ? "" : " (" + text + ")";
}

/// A dimension as errors name it, with what the families mean by a letter.
std::string in_words(const std::string& dim) {
  if (dim == "g") return "g (kv_heads, or heads)";
  if (dim == "s") return "s (tokens)";
  if (dim == "n") return "n (outputs)";
  return dim;
}

/// "context and tensor"
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " and ") + names[i];
  return text.empty() ? "none" : text;
}

/// The ranks of the one axis that divides the tokens of an operator. Throws InputError for another.
int ranks_of_ring(const Plan::Placement& placement, const std::string& axis,
                  const std::string& who) {
  std::vector<std::string> all, of_tokens;
  int ranks = 1;
  for (std::size_t i = 0; i < placement.axes.size(); ++i) {
    all.push_back(placement.axes[i].name);
    if (placement.dims[i] == "s") of_tokens.push_back(all.back());
    if (all.back() == axis) ranks = placement.axes[i].size;
  }
  if (std::ranges::count(all, axis) == 0)
    throw InputError("", "", "an axis along which " + who + " stands: " + listed(all), axis);
  if (of_tokens != std::vector{axis}) {
    throw InputError("", "", axis + " to divide the tokens (s) of " + who + ", and no other axis",
                     listed(of_tokens));
  }
  return ranks;
}

}  // namespace

Plan::Plan(const model::Graph& graph)
    : graph_(std::shared_ptr<const void>(), &graph),
      placements_(graph.operators.size()),
      recomputed_{.groups = {},
                  .drops_results = {},
                  .groups_of = std::vector<Groups>(graph.operators.size())} {
  stages.emplace_back(graph.segments.size());
  std::iota(stages.front().begin(), stages.front().end(), 0);
}

bool Plan::speaks_of_operators() const {
  const auto placed = [](const Placement& placement) {
    return !placement.axes.empty() || !placement.listed.empty() ||
           std::ranges::any_of(placement.first_devices, [](int device) { return device != 0; });
  };
  return std::ranges::any_of(placements_, placed) || !recomputed_.groups.empty();
}

void Plan::rewrite(model::Graph graph, std::vector<Colocation> colocations) {
  expects(!speaks_of_operators(),
          "a graph is rewritten before its operators are split, placed or recomputed");
  expects(graph.segments.size() == graph_->segments.size(), "a rewriting keeps the segments");
  graph_ = std::make_shared<const model::Graph>(std::move(graph));
  colocations_ = std::move(colocations);
  placements_.assign(graph_->operators.size(), {});
  copy_stages(copies_);
  recomputed_.groups_of.assign(graph_->operators.size(), {});
}

void Plan::note_said(const std::string& path) {
  const auto note = [&](bool exists, std::string& place) {
    if (exists && place.empty()) place = path;
  };
  note(!updates.flush, said.updates);
  note(!token_slices.empty(), said.slices);
  note(std::ranges::any_of(placements_, [](const Placement& of) { return !of.ring.empty(); }),
       said.rings);
  note(gradients.overlap || gradients.bucket, said.gradients);
  note(!steps.divided.empty() || steps.on_host || steps.delayed, steps.said);
  said.again.resize(recomputed_.groups.size(), path);
  residency.note_said(path);
}

std::vector<model::OpId> Plan::operators() const {
  std::vector<model::OpId> ids;
  for (const model::Segment& segment : graph_->segments) {
    ids.insert(ids.end(), segment.forward.begin(), segment.forward.end());
  }
  return ids;
}

std::int64_t size_of_dimension(const model::Graph& graph, const model::Operator& op,
                               const std::string& dim) {
  std::int64_t size = 0;
  const auto look = [&](const std::vector<model::TensorId>& tensors,
                        const std::vector<std::vector<model::Term>>& terms) {
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      const int position = model::dimension_of(terms[t], dim);
      if (position < 0) continue;
      const std::int64_t here = graph.tensors[tensors[t]].shape[position];
      size = size == 0 ? here : std::min(size, here);
    }
  };
  look(op.inputs, op.annotation->inputs);
  look(op.outputs, op.annotation->outputs);
  return size;
}

std::pair<int, int> segment_range(const model::Graph& graph, const std::vector<model::OpId>& ops) {
  const auto segment = [&](model::OpId op) { return graph.operators[op].segment; };
  const auto [first, last] = std::ranges::minmax(ops, {}, segment);
  return {segment(first), segment(last)};
}

bool divides_evenly(const Plan& plan, model::OpId id) {
  const Plan::Placement& placement = plan.placement(id);
  for (std::size_t i = 0; i < placement.axes.size(); ++i) {
    if (!placement.uneven[i] || placement.dims[i].empty()) continue;
    std::int64_t parts = 1;
    for (std::size_t k = 0; k < placement.axes.size(); ++k)
      parts *= placement.dims[k] == placement.dims[i] ? placement.axes[k].size : 1;
    const model::Operator& op = plan.graph().operators[id];
    if (size_of_dimension(plan.graph(), op, placement.dims[i]) % parts != 0) return false;
  }
  return true;
}

Parts Plan::trans(model::OpId id, const Split& split) {
  const model::Operator& op = graph_->operators[id];
  Placement& placement = placements_[id];
  if (!split.dim.empty()) {
    const std::string where = "operator " + op.name;
    if (!model::may_split(*op.annotation, split.dim)) {
      throw InputError(
          "", "",
          where + " (" + op.annotation->text + ") to have a splittable dimension " + split.dim, "");
    }
    std::int64_t parts = split.parts;
    std::string others;  // that divide it, too
    for (std::size_t i = 0; i < placement.dims.size(); ++i) {
      if (placement.dims[i] != split.dim) continue;
      parts *= placement.axes[i].size;
      others += ", " + std::to_string(placement.axes[i].size) + " along " + placement.axes[i].name;
      if (split.inner && placement.inner[i])
        throw InputError("", "", where + " to have inner parts along one axis alone", split.dim);
    }
    const std::int64_t size = size_of_dimension(*graph_, op, split.dim);
    if (split.uneven ? size < parts : size % parts != 0) {
      throw InputError(
          "", "",
          "dimension " + in_words(split.dim) + " of " + where + " to divide into " +
              std::to_string(parts) + (split.uneven ? "" : " equal") + " parts" + others,
          std::to_string(size) + (split.uneven ? "" : what_divides(split.dim, size, parts)));
    }
  }
  placement.axes.push_back({"", split.parts, 0});
  placement.dims.push_back(split.dim);
  placement.uneven.push_back(split.uneven);
  placement.inner.push_back(split.inner);
  return {id, static_cast<int>(placement.axes.size()) - 1};
}

void Plan::run_in_ring(model::OpId id, const std::string& axis) {
  const model::Operator& op = graph_->operators[id];
  const std::string who = "operator " + op.name;
  if (!model::is_fused_attention(op))
    throw InputError("", "", "fused attention, to run in a ring", who);
  if (op.kind == model::OpKind::cached_attention)
    throw InputError("", "", "attention without a cache, to run in a ring", who);
  const bool sinks = op.inputs.size() > 3;
  if (sinks || op.window > 0 || !op.documents.empty()) {
    throw InputError("", "", "attention to all earlier keys, to run in a ring",
                     who + (sinks           ? " with sinks"
                            : op.window > 0 ? " with a window"
                                            : " to packed documents"));
  }
  Placement& placement = placements_[id];
  const std::int64_t ranks = ranks_of_ring(placement, axis, who);
  const std::int64_t tokens = size_of_dimension(*graph_, op, "s");
  if (tokens % (2 * ranks) != 0) {
    throw InputError("", "",
                     "tokens that divide into two chunks for each of " + std::to_string(ranks) +
                         " ranks of a ring",
                     std::to_string(tokens));
  }
  placement.ring = axis;
}

void Plan::assign(const Parts& parts, const placement::Axis& axis) {
  placement::Axis& level = placements_[parts.op].axes[parts.level];
  expects(level.size == axis.size, "an axis has as many devices as the op-trans made parts");
  level = axis;
}

void Plan::assign(model::OpId op, int first_device, int copy) {
  std::vector<int>& devices = placements_[op].first_devices;
  expects(copy >= 0 && copy < static_cast<int>(devices.size()), "a plan has the copy it assigns");
  devices[copy] = first_device;
}

void Plan::assign(model::OpId op, std::vector<int> devices, int copy) {
  std::vector<std::vector<int>>& listed = placements_[op].listed;
  expects(copy >= 0 && copy < copies_of(op), "a plan has the copy it assigns");
  if (listed.empty()) listed.resize(copies_of(op), devices);
  listed[copy] = std::move(devices);
}

void Plan::copy_stages(Copies copies) {
  expects(copies.of_stage.empty() || copies.of_stage.size() == stages.size(),
          "a plan says how many copies each of its stages has");
  for (const int n : copies.of_stage) {
    expects(n >= 1, "a plan has at least one copy of every stage");
    if (copies.deal == Deal::shares || micro_batches % n == 0) continue;
    throw InputError("", "", "a number of micro-batches that the copies of every stage divide",
                     std::to_string(micro_batches) + " for " + std::to_string(n) + " copies");
  }
  copies_ = std::move(copies);
  for (std::size_t stage = 0; stage < copies_.of_stage.size(); ++stage) {
    const int n = copies_.of_stage[stage];
    for (const int segment : stages[stage]) {
      for (const model::OpId op : graph_->segments[segment].forward) {
        Placement& placement = placements_[op];
        placement.first_devices.resize(n, placement.first_devices.front());
        if (!placement.listed.empty()) placement.listed.resize(n, placement.listed.front());
      }
    }
  }
}

void Plan::split_backward(int stage, int micro_batch) { split_.emplace(stage, micro_batch); }

const std::vector<std::string>& Plan::divided(Keep::What what, Keep::Between gap) const {
  static const std::vector<std::string> whole;
  const bool wait_for_host = what == Keep::What::gradients && steps.on_host;
  if (what == Keep::What::states || wait_for_host) return steps.divided;
  const Keep* rule = residency.of(what, gap);
  return rule == nullptr ? whole : rule->divided;
}

Keep::Where Plan::place_of(Keep::What what) const {
  const Keep* rule = residency.of(what);
  if (rule != nullptr && rule->where != Keep::Where::device) return rule->where;
  const bool with_steps = what == Keep::What::states || what == Keep::What::gradients;
  return with_steps && steps.on_host ? Keep::Where::host : Keep::Where::device;
}

void Plan::check_together(const std::vector<model::OpId>& group) const {
  const auto [first, last] = segment_range(*graph_, group);
  if (first == last) return;
  const std::string expected =
      "a recomputed group of one segment, or of all operators of consecutive ones of a stage";
  std::vector<model::OpId> all;
  for (int segment = first; segment <= last; ++segment) {
    const std::vector<model::OpId>& ops = graph_->segments[segment].forward;
    all.insert(all.end(), ops.begin(), ops.end());
  }
  std::ranges::sort(all);
  const auto [other, missing] = std::ranges::mismatch(group, all);
  if (missing != all.end())
    throw InputError("", "", expected, "one without " + graph_->operators[*missing].name);
  for (const std::vector<int>& stage : stages) {
    for (int segment = first + 1; segment <= last; ++segment) {
      if (std::ranges::count(stage, segment - 1) == std::ranges::count(stage, segment)) continue;
      throw InputError("", "", expected,
                       graph_->segments[segment - 1].name + " and " +
                           graph_->segments[segment].name + " of two stages");
    }
  }
}

void Plan::recompute(std::vector<model::OpId> group, bool drops_results) {
  if (group.empty()) return;
  std::ranges::sort(group);
  check_together(group);
  const auto [first, last] = segment_range(*graph_, group);
  if (drops_results && first != last)
    throw InputError("", "", "a group of one segment where results are dropped", "one of several");
  std::size_t all = 0;
  for (int segment = first; segment <= last; ++segment)
    all += graph_->segments[segment].forward.size();
  int Groups::*const kind = group.size() == all ? &Groups::whole : &Groups::part;
  for (const model::OpId id : group) {
    int& of = recomputed_.groups_of[id].*kind;
    if (of >= 0) {
      throw InputError("", "", "every operator in one recomputed group",
                       graph_->operators[id].name + " in two");
    }
    of = static_cast<int>(recomputed_.groups.size());
  }
  recomputed_.groups.push_back(std::move(group));
  recomputed_.drops_results.push_back(drops_results);
}

}  // namespace stratagem::strategies
