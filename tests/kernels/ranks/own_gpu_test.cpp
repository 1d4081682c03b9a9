// Ranks and their GPUs: hosts and GPUs made up, since the rule needs none.
#include "kernels/ranks/own_gpu.hpp"

#include "base/input_error.hpp"
#include "tests/catch.hpp"

namespace stratagem::kernels::own_gpu_test {

namespace {

TEST_CASE("ranks that see all GPUs of their host take them in order, on every host anew") {
  const VisibleGpus here{"here", {"a", "b", "c"}}, there{"there", {"d", "e"}};
  CHECK(gpus_of_ranks({here, here, there, there, here}) == std::vector{0, 1, 0, 1, 2});
}

TEST_CASE("a launcher that shows each rank its own GPU as the first has each rank take that") {
  CHECK(gpus_of_ranks({{"here", {"a"}}, {"here", {"b"}}, {"here", {"c"}}}) == std::vector{0, 0, 0});
  // Pairs that overlap: nobody takes what is taken.
  CHECK(gpus_of_ranks({{"here", {"a", "b"}}, {"here", {"a", "c"}}}) == std::vector{0, 1});
}

TEST_CASE("a rank without a GPU of its own is refused in one line that names it and its host") {
  const VisibleGpus one{"here", {"a"}};
  CHECK_THROWS_WITH(gpus_of_ranks({one, one}),
                    "rank 1: expected a GPU of its own on here, found 2 ranks there, and 1 GPUs "
                    "that this one sees, all taken");
  CHECK_THROWS_WITH(gpus_of_ranks({one, {"there", {}}}),
                    ContainsSubstring("rank 1") && ContainsSubstring("no GPU that this one sees"));
  CHECK_THROWS_AS(gpus_of_ranks({one, one}), InputError);
}

TEST_CASE("what a rank sees arrives as it was") {
  const auto alone = lone();
  const std::vector<VisibleGpus> all = visible_gpus(*alone);
  REQUIRE(all.size() == 1);
  CHECK_FALSE(all[0].host.empty());
}

}  // namespace

}  // namespace stratagem::kernels::own_gpu_test
