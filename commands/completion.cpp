// `stratagem completion` and `stratagem man`: what shells and man(1) read.
#include "commands/shells/completion.hpp"

#include <fmt/format.h>

#include "commands/arguments.hpp"

namespace stratagem::commands {
namespace {

Options completion_options() {
  Options options("stratagem completion",
                  "Print a script by which a shell completes command lines, such as\n"
                  "  source <(stratagem completion bash)");
  options.text("shell", "bash, zsh or fish");
  options.among({"bash", "zsh", "fish"});
  options.positional({"shell"}, "SHELL");
  return options;
}

int run_completion(const std::vector<std::string>& line) {
  const Arguments asked(completion_options(), line);
  if (asked.helped()) return done;
  const std::string shell = asked.required("shell");
  fmt::print("{}", shell == "bash"  ? bash_completion(all())
                   : shell == "zsh" ? zsh_completion(all())
                                    : fish_completion(all()));
  return done;
}

Options man_options() {
  return {"stratagem man", "Print the page of the manual: stratagem man | man -l -"};
}

int run_man(const std::vector<std::string>& line) {
  const Arguments asked(man_options(), line);
  if (asked.helped()) return done;
  fmt::print("{}", man_page(all(), STRATAGEM_VERSION));
  return done;
}

}  // namespace

Command completion() {
  return {"completion", "print what bash, zsh or fish complete command lines with",
          &completion_options, &run_completion};
}

Command man() { return {"man", "print the page of the manual", &man_options, &run_man}; }

}  // namespace stratagem::commands
