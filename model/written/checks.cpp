// Refuses operands that a kind of operator would misread.
#include "model/written/checks.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/input_error.hpp"
#include "model/operator_kinds.hpp"

namespace stratagem::model {
namespace {

constexpr const char* fused_core = "b s g e^, b t^ g d^, b t^ g w^ -> b s (g o^), b s g queries^";
constexpr const char* cached_core =
    "b s g e^, b t^ g d^, b t^ g w^, b n^ g d^, b n^ g w^ -> b s (g o^), b s g queries^";
constexpr const char* fused_core_with_sinks =
    "b s g e^, b t^ g d^, b t^ g w^, g queries^ -> b s (g o^), b s g queries^";

class Check {
 public:
  explicit Check(const WrittenOperands& operands)
      : o_(operands), form_(row_of(operator_named(operands.op.kind)).operands) {}

  void run() const {
    check_sizes();
    check_marks();
    check_attention();
    check_heads();
    check_types();
    check_keys();
    if (form_.of_image) check_image();
  }

 private:
  [[noreturn]] void fail(const std::string& key, const std::string& expected,
                         const std::string& found) const {
    throw InputError("", o_.path + key, expected, found);
  }
  [[noreturn]] void fail_annotation(const std::string& expected) const {
    fail("/annotation", expected, o_.op.annotation);
  }

  /// Plain identifiers have one size; dimensions that begin with one are multiples of it.
  void check_sizes() const {
    std::map<std::string, std::int64_t> sizes;
    std::vector<std::pair<std::string, std::int64_t>> fused;
    const auto note = [&](const std::vector<Term>& terms, const Tensor& tensor) {
      if (terms.empty() || terms.size() != tensor.shape.size())
        fail("/annotation",
             "an annotation that names every dimension of " + tensor.name + ", of which it has " +
                 std::to_string(tensor.shape.size()),
             std::to_string(terms.size()) + " names");
      std::set<std::string> here;
      for (std::size_t d = 0; d < terms.size(); ++d) {
        const std::string& name = terms[d].identifiers.front();
        if (!here.insert(name).second)
          fail_annotation("dimensions of " + tensor.name + " with names of their own");
        if (terms[d].identifiers.size() > 1) {
          fused.emplace_back(name, tensor.shape[d]);
        } else if (const auto [known, fresh] = sizes.emplace(name, tensor.shape[d]);
                   !fresh && known->second != tensor.shape[d]) {
          fail("/annotation", "operands of which `" + name + "` has one size",
               std::to_string(known->second) + " and " + std::to_string(tensor.shape[d]));
        }
      }
    };
    for (std::size_t i = 0; i < o_.inputs.size(); ++i) note(o_.annotation.inputs[i], *o_.inputs[i]);
    for (std::size_t i = 0; i < o_.outputs.size(); ++i)
      note(o_.annotation.outputs[i], *o_.outputs[i]);
    for (const auto& [name, size] : fused) {
      const auto known = sizes.find(name);
      if (known != sizes.end() && size % known->second != 0)
        fail("/annotation", "dimensions that `" + name + "` divides",
             std::to_string(known->second) + " and " + std::to_string(size));
    }
  }

  /// Products have the dimensions of their factors, and no others.
  void check_written_dimensions(const std::vector<Term>& out) const {
    std::vector<std::string> read;
    for (const std::vector<Term>& terms : o_.annotation.inputs)
      for (const Term& term : terms)
        read.insert(read.end(), term.identifiers.begin(), term.identifiers.end());
    for (const Term& term : out)
      for (const std::string& name : term.identifiers)
        if (std::ranges::find(read, name) == read.end())
          fail_annotation("`" + name + "` in what " + o_.op.kind + " reads, too");
  }

  void check_marks() const {
    const std::vector<Term>&in = o_.annotation.inputs[0], &out = o_.annotation.outputs[0];
    if (form_.keeps_shape &&
        (to_text(in, in) != to_text(out, out) || o_.inputs[0]->shape != o_.outputs[0]->shape))
      fail_annotation("the same dimensions of what " + o_.op.kind + " reads and writes first");
    const auto whole = [](const Term& term) {
      return std::ranges::all_of(term.frozen, [](bool frozen) { return frozen; });
    };
    if (form_.whole_rows && !whole(in.back()))
      fail_annotation("the last dimension marked ^, since " + o_.op.kind + " needs it whole");
    if (form_.sums) check_written_dimensions(out);
    for (const std::vector<Term>& terms : o_.annotation.inputs) {
      for (const Term& term : terms) {
        const std::string& name = term.identifiers.front();
        if (dimension_of(out, name) >= 0) continue;
        if (form_.sums && term.identifiers.size() > 1)
          fail_annotation("sums over no dimension in parentheses");
        if (form_.sums && !is_reduction(o_.annotation, name) && !term.frozen.front())
          fail_annotation("`" + name + "+`, since " + o_.op.kind + " sums over it");
        if (form_.takes_whole && !term.frozen.front())
          fail_annotation("`" + name + "^`, since " + o_.op.kind + " needs it whole");
      }
    }
    if (form_.keeps_shape && !o_.annotation.reductions.empty())
      fail_annotation("no +, since " + o_.op.kind + " sums over nothing");
  }

  /// Costs and the interpreter find these dimensions by their names.
  void check_attention() const {
    for (std::size_t i = 0; i < o_.inputs.size(); ++i) {
      const bool reads = o_.op.kind == "cached_attention" && (i == 1 || i == 2);
      if (!reads && o_.inputs[i]->role == Role::cache)
        fail("/reads/" + std::to_string(i), "a cache as the keys or values of cached_attention",
             o_.op.reads[i]);
    }
    if (o_.op.kind == "cached_attention") {
      if (o_.op.annotation != cached_core) fail_annotation(cached_core);
      for (const std::size_t i : {1, 2}) {
        if (o_.inputs[i]->role != Role::cache)
          fail("/reads/" + std::to_string(i), "a tensor of the role cache", o_.op.reads[i]);
      }
      if (o_.inputs[1]->shape[1] < o_.op.cached + o_.inputs[3]->shape[1])
        fail("/cached", "no more tokens than the cache has room for beside the new ones",
             std::to_string(o_.op.cached));
      return;
    }
    if (o_.op.kind != "fused_attention" && o_.op.kind != "fused_attention_to_all") return;
    const char* wanted = o_.inputs.size() > 3 ? fused_core_with_sinks : fused_core;
    if (o_.op.annotation != wanted) fail_annotation(wanted);
  }

  void check_heads() const {
    const std::vector<Term>&in = o_.annotation.inputs[0], &out = o_.annotation.outputs[0];
    std::int64_t written = 0;
    for (const Tensor* tensor : o_.outputs) written += element_count(*tensor);
    const bool splits = o_.op.kind == "split_heads", merges = o_.op.kind == "merge_heads";
    if ((splits || merges) && written != element_count(*o_.inputs[0]))
      fail("", "as many elements written as read", std::to_string(written));
    if (merges && (in.size() < 4 || out.size() < 3 || out.back().identifiers.size() < 2))
      fail_annotation("heads side by side in the last dimension: b heads s d^ -> b s (heads d^)");
    if (splits && (in.size() < 3 || !out.back().frozen.front()))
      fail_annotation("rows that are cut into heads: b s (heads a^) -> b heads s d^, ...");
    if (o_.op.kind == "swiglu" && (in.back().identifiers.size() != 2 ||
                                   2 * o_.outputs[0]->shape.back() != o_.inputs[0]->shape.back()))
      fail_annotation("two halves of which one is left: b s (n two^) -> b s n");
  }

  void check_types() const {
    const auto whole_numbers = [&](std::size_t input, const std::string& what) {
      if (input < o_.inputs.size() && o_.inputs[input]->type != DataType::int64)
        fail("/reads/" + std::to_string(input), what + " of type int64",
             to_text(o_.inputs[input]->type));
    };
    if (o_.op.kind == "embedding") whole_numbers(0, "tokens");
    if (o_.op.kind == "pick") whole_numbers(1, "labels");
    if (o_.op.kind == "cross_entropy") whole_numbers(o_.outputs.size() == 1 ? 3 : 4, "labels");
    const bool drops = o_.op.kind == "dropout" || o_.op.kind == "attention_dropout";
    if (drops && (o_.outputs[1]->role != Role::mask || o_.outputs[1]->type != DataType::int8))
      fail("/writes/1", "a tensor of the role mask and of type int8", o_.op.writes[1]);
    const bool norms = o_.op.kind == "layer_norm" || o_.op.kind == "rms_norm";
    if (norms && o_.outputs[1]->role != Role::statistic)
      fail("/writes/1", "a tensor of the role statistic", o_.op.writes[1]);
  }

  void check_keys() const {
    const bool sees_window = o_.op.kind == "fused_attention";
    if (o_.op.window > 0 && !sees_window)
      fail("/window", "the kind fused_attention beside it", o_.op.kind);
    if (!o_.op.documents.empty() && !sees_window)
      fail("/documents", "the kind fused_attention beside it", o_.op.kind);
    const auto& lengths = o_.op.documents;
    const auto sum = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    if (sees_window && sum > 0 && sum != o_.inputs[0]->shape[1])
      fail("/documents",
           "lengths of " + std::to_string(o_.inputs[0]->shape[1]) + " tokens together",
           std::to_string(sum));
    if (o_.op.cached > 0 && o_.op.kind != "cached_attention")
      fail("/cached", "the kind cached_attention beside it", o_.op.kind);
    if (form_.of_image) return;
    for (const auto& [key, value] :
         {std::pair("/image_rows", o_.op.image_rows), std::pair("/window_side", o_.op.window_side)})
      if (value > 0) fail(key, "a kind that knows windows of images beside it", o_.op.kind);
  }

  void check_image() const {
    const std::int64_t rows = o_.op.image_rows, side = o_.op.window_side;
    if (rows == 0) fail("", "the key image_rows", "none");
    if (side == 0 || rows % side != 0)
      fail("/window_side", "a divisor of image_rows, " + std::to_string(rows),
           std::to_string(side));
    const std::vector<std::int64_t>&in = o_.inputs[0]->shape, &out = o_.outputs[0]->shape;
    const std::string& kind = o_.op.kind;
    const std::int64_t window = side * side;
    if (kind == "window_mask" || kind == "window_bias") {
      const bool biases = kind == "window_bias";
      const std::int64_t offsets = (2 * side - 1) * (2 * side - 1);
      const bool pairs =
          out.size() == (biases ? 3 : 4) && out.back() == window && out[out.size() - 2] == window;
      if (!pairs || (biases && (in.size() != 2 || in[0] != offsets || in[1] != out[0])))
        fail("",
             "scores of " + std::to_string(window) + " x " + std::to_string(window) +
                 " tokens, and biases of " + std::to_string(offsets) + " offsets",
             "others");
      return;
    }
    const std::vector<std::int64_t>& tokens = kind == "from_windows" ? out : in;
    if (tokens.size() != 3 || tokens[1] != rows * rows ||
        element_count(*o_.inputs[0]) != element_count(*o_.outputs[0]))
      fail("",
           "an image of " + std::to_string(rows * rows) + " tokens, and as many elements written",
           "others");
  }

  const WrittenOperands& o_;
  const OperandForm& form_;
};

}  // namespace

void check_operands(const WrittenOperands& operands) { Check(operands).run(); }

}  // namespace stratagem::model
