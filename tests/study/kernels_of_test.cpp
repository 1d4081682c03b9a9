// What the runs of a scenario ask of devices, whatever they would take.
#include "study/kernels_of.hpp"

#include <algorithm>

#include "base/input_error.hpp"
#include "tests/small_scenario.hpp"

using namespace stratagem;
using study::kernels_of_scenario;

namespace {

std::vector<cost::Kernel> kernels_of(std::string text, const std::string& before = "",
                                     const std::string& after = "") {
  if (!before.empty()) {
    const std::size_t at = text.find(before);
    REQUIRE(at != std::string::npos);
    text.replace(at, before.size(), after);
  }
  const TemporaryFolder folder;
  folder.write("small.json", text);
  return kernels_of_scenario((folder.path() / "small.json").string());
}

bool has_product(const std::vector<cost::Kernel>& kernels, std::int64_t m, std::int64_t n,
                 std::int64_t k) {
  return std::ranges::any_of(kernels, [&](const cost::Kernel& kernel) {
    return kernel.kind == cost::KernelKind::gemm && kernel.m == m && kernel.n == n && kernel.k == k;
  });
}

}  // namespace

TEST_CASE("a scenario's kernels have the sizes of its ranks, each once") {
  const auto kernels = kernels_of(small_scenario());
  // MLP of 2 samples of 32 tokens, 64 to 256: whole on one GPU, half of it on each of two.
  CHECK(has_product(kernels, 64, 256, 64));
  CHECK(has_product(kernels, 64, 128, 64));
  CHECK(std::ranges::is_sorted(kernels));
  CHECK(std::ranges::adjacent_find(kernels) == kernels.end());
}

TEST_CASE("a profile that is not there yet is none the less") {
  const std::string profile = "/profiles/v100-sxm3.json";
  CHECK(kernels_of(small_scenario(), profile, "/no/such/file.json") ==
        kernels_of(small_scenario()));
}

TEST_CASE("a scenario that cannot be read says where, in one line") {
  CHECK_THROWS_WITH(kernels_of_scenario("no/such.json"), ContainsSubstring("no/such.json"));
  CHECK_THROWS_WITH(kernels_of(small_scenario(), "\"layers\": 2", "\"layers\": \"two\""),
                    ContainsSubstring("small.json: /") && ContainsSubstring("layers") &&
                        !ContainsSubstring("\n"));
}
