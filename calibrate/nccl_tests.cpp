// The table of programs.
#include "calibrate/nccl_tests.hpp"

#include <algorithm>

#include "base/input_error.hpp"

namespace stratagem::calibrate {

using cost::CollectiveKind;

const std::vector<NcclTest>& nccl_tests() {
  static const std::vector<NcclTest> table{
      {"all_reduce_perf", CollectiveKind::all_reduce, "an all-reduce", true},
      {"all_gather_perf", CollectiveKind::all_gather, "an all-gather", false},
      {"reduce_scatter_perf", CollectiveKind::reduce_scatter, "a reduce-scatter", true},
      {"broadcast_perf", CollectiveKind::broadcast, "a broadcast", false},
      {"reduce_perf", CollectiveKind::reduce, "a reduce", true},
      {"alltoall_perf", CollectiveKind::all_to_all, "an all-to-all", false},
      {"sendrecv_perf", CollectiveKind::send, "a send", false},
  };
  return table;
}

const NcclTest& nccl_test(const std::string& program, const std::string& file,
                          const std::string& where) {
  const std::string name = program.substr(program.find_last_of('/') + 1);
  const auto found = std::ranges::find_if(
      nccl_tests(), [&](const NcclTest& test) { return test.program == name; });
  if (found != nccl_tests().end()) return *found;
  std::string known;
  for (const NcclTest& test : nccl_tests())
    known += (known.empty() ? "" : ", ") + std::string(test.program);
  throw InputError(file, where, "a run of " + known, program);
}

const NcclTest& nccl_test(CollectiveKind kind) {
  const auto found = std::ranges::find(nccl_tests(), kind, &NcclTest::kind);
  expects(found != nccl_tests().end(), "a kind of collective that nccl-tests measures");
  return *found;
}

double bus_factor(CollectiveKind kind, int ranks) {
  const double n = ranks;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return (n - 1) / n;
    default:
      return 1;
  }
}

}  // namespace stratagem::calibrate
