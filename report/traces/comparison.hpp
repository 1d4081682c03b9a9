// Compares the prediction of a run with its measurement, task by task.
#pragma once

#include <string>
#include <vector>

#include "base/json_writer.hpp"
#include "report/traces/read_trace.hpp"

namespace stratagem::report {

/// Seconds of all devices together.
struct ComparedTime {
  std::string name;
  int tasks = 0;
  Seconds predicted, measured;
  [[nodiscard]] Seconds difference() const { return measured - predicted; }
};

/// How long a stream is busy, and how much of that beside the compute stream of its device.
struct ComparedStream {
  std::string name;
  Seconds predicted, predicted_beside;
  Seconds measured, measured_beside;
};

struct Comparison {
  TraceOf predicted, measured;
  Bytes predicted_peak, measured_peak;  ///< of live buffers on the device where that is highest
  std::vector<ComparedTime> kinds;      ///< of kernels and collectives, the longest first
  std::vector<ComparedStream> streams;
  /// The tasks of a block that are furthest off, all calls and devices together: at most ten.
  std::vector<ComparedTime> worst;
};

/// Throws InputError unless both are of one program: as many devices, the same tasks on each.
Comparison compare(const Trace& predicted, const Trace& measured);

std::string to_text(const Comparison& comparison);
/// {schema, run, provenance, iteration, peak_live_bytes, kinds, streams, worst}: each with what was
/// predicted, measured and the error relative to what was measured. Times in s.
Json to_json(const Comparison& comparison);

/// Both as one Chrome trace: of every device a process with what was predicted, and one with what
/// was measured below it. Both begin at 0.
std::string overlay(const Trace& predicted, const Trace& measured);

}  // namespace stratagem::report
