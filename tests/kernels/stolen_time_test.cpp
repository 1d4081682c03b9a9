// Against lines as Linux writes them.
#include "kernels/stolen_time.hpp"

#include <sstream>

#include "tests/catch.hpp"

namespace stratagem::kernels {
namespace {

// user nice system idle iowait irq softirq steal guest guest_nice
constexpr const char* stat =
    "cpu  3000 7 90 5000 3 0 8 170 9 0\n"
    "cpu0 1000 2 30 2000 1 0 3 50 4 0\n"
    "cpu1 1000 2 30 2000 1 0 3 20 5 0\n"
    "cpu12 1000 3 30 1000 1 0 2 100 0 0\n"
    "intr 4711 100 200 300 400 500 600 700 800\n"
    "ctxt 12345\n";

Seconds stolen(const std::string& text, const std::function<bool(int)>& mine) {
  std::istringstream lines(text);
  return stolen_time(lines, mine, 100);
}

TEST_CASE("what was stolen is of the processors that are mine") {
  CHECK(stolen(stat, [](int) { return true; }) == Seconds{1.7});
  CHECK(stolen(stat, [](int p) { return p == 1; }) == Seconds{0.2});
  CHECK(stolen(stat, [](int p) { return p != 1; }) == Seconds{1.5});
  CHECK(stolen(stat, [](int) { return false; }) == Seconds{});
}

TEST_CASE("a system that does not count what is stolen has none") {
  CHECK(stolen("cpu0 1000 2 30 2000\n", [](int) { return true; }) == Seconds{});
  CHECK(stolen("", [](int) { return true; }) == Seconds{});
}

TEST_CASE("of this process it does not become less") {
  const Seconds before = stolen_time();
  CHECK(before >= Seconds{});
  CHECK(stolen_time() >= before);
}

}  // namespace
}  // namespace stratagem::kernels
