// Groups of ranks with a GPU each whose collectives NCCL does.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/quantity.hpp"
#include "kernels/ranks/communicator.hpp"
#include "kernels/ranks/device_communicator.hpp"
#include "kernels/ranks/world.hpp"

namespace stratagem::kernels {

/// "2.28.9" of the number by which NCCL tells its version, 22809; up to 2.8 there was a digit less:
/// 2804 is 2.8.4. "" of a number that is none.
std::string nccl_version_text(int code);

/// When ranks give each other up.
struct GivingUp {
  Seconds limit = patience;  ///< that a rank waits for others in one operation
  /// "rank 1 (process 123)": a rank whose process is gone, "" if none is; asked twice a second
  /// while this rank waits. World::gone, or nothing.
  std::function<std::string()> gone = {};
};

// What follows has definitions in builds with CUDA only.

/// The version of the library that is there, "2.28.9". Throws DeviceError, in one line, where
/// libnccl.so.2 is not there or older than 2.14, which had no other way to give up than to end the
/// process.
std::string nccl_version();

/// The ranks of `host` with the GPU of each one's `stream`, whose collectives NCCL does on device
/// memory. `host` carries NCCL's unique id to all, here and whenever a group is made; it must live
/// as long as the group and those made from it. NCCL's library is loaded here, when first asked
/// for, where the dynamic linker or the toolkit that this was built with has it: no program needs
/// it to start.
///
/// NCCL is asked in its non-blocking way, so that no call hangs for ever: while a rank waits it
/// looks at NCCL's asynchronous error, at `giving_up.gone` and at the clock, and where one of them
/// says that the others will not come, it aborts the group and throws CommunicationError. In that
/// way a call returns when its kernels are in the stream, which costs the host more time than a
/// blocking call (how much was not measured).
///
/// All ranks call it alike. Throws DeviceError on a rank that has no library or a GPU that fails,
/// and CommunicationError on the others, which name it. Run on one GPU so far; compiled with
/// NCCL 2.28.9, and what gives up is tested with a stand-in
/// (tests/kernels/gpu/nccl_guard_test.cpp).
std::unique_ptr<DeviceCommunicator> nccl_communicator(Communicator& host, const Stream& stream,
                                                      GivingUp giving_up = {});

}  // namespace stratagem::kernels
