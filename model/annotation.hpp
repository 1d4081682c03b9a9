// The einops-like text that says what an operator does to dimensions: `b s k, n k -> b s n`.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace stratagem::model {

/// One dimension of a tensor in an annotation: an identifier, or a fused group `(a d^)` of them.
/// Only the leading identifier of a group may be split; marks: none = may be split, `^` = may not.
struct Term {
  std::vector<std::string> identifiers;  ///< leading first
  std::vector<bool> frozen;              ///< the `^` mark of each identifier
};

/// Terms of every input and output, in order. A `+` marks an identifier as a reduction: splitting
/// it leaves every part with a partial result. Splitting an unmarked identifier leaves outputs that
/// lack it whole.
struct Annotation {
  std::string text;
  std::vector<std::string> reductions;
  std::vector<std::vector<Term>> inputs;
  std::vector<std::vector<Term>> outputs;
};

/// Operators with equal texts share one: a deep network has few.
using SharedAnnotation = std::shared_ptr<const Annotation>;

/// The same of a user's text: throws InputError, without a path, for one that parse_annotation does
/// not take.
SharedAnnotation read_annotation(std::string_view text);

/// Throws BrokenPromise for text that is not of the grammar, or that marks an identifier of an
/// output with `+`. Of equal texts it is the same annotation.
SharedAnnotation parse_annotation(std::string_view text);

/// That of an operator without operands.
SharedAnnotation without_terms();

/// Terms as an annotation writes them; `+` marks what `result` lacks, since that is summed over.
std::string to_text(const std::vector<Term>& terms, const std::vector<Term>& result);

/// Position of the dimension of `terms` that splitting `identifier` divides, -1 where the tensor
/// lacks it.
int dimension_of(const std::vector<Term>& terms, std::string_view identifier);

/// True if some tensor of the annotation names the identifier in a splittable place and none
/// freezes it.
bool may_split(const Annotation&, std::string_view identifier);

bool is_reduction(const Annotation&, std::string_view identifier);

}  // namespace stratagem::model
