// Servers and fabrics of the user's own, from the command line and in scenarios.
#include "base/json_reader.hpp"
#include "tests/main/executable.hpp"

using namespace stratagem;

namespace {

/// The small scenario with a cluster of the given text.
std::string with_cluster(const std::string& cluster) {
  return with(small_scenario(), R"({"preset": "dgx-2", "gpus": 4})", cluster);
}

/// What the runs' iteration times are, as JSON text.
std::string times(const TemporaryFolder& folder, const std::string& scenario) {
  folder.write("a.json", scenario);
  const Ran ran = run("simulate a.json --json out.json", folder);
  INFO(ran.err);
  REQUIRE(ran.exit == 0);
  std::string text;
  const JsonReader report = JsonReader::from_file((folder.path() / "out.json").string());
  for (const JsonReader& one : report.at("runs").elements())
    text += one.at("iteration_time_s").dump() + " ";
  return text;
}

void refuses_cluster(const std::string& cluster, const std::string& start) {
  const TemporaryFolder folder;
  REQUIRE(run("topology export dgx-2 -o mine.json", folder).exit == 0);
  folder.write("a.json", with_cluster(cluster));
  const Ran ran = run("simulate a.json", folder);
  CHECK(ran.exit == 1);
  CHECK(std::ranges::count(ran.err, '\n') == 1);
  CHECK_THAT(ran.err, StartsWith(start));
}

}  // namespace

TEST_CASE("a preset that was exported, named as the user's own server, predicts the same") {
  const TemporaryFolder folder;
  const std::string expected = times(folder, small_scenario());
  REQUIRE(run("topology export dgx-2 -o mine.json", folder).exit == 0);
  CHECK(times(folder, with_cluster(R"({"node": "mine.json", "gpus": 4})")) == expected);
  REQUIRE(run("topology export dgx-2 -o nodes/mine.json", folder).exit == 0);
  CHECK(times(folder, with_cluster(R"({"node": "mine", "gpus": 4})")) == expected);
  CHECK(times(folder,
              with_cluster(R"({"node": "mine", "gpus": 4, "fabric": {"kind": "fat_tree"}})")) ==
        expected);
}

TEST_CASE("a run's own node replaces the preset of the defaults") {
  const TemporaryFolder folder;
  REQUIRE(run("topology export dgx-2 -o mine.json", folder).exit == 0);
  const std::string scenario = with(small_scenario(), R"("cluster": {"gpus": 1})",
                                    R"("cluster": {"node": "mine.json", "gpus": 1})");
  CHECK(times(folder, scenario) == times(folder, small_scenario()));
}

TEST_CASE("nodes and fabrics that a scenario cannot have are refused with their place") {
  refuses_cluster(R"({"gpus": 4})", "a.json: /runs/0/cluster: expected the key \"preset\"");
  refuses_cluster(
      R"({"preset": "dgx-2", "node": "mine.json", "gpus": 4})",
      "a.json: /defaults/cluster/node: expected the key \"preset\" or the key \"node\", not both");
  refuses_cluster(R"({"node": "none.json", "gpus": 4})",
                  "a.json: /defaults/cluster/node: expected a file that exists");
  refuses_cluster(R"({"preset": "dgx-2", "gpus": 4, "fabric": {"kind": "fat_tree", "rails": 12}})",
                  "a.json: /defaults/cluster/fabric/rails: expected");
  refuses_cluster(
      R"({"preset": "dgx-2", "nodes": 2, "gpus": 4,)"
      R"( "fabric": {"kind": "fat_tree", "nodes_per_leaf": 5}})",
      "a.json: /defaults/cluster/fabric: expected at most 18 adapters on a leaf of 36 ports");
  refuses_cluster(R"({"preset": "dgx-2", "gpus": 4, "fabric": {"kind": "fat_tree", "rail": true}})",
                  "a.json: /defaults/cluster/fabric");
}

TEST_CASE("topology shows a fabric and writes a preset as a file that it shows alike") {
  const TemporaryFolder folder;
  const Ran shown =
      run("topology show dgx-h100 --nodes 128 --fabric "
          "'{\"kind\": \"fat_tree\", \"rails\": true}'",
          folder);
  CHECK(shown.exit == 0);
  CHECK_THAT(shown.out, ContainsSubstring("8 rails, 32 adapters on a leaf, oversubscription 1:1"));
  CHECK_THAT(shown.out, ContainsSubstring("leaf   32      1              32"));
  REQUIRE(run("topology export dgx-h100 -o h100.json", folder).exit == 0);
  CHECK(run("topology show h100.json --nodes 4", folder).out ==
        run("topology show dgx-h100 --nodes 4", folder).out);
}

TEST_CASE("a fabric on the command line that is wrong is bad input") {
  const TemporaryFolder folder;
  const Ran ran = run("topology show dgx-h100 --fabric '{\"kind\": \"ring\"}'", folder);
  CHECK(ran.exit == 1);
  CHECK_THAT(ran.err, StartsWith("--fabric: /kind: expected"));
}

TEST_CASE("topology imports a matrix as a node file that it shows alike") {
  const TemporaryFolder folder;
  folder.write("pair.txt",
               "\tGPU0\tGPU1\tNIC0\tCPU Affinity\nGPU0\t X \tNV4\tPIX\t0-63\n"
               "GPU1\tNV4\t X \tPIX\t0-63\nNIC0\tPIX\tPIX\t X\n");
  const Ran ran =
      run("topology import pair.txt -o pair.json --gpu a100-pcie-80gb --port HDR", folder);
  INFO(ran.err);
  REQUIRE(ran.exit == 0);
  CHECK_THAT(ran.out, StartsWith("pair: 1 node of 2 GPUs, 2 GPUs (profile a100-pcie-80gb)\n"));
  CHECK_THAT(ran.out,
             ContainsSubstring("GPU - GPU          NVLink   1      4            100 GB/s"));
  CHECK_THAT(ran.out, ContainsSubstring("source: nvidia-smi topo -m, pair.txt"));
  CHECK_THAT(ran.out, ContainsSubstring("wrote pair.json"));
  CHECK_THAT(ran.out, StartsWith(run("topology show pair.json", folder).out));
}

TEST_CASE("an import that cannot be is bad input or usage, and writes nothing") {
  const TemporaryFolder folder;
  folder.write("hello.txt", "hello\n");
  const Ran hello = run("topology import hello.txt -o node.json --gpu a100", folder);
  CHECK(hello.exit == 1);
  CHECK_THAT(hello.err, StartsWith("hello.txt: expected a topology"));
  const Ran missing = run("topology import none.xml -o node.json", folder);
  CHECK(missing.exit == 1);
  CHECK_THAT(missing.err, StartsWith("none.xml: expected a file that can be read"));
  const auto usage = [&](const std::string& arguments, const std::string& complaint) {
    const Ran ran = run(arguments, folder);
    CHECK(ran.exit == 2);
    CHECK_THAT(ran.err, StartsWith("stratagem: ") && ContainsSubstring(complaint));
  };
  usage("topology import hello.txt -o node.json --port XXL", "--port \"XXL\"");
  usage("topology import hello.txt", "missing --output");
  CHECK_FALSE(folder.has("node.json"));
}

TEST_CASE("calibrate imports a log of nccl-tests and judges NCCL's model by it") {
  const TemporaryFolder folder;
  std::string log = "NCCL version 2.18.6+cuda12.2\n";
  for (int rank = 0; rank < 2; ++rank) {
    log += "#  Rank  " + std::to_string(rank) + " Group  0 Pid 1 on a device  " +
           std::to_string(rank) + " [0x16] NVIDIA A100-SXM4-80GB\n";
  }
  // Two A100 (vTrain), us at 1 to 16 MiB; algbw = busbw = size / time.
  log +=
      "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
      "1048576 262144 float sum -1 44.21 23.72 23.72 0 44.21 23.72 23.72 0\n"
      "2097152 524288 float sum -1 53.43 39.25 39.25 0 53.43 39.25 39.25 0\n"
      "4194304 1048576 float sum -1 61.18 68.56 68.56 0 61.18 68.56 68.56 0\n"
      "8388608 2097152 float sum -1 86.9 96.53 96.53 0 86.9 96.53 96.53 0\n"
      "16777216 4194304 float sum -1 131.9 127.2 127.2 0 131.9 127.2 127.2 0\n";
  folder.write("run.log", log);
  const std::string sheet =
      std::filesystem::absolute("scenarios/datasheets/a100-sxm4-80gb.json").string();
  const Ran ran = run(
      "calibrate import run.log --datasheet " + sheet + " --cluster dgx-a100 -o mine.json", folder);
  INFO(ran.err);
  REQUIRE(ran.exit == 0);
  CHECK(folder.has("mine.json"));
  CHECK(folder.has("mine.csv"));
  const Ran judged = run("calibrate nccl mine.json", folder);
  CHECK(judged.exit == 0);
  CHECK_THAT(judged.out, ContainsSubstring("all fitted"));  // there is one number of ranks
  CHECK(run("calibrate import run.log --datasheet " + sheet + " --cluster dgx-a9 -o a.json", folder)
            .exit == 2);
}

TEST_CASE("calibrate imports a table of kernels, and draws measured against fitted times") {
  const TemporaryFolder folder;
  const std::string sheet =
      std::filesystem::absolute("scenarios/datasheets/a100-sxm4-80gb.json").string();
  const std::string table =
      "kind,gemm\ntype,bf16\nsource,mine\nrows,2\nm,n,k,time us\n4096,4096,4096,601\n64,64,64,9\n";
  folder.write("mine.csv", table);
  const Ran ran = run("calibrate import mine.csv --datasheet " + sheet + " -o mine.json", folder);
  INFO(ran.err);
  REQUIRE(ran.exit == 0);
  CHECK(folder.has("mine.json"));
  folder.write("short.csv", table.substr(0, table.size() - 12));
  const Ran cut = run("calibrate import short.csv --datasheet " + sheet + " -o a.json", folder);
  CHECK(cut.exit == 1);
  CHECK_THAT(cut.err, StartsWith("short.csv: line 6: ") || StartsWith("short.csv: line 7: "));
  CHECK_FALSE(folder.has("a.json"));

  const Ran drawn = run("calibrate report --datasheet " + sheet + " -o page.html", folder);
  CHECK(drawn.exit == 0);
  CHECK_THAT(drawn.out, ContainsSubstring("gemm fp16: A100-SXM4-80GB"));
  CHECK_THAT(folder.read("page.html"), StartsWith("<!DOCTYPE html>"));
  for (const auto& [arguments, complaint] :
       {std::pair{"", "missing datasheet"}, std::pair{" --markdown", "missing profiles"},
        std::pair{" --markdown a.json -o b.md", "--output is for a page"}}) {
    const Ran used = run(std::string("calibrate report") + arguments, folder);
    CHECK(used.exit == 2);
    CHECK_THAT(used.err, ContainsSubstring(complaint));
  }
}
