// The pipeline schedules: each is a function from the pipeline's numbers to a timetable.
#pragma once

#include "strategies/schedules/timetable/timetable.hpp"

namespace stratagem::strategies::timetables {

// p ranks, v chunks on each, m micro-batches. All throw InputError for numbers they cannot order.

// One stage on every rank (Placement::loop, v = 1).
Timetable zb_h1(const Pipeline&);
Timetable zb_h2(const Pipeline&);

/// Placement::loop, v >= 2; m a multiple of p.
Timetable interleaved(const Pipeline&);

// Placement::wave, v = 2.
Timetable zb_v(const Pipeline&);
Timetable v_half(const Pipeline&);
Timetable v_min(const Pipeline&);
/// m >= 2p.
Timetable dualpipe_v(const Pipeline&);

/// Placement::wave, v = 2 x the number of waves.
Timetable hanayo(const Pipeline&);

// Placement::bidirectional, v = 1; p and m even.
Timetable chimera(const Pipeline&);
/// m >= 2p.
Timetable dualpipe(const Pipeline&);

}  // namespace stratagem::strategies::timetables
