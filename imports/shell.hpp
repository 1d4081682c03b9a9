// Shell scripts as far as one need not run them: words, and values of variables.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace stratagem::imports {

/// Words without comments. Quotes, brackets of arrays and ends of commands part words as blanks do.
std::vector<std::string> words_of_script(const std::string& text);

using Variables = std::map<std::string, std::string>;

/// Values of variables that are set where a line begins or after a semicolon: "TP=8", the default
/// of "TP=${TENSOR:-8}", what "N=$((TP*2))" computes. One that holds arguments, "ARGS='--lr 1'",
/// has none here: its arguments are read where they stand. Also what Slurm sets for a script that
/// asks for servers: SLURM_NNODES and the like.
Variables variables_of(const std::string& text);

/// A word with "$TP" and "${TP}" by what the script, else the environment, sets them to; "${TP:-8}"
/// by the default where neither does. Others stay.
std::string replaced(const std::string& word, const Variables& values);

/// What a script asks Slurm for ("#SBATCH --nodes=8") as arguments of a launcher: "--nodes 8
/// --gpus-per-node 8"; "" if it asks for neither.
std::string asked_of_slurm(const std::string& text);

/// Does a script choose what it runs, by `if` or `case`?
bool has_branches(const std::string& text);

}  // namespace stratagem::imports
