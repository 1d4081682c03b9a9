// Reads the launcher's environment, and loads the module that has MPI where there are ranks.
#include "kernels/ranks/world.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

namespace stratagem::kernels {
namespace {

const char* variable(const char* name) { return std::getenv(name); }  // NOLINT(concurrency-*)

int number(const char* name) {
  const char* text = variable(name);
  return text == nullptr ? 0 : std::atoi(text);
}

class LoneWorld : public World {
 public:
  [[nodiscard]] Communicator& all() override { return *all_; }
  void before_the_end(std::function<int(const std::string& why)> /*act*/) override {}
  [[nodiscard]] std::string gone() const override { return ""; }
  [[noreturn]] void stop(int exit_code) override { std::_Exit(exit_code); }

 private:
  std::unique_ptr<Communicator> all_ = lone();
};

/// Beside the program, where packages put libraries, or where it was built.
std::filesystem::path module_file() {
  constexpr const char* name = "libstratagem_mpi.so";
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const auto& folder : {program, program / "../lib"})
    if (std::filesystem::exists(folder / name)) return folder / name;
#ifdef STRATAGEM_MPI_FOLDER
  return std::filesystem::path(STRATAGEM_MPI_FOLDER) / name;
#else
  return {};
#endif
}

std::string started(const Launch& launch) {
  return launch.launcher + " started " + std::to_string(launch.ranks) + " ranks, but ";
}

/// Libraries that Open MPI loads itself look for its symbols among the global ones.
std::unique_ptr<World> load(const Launch& launch, Seconds limit) {
  const std::filesystem::path file = module_file();
  if (file.empty())
    throw CommunicationError(started(launch) +
                             "stratagem was built without MPI (libopenmpi-dev, then cmake again)");
  void* module = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr)
    throw CommunicationError(started(launch) + "MPI cannot be loaded: " + dlerror());
  using Start = World* (*)(Seconds);
  const auto start = reinterpret_cast<Start>(dlsym(module, "stratagem_mpi_world"));
  if (start == nullptr) throw CommunicationError(file.string() + " is of another stratagem");
  return std::unique_ptr<World>(start(limit));
}

}  // namespace

std::optional<Launch> launch() {
  const auto launched = [](const char* launcher, const char* ranks) -> std::optional<Launch> {
    if (number(ranks) < 1) return std::nullopt;
    return Launch{.launcher = launcher, .ranks = number(ranks)};
  };
  if (const auto found = launched("mpirun", "OMPI_COMM_WORLD_SIZE")) return found;
  if (const auto found = launched("srun", "SLURM_STEP_NUM_TASKS")) return found;
  if (const auto found = launched("mpiexec", "PMI_SIZE")) return found;
  if (variable("RANK") != nullptr && variable("TORCHELASTIC_RUN_ID") != nullptr)
    return launched("torchrun", "WORLD_SIZE");
  return std::nullopt;
}

std::unique_ptr<World> world(Seconds limit) {
  const std::optional<Launch> found = launch();
  if (!found || found->ranks == 1) return std::make_unique<LoneWorld>();
  if (found->launcher == "torchrun")
    throw CommunicationError(started(*found) + "MPI does not know of them: use mpirun or srun");
  std::unique_ptr<World> ranks = load(*found, limit);
  const int seen = ranks->all().size();
  if (seen != found->ranks)
    throw CommunicationError(started(*found) + "MPI sees " + std::to_string(seen) +
                             " (srun: --mpi=pmix; mpirun: that of the same Open MPI)");
  return ranks;
}

}  // namespace stratagem::kernels
