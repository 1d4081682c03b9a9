// Collectives on values, against sums and copies that are written out here.
#include "execute/exchange.hpp"

#include "execute/host_engine.hpp"
#include "kernels/ranks/thread_communicator.hpp"
#include "tests/catch.hpp"

namespace stratagem::execute::exchange_test {
namespace {

using cost::CollectiveKind;

constexpr int members = 3;

/// Large ones, of which parts are equal and are not, and a small one.
const std::vector<std::int64_t> sizes = {9999, 10000, 100};

Region whole(std::size_t tensor) { return all_of({.ranges = {{0, sizes[tensor]}}}); }

/// Runs of equal length, the last one shorter.
Region part(std::size_t tensor, int member) {
  Region region = whole(tensor);
  const std::int64_t length = (sizes[tensor] + members - 1) / members;
  region.begin = std::min(member * length, sizes[tensor]);
  region.end = std::min(region.begin + length, sizes[tensor]);
  return region;
}

double number(std::size_t tensor, int member, std::int64_t i) {
  return static_cast<double>((i * 7 + member * 31 + static_cast<int>(tensor)) % 101);
}
double sum(std::size_t tensor, std::int64_t i) {
  double result = 0;
  for (int member = 0; member < members; ++member) result += number(tensor, member, i);
  return result;
}

Shared<double> value(const Region& region, std::size_t tensor, int member) {
  Shared<double> result = zeros<double>(region);
  for (std::int64_t i = region.begin; i < region.end; ++i)
    result->data[static_cast<std::size_t>(i - region.begin)] = number(tensor, member, i);
  return result;
}

/// In the memory of another value, from its beginning.
Shared<double> inside(const Shared<double>& other, const Region& region) {
  auto result = std::make_shared<Value<double>>();
  result->region = region;
  result->data =
      Elements<double>(std::span(other->data.data(), static_cast<std::size_t>(region.size())));
  return result;
}

enum class Where : std::uint8_t { apart, in_place, added };

using Of = Region (*)(std::size_t, int);
Region all(std::size_t tensor, int /*member*/) { return whole(tensor); }

/// Does a collective on all tensors at once, and on each alone, and holds what every member has to
/// `expected(tensor, element)`. To what is added there is 5.
template <typename Expected>
void check(CollectiveKind kind, Of before, Of after, Where where, const Expected& expected) {
  for (const std::vector<std::size_t>& tensors :
       std::vector<std::vector<std::size_t>>{{0, 1, 2}, {0}, {1}, {2}}) {
    kernels::run_ranks(members, [&](kernels::Communicator& group) {
      const int me = group.rank();
      Exchange<double> exchange;
      exchange.adds = where == Where::added;
      exchange.before = [&](std::size_t i, int member) { return before(tensors[i], member); };
      exchange.after = [&](std::size_t i, int member) { return after(tensors[i], member); };
      for (const std::size_t tensor : tensors) {
        exchange.inputs.push_back(value(before(tensor, me), tensor, me));
        const Region result = after(tensor, me);
        exchange.outputs.push_back(where == Where::in_place ? inside(exchange.inputs.back(), result)
                                                            : zeros<double>(result));
        if (exchange.adds) std::ranges::fill(exchange.outputs.back()->data, 5.0);
      }
      HostEngine<double> engine;
      Packing<double> packing;
      HostPost<double> post(engine, group, packing);
      run<double>(engine, {.kind = kind}, exchange, post);
      bool right = true;
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        const Value<double>& result = *exchange.outputs[i];
        for (std::int64_t k = result.region.begin; k < result.region.end; ++k)
          right = right && result.data[static_cast<std::size_t>(k - result.region.begin)] ==
                               expected(tensors[i], k) + (exchange.adds ? 5 : 0);
      }
      CHECK(right);
    });
  }
}

TEST_CASE("shards of sums, also where the shard begins in what is summed, or is added to") {
  for (const Where where : {Where::apart, Where::in_place, Where::added})
    check(CollectiveKind::reduce_scatter, all, part, where, sum);
}

TEST_CASE("sums, in place too") {
  for (const Where where : {Where::apart, Where::in_place, Where::added})
    check(CollectiveKind::all_reduce, all, all, where, sum);
}

TEST_CASE("what members have becomes the whole") {
  const auto owner = [](std::size_t tensor, std::int64_t i) {
    const std::int64_t length = (sizes[tensor] + members - 1) / members;
    return number(tensor, static_cast<int>(i / length), i);
  };
  for (const Where where : {Where::apart, Where::added})
    check(CollectiveKind::all_gather, part, all, where, owner);
}

/// A matrix of which members have rows and are to have columns, as few or as many as they please:
/// what one sends to another is as large as no other message.
TEST_CASE("rows become columns, in parts of any size") {
  const std::vector<std::int64_t> rows = {0, 5, 9, 10}, columns = {0, 1, 3, 7};
  const auto before = [&](std::size_t, int member) {
    return all_of({.ranges = {{rows[member], rows[member + 1]}, {0, columns.back()}}});
  };
  const auto after = [&](std::size_t, int member) {
    return all_of({.ranges = {{0, rows.back()}, {columns[member], columns[member + 1]}}});
  };
  kernels::run_ranks(members, [&](kernels::Communicator& group) {
    const int me = group.rank();
    const Shared<double> here = zeros<double>(before(0, me)), there = zeros<double>(after(0, me));
    for (std::size_t i = 0; i < here->data.size(); ++i)
      here->data[i] = static_cast<double>(rows[me] * columns.back()) + static_cast<double>(i);
    const Exchange<double> exchange{
        .inputs = {here}, .outputs = {there}, .before = before, .after = after};
    HostEngine<double> engine;
    Packing<double> packing;
    HostPost<double> post(engine, group, packing);
    run<double>(engine, {.kind = CollectiveKind::all_to_all}, exchange, post);
    bool right = true;
    std::size_t at = 0;
    for (std::int64_t row = 0; row < rows.back(); ++row) {
      for (std::int64_t column = columns[me]; column < columns[me + 1]; ++column)
        right = right && there->data[at++] == static_cast<double>(row * columns.back() + column);
    }
    CHECK(right);
  });
}

TEST_CASE("a kind that is no conversion is refused") {
  const std::unique_ptr<kernels::Communicator> alone = kernels::lone();
  HostEngine<double> engine;
  Packing<double> packing;
  HostPost<double> post(engine, *alone, packing);
  CHECK_THROWS_AS(run<double>(engine, {.kind = CollectiveKind::broadcast}, {}, post),
                  BrokenPromise);
}

}  // namespace
}  // namespace stratagem::execute::exchange_test
