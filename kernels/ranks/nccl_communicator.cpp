// Collectives of GPUs by NCCL, made known to each other over a communicator of the host.
#include "kernels/ranks/nccl_communicator.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "kernels/inside/stream.cuh"
#include "kernels/ranks/inside/nccl_guard.hpp"
#include "kernels/ranks/inside/rank_names.hpp"

namespace stratagem::kernels {
namespace {

ncclDataType_t type_of(DeviceElement element) {
  switch (element) {
    case DeviceElement::byte:
      return ncclUint8;
    case DeviceElement::fp16:
      return ncclFloat16;
    case DeviceElement::bf16:
      return ncclBfloat16;
    case DeviceElement::fp32:
      return ncclFloat32;
    default:
      return ncclFloat64;
  }
}

ncclRedOp_t operation_of(Reduction reduction) {
  return reduction == Reduction::sum ? ncclSum : ncclMax;
}

/// The number of the library's version; 0 and `why` where there is none that serves.
int version_code(std::string& why) {
  try {
    int code = 0;
    if (nccl().ncclGetVersion(&code) == ncclSuccess && code >= NCCL_VERSION(2, 14, 0)) return code;
    why = "NCCL is " + nccl_version_text(code) + ", and 2.14 or newer is wanted";
  } catch (const DeviceError& error) {
    why = error.what();
  }
  return 0;
}

/// All ranks have the library, in one version, or all throw.
void expect_library(Communicator& host) {
  std::string why;
  const std::array<double, 1> mine = {static_cast<double>(version_code(why))};
  std::vector<double> all(static_cast<std::size_t>(host.size()));
  host.all_gather(In<double>(mine), std::span(all));
  if (!why.empty()) throw DeviceError(why);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const std::string other = "making a group of GPUs: rank " + std::to_string(rank);
    const int code = static_cast<int>(all[rank]);
    if (code == 0) throw CommunicationError(other + " has no NCCL that serves");
    if (all[rank] != all[0])
      throw CommunicationError(other + " has NCCL " + nccl_version_text(code) + ", rank 0 " +
                               nccl_version_text(static_cast<int>(all[0])));
  }
}

/// What rank 0 tells the others.
struct Invitation {
  ncclUniqueId id{};
  bool serves = false;
};

/// NCCL's id of a new group of all ranks of `host`.
ncclUniqueId new_id(Communicator& host) {
  Invitation invitation;
  std::string why;
  if (host.rank() == 0) {
    const ncclResult_t code = nccl().ncclGetUniqueId(&invitation.id);
    invitation.serves = code == ncclSuccess;
    if (!invitation.serves) why = nccl().ncclGetErrorString(code);
  }
  host.broadcast(0, std::as_writable_bytes(std::span(&invitation, 1)));
  if (!why.empty()) throw DeviceError("NCCL has no id for a group: " + why);
  if (!invitation.serves)
    throw CommunicationError("making a group of GPUs: rank 0 got no id of NCCL");
  return invitation.id;
}

class NcclCommunicator : public DeviceCommunicator {
 public:
  /// `ranks` are the members as the first group counts them; `own` is `host` where this group has
  /// it to itself.
  NcclCommunicator(Communicator& host, std::unique_ptr<Communicator> own, int device,
                   std::vector<int> ranks, const GivingUp& giving_up)
      : own_(std::move(own)),
        host_(host),
        device_(device),
        ranks_(std::move(ranks)),
        giving_up_(giving_up),
        guard_(nccl(), name_of(ranks_), giving_up) {
    STRATAGEM_CHECK(cudaSetDevice(device_));
    nothing_ = DeviceArray<float>(1);
    STRATAGEM_CHECK(cudaMemset(nothing_.data(), 0, sizeof(float)));
    guard_.create(size(), new_id(host_), rank());
  }

  [[nodiscard]] int rank() const override { return host_.rank(); }
  [[nodiscard]] int size() const override { return host_.size(); }

  /// A new id over the host, not ncclCommSplit, which all ranks of this group would have to call.
  [[nodiscard]] std::unique_ptr<DeviceCommunicator> group(const std::vector<int>& ranks) override {
    std::unique_ptr<Communicator> host = host_.group(ranks);
    std::vector<int> members;
    for (const int rank : ranks) members.push_back(ranks_[static_cast<std::size_t>(rank)]);
    Communicator& of_group = *host;
    return std::make_unique<NcclCommunicator>(of_group, std::move(host), device_,
                                              std::move(members), giving_up_);
  }

  void wait(const Stream& stream) override {
    guard_.await([cuda = stream_of(stream)] {
      const cudaError_t state = cudaStreamQuery(cuda);
      if (state == cudaErrorNotReady) {
        static_cast<void>(cudaGetLastError());  // which would tell the next kernel of it
        return false;
      }
      STRATAGEM_CHECK(state);
      return true;
    });
  }

  void barrier(const Stream& stream) override {
    guard_("barrier", [&](ncclComm_t group) {
      return nccl().ncclAllReduce(nothing_.data(), nothing_.data(), 1, ncclFloat32, ncclSum, group,
                                  stream_of(stream));
    });
  }

 protected:
  void do_all_reduce(const Stream& stream, Reduction reduction, DeviceTarget v) override {
    guard_("all_reduce", [&](ncclComm_t group) {
      return nccl().ncclAllReduce(v.data, v.data, v.count, type_of(v.element),
                                  operation_of(reduction), group, stream_of(stream));
    });
  }
  void do_all_gather(const Stream& stream, DeviceSource part, DeviceTarget whole) override {
    guard_("all_gather", [&](ncclComm_t group) {
      return nccl().ncclAllGather(part.data, whole.data, part.count, type_of(part.element), group,
                                  stream_of(stream));
    });
  }
  void do_reduce_scatter(const Stream& stream, Reduction reduction, DeviceSource whole,
                         DeviceTarget part) override {
    guard_("reduce_scatter", [&](ncclComm_t group) {
      return nccl().ncclReduceScatter(whole.data, part.data, part.count, type_of(part.element),
                                      operation_of(reduction), group, stream_of(stream));
    });
  }
  void do_broadcast(const Stream& stream, int root, DeviceTarget v) override {
    guard_("broadcast", [&](ncclComm_t group) {
      return nccl().ncclBroadcast(v.data, v.data, v.count, type_of(v.element), root, group,
                                  stream_of(stream));
    });
  }
  void do_reduce(const Stream& stream, Reduction reduction, int root, DeviceTarget v) override {
    void* const result = root == rank() ? v.data : nullptr;
    guard_("reduce", [&](ncclComm_t group) {
      return nccl().ncclReduce(v.data, result, v.count, type_of(v.element), operation_of(reduction),
                               root, group, stream_of(stream));
    });
  }
  /// Until 2.28 NCCL had no such collective.
  void do_all_to_all(const Stream& stream, DeviceSource out, DeviceTarget in) override {
    const std::size_t part = out.count / ranks_.size();
    std::vector<DeviceSent> sent;
    std::vector<DeviceReceived> received;
    for (int rank = 0; rank < size(); ++rank) {
      const std::size_t offset = static_cast<std::size_t>(rank) * part * size_of(out.element);
      sent.push_back({rank, {static_cast<const std::byte*>(out.data) + offset, part, out.element}});
      received.push_back({rank, {static_cast<std::byte*>(in.data) + offset, part, in.element}});
    }
    exchange("all_to_all", stream, sent, received);
  }
  void do_exchange(const Stream& stream, const std::vector<DeviceSent>& sent,
                   const std::vector<DeviceReceived>& received) override {
    exchange("messages", stream, sent, received);
  }

 private:
  [[nodiscard]] cudaStream_t stream_of(const Stream& stream) const {
    expects(stream.device().index == device_, "a rank communicates on streams of its own GPU");
    return stream.inside().stream;
  }

  void exchange(const char* operation, const Stream& stream, const std::vector<DeviceSent>& sent,
                const std::vector<DeviceReceived>& received) {
    if (sent.empty() && received.empty()) return;
    cudaStream_t cuda = stream_of(stream);
    guard_.together(operation, [&](ncclComm_t group) {
      ncclResult_t code = ncclSuccess;
      const auto ask = [&code](ncclResult_t asked) {
        if (asked != ncclSuccess && asked != ncclInProgress && code == ncclSuccess) code = asked;
      };
      for (const auto& [to, v] : sent)
        ask(nccl().ncclSend(v.data, v.count, type_of(v.element), to, group, cuda));
      for (const auto& [from, v] : received)
        ask(nccl().ncclRecv(v.data, v.count, type_of(v.element), from, group, cuda));
      return code;
    });
  }

  std::unique_ptr<Communicator> own_;
  Communicator& host_;
  int device_;
  std::vector<int> ranks_;
  GivingUp giving_up_;
  DeviceArray<float> nothing_;  ///< what a barrier sums
  NcclGuard guard_;             ///< goes first, and waits until barriers are over
};

}  // namespace

std::string nccl_version() {
  std::string why;
  const int code = version_code(why);
  if (code == 0) throw DeviceError(why);
  return nccl_version_text(code);
}

std::unique_ptr<DeviceCommunicator> nccl_communicator(Communicator& host, const Stream& stream,
                                                      GivingUp giving_up) {
  expect_library(host);
  std::vector<int> ranks(static_cast<std::size_t>(host.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return std::make_unique<NcclCommunicator>(host, nullptr, stream.device().index, std::move(ranks),
                                            giving_up);
}

}  // namespace stratagem::kernels
