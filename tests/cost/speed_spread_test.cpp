// The largest of several normal numbers by closed forms and published tables, and whom it slows.
#include "cost/speed_spread.hpp"

#include <cmath>
#include <numbers>

#include "tests/catch.hpp"

namespace stratagem::cost::speed_spread_test {

TEST_CASE("the largest of few normal numbers is expected where closed forms say") {
  CHECK(std::abs(expected_largest(1)) < 1e-12);
  CHECK(expected_largest(2) == Approx(std::numbers::inv_sqrtpi).epsilon(1e-10));
  CHECK(expected_largest(3) == Approx(1.5 * std::numbers::inv_sqrtpi).epsilon(1e-10));
  // Of four: 6 / sqrt(pi) * (1/4 + asin(1/3) / (2 pi)).
  const double four =
      6 * std::numbers::inv_sqrtpi * (0.25 + std::asin(1.0 / 3) / (2 * std::numbers::pi));
  CHECK(expected_largest(4) == Approx(four).epsilon(1e-10));
}

TEST_CASE("the largest of many normal numbers is expected where tables say") {
  // Harter, Expected values of normal order statistics, Biometrika 48, 1961, table 1.
  CHECK(expected_largest(10) == Approx(1.53875).epsilon(1e-5));
  CHECK(expected_largest(100) == Approx(2.50759).epsilon(1e-5));
  // Below the bound sqrt(2 ln n) of any n.
  for (const int count : {8, 1000, 100'000}) {
    CHECK(expected_largest(count) < std::sqrt(2 * std::log(count)));
    CHECK(expected_largest(count) < expected_largest(count + 1));
  }
}

TEST_CASE("products and fused attention wait for the slowest GPU, other kernels do not") {
  Profile profile;
  CHECK(slowest_of(1000, profile) == 1);
  profile.speed_spread = Constant<double>{.value = 0.01};
  CHECK(slowest_of(2, profile) == Approx(1 + 0.01 * std::numbers::inv_sqrtpi).epsilon(1e-10));
  CHECK(slowest_of(1, profile) == Approx(1).epsilon(1e-12));
  for (const KernelKind kind :
       {KernelKind::gemm, KernelKind::attention, KernelKind::attention_backward})
    CHECK(runs_at_its_clock(kind));
  for (const KernelKind kind : {KernelKind::softmax, KernelKind::norm, KernelKind::host_copy})
    CHECK_FALSE(runs_at_its_clock(kind));
}

TEST_CASE("the range of eight published GPUs is what the shipped spreads expect of eight") {
  // Twice the largest, since the distribution is symmetric. 745 to 765 and 1,421 to 1,460 TFLOP/s
  // (stas00/ml-engineering 0359db8).
  const auto range = [](const char* profile, double median) {
    const Profile read = read_profile("scenarios/profiles/" + std::string(profile));
    return 2 * median * read.speed_spread->value * expected_largest(8);
  };
  CHECK(range("h200-sxm5.json", 755) == Approx(20).epsilon(0.01));
  CHECK(range("b200-sxm.json", 1439) == Approx(39).epsilon(0.01));
}

}  // namespace stratagem::cost::speed_spread_test
