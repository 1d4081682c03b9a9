// A table of rates.
#include "topology/processor.hpp"

namespace stratagem::topology {

BytesPerSecond nccl_socket_rate(Processor processor) {
  switch (processor) {
    case Processor::amd:
      return 16_GBps;
    case Processor::intel_skylake:
      return 10_GBps;
    case Processor::intel_sapphire_rapids:
      return 22_GBps;
    case Processor::intel_emerald_rapids:
      return 40_GBps;
    default:
      return 6_GBps;
  }
}

}  // namespace stratagem::topology
