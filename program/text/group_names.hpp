// Names of communicators, for the ranks that they have.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "program/program.hpp"

namespace stratagem::program {

/// The groups of a block's collectives, in the order in which its tasks name them first.
std::vector<int> groups_of(const Block& block);

/// By sequence: the devices that run it, ascending.
std::vector<std::vector<int>> devices_by_sequence(const Program& program);

/// A communicator is called "[0-7]"; of those with equal ranks in equal order the one that its
/// first rank uses first, then "[0-7] (2)", and so on.
class GroupNames {
 public:
  explicit GroupNames(const Program& program);

  /// What a sequence calls a group: as the first of its devices calls its communicator.
  [[nodiscard]] std::string name(int sequence, int group) const;
  /// A line for each group of a sequence: its name, and the communicators of all devices in order,
  /// as "[0-7]*8 [8-15]*8".
  [[nodiscard]] std::vector<std::string> lines(int sequence) const;

 private:
  void find_first_uses();
  void name_communicators();
  [[nodiscard]] std::string of_device(int device, int group) const;

  const Program& program_;
  std::vector<std::vector<int>> devices_;  ///< by sequence
  std::vector<std::vector<int>> groups_;   ///< by sequence: in the order of first use
  std::vector<std::string> names_;         ///< by communicator
};

}  // namespace stratagem::program
