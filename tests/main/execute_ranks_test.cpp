// `stratagem execute` on several ranks, as a user starts it with mpirun: it agrees, refuses, and
// ends when a rank dies.
#include <fstream>

#include "base/json_reader.hpp"
#include "tests/main/launched.hpp"
#include "tests/sanitized.hpp"

using namespace stratagem;

namespace {

const std::string execute = STRATAGEM_EXECUTABLE " execute ";

/// Its run "four" on two ranks.
std::string two_ranks() {
  return with(
      small_scenario(),
      R"("strategy": {"tensor": 2, "data": 2, "overlap_gradients": true, "bucket": "25 MiB"})",
      R"("cluster": {"gpus": 2}, "strategy": {"tensor": 2})");
}

}  // namespace

TEST_CASE("two ranks execute a plan, agree with one device, and are timed") {
  const TemporaryFolder folder;
  folder.write("two.json", two_ranks());
  const Ran ran =
      shell(mpirun + "-n 2 " + execute + "two.json --run four --steps 2 --json out.json", folder);
  INFO(ran.err);
  REQUIRE(ran.exit == 0);
  CHECK(times(ran.out, "one device: agrees") == 1);
  const JsonReader json = JsonReader::from_file((folder.path() / "out.json").string());
  CHECK(json.at("status").text() == "measured");
  CHECK(json.at("ranks").whole_number() == 2);
  CHECK(json.at("agrees").boolean());
  CHECK(json.at("iteration_times_s").elements().size() == 2);
  CHECK_FALSE(json.has("reason"));
}

TEST_CASE("four ranks lend each other activations, and agree with one device") {
  const TemporaryFolder folder;
  folder.write("lent.json", with(with(small_scenario(), R"("layers": 2)", R"("layers": 4)"),
                                 R"("tensor": 2, "data": 2, "overlap_gradients": true, )"
                                 R"("bucket": "25 MiB")",
                                 R"("pipeline": 4, "schedule": "bpipe")"));
  const Ran ran =
      shell(mpirun + "-n 4 " + execute + "lent.json --run four --precision fp64 --steps 1", folder);
  INFO(ran.err);
  REQUIRE(ran.exit == 0);
  CHECK(times(ran.out, "one device: agrees") == 1);
}

TEST_CASE("a plan whose groups were not measured is executed without a prediction") {
  // Four ranks with a profile that knows collectives of two.
  const TemporaryFolder folder;
  const std::string shipped = std::filesystem::absolute("scenarios").string();
  folder.write("four.json", R"({
    "question": "Is there a prediction?",
    "runs": [{
      "name": "four",
      "model": {"family": "gpt", "layers": 2, "hidden": 64, "heads": 4, "sequence": 32,)"
                            R"( "vocabulary": 128},
      "cluster": {"preset": "cpu-host", "ranks_per_node": 4, "ranks": 4},
      "profile": ")" + shipped + R"(/profiles/amd-epyc-2-ranks.json",
      "stack": ")" + shipped + R"(/stacks/plain.json",
      "training": {"global_batch": 2, "micro_batch": 2, "precision": "fp32", "optimizer": "adam"},
      "strategy": {"tensor": 4}}]})");
  const std::string why = "expected collectives measured on 4 ranks of a server";
  CHECK(shell(STRATAGEM_EXECUTABLE " simulate four.json --json simulated.json", folder).exit == 1);
  const Ran ran = shell(mpirun + "-n 4 " + execute + "four.json --steps 1 --json out.json", folder);
  INFO(ran.err);
  REQUIRE(ran.exit == 0);
  CHECK(times(ran.out, "one device: agrees") == 1);
  CHECK_THAT(ran.out, ContainsSubstring("no prediction: ") && ContainsSubstring(why));
  const JsonReader json = JsonReader::from_file((folder.path() / "out.json").string());
  CHECK(json.at("status").text() == "measured");
  CHECK_THAT(json.at("no_prediction").text(), ContainsSubstring(why));
  CHECK_FALSE(json.has("predicted_iteration_time_s"));
  // What lives when follows from the program and the order of its tasks: no price is needed.
  REQUIRE(json.at("peak_live_bytes").elements().size() == 4);
  CHECK(json.at("predicted_peak_live_bytes").dump() == json.at("peak_live_bytes").dump());
  CHECK_THAT(ran.out, ContainsSubstring("(the same)"));
  const Ran compared = shell(STRATAGEM_EXECUTABLE " compare simulated.json out.json", folder);
  INFO(compared.err);
  CHECK(compared.exit == 0);
  CHECK_THAT(compared.out,
             ContainsSubstring("no time predicted: four, measured ") && ContainsSubstring(why));
}

TEST_CASE("ranks that are to execute different things are refused in one line") {
  if (sanitized) return;
  const TemporaryFolder folder;
  folder.write("two.json", two_ranks());
  const auto refused = [&](const std::string& first, const std::string& second,
                           const std::string& because) {
    const Ran ran =
        shell(mpirun + "-n 1 " + execute + first + " : -n 1 " + execute + second, folder);
    CAPTURE(ran.err);
    CHECK(ran.exit != 0);
    CHECK(times(ran.err, because) == 1);
  };
  refused("two.json --run four", "two.json --run four --steps 2",
          "rank 1: expected the arguments of rank 0, two.json --run four, found");
  refused("two.json --run four", "two.json --nonsense", "rank 1: expected the arguments of rank 0");
  refused("two.json --nonsense", "two.json --nonsense", "nonsense");
  refused("absent.json", "absent.json", "absent.json: ");
  refused("two.json --in-process", "two.json --in-process", "--in-process is for one process");
}

TEST_CASE("ranks whose scenarios differ are refused") {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b"}) std::filesystem::create_directory(folder.path() / name);
  folder.write("a/two.json", two_ranks());
  folder.write("b/two.json", with(two_ranks(), R"("sequence": 32)", R"("sequence": 16)"));
  const Ran ran = shell(mpirun + "-n 1 -wdir a " + execute + "two.json --run four : -n 1 -wdir b " +
                            execute + "two.json --run four",
                        folder);
  CHECK(ran.exit != 0);
  CHECK(times(ran.err, "rank 1: expected the scenario of rank 0, one with hash ") == 1);
}

TEST_CASE("when a rank of an execution is killed all end within half a minute, and say where") {
  if (sanitized) return;
  const TemporaryFolder folder;
  folder.write("two.json", two_ranks());
  const auto iterations = [](const std::string& file) {
    return JsonReader::from_file(file).at("iteration_times_s").elements().size();
  };
  // With recovery mpirun leaves the other rank alone, as a launcher on another server might.
  for (const std::string recovery : {"", "--enable-recovery "}) {
    for (const int victim : {0, 1}) {
      CAPTURE(recovery, victim);
      const std::string file =
          (folder.path() / ((recovery.empty() ? "plain" : "alone") + std::to_string(victim)))
              .string();
      const pid_t launcher =
          started("cd '" + folder.path().string() + "' && " + environment + "exec " + mpirun +
                  recovery + "-n 2 " + execute + "two.json --run four --steps 100000 --json " +
                  file + " 2>" + file + ".err");
      REQUIRE(eventually(std::chrono::seconds(600), [&] {
        return std::filesystem::exists(file) && children_of(launcher).size() == 2 &&
               iterations(file) > 0;
      }));
      const auto killed = Clock::now();
      REQUIRE(kill(children_of(launcher)[static_cast<std::size_t>(victim)], SIGKILL) == 0);
      int status = 0;
      REQUIRE(eventually(std::chrono::seconds(30),
                         [&] { return waitpid(launcher, &status, WNOHANG) == launcher; }));
      CHECK(Clock::now() - killed < std::chrono::seconds(30));
      CHECK(WIFEXITED(status));
      if (recovery.empty()) CHECK(WEXITSTATUS(status) != 0);  // else mpirun ends as if all was well
      const std::string dead = "rank " + std::to_string(victim) + " (process ";
      const std::string other = "rank " + std::to_string(1 - victim) + ": ";
      const JsonReader json = JsonReader::from_file(file);
      CHECK(json.at("status").text() == "stopped");
      CHECK_FALSE(json.at("iteration_times_s").elements().empty());
      CHECK_THAT(json.at("reason").text(), StartsWith(other));
      CHECK_THAT(json.at("reason").text(), ContainsSubstring(dead));
      CHECK_THAT(json.at("reason").text(), ContainsSubstring("task"));
      std::ifstream said(file + ".err");
      const std::string err{std::istreambuf_iterator<char>(said), {}};
      CHECK_THAT(err, ContainsSubstring("stratagem: " + json.at("reason").text()));
    }
  }
}
