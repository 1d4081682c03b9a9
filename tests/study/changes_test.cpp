// Settings over runs: where keys belong, how values are read, and which runs come of it.
#include "study/reading/changes.hpp"

#include "base/input_error.hpp"
#include "study/scenario.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem::study {
namespace {

using Path = std::vector<std::string>;

std::vector<std::string> texts(const KeyValues& change) {
  std::vector<std::string> all;
  for (const Json& value : change.values) all.push_back(value.text());
  return all;
}

Scenario changed(const std::vector<KeyValues>& changes, const std::string& text) {
  const TemporaryFolder folder;
  folder.write("a.json", text);
  return read_scenario((folder.path() / "a.json").string(), changes);
}

TEST_CASE("a key alone belongs to the object that has it, and dots part the keys of others") {
  const auto path = [](const std::string& text) { return read_change(text, false, "--set").path; };
  CHECK(path("tensor=4") == Path{"strategy", "tensor"});
  CHECK(path("gpus=4") == Path{"cluster", "gpus"});
  CHECK(path("micro_batch=4") == Path{"training", "micro_batch"});
  CHECK(path("hidden=4") == Path{"model", "hidden"});
  CHECK(path("profile=h100-sxm5") == Path{"profile"});
  CHECK(path("cluster.fabric.kind=star") == Path{"cluster", "fabric", "kind"});
  CHECK(path("zero.prefetch=0") == Path{"strategy", "zero", "prefetch"});
  CHECK(path("lora.rank=16") == Path{"model", "lora", "rank"});
}

TEST_CASE("values are JSON or words, and several stand between commas outside of brackets") {
  CHECK(texts(read_change("tensor=4", false, "")) == Path{"4"});
  CHECK(texts(read_change("schedule=1f1b", false, "")) == Path{"\"1f1b\""});
  CHECK(texts(read_change("recompute={\"every\":2}", false, "")) == Path{"{\"every\":2}"});
  CHECK(texts(read_change("recompute=none,full", false, "")) == Path{"\"none,full\""});
  CHECK(texts(read_change("recompute=none,full", true, "")) == Path{"\"none\"", "\"full\""});
  CHECK(texts(read_change("layers_per_stage=[1,2],[2,1]", true, "")) == Path{"[1,2]", "[2,1]"});
}

TEST_CASE("what is no setting says what to write") {
  const auto refused = [](const std::string& text, const std::string& expected) {
    try {
      read_change(text, true, "--grid");
      FAIL(text);
    } catch (const InputError& error) {
      CHECK(error.file == "--grid");
      CHECK_THAT(error.expected, ContainsSubstring(expected));
    }
  };
  refused("tensor", "KEY=VALUE,VALUE");
  refused("=4", "KEY=VALUE,VALUE");
  refused("tensor=", "KEY=VALUE,VALUE");
  refused("tensor=1,,2", "a value between commas");
  refused("tp=4", "did you mean \"tensor\"?");
  refused("colour=4", "a key of a run");
  refused("preset=dgx-2", "model.preset or cluster.preset");
  refused("zro.prefetch=0", "did you mean \"zero\"?");
  refused("lora=16", "model.lora.rank=16");
  refused("model.lora=16", "model.lora.rank=16");
  refused("training=bf16", "training.KEY=bf16");
}

TEST_CASE("each run comes in every combination, compared with the first of its baseline") {
  const Scenario scenario = changed({read_change("micro_batch=1,2", true, "--grid"),
                                     read_change("global_batch=16", false, "--set"),
                                     read_change("optimizer=adam,sgd", true, "--grid")},
                                    small_scenario());
  REQUIRE(scenario.runs.size() == 2 * 2 * 2);
  CHECK(scenario.runs[0].name == "alone, micro_batch 1, optimizer adam");
  CHECK(scenario.runs[3].name == "alone, micro_batch 2, optimizer sgd");
  const Run& last = scenario.runs[7];
  CHECK(last.name == "four, micro_batch 2, optimizer sgd");
  CHECK(last.compared.baseline == "alone, micro_batch 1, optimizer adam");
  CHECK(last.compared.all_assumed() == "set on the command line: training.global_batch 16");
  CHECK(last.batch.global == 16);
  CHECK(last.batch.micro == 2);
  CHECK(last.training.optimizer.name == "sgd");
  CHECK(last.options.tensor == 2);  // its own
}

TEST_CASE("a changed run has nothing measured, and an unchanged one all") {
  const std::string text = with(
      small_scenario(), R"("strategy": {"recompute": "full"}})",
      R"("strategy": {"recompute": "full"}, "expect": {"fits": {"value": true, "because": "?"}},
              "measured": {"iteration_time": {"value": "1 s", "provenance": "published",
                "source": "a test"}}})");
  CHECK(changed({}, text).runs[0].compared.measured.size() == 1);
  const Scenario scenario = changed({read_change("micro_batch=1", false, "--set")}, text);
  CHECK(scenario.runs[0].compared.measured.empty());
  CHECK(scenario.runs[0].compared.expect.empty());
  CHECK(scenario.runs[0].name == "alone");
}

TEST_CASE("a set preset is the model, whatever the run says of it") {
  const Scenario scenario =
      changed({read_change("model.preset=gpt-2-xl", false, "--set")}, small_scenario());
  CHECK(model::layers(*scenario.runs[0].graph).size() == 48);
  // Keys that the preset does not have are gone, too: experts, a window, documents.
  const std::string mixture = with(small_scenario(), R"("model": {)",
                                   R"("model": {"experts": 4, "experts_per_token": 2, )");
  const auto parameters = [](const Scenario& of) {
    return model::parameter_count(*of.runs[0].graph);
  };
  CHECK(parameters(changed({}, mixture)) > parameters(changed({}, small_scenario())));
  CHECK(parameters(changed({read_change("model=gpt-2-xl", false, "--set")}, mixture)) ==
        parameters(scenario));
  const std::string in_a_run =
      with(mixture, R"({"name": "alone", )", R"({"name": "alone", "model": "gpt-2-xl", )");
  CHECK(parameters(changed({}, in_a_run)) == parameters(scenario));
}

TEST_CASE("a model that is named is its preset, in a file and on the command line") {
  const std::string sizes = small_scenario();
  const std::size_t from = sizes.find("\"model\": {");
  REQUIRE(from != std::string::npos);
  std::string text = sizes;
  text.replace(from, sizes.find('}', from) + 1 - from, "\"model\": \"gpt-2-xl\"");
  const auto layers = [](const Scenario& scenario) {
    return model::layers(*scenario.runs[0].graph).size();
  };
  CHECK(layers(changed({}, text)) == 48);
  CHECK(layers(changed({read_change("model.layers=2", false, "--set")}, text)) == 2);
  const std::vector<KeyValues> named = {read_change("model=gpt-2-xl,bert-large", true, "--grid")};
  const Scenario both = changed(named, small_scenario());
  REQUIRE(both.runs.size() == 4);
  CHECK(layers(both) == 48);
  CHECK(model::layers(*both.runs[1].graph).size() == 24);
}

TEST_CASE("keys of no use beside the others, and sizes over a preset's, are remarked on") {
  const auto remarks = [](const std::string& strategy, const std::string& model = "") {
    const std::string text = with(
        small_scenario(), R"({"name": "alone", "cluster": {"gpus": 1}, "strategy": {)",
        R"({"name": "alone", "cluster": {"gpus": 1}, )" + model + R"("strategy": {)" + strategy);
    return changed({}, text).runs[0].compared.all_assumed();
  };
  const std::string none = " is of no use beside the other keys";
  CHECK(remarks(R"("sequence_parallel": true, )") == "\"sequence_parallel\"" + none);
  CHECK(remarks(R"("zero": 1, )") == "\"zero\"" + none);
  CHECK(remarks(R"("zero": 0, "sequence_parallel": false, "layers_per_stage": [2], )") ==
        "\"layers_per_stage\"" + none);
  CHECK(remarks(R"("overlap_gradients": true, )") == "\"overlap_gradients\"" + none);
  CHECK(remarks(R"("overlap_gradients": true, "bucket": "1 MiB", )").empty());
  CHECK(remarks("", R"("model": {"preset": "gpt-2-xl"}, )") ==
        "layers, hidden, heads, sequence, vocabulary of the defaults, not of preset gpt-2-xl");
  CHECK(remarks("", R"("model": "gpt-2-xl", )").empty());
}

TEST_CASE("a key in the wrong object is told where it belongs") {
  const auto refused = [](const std::string& part, const std::string& other,
                          const std::string& error) {
    const std::string text = with(small_scenario(), part, other);
    CHECK_THROWS_WITH(changed({}, text), ContainsSubstring(error));
  };
  refused(R"("global_batch": 8)", R"("global_batch": 8, "tensor": 2)",
          R"(/defaults/training/tensor: expected this key in "strategy", found it in )");
  refused(R"("tensor": 2)", R"("tensor": 2, "precision": "fp16")",
          R"(/runs/1/strategy/precision: expected this key in "training", found it in )");
  refused(R"("baseline")", R"("gpus": 8, "baseline")", R"(/gpus: expected this key in "cluster")");
  refused(R"("baseline")", R"("stack": "plain", "baseline")",
          R"(/stack: expected this key in "defaults", or in one of "runs")");
  refused(R"("tensor": 2, "data": 2)", R"("plan": "a.json", "tensor": 2, "data": 2)",
          "/strategy/plan: expected this key in the run");
  refused(R"("defaults")", R"("default")", R"(/default: expected one of the known keys (did you)");
  refused(R"("profile")", R"("profil")",
          R"(/defaults/profil: expected one of the known keys (did)");
}

TEST_CASE("another GPU's profile and servers without work are remarked on") {
  const Scenario scenario = changed(
      {read_change("cluster={\"preset\": \"dgx-2\", \"gpus\": 1, \"nodes\": 3}", false, "--set")},
      small_scenario());
  CHECK(scenario.runs[0].compared.all_assumed().find(
            "2 of 3 servers have nothing to do, since the run has 1 ranks") != std::string::npos);
}

TEST_CASE("other servers bring the profile of their GPU, unless a change says which") {
  const auto profile = [](const std::vector<std::string>& set) {
    std::vector<KeyValues> changes;
    for (const std::string& one : set) changes.push_back(read_change(one, false, "--set"));
    const JsonReader settings =
        JsonReader::from_text(variants(changes).front().settings.text(), "set");
    return settings.has("profile") ? settings.at("profile").text() : "";
  };
  CHECK(profile({"cluster.preset=dgx-a100"}) == "a100-sxm4-80gb");
  CHECK(profile({"cluster=dgx-h100"}) == "h100-sxm5");
  CHECK(profile({"profile=h200-sxm5", "cluster.preset=dgx-h100"}) == "h200-sxm5");
  CHECK(profile({"cluster.gpus=8"}).empty());
}

TEST_CASE("a value twice is a run twice, which is refused") {
  CHECK_THROWS_AS(changed({read_change("micro_batch=1,1", true, "--grid")}, small_scenario()),
                  InputError);
}

TEST_CASE("a changed key that no run has is refused") {
  CHECK_THROWS_AS(changed({read_change("strategy.tensr=1", false, "--set")}, small_scenario()),
                  InputError);
}

}  // namespace
}  // namespace stratagem::study
