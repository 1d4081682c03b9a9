// A GPU as a rank's engine.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/quantity.hpp"
#include "execute/engine.hpp"
#include "kernels/half.hpp"
#include "kernels/ranks/nccl_communicator.hpp"

namespace stratagem::execute {

/// Computes on the GPU of that index, kernel after kernel on one stream, in fp32, fp16 or bf16:
/// statistics, losses, the optimizer's states and the sums within a kernel are fp32, what adds up
/// over micro-batches is not. Expects a GPU, so a build with CUDA. Bytes are allocated by CUDA once
/// and kept for the next value of that size. Throws kernels::DeviceError for whatever CUDA or
/// cublasLt refuses, kernels::DeviceOutOfMemory as one of them.
///
/// Messages go through memory of the host, in fp32: they are copied there, moved by the rank's
/// communicator and copied back, and the host waits for the GPU each time. With `nccl` those of
/// collectives stay on GPUs, of which every rank then has one to itself: NCCL moves them in fp32,
/// what has two bytes widened, behind what the stream was asked for, and the host waits for them,
/// as kernels::nccl_communicator gives up. Messages between stages go through the host all the
/// same.
template <typename T>
std::unique_ptr<Engine<T>> gpu_engine(int device,
                                      const std::optional<kernels::GivingUp>& nccl = {});

/// "NCCL 2.28.9", if this process finds it; else "".
std::string nccl_found();

/// What a GPU could still allocate.
Bytes gpu_memory_available(int device);

}  // namespace stratagem::execute
