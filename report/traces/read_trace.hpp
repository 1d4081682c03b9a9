// Traces, read again.
#pragma once

#include <string>
#include <vector>

#include "report/traces/trace.hpp"

namespace stratagem::report {

/// A task of one iteration, in seconds from the begin of the first.
struct TracedTask {
  std::string name, block, cell, kind, stream;
  double begin = 0;
  double duration = 0;
};

/// What chrome_trace wrote of a run.
struct Trace {
  std::string file;
  TraceOf of;
  /// By device: its tasks in the order of its program, whichever process stands for it.
  std::vector<std::vector<TracedTask>> devices;
  std::vector<int> process_of_device;
};

/// Throws InputError for a file that is none of ours.
Trace read_trace(const std::string& file);

}  // namespace stratagem::report
