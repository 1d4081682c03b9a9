// Linear layers that multiply in another type than weights and activations have.
#pragma once

#include <map>
#include <string_view>

#include "model/graph.hpp"

namespace stratagem::model {

/// The name of a cast is that of the product before which it stands, the first that reads it, and
/// this.
inline constexpr std::string_view cast_suffix = ".cast";

/// Are values of one type cast before products in another? Tensor cores take fp32 as TF32 by
/// themselves.
bool are_cast(DataType values, DataType products);

/// Has every product of an activation and a parameter read a copy of the activation in another
/// type. An operator `cast` before the product makes it; products that read the same activation in
/// the same order of dimensions share it. The backward pass is derived anew: the gradient of such a
/// product's output is cast, too, where it is made, and both products of the backward pass read the
/// copy. Products of activations alone stay in their type. So does a router of experts, and the
/// segment of the loss, since logits want precision, as Transformer Engine's users have it.
/// Parameters keep their type.
/// Source: Micikevicius et al., FP8 Formats for Deep Learning, arXiv:2209.05433, section 3.
Graph cast_products(Graph graph, DataType type);

/// Does an operator multiply cast operands, forward or backward?
bool multiplies_cast(const Graph&, const Operator&);

/// The parameters of which products read copies in another type, with that type.
std::map<TensorId, DataType> cast_parameters(const Graph&);

}  // namespace stratagem::model
