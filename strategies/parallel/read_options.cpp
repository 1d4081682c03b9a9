// Each strategy reads its own keys, and completes them when all are known.
#include "strategies/parallel/read_options.hpp"

#include <fmt/format.h>

#include <string>

#include "strategies/parallel/all.hpp"
#include "strategies/parallel/rank_order.hpp"

namespace stratagem::strategies {

void refuse_gpus(const JsonReader& strategy, int gpus, const Options& options) {
  const int devices = devices_of(options), others = devices / options.data;
  const std::string found = std::to_string(gpus);
  const std::string taken =
      fmt::format("{} GPU{} for {}", devices, devices == 1 ? "" : "s", degrees_of(options));
  if (!strategy.has("data")) strategy.fail("a multiple of " + taken, found);
  const std::string left_out = "\"data\" left out (--set data=null)";
  strategy.fail(gpus % others == 0
                    ? fmt::format("{}, or {}, which then is {}", taken, left_out, gpus / others)
                    : fmt::format("{}, or a multiple of {} with {}", taken, others, left_out),
                found);
}

Options read_options(const JsonReader& reader, std::optional<int> gpus) {
  Options options;
  for (const Strategy& entry : all()) options = read_object(entry.options, reader, options);
  if (gpus && !reader.has("data")) {
    const int others = devices_of(options);
    if (*gpus % others != 0) refuse_gpus(reader, *gpus, options);
    options.data = *gpus / others;
  }
  for (const Strategy& entry : all()) {
    if (entry.complete != nullptr) entry.complete(options, reader);
  }
  reader.finish();
  return options;
}

}  // namespace stratagem::strategies
