// Pipeline ranks that share a device.
#pragma once

#include "strategies/schedules/timetable/timetable.hpp"

namespace stratagem::strategies {

/// The timetable of devices that take `per_device` consecutive ranks each: their cells one after
/// another in the order in which the ranks alone would begin them at `pipeline.costs`. One order
/// of time for all devices, so that no device waits for itself. Throws InputError for timetables
/// whose cells run together, and where the ranks do not divide.
Timetable on_shared_devices(const Timetable& timetable, int stages, const Pipeline& pipeline,
                            int per_device);

}  // namespace stratagem::strategies
