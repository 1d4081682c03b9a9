// A build without CUDA has no GPUs to compute on.
#include "base/input_error.hpp"
#include "execute/gpu/gpu_engine.hpp"

namespace stratagem::execute {

template <typename T>
std::unique_ptr<Engine<T>> gpu_engine(int /*device*/,
                                      const std::optional<kernels::GivingUp>& /*nccl*/) {
  throw BrokenPromise("nobody asks for a GPU where there is none");
}

std::string nccl_found() { return ""; }

Bytes gpu_memory_available(int /*device*/) { return {}; }

template std::unique_ptr<Engine<float>> gpu_engine<float>(int,
                                                          const std::optional<kernels::GivingUp>&);
template std::unique_ptr<Engine<kernels::Half>> gpu_engine<kernels::Half>(
    int, const std::optional<kernels::GivingUp>&);
template std::unique_ptr<Engine<kernels::BFloat16>> gpu_engine<kernels::BFloat16>(
    int, const std::optional<kernels::GivingUp>&);

}  // namespace stratagem::execute
