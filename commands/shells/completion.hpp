// Scripts by which shells complete a command line, from what the commands declare.
#pragma once

#include <string>
#include <vector>

#include "commands/all.hpp"

namespace stratagem::commands {

/// For a file that bash sources, such as share/bash-completion/completions/stratagem.
std::string bash_completion(const std::vector<Command>& commands);
/// For a file _stratagem in a folder of zsh's `fpath`.
std::string zsh_completion(const std::vector<Command>& commands);
/// For share/fish/vendor_completions.d/stratagem.fish.
std::string fish_completion(const std::vector<Command>& commands);

/// A page of the manual, for man(7): every command with its options.
std::string man_page(const std::vector<Command>& commands, const std::string& version);

}  // namespace stratagem::commands
