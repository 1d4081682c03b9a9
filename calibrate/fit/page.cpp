// The report as a page: one picture per fit.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/html_text.hpp"
#include "base/quantity_text.hpp"
#include "calibrate/fit/report.hpp"

namespace stratagem::calibrate {
namespace {

constexpr double side = 420;
constexpr double margin = 56;

/// Powers of ten around all times, so that both axes are alike.
struct Scale {
  int least = 100;
  int most = -100;

  explicit Scale(const Judgement& judgement) {
    for (const auto& [point, fitted, unseen, constant] : judgement.points) {
      for (const double time : {point.time.value, fitted * point.time.value}) {
        least = std::min(least, static_cast<int>(std::floor(std::log10(time))));
        most = std::max(most, static_cast<int>(std::ceil(std::log10(time))));
      }
    }
    most = std::max(most, least + 1);
  }
  [[nodiscard]] double along(double time) const {
    return (std::log10(time) - least) / (most - least) * side;
  }
};

std::string grid(const Scale& scale) {
  std::string svg;
  for (int power = scale.least; power <= scale.most; ++power) {
    const double at = scale.along(std::pow(10.0, power));
    const std::string label = to_text(Seconds{std::pow(10.0, power)});
    svg += fmt::format(
        "<path class=\"grid\" d=\"M{0:.1f} {1:.1f}V{2:.1f}M{3:.1f} {4:.1f}H{5:.1f}\"/>"
        "<text x=\"{0:.1f}\" y=\"{6:.1f}\" text-anchor=\"middle\">{7}</text>"
        "<text x=\"{8:.1f}\" y=\"{9:.1f}\" text-anchor=\"end\">{7}</text>\n",
        margin + at, margin, margin + side, margin, margin + side - at, margin + side,
        margin + side + 18, label, margin - 6, margin + side - at + 4);
  }
  return svg;
}

std::string picture(const Judgement& judgement) {
  const Scale scale(judgement);
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {0:.0f} {0:.0f}\" width=\"{0:.0f}\" role=\"img\" aria-label=\"fitted "
      "over "
      "measured times\">\n{1}<path class=\"equal\" d=\"M{2} {3}L{3} {2}\"/>\n",
      side + 2 * margin, grid(scale), margin, margin + side);
  for (const auto& [point, fitted, unseen, constant] : judgement.points) {
    const double time = point.time.value;
    const std::string left_out =
        unseen ? fmt::format("; {:+.1f} % with its family left out", 100 * (*unseen - 1)) : "";
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"><title>{}: measured {}, fitted {:+.1f} "
        "%{}</title></circle>\n",
        margin + scale.along(time), margin + side - scale.along(fitted * time),
        html_text(point.shape), to_text(point.time), 100 * (fitted - 1), left_out);
  }
  return svg + "</svg>\n";
}

std::string section(const Quality& quality, const cost::Evidence& evidence) {
  std::string text = fmt::format(
      "<section><h2>{}</h2><p>{}</p><p>{} points, {} families of shapes, {} constants. Median "
      "error "
      "{:.1f} %",
      html_text(quality.what), html_text(evidence.source), quality.judgement.points.size(),
      evidence.families, evidence.parameters, 100 * quality.median_error);
  if (evidence.all.fit.points > 0) {
    text += fmt::format(
        "; with families left out {:.1f} %, 90th percentile {:.1f} %, 95th {:.1f} %, worst {:.1f} "
        "%",
        100 * evidence.all.fit.median, 100 * evidence.all.fit.p90, 100 * evidence.all.fit.p95,
        100 * evidence.all.fit.worst);
  }
  return text + ".</p>\n" + picture(quality.judgement) + "</section>\n";
}

}  // namespace

std::string html_report(const Fit& fit) {
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Fits of "
      "{0}</title>\n"
      "<style>body{{font:15px/1.4 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}}"
      "text{{font:11px sans-serif;fill:#444}}.grid{{stroke:#ddd;fill:none}}"
      ".equal{{stroke:#888;stroke-dasharray:4 3}}circle{{fill:#1663a6;fill-opacity:.5}}</style>"
      "</head><body>\n<h1>Fits of {0}</h1>\n<p>Every point is one measured time: to the right "
      "measured, upwards fitted, both logarithmic. On the dashed line they are equal.</p>\n",
      html_text(fit.profile.name));
  for (const Quality& quality : fit.qualities) {
    if (const cost::Evidence* evidence = evidence_of(fit, quality); evidence != nullptr)
      page += section(quality, *evidence);
  }
  return page + "</body></html>\n";
}

}  // namespace stratagem::calibrate
