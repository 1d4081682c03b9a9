// Which ranks' collectives are one.
#include "sim/collective_instances.hpp"

#include "base/input_error.hpp"
#include "tests/catch.hpp"

namespace stratagem::sim::collective_instances_test {

using program::Collective;

TEST_CASE("the k-th collectives of all ranks are one, with the flow of its payload") {
  Folding folding;
  folding.communicator_classes = {{.actors = {0, 1}}};
  folding.flows = {{.payloads = {1_KB}, .parts = {}}, {.payloads = {2_KB}, .parts = {}}};
  CollectiveInstances instances(folding);
  const Collective small{.payload = 1_KB}, large{.payload = 2_KB};
  // Rank 1 comes to the second one before rank 0 comes to the first.
  CHECK_FALSE(instances.arrive(0, 0, small, {.actor = 1}, Instant{5}));
  CHECK_FALSE(instances.arrive(0, 1, large, {.actor = 1}, Instant{9}));
  CHECK(instances.arrive(0, 0, small, {.actor = 0, .queue = 3}, Instant{7}) == 0);
  CHECK(instances[0].last_arrival == Instant{7});
  CHECK(instances[0].arrivals[1].queue == 3);
  CHECK(instances[0].flow == 0);
  CHECK(instances[1].flow == 1);
  // The first to arrive need not be the last to leave.
  CHECK(instances.arrive(0, 1, large, {.actor = 0}, Instant{8}) == 1);
  CHECK(instances[1].last_arrival == Instant{9});
}

TEST_CASE("ranks that do not do the same in the same place break a promise") {
  Folding folding;
  folding.communicator_classes = {{.actors = {0, 1}}};
  folding.flows = {{.parts = {}}};
  CollectiveInstances instances(folding);
  const Collective first{.payload = 1_KB}, other{.payload = 2_KB};
  instances.arrive(0, 0, first, {.actor = 0}, Instant{});
  CHECK_THROWS_AS(instances.arrive(0, 0, other, {.actor = 1}, Instant{}), BrokenPromise);
}

}  // namespace stratagem::sim::collective_instances_test
