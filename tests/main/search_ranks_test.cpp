// Searches of several ranks under mpirun, of which some are killed.
#include <sys/wait.h>

#include <algorithm>
#include <iterator>

#include "tests/main/launched.hpp"
#include "tests/sanitized.hpp"

namespace stratagem {
namespace {

/// The rank of a process that mpirun has started; -1 if it is none.
int rank_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/environ", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  const std::string key = "OMPI_COMM_WORLD_RANK=";
  const std::size_t at = all.find(key);
  return at == std::string::npos ? -1 : std::stoi(all.substr(at + key.size()));
}

std::string searched() {
  const std::string shipped = std::filesystem::absolute("scenarios").string();
  return R"({"question": "?", "defaults": {
    "model": {"family": "gpt", "layers": 8, "hidden": 512, "heads": 8, "sequence": 256,
      "vocabulary": 1024},
    "cluster": {"preset": "dgx-2", "gpus": 8}, "profile": ")" +
         shipped + R"(/profiles/v100-sxm3.json", "stack": ")" + shipped +
         R"(/stacks/megatron-2019.json",
    "training": {"global_batch": 64, "precision": "fp16", "optimizer": "adam"}},
    "search": {"tensor": [1, 2, 4], "pipeline": [1, 2, 4, 8], "micro_batch": [1, 2, 4],
      "zero": [0, 1], "recompute": "any"}})";
}

TEST_CASE("a search of several ranks answers what one process answers, though ranks are killed") {
  if (sanitized) return;
  const TemporaryFolder folder;
  folder.write("a.json", searched());
  const std::string line = STRATAGEM_EXECUTABLE " search a.json --jobs=1";
  const Ran alone = shell(line, folder);
  REQUIRE(alone.exit == 0);
  const Ran together = shell(mpirun + "-n 3 " + line, folder);
  CHECK(together.exit == 0);
  CHECK(together.out == alone.out);

  const pid_t launcher =
      started("cd '" + folder.path().string() + "' && " + environment + "exec " + mpirun +
              "--enable-recovery -n 3 " + line + " --store=a.db > killed.txt 2> errors.txt");
  // Rank 0 opens its store when all have met.
  REQUIRE(eventually(std::chrono::seconds(20), [&] { return folder.has("a.db"); }));
  const std::vector<pid_t> ranks = children_of(launcher);
  const auto victim = std::ranges::find_if(ranks, [](pid_t rank) { return rank_of(rank) > 0; });
  REQUIRE(victim != ranks.end());
  REQUIRE(kill(*victim, SIGKILL) == 0);
  int status = 0;
  waitpid(launcher, &status, 0);
  CHECK(folder.read("killed.txt") == alone.out);
}

TEST_CASE("what is wrong with a search of several ranks is said once") {
  const TemporaryFolder folder;
  folder.write("a.json", R"({"question": "?"})");
  const Ran ran = shell(mpirun + "-n 3 " + STRATAGEM_EXECUTABLE " search a.json", folder);
  CHECK(ran.exit == 1);
  CHECK(times(ran.err, "expected the key \"search\"") == 1);
}

}  // namespace
}  // namespace stratagem
