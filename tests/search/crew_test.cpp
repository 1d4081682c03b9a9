// Searches that others help with: the same answers, whoever helps and whoever goes.
#include "search/crew.hpp"

#include <atomic>
#include <thread>
#include <utility>

#include "search/remote.hpp"
#include "search/sweep.hpp"
#include "tests/sanitized.hpp"
#include "tests/search/small_space.hpp"

namespace stratagem::search {
namespace {

const std::string helped_with =
    R"({"tensor": [1, 2, 3], "pipeline": [1, 2], "micro_batch": [1, 2], "zero": [0, 1],
    "recompute": ["none"], "schedule": ["1f1b"], "layers_per_stage": [null, "balanced"]})";

std::string text_of(const Swept& swept) {
  std::string text;
  for (const auto& [key, refused] : swept.refused)
    text += refused.reason + " " + std::to_string(refused.combinations) + "\n";
  for (const Answer& one : swept.answers) {
    text += one.settings.text() + " " + Json(one.trial.iteration_time.value).text() + " " +
            Json(one.trial.memory.value).text() + "\n";
  }
  return text + std::to_string(swept.simulated) + " " + std::to_string(swept.not_better);
}

/// Answers so many questions, then it is gone.
class Mortal : public Helper {
 public:
  Mortal(const Space& space, int answers, std::atomic<int>& answered)
      : space_(space), left_(answers), answered_(answered) {}
  std::optional<std::string> ask(const std::string& question) override {
    if (left_-- == 0) return std::nullopt;
    ++answered_;
    return answer(space_, question);
  }

 private:
  const Space& space_;
  int left_;
  std::atomic<int>& answered_;
};

TEST_CASE("whoever helps, and wherever a helper goes, a search has the same answer") {
  const TemporaryFolder folder;
  const Space space = read(folder, small_space(helped_with));
  const std::string alone = text_of(sweep(space, {.best = 3}));
  using All = std::vector<int>;
  for (const int answers : sanitized ? All{1, 1000} : All{0, 1, 4, 1000}) {
    Crew crew;
    std::atomic<int> answered = 0;
    for (int helper = 0; helper < 3; ++helper)
      crew.join(std::make_unique<Mortal>(space, answers, answered));
    CHECK(text_of(sweep(space, {.best = 3, .others = {.crew = &crew}})) == alone);
    CHECK(crew.size() == (answers == 1000 ? 3 : 0));
    CHECK(answered >= std::min(3 * answers, 12));
  }
}

TEST_CASE("helpers over a port answer until the search is over") {
  const TemporaryFolder folder;
  const Space space = read(folder, small_space(helped_with));
  const std::string alone = text_of(sweep(space, {.best = 3}));
  std::atomic<int> answered = 0;
  std::thread helper;
  {
    Crew crew;
    const Port port(crew);
    helper = std::thread([&, address = port.address()] {
      help(address, 2, [&](const std::string& question) {
        if (++answered % 3 == 0) throw InputError("", "", "an answer", "an error");
        return answer(space, question);
      });
    });
    while (crew.size() < 2) std::this_thread::yield();
    CHECK(text_of(sweep(space, {.best = 3, .others = {.crew = &crew}})) == alone);
  }
  helper.join();
  CHECK(answered > 3);
}

TEST_CASE("whoever does not know the secret does not help, nor does it hold up others") {
  const TemporaryFolder folder;
  Crew crew;
  std::thread silent;
  bool asked = false;
  {
    const Port port(crew);
    const std::string address = port.address();
    const auto answers = [&](const std::string&) {
      asked = true;
      return "";
    };
    CHECK_FALSE(help("x" + address.substr(1), 1, answers));
    CHECK_FALSE(help("secret 1 127.0.0.1", 1, answers));
    // Shorter than the secret: the port waits for the rest until it is closed.
    silent = std::thread([=] { help("s" + address.substr(address.find(' ')), 1, answers); });
  }
  silent.join();
  CHECK_FALSE(asked);
  CHECK(crew.size() == 0);
}

}  // namespace
}  // namespace stratagem::search
