// The names of kinds of kernels.
#include "cost/kernel_kind.hpp"

#include <algorithm>

#include "base/input_error.hpp"

namespace stratagem::cost {

KernelKind kernel_kind(std::string_view name) {
  const auto found = std::ranges::find(kernel_kind_names, name);
  expects(found != kernel_kind_names.end(), "a kind of kernel that is named is in the table");
  return static_cast<KernelKind>(found - kernel_kind_names.begin());
}

std::vector<std::string> streaming_kinds() {
  std::vector<std::string> names;
  for (std::size_t kind = 0; kind < kernel_kind_names.size(); ++kind) {
    const auto id = static_cast<KernelKind>(kind);
    if (id == KernelKind::gemm || is_attention(id) || concerns_host(id)) continue;
    names.emplace_back(kernel_kind_names[kind]);
  }
  return names;
}

}  // namespace stratagem::cost
