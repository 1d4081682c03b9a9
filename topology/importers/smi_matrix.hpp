// The matrix that `nvidia-smi topo -m` prints, as text says it.
#pragma once

#include <string>
#include <vector>

namespace stratagem::topology::importers {

/// Devices and how far each two are apart.
struct SmiMatrix {
  std::vector<std::string> names;               ///< "GPU0", ..., then adapters: "NIC0" or "mlx5_0"
  std::vector<std::vector<std::string>> cells;  ///< "X", "NV12", "PIX", "PXB", "PHB", "NODE", "SYS"
  std::vector<std::string> affinity;  ///< "CPU Affinity" of each device, "" where not said

  [[nodiscard]] bool is_gpu(std::size_t device) const { return names[device].starts_with("GPU"); }
  /// NVLinks between two devices, 0 for none.
  [[nodiscard]] int nvlinks(std::size_t a, std::size_t b) const;
};

/// Throws InputError for text without such a matrix, with cells that are missing, unknown or
/// different from their mirror image.
SmiMatrix parse_smi_matrix(const std::string& text, const std::string& file);

}  // namespace stratagem::topology::importers
