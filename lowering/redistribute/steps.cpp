// The analytical volumes of steps, and their names.
#include "lowering/redistribute/steps.hpp"

#include "base/input_error.hpp"
#include "lowering/redistribute/region.hpp"

namespace stratagem::lowering {

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

bool communicates(StepKind kind) { return kind > StepKind::concatenate; }

cost::CollectiveKind collective(StepKind kind) {
  expects(communicates(kind), "a local step is no collective");
  return static_cast<cost::CollectiveKind>(kind);
}

StepKind kind_of(const placement::Conversion& conversion) {
  return conversion.communicates() ? static_cast<StepKind>(conversion.collective())
                                   : StepKind::select;
}

std::map<StepKind, double> volume(const Redistribution& redistribution) {
  std::map<StepKind, double> volumes;
  for (const Step& step : redistribution.steps) {
    if (!communicates(step.kind)) continue;
    for (const std::vector<Share>& group : step.groups) {
      const auto size = static_cast<double>(size_of(group.front().reads.front().ranges));
      volumes[step.kind] +=
          placement::volume(collective(step.kind), size, static_cast<double>(group.size()));
    }
  }
  return volumes;
}

}  // namespace stratagem::lowering
