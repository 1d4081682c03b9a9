// One block as text, and what calls of it refer to.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "program/program.hpp"
#include "program/text/names.hpp"

namespace stratagem::program {

/// A block is named and written so that segments that are alike have the same text: without their
/// names, and with groups numbered in the order in which its tasks name them.
struct BlockText {
  std::string name;                 ///< "F *": a call puts its segment there
  std::string text;                 ///< its buffers and tasks, a line or some each
  std::vector<std::string> tasks;   ///< their names; no two are equal
  std::vector<int> groups;          ///< the program's, by their number in the text
  std::map<int, std::string> seen;  ///< names of tensors, by their places
};

/// Of the block that a call runs.
BlockText block_text(const Program& program, const StoredCall& call, const GraphNames& names);

/// ", ^ = layers.2.out": the tensors that a call of a segment binds where the names in the text do
/// not say it, because they are of other segments or called otherwise.
std::string text_of_binding(const Program& program, const BlockText& block, int segment,
                            const GraphNames& names);

}  // namespace stratagem::program
