// Reads the strategy object; every key has one place here.
#include "strategies/options.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

#include "strategies/all.hpp"

namespace stratagem::strategies {

Options read_options(const JsonReader& reader) {
  Options options;
  const auto degree = [&](const char* key, int& target) {
    if (const auto value = reader.find(key))
      target = static_cast<int>(value->between(1, 1'000'000));
  };
  degree("tensor", options.tensor);
  degree("context", options.context);
  degree("dap", options.dap);
  degree("pipeline", options.pipeline);
  degree("data", options.data);
  if (const auto sequence = reader.find("sequence_parallel"))
    options.sequence_parallel = sequence->boolean();
  if (const auto operators = reader.find("operators")) {
    for (const std::string& pattern : operators->keys())
      options.operators.emplace_back(pattern, operators->at(pattern).text());
  }
  degree("expert", options.expert);
  if (options.data % options.expert != 0)
    reader.at("expert").fail("a divisor of data, " + std::to_string(options.data));
  const double all =
      1.0 * options.tensor * options.context * options.dap * options.pipeline * options.data;
  if (all > 1'000'000) reader.fail("tensor x context x dap x pipeline x data of at most 1000000");
  if (const auto schedule = reader.find("schedule")) {
    std::vector<std::string> names;
    std::ranges::transform(schedules(), std::back_inserter(names), &Schedule::name);
    options.schedule = schedule->one_of(names);
  }
  if (const auto recompute = reader.find("recompute"))
    options.recompute = recompute->one_of({"none", "full"});
  if (const auto overlap = reader.find("overlap_gradients"))
    options.overlap_gradients = overlap->boolean();
  if (const auto bucket = reader.find("bucket")) {
    options.bucket = bucket->quantity<Bytes>();
    if (options.bucket->value <= 0) bucket->fail("a size above zero, such as \"25 MiB\"");
  }
  reader.finish();
  return options;
}

}  // namespace stratagem::strategies
