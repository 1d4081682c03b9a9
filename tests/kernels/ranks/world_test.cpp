// Launchers, by the environment that they leave.
#include "kernels/ranks/world.hpp"

#include <cstdlib>
#include <map>

#include "tests/catch.hpp"

namespace stratagem::kernels::world_test {

namespace {

using Variables = std::map<std::string, std::string>;

/// Sets these of the variables that launchers use, and no others, as long as it lives.
class Environment {
 public:
  explicit Environment(const Variables& values) {
    for (const char* name : names) {
      if (const char* before = std::getenv(name)) before_[name] = before;
      unsetenv(name);
    }
    for (const auto& [name, value] : values) setenv(name.c_str(), value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    for (const char* name : names) unsetenv(name);
    for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  static constexpr const char* names[] = {
      "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_PROCID",
      "WORLD_SIZE",           "RANK",     "TORCHELASTIC_RUN_ID"};
  Variables before_;
};

std::string launched(const Variables& values) {
  const Environment environment(values);
  const auto found = launch();
  return found ? found->launcher + " " + std::to_string(found->ranks) : "alone";
}

TEST_CASE("a launcher is known by its variables, and a batch script is no rank") {
  CHECK(launched({}) == "alone");
  CHECK(launched({{"OMPI_COMM_WORLD_SIZE", "4"}}) == "mpirun 4");
  CHECK(launched({{"PMI_SIZE", "2"}}) == "mpiexec 2");
  CHECK(launched({{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}}) == "alone");
  CHECK(launched({{"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "8"}}) == "srun 8");
  CHECK(launched({{"SLURM_STEP_NUM_TASKS", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}}) == "mpirun 4");
  CHECK(launched({{"WORLD_SIZE", "8"}, {"RANK", "0"}, {"TORCHELASTIC_RUN_ID", "x"}}) ==
        "torchrun 8");
  CHECK(launched({{"WORLD_SIZE", "8"}}) == "alone");
}

TEST_CASE("one rank is a world without MPI, whoever has started it") {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "PMI_SIZE"}) {
    const Environment environment(Variables{{variable, "1"}});
    const auto ranks = world();
    CHECK(ranks->all().size() == 1);
    CHECK(ranks->all().rank() == 0);
  }
}

TEST_CASE("ranks of torchrun are told that MPI does not know them") {
  const Environment environment(
      Variables{{"WORLD_SIZE", "2"}, {"RANK", "0"}, {"TORCHELASTIC_RUN_ID", "x"}});
  CHECK_THROWS_WITH(world(), ContainsSubstring("torchrun started 2 ranks") &&
                                 ContainsSubstring("use mpirun or srun"));
}

}  // namespace

}  // namespace stratagem::kernels::world_test
