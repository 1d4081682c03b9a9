// The table of schedules, in the order of --help.
#include "strategies/schedules/all.hpp"

#include <algorithm>

#include "base/input_error.hpp"
#include "base/table.hpp"

namespace stratagem::strategies {

// clang-format off
STRATAGEM_TABLE(schedules, Schedule,
    gpipe,
    one_f_one_b,
    interleaved,
    combined_one_f_one_b,
    zb_h1,
    zb_h2,
    zb_v,
    v_half,
    v_min,
    chimera,
    dualpipe,
    dualpipe_v,
    hanayo,
    interlaced,
    bpipe,
    pipedream,
    pipedream_vertical,
    pipedream_2bw,
    three_f_one_b)
// clang-format on

std::string schedules_that(const std::function<bool(const Schedule&)>& are_so) {
  std::string names;
  for (const Schedule& one : schedules()) {
    if (are_so(one)) names += (names.empty() ? "" : ", ") + one.name;
  }
  return names;
}

const Schedule& schedule_named(const std::string& name) {
  const auto found = std::ranges::find(schedules(), name, &Schedule::name);
  expects(found != schedules().end(), "a schedule is one of the table");
  return *found;
}

}  // namespace stratagem::strategies
