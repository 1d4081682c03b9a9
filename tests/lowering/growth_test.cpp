// What a program's size depends on: the work of different devices, never their number, nor how
// often they do the same.
#include "tests/lowering/lowered.hpp"

namespace stratagem::lowering::growth_test {

using program::Program;

namespace {

/// GPT-3 175B on 8-way tensor, 8-way pipeline parallelism, two chunks on every rank.
Program gpt_3(std::int64_t layers, int micro_batches, int data) {
  const model::Graph graph = model::gpt({.layers = layers,
                                         .hidden = 12288,
                                         .heads = 96,
                                         .sequence = 2048,
                                         .vocabulary = 51200,
                                         .batch = data});
  return lowered(
      graph,
      R"({"tensor": 8, "pipeline": 8, "schedule": "interleaved", "chunks": 2, "data": )" +
          std::to_string(data) + "}",
      micro_batches);
}

struct Size {
  std::size_t sequences = 0;
  std::size_t blocks = 0;
  std::size_t tasks = 0;           ///< in blocks
  std::vector<std::size_t> calls;  ///< by sequence
  friend bool operator==(const Size&, const Size&) = default;
};

Size size_of(const Program& program) {
  Size size{program.sequences.size(), program.blocks.size(), 0, {}};
  for (const program::Block& block : program.blocks) size.tasks += block.tasks.size();
  for (const program::Sequence& sequence : program.sequences)
    size.calls.push_back(sequence.calls.size());
  return size;
}

}  // namespace

TEST_CASE("data-parallel replicas add devices to a program and nothing else") {
  const Program two = gpt_3(96, 64, 2);
  const Program eight = gpt_3(96, 64, 8);
  CHECK(two.devices.size() == 128);
  CHECK(eight.devices.size() == 512);
  CHECK(size_of(two) == size_of(eight));
  // One replica does not reduce gradients. Of several every rank of the pipeline reduces those of
  // its own layers, all at once: a block of one task on each, called once.
  Size expected = size_of(gpt_3(96, 64, 1));
  REQUIRE(expected.sequences == 8);
  expected.blocks += 8;
  expected.tasks += 8;
  for (std::size_t& calls : expected.calls) ++calls;
  CHECK(size_of(two) == expected);
}

TEST_CASE("layers and micro-batches add calls to a program and nothing else") {
  const Size size = size_of(gpt_3(96, 64, 1));
  // A rank has 12 layers more, each with a forward and a backward call per micro-batch and a step.
  Size deeper = size;
  for (std::size_t& calls : deeper.calls) calls += 12 * (2 * 64 + 1);
  CHECK(size_of(gpt_3(192, 64, 1)) == deeper);
  // Per micro-batch 12 layers forward and backward, and 8 calls besides: two stages receive and
  // send on both ways, or run the embedding or the head instead of what would cross the ends of the
  // pipeline.
  Size longer = size;
  for (std::size_t& calls : longer.calls) calls += 64 * (12 * 2 + 8);
  const Program twice = gpt_3(96, 128, 1);
  CHECK(size_of(twice) == longer);
  // They are turns of loops, which store no more.
  const Program once = gpt_3(96, 64, 1);
  for (std::size_t s = 0; s < once.sequences.size(); ++s) {
    const std::size_t stored = once.sequences[s].calls.stored().size();
    CHECK(stored == twice.sequences[s].calls.stored().size());
    CHECK(stored < once.sequences[s].calls.size() / 4);
  }
}

}  // namespace stratagem::lowering::growth_test
