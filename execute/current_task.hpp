// The task that a rank is at, for error messages.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "program/program.hpp"

namespace stratagem::execute {

/// Written by the thread that computes, read by any.
class CurrentTask {
 public:
  /// What iterations are run for from now on: "the check".
  void during(const std::string& work);
  /// A task of a block that may be shared by equal segments; `segment` is the name of this one,
  /// null where there is none, `micro_batch` below 0 likewise. All live until the next ones, or
  /// `leave`.
  void enter(const program::Block& block, const std::string* segment, const program::Task& task,
             int micro_batch, std::uint64_t iteration);
  void leave();

  /// "at task attention.qkv of F layers.0, micro-batch 1, iteration 2 of the check", all counted
  /// from 0, or "between tasks of the check".
  [[nodiscard]] std::string text() const;

 private:
  mutable std::mutex mutex_;
  std::string work_ = "training";
  const program::Block* block_ = nullptr;
  const std::string* segment_ = nullptr;
  const program::Task* task_ = nullptr;
  int micro_batch_ = -1;
  std::uint64_t iteration_ = 0;
};

}  // namespace stratagem::execute
