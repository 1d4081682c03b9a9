// Ranks that are threads: every operation by its closed form, and what happens when one fails.
#include "kernels/ranks/thread_communicator.hpp"

#include <stdexcept>
#include <vector>

#include "tests/catch.hpp"

namespace stratagem::kernels::thread_communicator_test {
namespace {

TEST_CASE("threads reduce, gather, scatter and exchange as ranks do") {
  constexpr int ranks = 3;
  int checked = 0;  // by one thread at a time: they take turns
  run_ranks(ranks, [&](Communicator& world) {
    const double me = world.rank();
    std::vector<double> sums = {me, 1}, largest = {me, -me};
    world.all_reduce(Reduction::sum, std::span<double>(sums));
    world.all_reduce(Reduction::maximum, std::span<double>(largest));
    CHECK(sums == std::vector<double>{3, 3});
    CHECK(largest == std::vector<double>{2, 0});
    std::vector<double> whole(2 * ranks), part = {me, 10 * me};
    world.all_gather(In<double>(part), std::span<double>(whole));
    CHECK(whole == std::vector<double>{0, 0, 1, 10, 2, 20});
    world.reduce_scatter(Reduction::sum, In<double>(whole), std::span<double>(part));
    CHECK(part == std::vector<double>{3 * me, 30 * me});
    std::vector<double> out = {10 * me, 10 * me + 1, 10 * me + 2}, in(ranks);
    world.all_to_all(In<double>(out), std::span<double>(in));
    CHECK(in == std::vector<double>{me, 10 + me, 20 + me});
    std::vector<double> told = {me};
    world.broadcast(2, std::span<double>(told));
    CHECK(told == std::vector<double>{2});
    ++checked;
  });
  CHECK(checked == ranks);
}

TEST_CASE("groups of threads are apart, and messages arrive in the order in which they were sent") {
  run_ranks(4, [](Communicator& world) {
    const int half = world.rank() % 2;
    const std::unique_ptr<Communicator> group = world.group({2 + half, half});
    CHECK(group->rank() == (world.rank() < 2 ? 1 : 0));
    std::vector<float> sum = {static_cast<float>(world.rank())};
    group->all_reduce(Reduction::sum, std::span<float>(sum));
    CHECK(sum[0] == static_cast<float>(2 + 2 * half));
    std::vector<float> one = {1}, two = {2}, first(1), second(1);
    if (group->rank() == 0) {
      group->send(1, std::span<const float>(one));
      group->send(1, std::span<const float>(two));
    } else {
      const auto early = group->start({}, {{.from = 0, .values = target(std::span<float>(first))}});
      group->receive(0, std::span<float>(second));
      early->wait();
      CHECK(first[0] == 1);
      CHECK(second[0] == 2);
    }
  });
}

TEST_CASE("when a thread fails the others stop waiting, and its error is told") {
  const auto fail = [] {
    run_ranks(3, [](Communicator& world) {
      if (world.rank() == 1) throw std::runtime_error("this one");
      world.barrier();
    });
  };
  CHECK_THROWS_WITH(fail(), "this one");
}

}  // namespace
}  // namespace stratagem::kernels::thread_communicator_test
