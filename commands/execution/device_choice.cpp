// Reads the backend and its number type, and asks CUDA for GPUs.
#include "commands/execution/device_choice.hpp"

#include <array>
#include <span>
#include <vector>

#include "base/input_error.hpp"
#include "commands/execution/free_memory.hpp"
#include "execute/gpu/gpu_engine.hpp"
#include "kernels/device.hpp"
#include "kernels/half.hpp"

namespace stratagem::commands {

void check_unit(const Arguments& asked) {
  const std::string backend = asked.text("backend"), precision = asked.text("precision");
  const bool narrow = precision == "fp16" || precision == "bf16";
  if (backend == "cpu" && narrow)
    throw UsageError("--precision " + precision +
                     " is for --backend cuda: processors compute in fp32 or fp64");
  if (backend == "cuda" && precision == "fp64")
    throw UsageError("--precision fp64 is for --backend cpu: GPUs compute in fp32, fp16 or bf16");
  const std::string collectives = asked.text("collectives");
  if (collectives == "nccl" && (backend == "cpu" || asked.has("in-process")))
    throw UsageError("--collectives nccl is for --backend cuda, with a process for every rank");
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

std::string collectives_of(const Arguments& asked, const Unit& unit, kernels::Communicator& ranks) {
  const std::string how = asked.text("collectives");
  if (!unit.is_gpu() || ranks.size() == 1 || how == "host") return "";
  const std::string found = execute::nccl_found();
  const bool shared = needed_on_server(ranks, Bytes{1}, unit.id) > Bytes{1};
  std::array<double, 2> hindered = {found.empty() ? 1.0 : 0.0, shared ? 1.0 : 0.0};
  ranks.all_reduce(kernels::Reduction::maximum, std::span<double>(hindered));
  if (hindered[0] == 0 && hindered[1] == 0) return found;
  if (how == "nccl")
    throw InputError(
        asked.required("scenario"), "", "a GPU and NCCL's library for every rank",
        hindered[1] > 0 ? "ranks that share a GPU" : "a rank that finds no libnccl.so.2");
  return "";
}

execute::ElementSizes sizes_of(const Unit& unit) {
  if (unit.precision == "fp64") return execute::sizes_of<double>();
  return unit.precision == "fp32" ? execute::sizes_of<float>() : execute::sizes_of<kernels::Half>();
}

}  // namespace stratagem::commands
