// Searches that were stopped go on, and answers of another context are not believed.
#include "search/store.hpp"

#include <filesystem>
#include <stdexcept>

#include "base/input_error.hpp"
#include "search/sweep.hpp"
#include "tests/catch.hpp"
#include "tests/search/small_space.hpp"

namespace stratagem::search {
namespace {

const std::string spanned = R"({"micro_batch": [1, 2], "tensor": [1, 2, 3], "pipeline": [1, 2],)"
                            R"( "zero": [0, 3]})";
const std::string settled =
    R"({"recompute": "none", "schedule": "1f1b", "sequence_parallel": false})";

std::string file_in(const TemporaryFolder& folder, const std::string& name) {
  return (folder.path() / name).string();
}

struct Stopped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// All that a search says.
std::string all_of(const Swept& swept) {
  std::string text;
  for (const std::size_t count : {swept.left_out, swept.too_large, swept.not_better,
                                  swept.simulated, swept.refused.size(), swept.answers.size()})
    text += std::to_string(count) + " ";
  for (const auto& [alike, refused] : swept.refused)
    text += refused.reason + " " + std::to_string(refused.combinations) + "\n";
  for (const Answer& one : swept.answers) {
    text += Json::object()
                .set("number", static_cast<std::int64_t>(one.number))
                .set("time", one.trial.iteration_time.value)
                .set("memory", one.trial.memory.value)
                .set("exposed", one.trial.exposed_communication.value)
                .set("bubble", one.trial.bubble_fraction)
                .set("rate", one.trial.model_rate.value)
                .set("least", one.bounds.iteration_time.value)
                .set("least_memory", one.bounds.memory.value)
                .text() +
            "\n";
  }
  return text;
}

TEST_CASE("a store knows what was kept, also when it is opened again, and by its context only") {
  const TemporaryFolder folder;
  const std::string file = file_in(folder, "a.db");
  {
    Store store(file, "one");
    CHECK_FALSE(store.find("q"));
    store.keep("q", std::string("a\0b", 3));
    store.keep("r", "");
    CHECK(store.find("q") == std::string("a\0b", 3));
    Store other(file, "two");
    CHECK_FALSE(other.find("q"));
    other.keep("q", "of two");
  }
  Store store(file, "one");
  CHECK(store.find("q") == std::string("a\0b", 3));
  CHECK(store.find("r") == "");
  store.keep("q", "newer");
  CHECK(store.find("q") == "newer");
  CHECK(Store(file, "two").find("q") == "of two");
}

TEST_CASE("what is no store is refused, and stays as it was") {
  const TemporaryFolder folder;
  folder.write("text", std::string(2000, 'x'));
  CHECK_THROWS_AS(Store(file_in(folder, "text"), "one"), InputError);
  CHECK(folder.read("text") == std::string(2000, 'x'));
  CHECK_THROWS_AS(Store(file_in(folder, "none/a.db"), "one"), InputError);
  CHECK_THROWS_AS(Store(folder.path().string(), "one"), InputError);
  CHECK_THROWS_AS(Store(":memory:", "one"), InputError);
  CHECK_THROWS_AS(Store("", "one"), InputError);
}

TEST_CASE("a stopped search, wherever it was, goes on to the same answer") {
  const TemporaryFolder folder;
  const Space space = read(folder, small_space(spanned, settled));
  const std::string whole = all_of(sweep(space, {.best = 3}));
  bool ended = false;
  for (int reports = 1; !ended; ++reports) {
    Store store(file_in(folder, "a.db"), context_of(space));
    int left = reports;
    try {
      const Swept swept = sweep(space, {.best = 3, .threads = 2, .others = {.store = &store}},
                                [&](const Progress&) {
                                  if (--left == 0) throw Stopped("as if killed");
                                });
      CHECK(all_of(swept) == whole);
      ended = true;
    } catch (const Stopped&) {
      // The next one goes on.
    }
  }
  // What is known is believed: with another answer in the store the search gives that.
  Store store(file_in(folder, "a.db"), context_of(space));
  Swept swept = sweep(space, {.best = 3, .others = {.store = &store}});
  CHECK(all_of(swept) == whole);
  const std::string question = "bounds " + swept.answers.front().settings.text();
  REQUIRE(store.find(question));
  store.keep(question, R"({"refused": "as told", "gpus": 4, "lacks": 0, "time": 0, "memory": 0})");
  swept = sweep(space, {.best = 3, .others = {.store = &store}});
  CHECK(swept.refused.contains("as told"));
}

TEST_CASE("what a store says of simulations is believed, too") {
  const TemporaryFolder folder;
  const Space space = read(folder, small_space(spanned, settled));
  Store store(file_in(folder, "a.db"), context_of(space));
  const Json settings = sweep(space, {.best = 3}).answers.front().settings;
  const Trial told = tried(space, settings, {}, {.store = &store});
  CHECK(told.simulated);
  const std::string question = "no longer than any " + settings.text();
  const auto known = store.find(question);
  REQUIRE(known);
  store.keep(question, with(*known, "\"simulated\":true", "\"simulated\":false"));
  CHECK_FALSE(tried(space, settings, {}, {.store = &store}).simulated);
  CHECK(tried(space, settings, {}, {.store = &store}).iteration_time == told.iteration_time);
  CHECK(tried(space, settings, told.iteration_time, {.store = &store})
            .simulated);  // another question
}

TEST_CASE("a key that nobody asks for is refused, however much a store knows") {
  const TemporaryFolder folder;
  const std::string wrong =
      with(small_space(spanned, settled), "\"optimizer\"", "\"optimiser\": 1, \"optimizer\"");
  const Space space = read(folder, wrong);
  for (int i = 0; i < 2; ++i) {
    Store store(file_in(folder, "a.db"), context_of(space));
    CHECK_THROWS_AS(sweep(space, {.others = {.store = &store}}), InputError);
  }
}

TEST_CASE("the context of a space has its defaults and what they name, not what varies") {
  const TemporaryFolder folder;
  const std::string text = small_space(spanned, settled);
  const std::string context = context_of(read(folder, text));
  CHECK(context_of(read(folder, text)) == context);
  CHECK(context_of(read(folder, small_space(R"({"tensor": [1]})", settled))) == context);
  CHECK(context_of(read(folder, with(text, "\"hidden\": 64", "\"hidden\": 128"))) != context);
  const std::string profile = std::filesystem::absolute("scenarios/profiles/v100-sxm3.json");
  std::filesystem::copy(profile, folder.path() / "p.json");
  const std::string copied = with(text, profile, "p.json");
  const std::string as_it_was = context_of(read(folder, copied));
  folder.write("p.json", folder.read("p.json") + " ");
  CHECK(context_of(read(folder, copied)) != as_it_was);
}

}  // namespace
}  // namespace stratagem::search
