// The table of commands, in the order of --help.
#include "commands/all.hpp"

namespace stratagem::commands {

std::span<const Command> all() {
  static constexpr Command table[] = {
      {"simulate", "predict time and memory of every run of a scenario", &simulate},
      {"validate", "compare predictions with measurements over many scenarios", &validate},
      {"execute", "run a plan for real, and hold it to one device and to its prediction", &execute},
      {"compare", "hold what was predicted of a run to what was measured, task by task", &compare},
      {"explain", "print the strategy of a run as primitives, or write it as a plan file",
       &explain},
      {"options", "list what may be written in a strategy or a model", &options},
      {"topology", "show a cluster, or write a server as a file", &topology},
      {"calibrate", "measure this machine, fit a hardware profile", &calibrate},
  };
  return table;
}

}  // namespace stratagem::commands
