// How strategy objects of scenarios are read, and what they refuse.
#include "strategies/parallel/options.hpp"

#include "strategies/parallel/rank_order.hpp"
#include "strategies/parallel/read_options.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::strategies::options_test {

namespace {

Options read(const std::string& text) {
  return read_options(JsonReader::from_text(text, "test.json"));
}

std::string refused(const std::string& text) {
  return lowering::refusal([&] { read(text); });
}

}  // namespace

TEST_CASE("an empty strategy runs on one device, keeps all activations and overlaps nothing") {
  const Options options = read("{}");
  CHECK(devices_of(options) == 1);
  CHECK(options.recompute.what == "none");
  CHECK_FALSE(options.gradients.overlap);
  CHECK(options.gradients.bucket == std::nullopt);
}

TEST_CASE("the devices of a strategy are the product of its degrees") {
  const Options options = read(R"({"tensor": 8, "pipeline": 3, "data": 5})");
  CHECK(devices_of(options) == 8 * 3 * 5);
}

TEST_CASE("every option is read from its key") {
  const Options options = read(
      R"({"schedule": "gpipe", "recompute": "full", "overlap_gradients": true, "bucket": "25 MiB",
          "zero": 2, "gradient_buffers": 2})");
  CHECK(options.schedule == "gpipe");
  CHECK(options.recompute.what == "full");
  CHECK(options.gradients.overlap);
  CHECK(options.gradients.bucket == 25_MiB);
  CHECK(options.gradients.buffers == 2);
}

TEST_CASE("every degree and every division is read from its key") {
  const Options options = read(
      R"({"tensor": 2, "context": 3, "dap": 5, "data": 28, "expert": 7, "pipeline": 11,
          "sequence_parallel": true, "operators": {"*.b": "n", "*.a": ""}})");
  CHECK(devices_of(options) == 2 * 3 * 5 * 28 * 11);  // experts are divided over data ranks
  CHECK(stride_of(options, "dp") == 2 * 3 * 5);
  CHECK(options.expert == 7);
  CHECK(options.division.tokens);
  CHECK(options.division.operators == NamedDimensions{{"*.b", "n"}, {"*.a", ""}});
}

TEST_CASE("expert ranks are data ranks") {
  CHECK_THAT(refused(R"({"expert": 2})"), StartsWith("test.json: /expert: expected a divisor of"));
}

TEST_CASE("co-shard takes one number of parts, or one for attention and one for the MLP") {
  CHECK(read("{}").division.coshard.attention == 1);
  CHECK(read(R"({"coshard": 4})").division.coshard.attention == 4);
  CHECK(read(R"({"coshard": 4})").division.coshard.mlp == 4);
  const Options options = read(R"({"coshard": {"attention": 4}, "coshard_layers": 2})");
  CHECK(options.division.coshard.attention == 4);
  CHECK(options.division.coshard.mlp == 1);
  CHECK(options.division.coshard.layers == 2);
  CHECK_THAT(refused(R"({"coshard": 0})"), StartsWith("test.json: /coshard: "));
  CHECK_THAT(refused(R"({"coshard": {"heads": 2}})"), StartsWith("test.json: /coshard/heads: "));
  CHECK_THAT(refused(R"({"coshard": 2, "coshard_layers": 0})"),
             StartsWith("test.json: /coshard_layers: "));
  CHECK_THAT(refused(R"({"coshard_layers": 2})"), ContainsSubstring("coshard beside it"));
}

TEST_CASE("a wrong option is refused where it stands") {
  for (const std::string key : {"tensor", "context", "dap", "pipeline", "data", "expert"}) {
    for (const std::string value : {"0", "-2", "1.5", "\"2\"", "true"}) {
      INFO(key << ": " << value);
      CHECK_THAT(refused("{\"" + key + "\": " + value + "}"),
                 StartsWith("test.json: /" + key + ": expected "));
    }
  }
  CHECK_THAT(refused(R"({"schedule": "2f2b"})"), StartsWith("test.json: /schedule: "));
  CHECK_THAT(refused(R"({"schedule": "2f2b"})"), ContainsSubstring("1f1b"));
  CHECK_THAT(refused(R"({"schedule": "zb-h1", "chunks": 2})"),
             StartsWith("test.json: /chunks: expected 1 with the schedule zb-h1"));
  CHECK_THAT(refused(R"({"schedule": "zb-v", "chunks": 1})"),
             StartsWith("test.json: /chunks: expected 2 with the schedule zb-v"));
  CHECK_THAT(refused(R"({"recompute": "half"})"), StartsWith("test.json: /recompute: "));
  CHECK_THAT(refused(R"({"overlap_gradients": "yes"})"),
             StartsWith("test.json: /overlap_gradients: "));
  CHECK_THAT(refused(R"({"bucket": "25 GB/s"})"), StartsWith("test.json: /bucket: "));
  CHECK_THAT(refused(R"({"bucket": "0 B"})"), StartsWith("test.json: /bucket: "));
  CHECK_THAT(refused(R"({"bucket": 25})"), StartsWith("test.json: /bucket: "));
  CHECK_THAT(refused(R"({"zero": 1, "gradient_buffers": 2})"),
             StartsWith("test.json: /gradient_buffers: "));
  CHECK_THAT(refused(R"({"zero": 2, "gradient_buffers": -1})"),
             StartsWith("test.json: /gradient_buffers: "));
}

TEST_CASE("a degree that no machine has is refused, not wrapped around") {
  // 2^32 + 1 as a 32-bit number would be 1.
  CHECK_THAT(refused(R"({"tensor": 4294967297})"), StartsWith("test.json: /tensor: "));
}

TEST_CASE("an unknown option is refused and the nearest known one named") {
  const std::string text = refused(R"({"tensors": 2})");
  CHECK_THAT(text, StartsWith("test.json: /"));
  CHECK_THAT(text, ContainsSubstring("tensors"));
  CHECK_THAT(text, ContainsSubstring("\"tensor\""));
}

}  // namespace stratagem::strategies::options_test
