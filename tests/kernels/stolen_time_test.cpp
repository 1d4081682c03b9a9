// Against lines as Linux writes them.
#include "kernels/stolen_time.hpp"

#include <sched.h>

#include <sstream>

#include "tests/catch.hpp"

namespace stratagem::kernels::stolen_time_test {
namespace {

// user nice system idle iowait irq softirq steal guest guest_nice
constexpr const char* stat =
    "cpu  3000 7 90 5000 3 0 8 170 9 0\n"
    "cpu0 1000 2 30 2000 1 0 3 50 4 0\n"
    "cpu1 1000 2 30 2000 1 0 3 20 5 0\n"
    "cpu12 1000 3 30 1000 1 0 2 100 0 0\n"
    "intr 4711 100 200 300 400 500 600 700 800\n"
    "ctxt 12345\n";

std::vector<Seconds> stolen(const std::string& text, const std::function<bool(int)>& mine) {
  std::istringstream lines(text);
  return stolen_times(lines, mine, 100);
}

TEST_CASE("what was stolen is told of each processor that is mine") {
  const auto all = [](int) { return true; };
  CHECK(stolen(stat, all) == std::vector{0.5_s, 0.2_s, 1_s});
  CHECK(stolen(stat, [](int p) { return p == 12; }) == std::vector{1_s});
  CHECK(stolen(stat, [](int p) { return p != 12; }) == std::vector{0.5_s, 0.2_s});
  CHECK(stolen(stat, [](int) { return false; }).empty());
}

TEST_CASE("a system that does not count what is stolen has none") {
  CHECK(stolen("cpu0 1000 2 30 2000\n", [](int) { return true; }) == std::vector{0_s});
  CHECK(stolen("", [](int) { return true; }).empty());
}

TEST_CASE("of this thread it is told for every processor that it may run on, and becomes no less") {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  REQUIRE(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  const std::vector<Seconds> before = stolen_times(), after = stolen_times();
  REQUIRE(before.size() == static_cast<std::size_t>(CPU_COUNT(&allowed)));
  REQUIRE(after.size() == before.size());
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(after[i] >= before[i]);
}

}  // namespace
}  // namespace stratagem::kernels::stolen_time_test
