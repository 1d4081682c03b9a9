// Names of what a graph has, and short texts of layouts, masks and ranks.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "model/graph.hpp"
#include "program/program.hpp"

namespace stratagem::program {

/// What a graph calls things; "tensor 3" where it has no such thing.
class GraphNames {
 public:
  explicit GraphNames(const model::Graph& graph);

  [[nodiscard]] std::string segment(int segment) const;
  /// Two tensors of a graph may have one name: the second is "out.grad (2)" here.
  [[nodiscard]] std::string tensor(model::TensorId tensor) const;
  /// By its place among the forward and then the backward operators of a segment; without the
  /// segment's name.
  [[nodiscard]] std::string operation(int segment, int place) const;

  /// Of the first segment that a text names; "" if it names none.
  [[nodiscard]] std::string segment_in(const std::string& text) const;
  /// A text as it is for all segments that are alike, where one of them is called `own`: "F
  /// layers.3" becomes "F *", "layers.3.out part" "out part", and "layers.2.out part" "^ part".
  [[nodiscard]] std::string without_segments(const std::string& text, const std::string& own) const;
  /// The same for the name that a graph gives a tensor.
  [[nodiscard]] std::string tensor_within(model::TensorId tensor, int segment) const;

 private:
  /// Of the name of a segment that the word begins with; 0: of none.
  [[nodiscard]] std::size_t length_of_segment(std::string_view word) const;

  const model::Graph& graph_;
  std::vector<std::string> tensors_;
  std::set<std::string, std::less<>> segments_;
};

/// Appends to equal names a number: the first stays as it is, then "out (2)", "out (3)".
void number_equals(std::vector<std::string>& names);

/// In their order: "0-7,16,24-504/8".
std::string text_of_ranks(const std::vector<int>& ranks);
/// "0 data 2*8 tensor 8*1": the first device, then size and stride of each axis of more than one
/// device.
std::string text_of_grid(const placement::Grid& grid);
/// " {tensor:0 data:V}", " shards data", " [0:4 8:16 part 0/2]": what the axes of a grid divide (a
/// dimension, or V: the value), those along which devices are all alike left out; empty where there
/// is nothing to say.
std::string text_of_part(const placement::Layout& layout, const std::vector<int>& shards,
                         const std::vector<placement::Mask>& masks, const placement::Grid& grid);

}  // namespace stratagem::program
