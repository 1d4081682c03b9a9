// Each strategy reads its own keys, and completes them when all are known.
#include "strategies/parallel/read_options.hpp"

#include <fmt/format.h>

#include <string>

#include "strategies/parallel/all.hpp"
#include "strategies/parallel/rank_order.hpp"

namespace stratagem::strategies {

void refuse_gpus(const JsonReader& strategy, int gpus, int devices) {
  strategy.fail(fmt::format("{} = the cluster's {} GPUs", rank_keys(), gpus),
                std::to_string(devices));
}

Options read_options(const JsonReader& reader, std::optional<int> gpus) {
  Options options;
  for (const Strategy& entry : all()) options = read_object(entry.options, reader, options);
  if (gpus && !reader.has("data")) {
    const int others = devices_of(options);
    if (*gpus % others != 0) refuse_gpus(reader, *gpus, others);
    options.data = *gpus / others;
  }
  for (const Strategy& entry : all()) {
    if (entry.complete != nullptr) entry.complete(options, reader);
  }
  reader.finish();
  return options;
}

}  // namespace stratagem::strategies
