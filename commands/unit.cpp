// Types go with backends; GPUs are asked of CUDA.
#include "commands/unit.hpp"

#include <vector>

#include "kernels/device.hpp"
#include "kernels/half.hpp"

namespace stratagem::commands {

void check_unit(const Arguments& asked) {
  const std::string backend = asked.text("backend"), precision = asked.text("precision");
  if (backend != "cpu" && backend != "cuda")
    throw UsageError("--backend is cpu or cuda, not \"" + backend + "\"");
  const bool narrow = precision == "fp16" || precision == "bf16";
  if (precision != "fp32" && precision != "fp64" && !narrow)
    throw UsageError("--precision is fp32, fp64, fp16 or bf16, not \"" + precision + "\"");
  if (backend == "cpu" && narrow)
    throw UsageError("--precision " + precision +
                     " is for --backend cuda: processors compute in fp32 or fp64");
  if (backend == "cuda" && precision == "fp64")
    throw UsageError("--precision fp64 is for --backend cpu: GPUs compute in fp32, fp16 or bf16");
}

Unit unit_of(const Arguments& asked, int rank_on_server) {
  Unit unit{.precision = asked.text("precision")};
  if (asked.text("backend") == "cpu") return unit;
  const std::vector<kernels::Device> devices = kernels::devices();
  if (devices.empty()) throw UsageError("--backend cuda needs a GPU: " + kernels::why_no_devices());
  unit.backend = execute::Backend::cuda;
  unit.devices = static_cast<int>(devices.size());
  unit.device = rank_on_server % unit.devices;
  const kernels::Device& device = devices[static_cast<std::size_t>(unit.device)];
  unit.name = device.name;
  unit.id = device.id;
  if (unit.precision == "bf16" && !device.at_least(8))
    throw UsageError("--precision bf16 needs compute capability 8.0, which " + device.name +
                     " has not");
  return unit;
}

execute::ElementSizes sizes_of(const Unit& unit) {
  if (unit.precision == "fp64") return execute::sizes_of<double>();
  return unit.precision == "fp32" ? execute::sizes_of<float>() : execute::sizes_of<kernels::Half>();
}

}  // namespace stratagem::commands
