// The report as text: scatters of characters.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/quantity_text.hpp"
#include "calibrate/fit/report.hpp"

namespace stratagem::calibrate {
namespace {

constexpr int page_width = 61;
constexpr int height = 21;

/// Logarithms of the times of all points, measured and fitted, from end to end.
struct Axis {
  double least = 1e300;
  double most = -1e300;

  explicit Axis(const Judgement& judgement) {
    for (const auto& [point, fitted, unseen, constant] : judgement.points) {
      for (const double time : {point.time.value, fitted * point.time.value}) {
        least = std::min(least, std::log(time));
        most = std::max(most, std::log(time));
      }
    }
    most = std::max(most, least + 1e-6);
  }

  [[nodiscard]] int place(double time, int cells) const {
    const double share = (std::log(time) - least) / (most - least);
    return static_cast<int>(std::lround(share * (cells - 1)));
  }
};

std::string scatter(const Judgement& judgement) {
  const Axis axis(judgement);
  std::array<std::array<int, page_width>, height> counts{};
  for (const auto& [point, fitted, unseen, constant] : judgement.points) {
    const double time = point.time.value;
    ++counts.at(axis.place(fitted * time, height)).at(axis.place(time, page_width));
  }
  std::string text = fmt::format("  fitted, up to {}\n", to_text(Seconds{std::exp(axis.most)}));
  for (int row = height - 1; row >= 0; --row) {
    text += "  |";
    for (int column = 0; column < page_width; ++column) {
      const int count = counts.at(row).at(column);
      const bool equal =
          std::lround(static_cast<double>(column) * (height - 1) / (page_width - 1)) == row;
      text += count > 9 ? '#' : count > 1 ? 'o' : count == 1 ? '.' : equal ? '/' : ' ';
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text + fmt::format("  +{:-<{}} measured, from {}\n", "", page_width,
                            to_text(Seconds{std::exp(axis.least)}));
}

std::string worst(const Judgement& judgement) {
  constexpr std::size_t shown = 5;
  std::vector<const JudgedPoint*> points;
  for (const JudgedPoint& judged : judgement.points) points.push_back(&judged);
  std::ranges::stable_sort(points, std::greater{}, [](const JudgedPoint* judged) {
    return std::abs(std::log(judged->fitted));
  });
  if (points.size() > shown) points.resize(shown);
  std::string text = "  worst:\n";
  for (const JudgedPoint* judged : points) {
    text += fmt::format("    {}: {} measured, {:+.0f} % fitted", judged->point.shape,
                        to_text(judged->point.time), 100 * (judged->fitted - 1));
    if (judged->unseen) text += fmt::format(", {:+.0f} % left out", 100 * (*judged->unseen - 1));
    text += "\n";
  }
  return text;
}

}  // namespace

std::string text_report(const Fit& fit) {
  std::string text =
      describe(fit) + "\nScatters: . a point, o up to 9, # more, / where both are equal.\n";
  for (const Quality& quality : fit.qualities) {
    const cost::Evidence* evidence = evidence_of(fit, quality);
    if (evidence == nullptr) continue;
    text += fmt::format("\n{}: {}\n{}{}", quality.what, evidence->source,
                        scatter(quality.judgement), worst(quality.judgement));
  }
  return text;
}

}  // namespace stratagem::calibrate
