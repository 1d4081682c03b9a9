// Which constants a fit rests on, and a table of its errors.
#include "calibrate/fit/fit.hpp"

#include <array>
#include <cstdio>

namespace stratagem::calibrate {

const cost::Evidence* evidence_of(const Fit& fit, const Quality& quality) {
  const auto found = fit.profile.evidence.find(quality.what);
  return found == fit.profile.evidence.end() ? nullptr : &found->second;
}

std::string describe(const Fit& fit) {
  std::string text =
      "                                    |predicted / measured - 1|, %\n"
      "what                  points  median  5 folds  families  left out: median  90th  95th\n";
  for (const Quality& quality : fit.qualities) {
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "%-20s  %6zu  %6.1f  %7.1f", quality.what.c_str(),
                  quality.points, 100 * quality.median_error, 100 * quality.cross_validated_error);
    text += line.data();
    if (const cost::Evidence* found = evidence_of(fit, quality);
        found != nullptr && found->all.fit.points > 0) {
      const cost::Evidence& evidence = *found;
      std::snprintf(line.data(), line.size(), "  %8zu", evidence.families);
      text += line.data();
      std::snprintf(line.data(), line.size(), "  %16.1f  %4.0f  %4.0f",
                    100 * evidence.all.fit.median, 100 * evidence.all.fit.p90,
                    100 * evidence.all.fit.p95);
      text += line.data();
    }
    text += "\n";
  }
  return text;
}

}  // namespace stratagem::calibrate
