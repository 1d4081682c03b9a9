// Mistakes on the command line are answered by a line that says what to write.
#include "tests/main/executable.hpp"

namespace stratagem {
namespace {

/// What is said of the small scenario with these options, on one line.
std::string said(const std::string& options, const std::string& scenario = small_scenario()) {
  const TemporaryFolder folder;
  folder.write("a.json", scenario);
  const Ran ran = run("simulate a.json --no-remedies " + options, folder);
  CHECK(ran.exit == 1);
  CHECK(std::ranges::count(ran.err, '\n') == 1);
  return ran.err.substr(0, ran.err.find('\n'));
}

std::string with_layers(int layers) {
  return with(small_scenario(), "\"layers\": 2", "\"layers\": " + std::to_string(layers));
}

TEST_CASE("the first of several keys may be one of a strategy, as a key alone may be") {
  const TemporaryFolder folder;
  folder.write("a.json", small_scenario());
  const Ran ran = run("simulate a.json --set zero.stage=1 --set zero.prefetch=2", folder);
  INFO(ran.err);
  CHECK(ran.exit == 0);
  CHECK_THAT(ran.out, ContainsSubstring("strategy.zero.stage 1, strategy.zero.prefetch 2"));
}

TEST_CASE("errors of keys that were set begin with the option") {
  // Where a key next to it is missing, which may be the file's mistake, the error names both.
  CHECK_THAT(said("--set zero.prefetch=0"),
             StartsWith("a.json: /runs/0/strategy/zero: expected the key \"stage\", found only "
                        "\"prefetch\" with --set zero.prefetch=0"));
  CHECK(said("--set tensor=x") ==
        "--set tensor=x: expected a whole number from 1 to 1000000, found \"x\"");
  CHECK_THAT(said("--grid micro_batch=2,x"),
             StartsWith("--grid micro_batch=2,x: expected a whole number"));
  CHECK(said("--grid tensor=1..8") ==
        "--grid: expected each value, as in tensor=1,2,4,8, found 1..8");
  CHECK_THAT(said("--set gpu=8"), ContainsSubstring("did you mean \"gpus\"?"));
  CHECK(said("--set 'global_batch=4M tokens'") ==
        "--set global_batch=4M tokens: expected samples, not tokens (tokens over the sequence): a "
        "whole number from 1 to 1000000, found \"4M tokens\"");
  CHECK_THAT(said("--set global_batch=4000000"), ContainsSubstring("found 4000000 ("));
  CHECK_THAT(said("--set strategy.tensr=2"),
             StartsWith("--set strategy.tensr=2: expected one of the known keys (did you mean "));
  CHECK_THAT(
      said(R"(--set 'zero={"stage": 7}')"),
      StartsWith(
          R"(--set zero={"stage": 7}: /stage: expected a whole number from 0 to 3, found 7)"));
  // What only a plan is refused for, also.
  CHECK_THAT(
      said("--run four --set pipeline=2 --set data=1 --set chunks=2"),
      StartsWith("--set chunks=2: expected 1 with the schedule 1f1b; several with interleaved, "));
  // An error of what the file says is the file's.
  CHECK_THAT(said("--set micro_batch=1", with_layers(0)),
             StartsWith("a.json: /defaults/model/layers: "));
}

TEST_CASE("a run that was measured still is at a price, and not with another key") {
  const TemporaryFolder folder;
  folder.write("a.json", with(small_scenario(), R"({"name": "four",)",
                              R"({"name": "four", "measured": {"iteration_time": {"value": "1 s",
                                 "provenance": "measured", "source": "us"}},)"));
  CHECK_THAT(run("simulate a.json --price 2", folder).out, ContainsSubstring("1.000 s"));
  CHECK_THAT(run("simulate a.json --set micro_batch=1", folder).out, !ContainsSubstring("1.000 s"));
}

TEST_CASE("a key is set once, and parts of its name are not empty") {
  CHECK(said("--grid micro_batch=1,2 --set micro_batch=4") ==
        "--grid micro_batch=1,2: expected each key once, found training.micro_batch again");
  CHECK_THAT(said("--set zero.=3"), ContainsSubstring("expected keys parted by single dots"));
}

TEST_CASE("a plain value of an object is one of its members") {
  CHECK(said("--set lora=16") == "--set: expected model.lora.rank=16, found lora=16");
  CHECK_THAT(said("--set model=llama-3"),
             ContainsSubstring("(did you mean \"llama-3-8b\", \"llama-3-70b\" or "));
  CHECK_THAT(said("--set model=[1]"), !ContainsSubstring("preset=[1]"));
  CHECK(said("--set strategy=4") == "--set: expected strategy.KEY=4, found strategy=4");
  // In a file likewise.
  CHECK_THAT(said("", with(small_scenario(), "\"hidden\": 64", "\"hidden\": 64, \"lora\": 16")),
             StartsWith("a.json: /defaults/model/lora: expected an object, as {\"rank\": ...}, "));
}

TEST_CASE("a number of GPUs that the degrees do not fit is refused with a fix that works") {
  CHECK(said("--run four --grid gpus=8") ==
        "a.json: /runs/1/strategy: expected 4 GPUs for tensor 2 x data 2, or \"data\" left out "
        "(--set data=null), which then is 4, found 8 (run \"four\")");
  CHECK(said("--run four --set gpus=3") ==
        "a.json: /runs/1/strategy: expected 4 GPUs for tensor 2 x data 2, or a multiple of 2 with "
        "\"data\" left out (--set data=null), found 3 (run \"four\")");
  CHECK(said("--run four --set gpus=3 --set data=null") ==
        "a.json: /runs/1/strategy: expected a multiple of 2 GPUs for tensor 2, found 3 (run "
        "\"four\")");
  CHECK_THAT(said("--run alone --set gpus=2 --set data=1"),
             ContainsSubstring("expected 1 GPU for data 1, or \"data\" left out"));
  const TemporaryFolder folder;
  folder.write("a.json", small_scenario());
  CHECK(run("simulate a.json --run four --grid gpus=4,8 --set data=null", folder).exit == 0);
}

TEST_CASE("stages that do not divide the layers are told with what makes their number") {
  const std::string options =
      "--run four --set data=1 --set tensor=1 --set pipeline=4 --set schedule=interleaved ";
  CHECK_THAT(said(options + "--set chunks=2", with_layers(12)),
             ContainsSubstring("expected a divisor of the model's 12 layers, or layers_per_stage, "
                               "found pipeline 4 x chunks 2 = 8 stages (run"));
}

TEST_CASE("context ranks beside experts are refused with what to use instead") {
  const std::string experts = with(small_scenario(), "\"hidden\": 64",
                                   R"("hidden": 64, "experts": 4, "experts_per_token": 2)");
  CHECK_THAT(said("--run four --set data=1 --set context=2", experts),
             StartsWith("--set context=2: expected 1, since such ranks do not divide matrix "
                        "products of whole samples, such as those of experts (\"expert\", "
                        "\"tensor\" and \"data\" do), found 2: each rank would compute all of "));
}

TEST_CASE("a word too many, an option without its value and a library behind the command") {
  const TemporaryFolder folder;
  folder.write("a.json", small_scenario());
  CHECK_THAT(run("simulate a.json --set tensor 4", folder).err,
             StartsWith("stratagem: \"4\" is one argument too many: stratagem simulate takes "));
  CHECK_THAT(run("simulate a.json --columns", folder).err,
             StartsWith("stratagem: --columns takes a value: print these columns alone, of: "));
  CHECK_THAT(run("simulate a.json --columns --accuracy", folder).err,
             StartsWith("stratagem: --columns takes a value: "));
  CHECK_THAT(run("simulate a.json -set tensor=4", folder).err,
             StartsWith("stratagem: no option -set (did you mean --set?)"));
  CHECK(run("simulate a.json --report r.pdf", folder).err ==
        "stratagem: --report: expected a file that ends in .html, found r.pdf\n");
  CHECK_FALSE(folder.has("r.pdf"));
  CHECK_THAT(run("import a.sh -ob.json", folder).err, StartsWith("a.sh: "));  // -o FILE in one word
  CHECK(run("list profiles --library no", folder).err ==
        "--library: expected a folder, found no\n");
}

TEST_CASE("files of another kind are told what should stand there") {
  const TemporaryFolder folder;
  folder.write("a.json", small_scenario());
  CHECK(run("simulate a.json --no-remedies --json out.json", folder).exit == 0);
  CHECK_THAT(run("compare out.json out.json", folder).err,
             StartsWith("out.json: expected what `stratagem execute --json` wrote, found "));
  CHECK_THAT(run("compare a.json out.json", folder).err,
             StartsWith("a.json: expected what `stratagem simulate --json` wrote, found "));
  CHECK_THAT(run("simulate out.json", folder).err,
             StartsWith("out.json: expected a scenario, found an answer of `stratagem`"));
  CHECK_THAT(run("import a.json -o b.json", folder).err,
             ContainsSubstring("found a scenario, which `simulate` answers"));
  folder.write("measured.json", R"({"run": "alone", "status": "measured"})");
  CHECK_THAT(run("compare measured.json out.json", folder).err,
             StartsWith("stratagem: the prediction goes first"));
  CHECK(run("simulate a.json --accuracy", folder).out ==
        "a.json: no run says what was \"measured\"\n");
}

TEST_CASE("a launch script that does not say the network says which arguments would") {
  const TemporaryFolder folder;
  const std::string before = "torchrun pretrain_gpt.py --micro-batch-size 1 --hidden-size 64 ";
  folder.write("a.sh", before + "--num-layer 2\n");
  CHECK(run("import a.sh -o a.json", folder).err ==
        "a.sh: expected --num-layers in place of --num-layer, found --num-layer 2\n");
  folder.write("b.sh", before + "--depth 2\n");
  CHECK(run("import b.sh -o b.json", folder).err ==
        "import: /model: expected a model: arguments --num-layers and --hidden-size, a file that "
        "says it, or --set model=NAME, found none; not read: --hidden-size 64, --depth 2\n");
  CHECK(!folder.has("b.json"));
}

}  // namespace
}  // namespace stratagem
