// A build without CUDA sees no GPUs.
#include "kernels/device.hpp"

namespace stratagem::kernels {

std::vector<Device> devices() { return {}; }

std::string why_no_devices() { return "this program was built without CUDA"; }

}  // namespace stratagem::kernels
