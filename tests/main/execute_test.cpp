// `stratagem execute` as users run it.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/json_reader.hpp"
#include "base/read_file.hpp"
#include "tests/catch.hpp"
#include "tests/main/executable.hpp"

namespace stratagem {
namespace {

TEST_CASE("a run of one device is executed alone and agrees with itself") {
  const TemporaryFolder folder;
  folder.write("small.json", small_scenario());
  const Ran finished = run("execute small.json --run alone --steps 2 --json out.json", folder);
  CAPTURE(finished.err);
  CHECK(finished.exit == 0);
  CHECK(finished.out.find("one device: agrees") != std::string::npos);
  CHECK(finished.out.find("measured") != std::string::npos);
  CHECK(folder.read("out.json").find("\"agrees\": true") != std::string::npos);
}

TEST_CASE("a run that is not to be compared with one device is timed, and says so") {
  const TemporaryFolder folder;
  folder.write("small.json", small_scenario());
  const Ran finished =
      run("execute small.json --run alone --steps 2 --unchecked --json out.json", folder);
  CAPTURE(finished.err);
  CHECK(finished.exit == 0);
  CHECK(finished.out.find("one device: not compared (--unchecked)") != std::string::npos);
  CHECK(finished.out.find("measured") != std::string::npos);
  CHECK(folder.read("out.json").find("\"agrees\"") == std::string::npos);
  CHECK(run("execute small.json --run alone --steps 0 --unchecked", folder).exit == 2);
}

TEST_CASE("live bytes are predicted of a run whose time is not") {
  const TemporaryFolder folder;
  const std::string known = with(with(small_scenario(), "megatron-2019.json", "plain.json"),
                                 R"("precision": "fp16")", R"("precision": "fp32")");
  folder.write("known.json", known);
  // Launches that take so long that no simulation can count them.
  std::string slow = read_file("scenarios/profiles/v100-sxm3.json");
  const std::string key = "\"launch\": {\n    \"value\": \"";
  const std::size_t value = slow.find(key) + key.size();
  folder.write("slow.json", slow.replace(value, slow.find('"', value) - value, "1000000 s"));
  const std::string shipped = std::filesystem::absolute("scenarios").string();
  folder.write("unknown.json", with(known, shipped + "/profiles/v100-sxm3.json", "slow.json"));
  const auto executed = [&](const std::string& name) {
    const Ran finished =
        run("execute " + name + ".json --run alone --steps 1 --json out.json", folder);
    CAPTURE(name, finished.err);
    REQUIRE(finished.exit == 0);
    return JsonReader::from_text(folder.read("out.json"), name);
  };
  const JsonReader priced = executed("known"), unpriced = executed("unknown");
  CHECK_THAT(unpriced.at("no_prediction").text(), ContainsSubstring("found a longer one"));
  CHECK(unpriced.at("predicted_peak_live_bytes").dump() ==
        priced.at("predicted_peak_live_bytes").dump());
  CHECK(unpriced.at("predicted_peak_live_bytes").dump() == unpriced.at("peak_live_bytes").dump());
}

TEST_CASE("ranks in one process are checked, not timed") {
  const TemporaryFolder folder;
  folder.write("small.json", small_scenario());
  const Ran finished = run("execute small.json --run four --in-process --precision fp64", folder);
  CAPTURE(finished.err);
  CHECK(finished.exit == 0);
  CHECK(finished.out.find("four: 4 ranks, fp64") != std::string::npos);
  CHECK(finished.out.find("one device: agrees") != std::string::npos);
  CHECK(finished.out.find("iteration:") == std::string::npos);
  CHECK_THAT(finished.out, ContainsSubstring("no time is measured or predicted: ranks of"));
}

/// The run "four", pipelined without a flush.
std::string without_flush() {
  return with(small_scenario(),
              R"("tensor": 2, "data": 2, "overlap_gradients": true, "bucket": "25 MiB")",
              R"("pipeline": 2, "data": 2, "schedule": "pipedream")");
}

TEST_CASE("a plan without a flush agrees with one device that reads weights as old") {
  const TemporaryFolder folder;
  folder.write("small.json", without_flush());
  const Ran finished = run("execute small.json --run four --in-process --precision fp64", folder);
  CAPTURE(finished.out, finished.err);
  CHECK(finished.exit == 0);
  CHECK(finished.out.find("one device: agrees") != std::string::npos);
  CHECK(finished.out.find("losses of 4 iterations") != std::string::npos);
}

/// Checks that `execute small.json` with these options ends with that code and one line that says
/// so.
void refused(const std::string& text, const std::string& options, int code,
             const std::string& because, const std::string& environment = "") {
  const TemporaryFolder folder;
  folder.write("small.json", text);
  const Ran finished = run("execute small.json " + options, folder, environment);
  CAPTURE(finished.err);
  CHECK(finished.exit == code);
  CHECK(finished.err.find(because) != std::string::npos);
  CHECK(std::count(finished.err.begin(), finished.err.end(), '\n') == 1);
}

TEST_CASE("what cannot be executed is refused in one line before anything starts") {
  refused(small_scenario(), "--run four", 1, "expected 4 ranks");
  refused(small_scenario(), "--run nobody", 2, "no run named");
  refused(small_scenario(), "--backend tpu", 2, "--backend: expected one of cpu, cuda");
  refused(small_scenario(), "--precision fp8", 2,
          "--precision: expected one of fp32, fp64, fp16, bf16");
  refused(small_scenario(), "--collectives gloo", 2,
          "--collectives: expected one of auto, nccl, host");
  refused(small_scenario(), "--collectives nccl", 2, "--collectives nccl is for --backend cuda");
  refused(small_scenario(), "--precision fp16", 2, "--precision fp16 is for --backend cuda");
  refused(small_scenario(), "--backend cuda --precision fp64", 2, "GPUs compute in fp32");
  // Where CUDA sees no GPU, in CUDA's words or those of a build without it.
  const std::string none = "--backend cuda needs a GPU: ";
  for (const std::string ranks : {"", " --run four --in-process"})
    refused(small_scenario(), "--backend cuda" + ranks, 2, none, "CUDA_VISIBLE_DEVICES= ");
  refused(small_scenario(), "--run four --in-process --steps 3", 2, "--steps");
  refused(without_flush(), "--run four --trace trace.json", 2, "an iteration by itself");
  refused(with(small_scenario(), R"("optimizer": "adam")", R"("optimizer": "sgd")"), "", 1,
          "/training/optimizer");
  // The place of an error of the plan, once.
  refused(with(small_scenario(), R"("tensor": 2, "data": 2)", R"("tensor": 4, "swap": 9)"),
          "--run four", 1, "small.json: /runs/1/strategy/swap: expected");
}

/// The run "four" with another strategy.
std::string four_with(const std::string& strategy) {
  return with(small_scenario(),
              R"("tensor": 2, "data": 2, "overlap_gradients": true, "bucket": "25 MiB")", strategy);
}
/// "alone" with another model.
std::string model_with(const std::string& model) {
  return with(small_scenario(),
              R"("family": "gpt", "layers": 2, "hidden": 64, "heads": 4, "sequence": 32)", model);
}

TEST_CASE("plans that cannot be executed are refused in plain words") {
  const std::string four = "--run four --in-process";
  refused(four_with(R"("pipeline": 2, "data": 2, "schedule": "gpipe", "token_slices": [16, 16])"),
          four, 1, "found slices of tokens");
}

TEST_CASE("lent activations and delayed steps agree with one device") {
  const std::string delayed = R"("offload": {"of": "optimizer", "delayed_update": true})";
  const std::string deep = with(small_scenario(), R"("layers": 2)", R"("layers": 4)");
  const auto four = [&](const std::string& strategy) {
    return with(deep, R"("tensor": 2, "data": 2, "overlap_gradients": true, "bucket": "25 MiB")",
                strategy);
  };
  for (const std::string& text : {four(R"("pipeline": 4, "schedule": "bpipe")"),
                                  four(R"("data": 4, "zero": 2, )" + delayed)}) {
    const TemporaryFolder folder;
    folder.write("small.json", text);
    const Ran finished = run("execute small.json --run four --in-process --precision fp64", folder);
    CAPTURE(finished.out, finished.err);
    CHECK(finished.exit == 0);
    CHECK_THAT(finished.out, ContainsSubstring("one device: agrees"));
  }
}

TEST_CASE("models that cannot be executed are refused in plain words") {
  const std::string gpt =
      R"("family": "gpt", "layers": 2, "hidden": 64, "heads": 4, "sequence": 32)";
  refused(
      model_with(R"("family": "llama", "layers": 2, "hidden": 60, "heads": 4, "intermediate": 96,
                       "attention": "unfused", "sequence": 32)"),
      "", 1, "found rotary positions on heads of an odd size, 15");
  // Profiles of V100s have neither fused attention nor fp8.
  const auto on_h100 = [](const std::string& text) {
    return with(with(text, "v100-sxm3.json", "h100-sxm5.json"), "megatron-2019.json", "plain.json");
  };
  refused(on_h100(with(small_scenario(), R"("fp16")", R"("fp8")")), "", 1,
          "found linear layers in fp8");
}

TEST_CASE("outputs do not take the place of what is read") {
  const TemporaryFolder folder;
  folder.write("small.json", small_scenario());
  const std::string before = folder.read("small.json");
  const Ran scenario = run("execute small.json --run alone --json ./small.json", folder);
  CHECK(scenario.exit == 2);
  CHECK_THAT(scenario.err, ContainsSubstring("--json would write over small.json"));
  CHECK(folder.read("small.json") == before);
  std::filesystem::copy("scenarios/stacks/plain.json", folder.path() / "mine.json");
  const std::string stack =
      std::filesystem::absolute("scenarios").string() + "/stacks/megatron-2019.json";
  folder.write("small.json", with(before, stack, "mine.json"));
  const Ran of_stack = run("execute small.json --run alone --json mine.json", folder);
  CHECK(of_stack.exit == 2);
  for (const char* command :
       {"simulate small.json --json mine.json", "simulate small.json --trace mine.json",
        "explain small.json --run alone --as-plan mine.json"})
    CHECK(run(command, folder).exit == 1);
  CHECK(folder.read("mine.json").find("\"plain\"") != std::string::npos);
}

TEST_CASE("a model for which there is no room is refused with both sizes, unless told to go on") {
  // Parameters, gradients and moments of 48 x 12 x 8192^2 weights are 618 GB in fp32.
  const std::string huge = with(
      with(model_with(
               R"("family": "gpt", "layers": 48, "hidden": 8192, "heads": 64, "sequence": 32)"),
           "v100-sxm3.json", "h100-sxm5.json"),
      "megatron-2019.json", "plain.json");
  refused(huge, "", 1,
          "of memory that are available here, or --beyond-memory, found one that needs ");
}

/// A line of the shell in the folder.
Ran shell_in(const TemporaryFolder& folder, const std::string& line) {
  const TemporaryFolder said;
  const int status = std::system(("cd '" + folder.path().string() + "' && " + line + " 2>'" +
                                  (said.path() / "err").string() + "'")
                                     .c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, "", said.read("err")};
}

TEST_CASE("a run that is asked to end writes what it has measured") {
  const TemporaryFolder folder;
  folder.write("small.json", small_scenario());
  const Ran finished =
      shell_in(folder, "timeout --preserve-status -s TERM 4 " STRATAGEM_EXECUTABLE
                       " execute small.json --run alone --steps 1000000 --json out.json");
  CAPTURE(finished.err);
  CHECK(finished.exit == 3);
  CHECK_THAT(finished.err, StartsWith("stratagem: rank 0: ended by SIGTERM, "));
  const std::string json = folder.read("out.json");
  CHECK_THAT(json, ContainsSubstring("\"status\": \"stopped\""));
  CHECK_THAT(json, ContainsSubstring("\"reason\": \"rank 0: ended by SIGTERM, "));
  CHECK_THAT(json, ContainsSubstring("\"iteration_time_s\""));
}

#ifndef __SANITIZE_ADDRESS__  // which takes more address space than any limit
TEST_CASE("a rank that runs out of memory says so and where, and what was done is written") {
  const TemporaryFolder folder;
  folder.write(
      "small.json",
      model_with(R"("family": "gpt", "layers": 4, "hidden": 512, "heads": 8, "sequence": 256)"));
  // Less address space than activations take.
  const Ran finished =
      shell_in(folder, "ulimit -v 450000 && " STRATAGEM_EXECUTABLE
                       " execute small.json --run alone --beyond-memory --json out.json");
  CAPTURE(finished.err);
  CHECK(finished.exit == 3);
  CHECK_THAT(finished.err, StartsWith("stratagem: rank 0: out of memory, "));
  CHECK_THAT(folder.read("out.json"), ContainsSubstring("\"status\": \"stopped\""));
  CHECK_THAT(folder.read("out.json"), ContainsSubstring("rank 0: out of memory, "));
}
#endif

}  // namespace
}  // namespace stratagem
