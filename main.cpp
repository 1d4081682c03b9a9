// Finds the command, and maps errors to exit codes.
#include <fmt/format.h>
#ifdef STRATAGEM_MIMALLOC
#include <fcntl.h>
#include <mimalloc.h>
#include <unistd.h>
#elif defined(__GLIBC__)
#include <malloc.h>
#endif

#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/input_error.hpp"
#include "base/nearest.hpp"
#include "base/shortened.hpp"
#include "base/write_file.hpp"
#include "commands/all.hpp"
#include "commands/arguments.hpp"
#include "study/library.hpp"

namespace {

using namespace stratagem;

void print_help() {
  fmt::print("stratagem: what will a parallel training plan do on a GPU cluster?\n\nCommands:\n");
  for (const commands::Command& command : commands::all())
    fmt::print("  {:<11} {}\n", command.name, command.summary);
  fmt::print(
      "\nstratagem COMMAND --help says more of one; stratagem --version, of the program.\n"
      "With any command, --library FOLDER takes profiles, stacks, nodes and plans from there\n"
      "that a scenario names and that are not beside it.\n\n"
      "Example: stratagem simulate scenarios/zero.json --report out/zero.html\n");
}

/// Takes the library's folder from wherever it stands on the line.
void take_library(std::vector<std::string>& line) {
  constexpr std::string_view option = "--library";
  for (auto word = line.begin(); word != line.end() && *word != "--"; ++word) {
    const bool apart = *word == option;
    if (!apart && !word->starts_with(std::string(option) + "=")) continue;
    if (apart && word + 1 == line.end()) throw commands::UsageError("--library: which folder?");
    study::use_library(apart ? *(word + 1) : word->substr(option.size() + 1));
    line.erase(word, word + (apart ? 2 : 1));
    return;
  }
}

int run(std::vector<std::string> line) {
  take_library(line);
  if (line.empty()) throw commands::UsageError("which command? see stratagem --help");
  if (line[0] == "--help" || line[0] == "-h" || line[0] == "help") {
    print_help();
    return commands::done;
  }
  if (line[0] == "--version") {
    fmt::print("stratagem {}\n", STRATAGEM_VERSION);
    return commands::done;
  }
  for (const commands::Command& command : commands::all()) {
    if (line[0] == command.name) return command.run({line.begin() + 1, line.end()});
  }
  std::vector<std::string> names;
  for (const commands::Command& command : commands::all()) names.emplace_back(command.name);
  const std::string near = did_you_mean(line[0], names);
  const std::string hint = line[0].ends_with(".json")
                               ? "; stratagem simulate " + line[0] + " answers it"
                           : near.empty() ? "; see stratagem --help"
                                          : near;
  throw commands::UsageError("no command \"" + line[0] + "\"" + hint);
}

#ifdef STRATAGEM_MIMALLOC
/// Has somebody set aside large pages? They are for others, and where a container may use none,
/// touching one ends the process. `count`: the file that says how many.
bool are_set_aside(const char* count) {
  const int file = open(count, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char first = '0';
  const bool known = read(file, &first, 1) == 1;
  close(file);
  return known && first != '0';
}
#endif

/// Runs allocate and free lists of many megabytes one after another. What is freed is kept, since
/// the system would clear each page that it hands out anew. Pages are large, so that it hands out
/// fewer, on which a short run spends much of its time; that takes some megabytes more.
void set_up_memory() {
#ifdef STRATAGEM_MIMALLOC
  const bool large =
      !are_set_aside("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages") &&
      !are_set_aside("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages");
#if MI_MALLOC_VERSION < 210
  mi_option_set_enabled(mi_option_large_os_pages, large);
  mi_option_disable(mi_option_allow_decommit);
#else
  mi_option_set_enabled(mi_option_allow_large_os_pages, large);
  mi_option_set(mi_option_purge_delay, -1);
#endif
#elif defined(__GLIBC__)
  constexpr int largest = 1 << 25, always = 1 << 30, at_a_time = 1 << 26;
  mallopt(M_MMAP_THRESHOLD, largest);  // more than that is refused
  mallopt(M_TRIM_THRESHOLD, always);
  mallopt(M_TOP_PAD, at_a_time);
#endif
}

#ifdef __GLIBC__
/// Before the constructors of any library: what they allocate lies where all else will.
[[gnu::section(".preinit_array"), gnu::used]] void (*const first_of_all)() = set_up_memory;
#endif

}  // namespace

int main(int argc, char** argv) {
#ifndef __GLIBC__
  set_up_memory();
#endif
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
