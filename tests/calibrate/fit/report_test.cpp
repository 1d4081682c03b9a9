// What reports of fits show, of a fit to the shipped measurements of V100s.
#include "calibrate/fit/report.hpp"

#include "calibrate/fit/fit_profile.hpp"
#include "calibrate/fit/table.hpp"
#include "tests/catch.hpp"

namespace stratagem::calibrate {
namespace {

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t times = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++times;
  return times;
}

const Fit& v100() {
  static const Fit fit = fit_profile(read_datasheet("scenarios/datasheets/v100-sxm2.json"));
  return fit;
}

TEST_CASE("the page has a circle for every judged point, each in its picture, and no other file") {
  const std::string page = html_report(v100());
  std::size_t points = 0;
  for (const Quality& quality : v100().qualities) points += quality.judgement.points.size();
  CHECK(points == 160 + 160 + 4 * 40 + 44 + 77);
  CHECK(count(page, "<circle ") == points);
  CHECK(count(page, "<svg ") == v100().qualities.size());
  CHECK(count(page, "</svg>") == v100().qualities.size());
  CHECK(count(page, "http") == 0);
  CHECK(count(page, "src=") == 0);
  CHECK(page.find("&quot;Results - FP16 ip, Mixed math&quot;") != std::string::npos);
}

TEST_CASE("the text names every fit, what was measured, and the shape that it predicts worst") {
  const std::string text = text_report(v100());
  CHECK(count(text, "  worst:\n") == v100().qualities.size());
  const auto of_fp16 = [](const Quality& quality) { return quality.what == "gemm fp16"; };
  const auto found = std::ranges::find_if(v100().qualities, of_fp16);
  REQUIRE(found != v100().qualities.end());
  const auto off = [](const JudgedPoint& judged) { return std::abs(std::log(judged.fitted)); };
  const auto worst = std::ranges::max_element(found->judgement.points, {}, off);
  const std::size_t section = text.find("\ngemm fp16: V100-SXM2-16GB");
  REQUIRE(section != std::string::npos);
  const std::size_t list = text.find("  worst:\n", section);
  CHECK(text.substr(list + 9).starts_with("    " + worst->point.shape + ": "));
}

cost::Profile judged(double median, double p95, double constant) {
  cost::Profile profile;
  profile.name = "judged";
  profile.evidence["gemm fp16"] = {
      .of = "gemm fp16",
      .source = "G (somebody 1234, table)",
      .parameters = 5,
      .families = 3,
      .size = {1e11, 1e12},
      .smallest = cost::Range{8, 64},
      .large = {
          .fit = {.points = 10, .median = median, .p90 = p95, .p95 = p95, .worst = p95},
          .constant = {.points = 10, .median = 0.1, .p90 = 0.2, .p95 = constant, .worst = 1}}};
  profile.evidence["gemm bf16"] = profile.evidence["gemm fp16"];  // as fp16
  return profile;
}

TEST_CASE("the table tells which target is missed, and names a fit once") {
  const std::string good = fit_table({judged(0.05, 0.069, 0.10)});
  CHECK(good.find("| gemm fp16, >= 100 GFLOP | G (somebody) | 5 | 10 | 3 | 5.0 % |") !=
        std::string::npos);
  CHECK(count(good, "| yes |") == 1);
  CHECK(count(good, "gemm bf16") == 0);
  CHECK(fit_table({judged(0.06, 0.069, 0.10)}).find("no: median, 5 %") != std::string::npos);
  CHECK(fit_table({judged(0.05, 0.08, 0.10)}).find("no: 95th, 7 %") != std::string::npos);
  CHECK(count(fit_table({judged(0.05, 0.069, 0.10), judged(0.05, 0.069, 0.10)}), "| yes |") == 1);
}

}  // namespace
}  // namespace stratagem::calibrate
