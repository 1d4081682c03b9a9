// Parts of heads side by side; a part that lacks a dimension is copied along it.
#include <algorithm>

#include "base/input_error.hpp"
#include "execute/operators/application.hpp"

namespace stratagem::execute {
namespace {

/// Where the rows of a part stand for every row of the joined tensor, and from which element on.
struct JoinedPart {
  std::vector<std::int64_t> sizes;    ///< of the joined tensor, but for its last dimension
  std::vector<std::int64_t> strides;  ///< of the part, in rows; 0 where it lacks the dimension
  std::int64_t first = 0, width = 0;
};

/// Of the forward operator's input of that place, which lies as `part` says.
JoinedPart part_of(const model::Operator& join, std::size_t place,
                   const std::vector<std::int64_t>& joined, const std::vector<std::int64_t>& part) {
  JoinedPart result{.sizes = {joined.begin(), joined.end() - 1},
                    .strides = std::vector<std::int64_t>(joined.size() - 1, 0),
                    .first = place == 0 ? 0 : joined.back() - part.back(),
                    .width = part.back()};
  const std::vector<model::Term>& terms = join.annotation->inputs[place];
  std::int64_t rows = 1;
  for (std::size_t d = terms.size() - 1; d-- > 0;) {
    const int at = dimension_of(join.annotation->outputs[0], terms[d].identifiers.front());
    expects(at >= 0, "what is joined has the dimensions of its parts");
    result.strides[at] = rows;
    rows *= part[d];
  }
  return result;
}

/// work(row of the joined tensor, row of the part).
template <typename Work>
void for_each_row(const JoinedPart& part, const Work& work) {
  std::vector<std::int64_t> at(part.sizes.size(), 0);
  std::int64_t rows = 1;
  for (const std::int64_t size : part.sizes) rows *= size;
  std::int64_t of_part = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    work(row, of_part);
    for (std::size_t d = at.size(); d-- > 0;) {
      of_part += part.strides[d];
      if (++at[d] < part.sizes[d]) break;
      of_part -= part.strides[d] * part.sizes[d];
      at[d] = 0;
    }
  }
}

template <typename T>
void join_parts(const Application<T>& a) {
  const std::vector<std::int64_t> joined = a.outputs[0]->region.shape();
  for (const std::size_t place : {0, 1}) {
    const JoinedPart part = part_of(a.op, place, joined, a.inputs[place]->region.shape());
    for_each_row(part, [&](std::int64_t row, std::int64_t from) {
      const auto read = a.in(place).subspan(from * part.width, part.width);
      std::ranges::copy(read, a.out(0).subspan(row * joined.back() + part.first).begin());
    });
  }
}

/// Adds what comes back for all rows that a row of the part went to.
template <typename T>
void gradient_of_part(const Application<T>& a) {
  const model::Operator& join = a.forward();
  const bool of_first = a.graph.gradient_of[join.inputs[0]] == a.op.outputs[0];
  const std::vector<std::int64_t> joined = a.inputs[0]->region.shape();
  const JoinedPart part = part_of(join, of_first ? 0 : 1, joined, a.outputs[0]->region.shape());
  for_each_row(part, [&](std::int64_t row, std::int64_t to) {
    for (std::int64_t i = 0; i < part.width; ++i)
      a.out(0)[to * part.width + i] += a.in(0)[row * joined.back() + part.first + i];
  });
}

}  // namespace

std::vector<Execution> joins() {
  Execution row =
      computed("join", [](const auto& a) { a.is_forward() ? join_parts(a) : gradient_of_part(a); });
  row.not_on_gpu = "latent attention on a GPU";
  return {row};
}

}  // namespace stratagem::execute
