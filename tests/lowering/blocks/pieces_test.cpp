// Pairs of a collective and a product as tasks of a block, cut in pieces.
#include "lowering/blocks/pieces.hpp"

#include <algorithm>

#include "tests/catch.hpp"

namespace stratagem::lowering::pieces_test {
namespace {

using cost::CollectiveKind;
using program::Stream;

enum Slots { partial, share, whole, weight, result };

program::Task collective(CollectiveKind kind, int from, int to, std::vector<int> waits) {
  program::Task task;
  task.name = to_text(kind);
  task.work = program::Collective{.kind = kind, .payload = 8_MB};
  task.stream = Stream::communication;
  task.waits = std::move(waits);
  task.reads = {from};
  task.writes = {to};
  task.operations.emplace_back();
  return task;
}

/// A reduce-scatter of a partial sum to shares, a gather of these, and a product of `tokens`.
program::Block block(std::int64_t tokens) {
  program::Block block;
  block.slots.resize(5);
  block.tasks = {collective(CollectiveKind::reduce_scatter, partial, share, {}),
                 collective(CollectiveKind::all_gather, share, whole, {})};
  program::Task product;
  product.name = "product";
  cost::Kernel kernel{.kind = cost::KernelKind::gemm, .m = tokens, .n = 64, .k = 32, .batch = 1};
  kernel.flops = Flops{2.0 * static_cast<double>(tokens) * 64 * 32};
  kernel.traffic = 2.0 * static_cast<double>(tokens * (64 + 32) + 64 * 32) * 1_B;
  product.work = kernel;
  product.waits = {1};
  product.reads = {whole, weight};
  product.writes = {result};
  product.operations.emplace_back();
  block.tasks.push_back(product);
  return block;
}

std::vector<const program::Task*> products(const program::Block& block) {
  std::vector<const program::Task*> found;
  for (const program::Task& task : block.tasks) {
    if (std::holds_alternative<cost::Kernel>(task.work)) found.push_back(&task);
  }
  return found;
}

program::Block cut(std::int64_t tokens, const Cut& how) {
  program::Block one = block(tokens);
  static_cast<void>(cut_in_pieces(one, {{1, how}}, [](int) { return true; }));
  return one;
}

bool has(const std::vector<int>& list, int value) {
  return std::ranges::find(list, value) != list.end();
}

}  // namespace

TEST_CASE("the product of the own share waits for what writes the share on another stream") {
  for (const Cut::Way way : {Cut::Way::ring_exchange, Cut::Way::own_share_first}) {
    const program::Block pieces = cut(40, {way, 4});
    const program::Task& own = *products(pieces).front();
    CHECK(own.reads == std::vector<int>{share, weight});
    CHECK(own.waits == std::vector<int>{0});
  }
}

TEST_CASE("the last piece has the operations, and reads the own share, which is free behind it") {
  for (const Cut::Way way : {Cut::Way::ring_exchange, Cut::Way::own_share_first}) {
    const program::Block pieces = cut(40, {way, 4});
    const std::vector<const program::Task*> all = products(pieces);
    for (const program::Task* piece : all) {
      CHECK(piece->operations.empty() == (piece != all.back()));
      CHECK(has(piece->writes, result));
    }
    CHECK(has(all.back()->reads, share));
    CHECK(all.back() == &pieces.tasks.back());
  }
}

TEST_CASE("own tokens come first, then those before and behind, and weights are read anew") {
  // 40 tokens on 4 ranks: 10 of one's own, 10 before them and 20 behind, as on the second rank.
  const program::Block pieces = cut(40, {Cut::Way::own_share_first, 4});
  const std::vector<const program::Task*> all = products(pieces);
  REQUIRE(all.size() == 3);
  Bytes traffic;
  std::vector<std::int64_t> tokens;
  for (const program::Task* piece : all) {
    tokens.push_back(std::get<cost::Kernel>(piece->work).m);
    traffic += std::get<cost::Kernel>(piece->work).traffic;
  }
  CHECK(tokens == std::vector<std::int64_t>{10, 10, 20});
  CHECK(traffic == 2.0 * (40 * (64 + 32) + 3 * 64 * 32) * 1_B);
}

TEST_CASE("a product with fewer tokens than pieces stays whole") {
  for (const Cut::Way way : {Cut::Way::ring_exchange, Cut::Way::own_share_first}) {
    CHECK(cut(3, {way, 4}).tasks.size() == 3);
    CHECK(cut(4, {way, 4}).tasks.size() > 3);
  }
}

}  // namespace stratagem::lowering::pieces_test
