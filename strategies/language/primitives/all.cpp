// The table of primitives.
#include "strategies/language/primitives/all.hpp"

namespace stratagem::strategies {

const std::vector<PrimitiveKind>& primitive_kinds() {
  static const std::vector<PrimitiveKind> table = {
      {"op-trans", "colocated", &read_colocation, &write_colocations},
      {"op-trans", "dim", &read_split, &write_splits},
      {"op-assign", "axis", &read_axis, &write_axes},
      {"op-assign", "device", &read_device, &write_devices},
      {"op-assign", "devices", &read_device_list, &write_device_lists},
      {"op-trans", "recompute", &read_recompute, &write_recompute},
      {"op-trans", "tokens", &read_token_slices, &write_token_slices},
      {"op-trans", "into", &read_backward_split, &write_backward_splits},
      {"op-trans", "overlap", &read_gradients, &write_gradients},
      {"op-trans", "over", &read_divided_steps, &write_divided_steps},
      {"op-assign", "to", &read_steps_on_host, &write_steps_on_host},
      {"op-order", "ring", &read_ring, &write_rings},
      {"op-order", "flush", &read_updates, &write_updates},
      {"op-order", "", &read_order, &write_orders},
      {"keep", "", &read_keep, &write_keeps},
  };
  return table;
}

}  // namespace stratagem::strategies
