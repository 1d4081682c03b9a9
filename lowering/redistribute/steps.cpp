// The analytical volumes of steps, and their names.
#include "lowering/redistribute/steps.hpp"

#include "base/input_error.hpp"
#include "lowering/redistribute/region.hpp"

namespace stratagem::lowering {
namespace {

/// Of a group of n devices with `size` elements on each before.
double volume_of(StepKind kind, double n, double size) {
  switch (kind) {
    case StepKind::send:
      return size;
    case StepKind::broadcast:
    case StepKind::all_gather:
      return (n - 1) * size;
    case StepKind::all_reduce:
      return 2 * (n - 1) * size / n;
    default:
      return (n - 1) * size / n;
  }
}

}  // namespace

std::string to_text(StepKind kind) {
  switch (kind) {
    case StepKind::select:
      return "select";
    case StepKind::sum:
      return "sum";
    case StepKind::concatenate:
      return "concatenate";
    default:
      return cost::to_text(collective(kind));
  }
}

bool communicates(StepKind kind) { return kind >= StepKind::send; }

cost::CollectiveKind collective(StepKind kind) {
  switch (kind) {
    case StepKind::send:
      return cost::CollectiveKind::send;
    case StepKind::broadcast:
      return cost::CollectiveKind::broadcast;
    case StepKind::all_reduce:
      return cost::CollectiveKind::all_reduce;
    case StepKind::all_gather:
      return cost::CollectiveKind::all_gather;
    case StepKind::reduce_scatter:
      return cost::CollectiveKind::reduce_scatter;
    case StepKind::all_to_all:
      return cost::CollectiveKind::all_to_all;
    default:
      throw BrokenPromise("a local step is no collective");
  }
}

StepKind kind_of(const placement::Conversion& conversion) {
  if (!conversion.communicates()) return StepKind::select;
  switch (conversion.collective()) {
    case cost::CollectiveKind::all_reduce:
      return StepKind::all_reduce;
    case cost::CollectiveKind::all_gather:
      return StepKind::all_gather;
    case cost::CollectiveKind::reduce_scatter:
      return StepKind::reduce_scatter;
    case cost::CollectiveKind::all_to_all:
      return StepKind::all_to_all;
    default:
      throw BrokenPromise("conversions are collectives of all ranks");
  }
}

std::map<StepKind, double> volume(const Redistribution& redistribution) {
  std::map<StepKind, double> volumes;
  for (const Step& step : redistribution.steps) {
    if (!communicates(step.kind)) continue;
    for (const std::vector<Share>& group : step.groups) {
      const auto size = static_cast<double>(size_of(group.front().reads.front().ranges));
      volumes[step.kind] += volume_of(step.kind, static_cast<double>(group.size()), size);
    }
  }
  return volumes;
}

}  // namespace stratagem::lowering
