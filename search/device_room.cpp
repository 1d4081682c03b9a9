// Takes from a device's size what stands beside buffers.
#include "search/device_room.hpp"

#include "sim/device_memory.hpp"
#include "study/plan_of.hpp"

namespace stratagem::search {

std::vector<Bytes> device_room(const study::Run& run, const program::Program& program) {
  std::vector<Bytes> room(program.sequences.size());
  for (std::size_t d = program.devices.size(); d-- > 0;) {
    const sim::DeviceMemory beside = sim::memory_beside(program, static_cast<int>(d), run.profile,
                                                        run.stack, study::groups_beside(run));
    room[program.devices[d].sequence] =
        run.profile.memory.size.value - beside.context - beside.communicators - beside.workspace;
  }
  return room;
}

}  // namespace stratagem::search
