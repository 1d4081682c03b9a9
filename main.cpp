// Finds the command, and maps errors to exit codes.
#include <fmt/format.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <cstdio>
#include <string>
#include <system_error>
#include <vector>

#include "base/input_error.hpp"
#include "base/shortened.hpp"
#include "base/write_file.hpp"
#include "commands/all.hpp"
#include "commands/arguments.hpp"
#include "cost/optimizer.hpp"
#include "cost/precision.hpp"
#include "model/zoo/all.hpp"
#include "model/zoo/presets.hpp"
#include "strategies/parallel/all.hpp"

namespace {

using namespace stratagem;

void print_help() {
  fmt::print("stratagem: what will a parallel training plan do on a GPU cluster?\n\nCommands:\n");
  for (const commands::Command& command : commands::all())
    fmt::print("  {:<10} {}\n", command.name, command.summary);
  fmt::print("\nStrategies (keys of a run's \"strategy\"):\n");
  for (const strategies::Strategy& entry : strategies::all())
    fmt::print("  {:<10} {}\n", entry.key(), entry.options.front().sentence);
  fmt::print("\nSchedules (\"schedule\"):\n");
  for (const strategies::Schedule& entry : strategies::schedules())
    fmt::print("  {:<10} {}\n", entry.name, entry.summary);
  fmt::print("\nPrecisions (\"precision\" of \"training\"):\n");
  for (const cost::Precision& entry : cost::precisions())
    fmt::print("  {:<10} {}\n", entry.name, entry.summary);
  fmt::print("\nOptimizers (\"optimizer\"):\n");
  for (const cost::Optimizer& entry : cost::optimizers())
    fmt::print("  {:<10} {}\n", entry.name, entry.summary);
  fmt::print("\nModels (\"family\"):\n");
  for (const model::Family& family : model::families())
    fmt::print("  {:<10} {}\n", family.name, family.summary);
  fmt::print("\nPublished models (\"preset\" of \"model\"):\n");
  for (const model::Preset& preset : model::presets())
    fmt::print("  {:<10} {}\n", preset.name, preset.summary);
}

int run(const std::vector<std::string>& line) {
  if (line.empty()) throw commands::UsageError("which command? see stratagem --help");
  if (line[0] == "--help" || line[0] == "-h" || line[0] == "help") {
    print_help();
    return commands::done;
  }
  for (const commands::Command& command : commands::all()) {
    if (line[0] == command.name) return command.run({line.begin() + 1, line.end()});
  }
  throw commands::UsageError("no command \"" + line[0] + "\"; see stratagem --help");
}

/// Runs allocate and free lists of many megabytes one after another. What is freed is kept: the
/// system would clear each page that it hands out anew.
void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int largest = 1 << 25, always = 1 << 30, at_a_time = 1 << 26;
  mallopt(M_MMAP_THRESHOLD, largest);  // more than that is refused
  mallopt(M_TRIM_THRESHOLD, always);
  mallopt(M_TOP_PAD, at_a_time);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  keep_freed_memory();
  try {
    const int code = run({argv + 1, argv + argc});
    finish_standard_output();
    return code;
  } catch (const commands::UsageError& error) {
    constexpr std::size_t longest = 4000;
    fmt::print(stderr, "stratagem: {}\n", shortened(error.what(), longest));
    return commands::usage;
  } catch (const InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return commands::bad_input;
  } catch (const std::system_error& error) {
    std::ferror(stdout) != 0
        ? fmt::print(stderr, "standard output: expected a file that can be written, found {}\n",
                     error.code().message())
        : fmt::print(stderr, "stratagem: internal error: {}\n", error.what());
    return commands::bad_input;
  } catch (const std::exception& error) {
    fmt::print(stderr, "stratagem: internal error: {}\n", error.what());
    return commands::bad_input;
  }
}
