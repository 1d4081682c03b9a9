// Profile files: what is written reads back, and what is wrong is named.
#include "cost/profile.hpp"

#include <fstream>

#include "base/input_error.hpp"
#include "tests/catch.hpp"

namespace stratagem::cost {
namespace {

std::string shipped(const std::string& name) {
  std::ifstream file("scenarios/profiles/" + name + ".json");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// A shipped profile in which `before`, which it must contain, is replaced once.
Profile with(const std::string& before, const std::string& after) {
  std::string text = shipped("v100-sxm2");
  const std::size_t at = text.find(before);
  REQUIRE(at != std::string::npos);
  text.replace(at, before.size(), after);
  return read_profile(JsonReader::from_text(text, "edited.json"));
}

TEST_CASE("what is written reads back the same, down to the byte") {
  for (const char* name : {"v100-sxm2", "v100-sxm3", "v100-sxm3-450w", "a100-sxm4-80gb",
                           "a100-pcie-80gb", "h200-sxm5"}) {
    const std::string text = shipped(name);
    REQUIRE_FALSE(text.empty());
    CHECK(to_json(read_profile(JsonReader::from_text(text, name))).text(2) + "\n" == text);
  }
}

TEST_CASE("shares of passes are read, written and checked, and need not be there") {
  const std::string softmax = R"("streaming_by_pass": {"softmax": {
    "forward": {"value": 0.125, "provenance": "fitted", "source": "mine", "error": 0.02},
    "gradient": {"value": 0.75, "provenance": "fitted", "source": "mine"}}}, "kernel_floor")";
  const Profile profile = with("\"kernel_floor\"", softmax);
  CHECK(profile.kernels.by_pass.at("softmax").forward.value == 0.125);
  CHECK(profile.kernels.by_pass.at("softmax").forward.error == 0.02);
  const std::string text = to_json(profile).text(2);
  CHECK(to_json(read_profile(JsonReader::from_text(text, "again.json"))).text(2) == text);
  CHECK(read_profile("scenarios/profiles/v100-sxm2.json").kernels.by_pass.empty());

  const auto wrong = [&](const std::string& before, const std::string& after) {
    std::string edited = softmax;
    with("\"kernel_floor\"", edited.replace(edited.find(before), before.size(), after));
  };
  CHECK_THROWS_WITH(wrong("softmax", "gemm"), ContainsSubstring("/streaming_by_pass/gemm"));
  CHECK_THROWS_WITH(wrong("softmax", "optimizer"),  // a step is of no pass
                    ContainsSubstring("/streaming_by_pass/optimizer"));
  CHECK_THROWS_WITH(wrong("gradient", "backward"), ContainsSubstring("/streaming_by_pass/softmax"));
  CHECK_THROWS_WITH(wrong("0.75", "1.75"),
                    ContainsSubstring("/streaming_by_pass/softmax/gradient/value"));
}

TEST_CASE("numbers of busy ranks are read, written and checked, and need not be there") {
  const std::string busy = "\"busy_ranks\": [2, 4], \"kernel_floor\"";
  const Profile profile = with("\"kernel_floor\"", busy);
  CHECK(profile.busy_ranks == std::vector{2, 4});
  const std::string text = to_json(profile).text(2);
  CHECK(read_profile(JsonReader::from_text(text, "again.json")).busy_ranks == std::vector{2, 4});
  CHECK(read_profile("scenarios/profiles/v100-sxm2.json").busy_ranks.empty());
  for (const char* wrong : {"[]", "[0]", "[4, 2]", "[2, 2]"}) {
    std::string edited = busy;
    edited.replace(edited.find("[2, 4]"), 6, wrong);
    CHECK_THROWS_WITH(with("\"kernel_floor\"", edited), ContainsSubstring("/busy_ranks"));
  }
}

TEST_CASE("the pace of a processor is read, written and checked, and need not be there") {
  const auto of = [](const std::string& value) {
    return with("\"kernel_floor\"", R"("pace": {"value": ")" + value +
                                        R"(", "provenance": "measured", "source": "s"}, )" +
                                        "\"kernel_floor\"");
  };
  const Profile profile = of("0.5 ms");
  REQUIRE(profile.pace);
  CHECK(profile.pace->value == 0.5_ms);
  const Profile again = read_profile(JsonReader::from_text(to_json(profile).text(2), "again.json"));
  CHECK(again.pace->value == 0.5_ms);
  CHECK_FALSE(read_profile("scenarios/profiles/v100-sxm2.json").pace);
  CHECK_THROWS_WITH(of("0 ms"), ContainsSubstring("/pace/value"));
}

TEST_CASE("quantities are written in the unit in which they are short") {
  CHECK(to_json(Constant<Bytes>{.value = 32_GiB, .source = "s"}).text() ==
        R"({"value":"32 GiB","provenance":"assumed","source":"s"})");
  CHECK(to_json(Constant<FlopsPerSecond>{
                    .value = 139.4_TFLOPps, .provenance = Provenance::datasheet, .source = "s"})
            .text() == R"({"value":"139.4 TFLOP/s","provenance":"datasheet","source":"s"})");
  CHECK(
      to_json(Constant<Seconds>{
                  .value = 6.83_us, .provenance = Provenance::fitted, .source = "s", .error = 0.07})
          .text() == R"({"value":"6.83 us","provenance":"fitted","source":"s","error":0.07})");
}

TEST_CASE("mistakes in a profile are named with their path") {
  CHECK_THROWS_WITH(with("\"kernel_floor\"", "\"kernel_flor\""),
                    ContainsSubstring("\"kernel_floor\""));
  CHECK_THROWS_WITH(with("\"softmax\"", "\"softmacks\""),
                    ContainsSubstring("/streaming/softmacks"));
  CHECK_THROWS_WITH(with("\"900 GB/s\"", "\"900 GB\""),
                    ContainsSubstring("/memory_bandwidth/value"));
  CHECK_THROWS_WITH(with("\"900 GB/s\"", "\"0 GB/s\""),
                    ContainsSubstring("/memory_bandwidth/value"));
  CHECK_THROWS_WITH(with("\"datasheet\"", "\"hearsay\""),
                    ContainsSubstring("/multiprocessors/provenance"));
  CHECK_THROWS_WITH(with("\"gpu\"", "\"colour\": 1, \"gpu\""), ContainsSubstring("/colour"));
  CHECK_THROWS_AS(with("\"provenance\": \"datasheet\",", ""), InputError);
  CHECK_THROWS_AS(read_profile("scenarios/profiles/no-such-gpu.json"), InputError);
}

TEST_CASE("a share is more than 0 and at most 1") {
  CHECK_THROWS_WITH(with("\"nvlink_efficiency\": {\n      \"value\": 0.",
                         "\"nvlink_efficiency\": {\n      \"value\": 1."),
                    ContainsSubstring("/collective/nvlink_efficiency/value"));
}

TEST_CASE("a slow-down beside communication leaves some speed, and may be left out") {
  const auto slowed = [](const std::string& value) {
    return with("\"compute_slowdown\": {\n      \"value\": 0",
                "\"compute_slowdown\": {\n      \"value\": " + value);
  };
  CHECK(slowed("0.25").collective.compute_slowdown->value == 0.25);
  for (const char* value : {"-0.1", "1", "1.5"})
    CHECK_THROWS_WITH(slowed(value), ContainsSubstring("/collective/compute_slowdown/value"));
  Profile profile = slowed("0");
  profile.collective.compute_slowdown.reset();
  const Profile back = read_profile(JsonReader::from_text(to_json(profile).text(), "without"));
  CHECK_FALSE(back.collective.compute_slowdown);
}

TEST_CASE("measured times of collectives read back the same, and their mistakes are named") {
  Profile profile = read_profile("scenarios/profiles/v100-sxm2.json");
  profile.collective.times["all_reduce"] = {
      .by_ranks = {{2, {{1_KiB, 2.5_us}, {4_MiB, 1.2_ms}}}, {16, {{1_KiB, 9_us}}}},
      .source = "s",
      .error = 0.03};
  const std::string text = to_json(profile).text();
  const auto back = [](const std::string& written) {
    return to_json(read_profile(JsonReader::from_text(written, "times"))).text();
  };
  CHECK(back(text) == text);
  const auto changed = [&](const std::string& part, const std::string& other) {
    return back(std::string(text).replace(text.find(part), part.size(), other));
  };
  CHECK_THROWS_WITH(changed("\"4 MiB\"", "\"1 KiB\""),
                    ContainsSubstring("/collective/times/all_reduce/ranks/2/1/0"));
  CHECK_THROWS_WITH(changed("\"1.2 ms\"", "\"0 ms\""),
                    ContainsSubstring("/collective/times/all_reduce/ranks/2/1/1"));
  CHECK_THROWS_WITH(changed("\"16\":", "\"1\":"), ContainsSubstring("/ranks/1: expected"));
  CHECK_THROWS_WITH(changed("\"all_reduce\":", "\"to_host\":"),
                    ContainsSubstring("/collective/times/to_host"));
}

TEST_CASE("the clock scales a V100's peak and nothing else that was fitted") {
  const Profile slow = read_profile("scenarios/profiles/v100-sxm2.json");
  const Profile fast = read_profile("scenarios/profiles/v100-sxm3-450w.json");
  // 80 SMs x 8 tensor cores x 64 FMA x 2 FLOP x 1.702 GHz
  CHECK(close(fast.peak.at("fp16").value, 80 * 8 * 64 * 2 * 1.702e-3 * 1_TFLOPps, 1e-3));
  CHECK(close(slow.peak.at("fp16").value, 80 * 8 * 64 * 2 * 1.53e-3 * 1_TFLOPps, 5e-3));
  CHECK(fast.kernels.gemm.at("fp16").efficiency.value ==
        slow.kernels.gemm.at("fp16").efficiency.value);
  CHECK(fast.collective.nvlink_efficiency.value == slow.collective.nvlink_efficiency.value);
}

TEST_CASE("evidence must be of a known kind, with ranges that end behind their beginning") {
  const auto wrong = [](const std::string& before, const std::string& after) {
    try {
      static_cast<void>(with(before, after));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("nothing is wrong");
  };
  CHECK_THAT(wrong("\"gemm fp16\": {\n      \"of\"", "\"gemm fp17\": {\n      \"of\""),
             ContainsSubstring("/evidence/gemm fp17"));
  CHECK_THAT(wrong("\"gemm fp16\": {\n      \"of\"",
                   "\"gemm fp16\": {\n      \"ranks\": [2, 8],\n      \"of\""),
             ContainsSubstring("/evidence/gemm fp16/ranks"));
  CHECK_THAT(wrong("\"softmax\": {\n      \"of\"",
                   "\"softmax\": {\n      \"smallest\": [2, 8],\n      \"of\""),
             ContainsSubstring("/evidence/softmax/smallest"));
  CHECK_THAT(wrong("\"families\": 29", "\"families\": 0"), ContainsSubstring("families"));
  CHECK_THAT(wrong("        8388608,", "        1e15,"), ContainsSubstring("/size/1"));
  CHECK_THAT(wrong("\"parameters\": 5", "\"constants\": 5"), ContainsSubstring("parameters"));
}

TEST_CASE("data types that no precision multiplies in are refused") {
  CHECK_THROWS_WITH(with("\"peak\": {\n    \"fp32\"", "\"peak\": {\n    \"int8\""),
                    ContainsSubstring("/peak/int8"));
}

TEST_CASE("what is taken to be like another kind has its measured range, errors stand there") {
  const Profile profile = read_profile("scenarios/profiles/v100-sxm2.json");
  CHECK(profile.evidence.at("gemm fp16").parameters == 5);
  CHECK(profile.evidence.at("dropout").of == "elementwise");
  CHECK(profile.evidence.at("dropout").all.fit.points == 0);
}

}  // namespace
}  // namespace stratagem::cost
