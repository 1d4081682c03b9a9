// Dynamic axial parallelism: ranks divide the axis that a layer treats as a batch.
#include "base/input_error.hpp"
#include "strategies/parallel/all.hpp"
#include "strategies/parallel/named_dimensions.hpp"
#include "strategies/parallel/rank_order.hpp"

namespace stratagem::strategies {
namespace {

struct DynamicAxial {
  int ranks = 1;
};

/// What the operators of an Evoformer divide: aligned sequences "rows", or the first or second
/// residue "i", "j". Later entries win.
const NamedDimensions& axial_dimensions() {
  static const NamedDimensions table = {
      {"input.msa*", "rows"},         {"input.pair*", "i"},
      {"*.row_attention.*", "rows"},  {"*.row_attention.pair_bias*", "i"},
      {"*.column_attention.*", "i"},  {"*.msa_transition.*", "i"},
      {"*.outer_product.*", "i"},     {"*.msa_border", "rows"},
      {"*.triangle_outgoing.*", "i"}, {"*.triangle_incoming.*", "j"},
      {"*.triangle_starting.*", "i"}, {"*.triangle_ending.*", "j"},
      {"*.pair_transition.*", "i"},   {"head.*", "i"}};
  return table;
}

/// op-trans of every operator along the axis that its layer treats as a batch. Where neighbours
/// divide different axes the lowering finds an all-to-all: two per block of the aligned sequences,
/// four of the pairs. The pair biases of three attentions, one factor of the outer product and one
/// of each triangle multiplication are needed whole: six all-gathers, whose gradients are
/// reduce-scattered. Source: Cheng et al., FastFold, arXiv:2203.00854, and its code.
void divide_axes(Plan& plan, const Options& options) {
  const int size = size_of(options, "dap");
  if (size == 1) return;
  const placement::Axis ranks{.name = "dap", .size = size, .stride = stride_of(options, "dap")};
  bool axial = false;
  for (const model::OpId id : plan.operators()) {
    const auto dim = named_dimension(axial_dimensions(), plan.graph().operators[id]);
    axial |= dim.has_value();
    plan.assign(plan.trans(id, {.dim = dim.value_or(""), .parts = ranks.size}), ranks);
  }
  if (!axial) throw InputError("", "", "a model with axial attention", "none");
}

}  // namespace

Strategy dynamic_axial() {
  return {{{"dap", own(&DynamicAxial::ranks), whole(1),
            "FastFold's dynamic axial parallelism of an `evoformer`: ranks that divide the axis "
            "along which a layer does not work; divides `msa_rows` and `residues`"}},
          &divide_axes,
          nullptr,
          {.name = "dap",
           .size = [](const Options& options) { return options.own.of<DynamicAxial>().ranks; }}};
}

}  // namespace stratagem::strategies
