// A header with sizes, a line per stage, then the primitives.
#include "report/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "strategies/language/plan_devices.hpp"
#include "strategies/language/plan_text.hpp"

namespace stratagem::report {
namespace {

using strategies::Plan;

/// "4 stages"
template <typename Count>
std::string counted(Count count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : what.ends_with("h") ? "es" : "s");
}

/// "device 3", "devices 0 to 7", "16 devices, the first 3": where they are not consecutive.
std::string devices_text(const std::vector<int>& devices) {
  if (devices.empty()) return "no device";
  const auto count = static_cast<int>(devices.size());
  if (count == 1) return fmt::format("device {}", devices[0]);
  if (devices.back() - devices.front() + 1 == count)
    return fmt::format("devices {} to {}", devices.front(), devices.back());
  return fmt::format("{} devices from {} to {}", count, devices.front(), devices.back());
}

/// " in 2 copies", " in 2-1-1 copies that take turns"
std::string copies_text(const strategies::Copies& copies) {
  if (copies.most() == 1) return "";
  return fmt::format(
      " in {} copies{}",
      copies.equal() ? std::to_string(copies.most()) : strategies::to_text(copies.of_stage),
      copies.deal == strategies::Deal::turns ? " that take turns" : "");
}

std::string stages_text(const Plan& plan) {
  std::vector<std::string> segments;
  std::size_t width = 0;
  for (int stage = 0; stage < static_cast<int>(plan.stages.size()); ++stage) {
    segments.push_back(strategies::segments_of(plan, stage));
    width = std::max(width, segments.back().size());
  }
  std::string text;
  for (int stage = 0; stage < static_cast<int>(segments.size()); ++stage) {
    text += fmt::format("stage {:<3}  {:<{}}", stage, segments[stage], width);
    const int copies = plan.copies().of(stage);
    for (int copy = 0; copy < copies; ++copy) {
      const std::string which = copies > 1 ? fmt::format("copy {}: ", copy) : "";
      text += "  " + which + devices_text(strategies::devices_of(plan, stage, copy));
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::string explain(const study::Run& run, const Plan& plan) {
  std::string text = fmt::format(
      "{}: {} on {}, {}{}, {} of {}\n\n", run.name, counted(plan.operators().size(), "operator"),
      counted(strategies::device_count(plan), "device"), counted(plan.stages.size(), "stage"),
      copies_text(plan.copies()), counted(plan.micro_batches, "micro-batch"),
      counted(std::int64_t{run.batch.micro} * run.batch.ranks, "sample"));
  text += stages_text(plan);
  const std::string primitives = strategies::to_text(plan);
  return primitives.empty() ? text : text + "\n" + primitives;
}

}  // namespace stratagem::report
