// A build with CUDA but without NCCL's header has no collectives of GPUs.
#include "kernels/ranks/nccl_communicator.hpp"

namespace stratagem::kernels {
namespace {

[[noreturn]] void refuse() {
  throw DeviceError(
      "collectives of GPUs need NCCL, and this program was built without it (nccl.h)");
}

}  // namespace

std::string nccl_version() { refuse(); }

std::unique_ptr<DeviceCommunicator> nccl_communicator(Communicator& /*host*/,
                                                      const Stream& /*stream*/,
                                                      GivingUp /*giving_up*/) {
  refuse();
}

}  // namespace stratagem::kernels
