// Each strategy reads its own keys, and completes them when all are known.
#include "strategies/parallel/read_options.hpp"

#include "strategies/parallel/all.hpp"
#include "strategies/parallel/rank_order.hpp"

namespace stratagem::strategies {

Options read_options(const JsonReader& reader, std::optional<int> gpus) {
  Options options;
  for (const Strategy& entry : all()) options = read_object(entry.options, reader, options);
  if (gpus && !reader.has("data") && *gpus % devices_of(options) == 0)
    options.data = *gpus / devices_of(options);
  for (const Strategy& entry : all()) {
    if (entry.complete != nullptr) entry.complete(options, reader);
  }
  reader.finish();
  return options;
}

}  // namespace stratagem::strategies
