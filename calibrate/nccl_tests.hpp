// NVIDIA's benchmark nccl-tests: what each of its programs measures and calls bus bandwidth.
#pragma once

#include <string>
#include <vector>

#include "cost/ring.hpp"

namespace stratagem::calibrate {

/// `sendrecv_perf` has every rank send to the next one and receive from the one before, all at
/// once; its kind is `send`.
struct NcclTest {
  const char* program;  ///< "all_gather_perf"
  cost::CollectiveKind kind;
  const char* text;  ///< for messages: "an all-gather"
  bool reduces;      ///< names a reduction; those of the other programs say nothing
};

/// Those that measurements have a place for; not gather, scatter, hypercube and unequal
/// all-to-alls.
const std::vector<NcclTest>& nccl_tests();

/// The program that a path ends in, "build/all_gather_perf"; throws InputError, for `file` and
/// `where`, for any other.
const NcclTest& nccl_test(const std::string& program, const std::string& file,
                          const std::string& where);

/// The test of a kind of collective.
const NcclTest& nccl_test(cost::CollectiveKind kind);

/// Bus bandwidth over algorithm bandwidth on n ranks, where the latter is size / time and the size
/// what the program prints, all that a rank sends or receives: 2(n-1)/n of an all-reduce; (n-1)/n
/// of an all-gather, a reduce-scatter, an all-to-all; 1 of a broadcast, a reduce, a send. Source:
/// the programs' GetBw functions and doc/PERFORMANCE.md of NVIDIA/nccl-tests, read. Logs of
/// all_gather_perf of 2020 have another algorithm bandwidth, (n-1)/n of size / time, and do not
/// hold to it.
double bus_factor(cost::CollectiveKind kind, int ranks);

}  // namespace stratagem::calibrate
