// `calibrate measure` on several ranks, as a user starts it with mpirun: it measures, goes on,
// refuses, and ends when a rank dies.
#include "base/json_reader.hpp"
#include "tests/main/launched.hpp"
#include "tests/sanitized.hpp"

using namespace stratagem;

namespace {

const std::string measure = STRATAGEM_EXECUTABLE " calibrate measure --backend cpu ";

const std::string one_send = "--only 'mpi_send 2 x 1 x 1024'";

int cores() { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }

/// Measuring refuses ranks that would take turns, rightly.
bool two_cores() {
  if (cores() < 2) WARN("one core only: two ranks are not measured");
  return cores() >= 2;
}

/// Rows of all tables, each as its kind and its text.
std::vector<std::string> rows(const std::string& file) {
  std::vector<std::string> result;
  const JsonReader json = JsonReader::from_file(file);
  for (const JsonReader& table : json.at("tables").elements())
    for (const JsonReader& row : table.at("rows").elements())
      result.push_back(table.at("kind").text() + " " + row.dump());
  return result;
}

}  // namespace

TEST_CASE("two ranks measure collectives, and go on where they were") {
  if (!two_cores() || sanitized) return;
  const TemporaryFolder folder;
  const std::string both = mpirun + "-n 2 " + measure + "--quick -o mine.json ";
  const std::string sums = "--only 'mpi_all_reduce 2 x 1 x 1'";  // KiB: 1, 16, 128, 1024, 16384
  const Ran first = shell(both + sums, folder);
  INFO(first.err);
  REQUIRE(first.exit == 0);
  CHECK(first.out == "mine.json: 5 measured\n");
  const std::string file = (folder.path() / "mine.json").string();
  const JsonReader json = JsonReader::from_file(file);
  CHECK(json.at("ranks").whole_number() == 2);
  CHECK(json.at("cores").whole_number() == cores());
  const std::vector<std::string> before = rows(file);
  CHECK(before.size() == 5);

  CHECK(shell(both + sums, folder).out == "mine.json: 0 measured\n");
  CHECK(rows(file) == before);
  CHECK(shell(both + one_send, folder).out == "mine.json: 1 measured\n");
  CHECK(rows(file).size() == 6);

  const Ran one = shell(measure + "--quick -o mine.json", folder);
  CHECK(one.exit == 1);
  CHECK_THAT(one.err, ContainsSubstring("mine.json: /ranks: expected 1 ranks, as now"));
  CHECK(rows(file).size() == 6);
}

TEST_CASE("ranks that were told other things are refused in one line of the first") {
  if (!two_cores()) return;
  const TemporaryFolder folder;
  const Ran ran = shell(
      mpirun + "-n 1 " + measure + "--quick -o a.json : -n 1 " + measure + "-o a.json", folder);
  CHECK(ran.exit != 0);
  CHECK(times(ran.err, "rank 1: expected the arguments of rank 0, a.json --quick") == 1);
  CHECK_FALSE(folder.has("a.json"));
}

TEST_CASE("more ranks than cores are refused: they would take turns") {
  const TemporaryFolder folder;
  const Ran ran = shell(
      mpirun + "-n " + std::to_string(cores() + 1) + " " + measure + "--quick -o a.json", folder);
  CHECK(ran.exit != 0);
  CHECK(times(ran.err, "expected " + std::to_string(cores()) + " ranks at most on the cores") == 1);
  CHECK_FALSE(folder.has("a.json"));
}

TEST_CASE("a file that was cut off, and a disk that is full, end all ranks with one line") {
  if (!two_cores() || sanitized) return;
  const TemporaryFolder folder;
  const std::string cut = R"({"schema": 1, "device": {"gpu": "a pro)";
  folder.write("cut.json", cut);
  const Ran ran = shell(mpirun + "-n 2 " + measure + "--quick -o cut.json", folder);
  CHECK(ran.exit != 0);
  CHECK(times(ran.err, "cut.json: expected") == 1);
  CHECK(folder.read("cut.json") == cut);

  // Every draft of the file goes to a device that is full.
  const std::string both = mpirun + "-n 2 " + measure + "--quick -o mine.json ";
  REQUIRE(shell(both + one_send, folder).exit == 0);
  const std::string measured = folder.read("mine.json");
  std::filesystem::create_symlink("/dev/full", folder.path() / "mine.json.part");
  const Ran full = shell(both + "--only 'mpi_broadcast 2 x 1 x 1024'", folder);
  CHECK(full.exit != 0);
  CHECK(times(full.err, "mine.json: expected a file that can be written") == 1);
  CHECK(times(full.err, "No space left on device") == 1);
  CHECK(folder.read("mine.json") == measured);
}

TEST_CASE("asking for experiments that there are none of is said once, with those that there are") {
  if (!two_cores()) return;
  const TemporaryFolder folder;
  const Ran ran = shell(mpirun + "-n 2 " + measure + "--quick --only nccl_ -o a.json", folder);
  CHECK(ran.exit != 0);
  CHECK(times(ran.err, "--only: expected how the names of some experiments begin") == 1);
  CHECK_THAT(ran.err, ContainsSubstring("gemm, elementwise add") && ContainsSubstring("mpi_send") &&
                          ContainsSubstring("found \"nccl_\""));
  CHECK_FALSE(folder.has("a.json"));
}

TEST_CASE("ranks that are to measure GPUs want a cluster, and a GPU each") {
  const TemporaryFolder folder;
  const std::string gpus =
      mpirun + "-n 2 " + STRATAGEM_EXECUTABLE + " calibrate measure --backend cuda -o a.json";
  const Ran unnamed = shell(gpus, folder);
  CHECK(unnamed.exit != 0);
  CHECK(times(unnamed.err, "on several ranks wants --cluster") == 1);
  const Ran unknown = shell(gpus + " --cluster dgx-9", folder);
  CHECK(unknown.exit != 0);
  CHECK(times(unknown.err, "stratagem: ") == 1);
  const Ran none = shell("CUDA_VISIBLE_DEVICES= " + gpus + " --cluster dgx-a100", folder);
  CHECK(none.exit != 0);
  CHECK(times(none.err, "--backend cuda needs a GPU") == 1);
  CHECK(times(none.err, "stratagem: ") == 1);
  CHECK_FALSE(folder.has("a.json"));
}

TEST_CASE("usage that no rank understands is said once") {
  const TemporaryFolder folder;
  const Ran ran = shell(mpirun + "-n 2 " + measure + "--quick", folder);
  CHECK(ran.exit != 0);
  CHECK(times(ran.err, "stratagem: ") == 1);
}

TEST_CASE(
    "when a rank is killed the others end within half a minute, and what was measured stays") {
  if (!two_cores() || sanitized) return;
  const TemporaryFolder folder;
  // The machine's rates take half a minute, and much longer beside other tests: measured once.
  REQUIRE(shell(mpirun + "-n 2 " + measure + "--quick -o rates.json " + one_send, folder).exit ==
          0);
  const std::size_t before = rows((folder.path() / "rates.json").string()).size();
  // With recovery mpirun leaves the other rank alone, as a launcher on another server might.
  for (const std::string recovery : {"", "--enable-recovery "}) {
    CAPTURE(recovery);
    const std::string name = recovery.empty() ? "plain" : "alone";
    const std::string file = (folder.path() / (name + ".json")).string();
    std::filesystem::copy_file(folder.path() / "rates.json", file);
    const std::string line = environment + "exec " + mpirun + recovery + "-n 2 " + measure +
                             "--quick --only mpi_ -o " + file + " 2>" + file + ".err";
    const pid_t launcher = started(line);
    REQUIRE(eventually(std::chrono::seconds(600), [&] {
      return children_of(launcher).size() == 2 && rows(file).size() > before;
    }));
    const pid_t victim = children_of(launcher)[1];
    const auto killed = Clock::now();
    REQUIRE(kill(victim, SIGKILL) == 0);
    int status = 0;
    REQUIRE(eventually(std::chrono::seconds(30),
                       [&] { return waitpid(launcher, &status, WNOHANG) == launcher; }));
    CHECK(Clock::now() - killed < std::chrono::seconds(30));
    CHECK(rows(file).size() > before);
    const std::string said = folder.read(name + ".json.err");
    if (recovery.empty()) {
      CHECK_FALSE((WIFEXITED(status) && WEXITSTATUS(status) == 0));
      CHECK_THAT(said, ContainsSubstring("rank 1"));
    } else {
      CHECK_THAT(said, ContainsSubstring("stratagem: rank 0: rank 1 (process " +
                                         std::to_string(victim) + ") died during"));
    }
  }
}
