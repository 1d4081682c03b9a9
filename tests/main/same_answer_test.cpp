// The same answer every time: the same bytes twice, and from every device as from one per class.
#include "tests/main/executable.hpp"

using namespace stratagem;

TEST_CASE("the same scenario gives the same bytes twice") {
  const TemporaryFolder folder;
  folder.write("a.json", small_scenario());
  const std::string outputs = "--run four --json out.json --trace trace.json --program program.txt";
  REQUIRE(run("simulate a.json " + outputs, folder).exit == 0);
  std::vector<std::string> first;
  for (const char* output : {"out.json", "trace.json", "program.txt"})
    first.push_back(folder.read(output));
  REQUIRE(run("simulate a.json " + outputs, folder).exit == 0);
  CHECK(first == std::vector{folder.read("out.json"), folder.read("trace.json"),
                             folder.read("program.txt")});
}

TEST_CASE("every device simulated gives the same JSON as one per class of equal devices") {
  const TemporaryFolder folder;
  const std::string pipelined =
      R"(, {"name": "eight", "cluster": {"gpus": 8}, "training": {"micro_batch": 1}, "strategy":
            {"tensor": 2, "pipeline": 2, "data": 2, "recompute": "full"}} ])";
  folder.write("a.json", with(small_scenario(), "\n  ]", pipelined));
  REQUIRE(run("simulate a.json --json folded.json", folder).exit == 0);
  REQUIRE(run("simulate a.json --json unfolded.json --unfolded", folder).exit == 0);
  CHECK(folder.read("folded.json") == folder.read("unfolded.json"));
}

TEST_CASE("every micro-batch simulated gives the same JSON and trace as what repeats copied") {
  const TemporaryFolder folder;
  const std::string pipelined =
      R"(, {"name": "many", "cluster": {"gpus": 2},
            "training": {"global_batch": 64, "micro_batch": 1},
            "strategy": {"pipeline": 2, "schedule": "1f1b"}} ])";
  folder.write("a.json", with(small_scenario(), "\n  ]", pipelined));
  REQUIRE(run("simulate a.json --json a.out --trace a.trace --run many", folder).exit == 0);
  REQUIRE(run("simulate a.json --json b.out --trace b.trace --run many --exact", folder).exit == 0);
  CHECK(folder.read("a.out") == folder.read("b.out"));
  CHECK(folder.read("a.trace") == folder.read("b.trace"));
}

TEST_CASE("one run at a time, or many, give the same bytes, changes proposed among them") {
  const TemporaryFolder folder;
  const std::string large =
      R"(, {"name": "too large", "model": {"layers": 4, "hidden": 8192, "heads": 64},
            "cluster": {"gpus": 4}, "strategy": {"data": 4}} ])";
  folder.write("a.json", with(small_scenario(), "\n  ]", large));
  std::vector<std::string> answers;
  for (const char* jobs : {"1", "2", "5"}) {
    const Ran ran = run(std::string("simulate a.json --json out.json --jobs ") + jobs, folder);
    REQUIRE(ran.exit == 0);
    answers.push_back(ran.out + folder.read("out.json"));
  }
  CHECK(answers.front().find("remedies") != std::string::npos);
  CHECK(answers == std::vector(3, answers.front()));
  CHECK(run("simulate a.json --jobs 0", folder).exit == 2);
}
