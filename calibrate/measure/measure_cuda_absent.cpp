// A build without CUDA measures no GPU.
#include "calibrate/measure/measure_cuda.hpp"
#include "kernels/device.hpp"

namespace stratagem::calibrate {

std::size_t measure_cuda(const CudaAssignment& /*assignment*/, kernels::World& /*world*/,
                         const std::function<void(const Progress&)>& /*tell*/) {
  throw kernels::DeviceError("no GPU: " + kernels::why_no_devices());
}

}  // namespace stratagem::calibrate
