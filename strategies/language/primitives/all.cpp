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
      {"op-trans", "evict", &read_eviction, &write_evictions},
      {"op-trans", "overlap", &read_gradients, &write_gradients},
      {"op-trans", "swap", &read_swap, &write_swaps},
      {"op-trans", "over", &read_shards, &write_shards},
      {"op-assign", "to", &read_steps_on_host, &write_steps_on_host},
      {"op-order", "flush", &read_updates, &write_updates},
      {"op-order", "", &read_order, &write_orders},
  };
  return table;
}

}  // namespace stratagem::strategies
