// One communicator of NCCL: its calls never hang for ever, and what fails is one exception.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "kernels/ranks/inside/nccl.hpp"
#include "kernels/ranks/nccl_communicator.hpp"

namespace stratagem::kernels {

/// Owns a communicator that NCCL was asked for without blocking, and waits for it in NCCL's way:
/// until its state is no longer ncclInProgress. Whatever goes wrong, a code of NCCL, its
/// asynchronous error, a rank that is gone or the end of patience, aborts the communicator and
/// throws CommunicationError "OPERATION of GROUP: WHY".
class NcclGuard {
 public:
  /// `group` is for messages, "ranks 0, 2".
  NcclGuard(const Nccl& nccl, std::string group, GivingUp giving_up);
  /// Finalises and destroys, waiting for the others, unless something has gone wrong: then it
  /// aborts, or has done so.
  ~NcclGuard();
  NcclGuard(const NcclGuard&) = delete;
  NcclGuard& operator=(const NcclGuard&) = delete;

  /// Makes the communicator.
  void create(int ranks, const ncclUniqueId& id, int rank);

  /// Calls `call`, which returns a code of NCCL, and waits until NCCL is done with it: operations
  /// are in their stream then, not finished.
  template <typename Call>
  void operator()(const char* operation, const Call& call) {
    expect_alive(operation);
    note(operation);
    settle(operation, call(communicator_));
  }

  /// The same of calls that are made together.
  template <typename Call>
  void together(const char* operation, const Call& call) {
    operator()(operation, [&](ncclComm_t communicator) {
      const ncclResult_t begun = nccl_.ncclGroupStart();
      if (begun != ncclSuccess) return begun;
      const ncclResult_t asked = call(communicator);
      const ncclResult_t ended = nccl_.ncclGroupEnd();
      return asked == ncclSuccess || asked == ncclInProgress ? ended : asked;
    });
  }

  /// Waits until `done`, which may throw, says that all operations are finished.
  void await(const std::function<bool()>& done);

 private:
  using Clock = std::chrono::steady_clock;
  void expect_alive(const char* operation) const;
  void note(const char* operation);
  void settle(const char* operation, ncclResult_t code);
  /// How one waits: first without sleeping, then less and less often. Throws where waiting is in
  /// vain.
  class Wait;
  [[nodiscard]] std::string words_of(ncclResult_t code) const;
  [[nodiscard]] std::string asked() const;
  [[noreturn]] void give_up(const std::string& operation, const std::string& why);
  void abort() noexcept;

  const Nccl& nccl_;
  std::string group_;
  GivingUp giving_up_;
  ncclComm_t communicator_ = nullptr;
  bool failed_ = false;
  /// Operations that have been asked for since all were finished.
  const char* first_ = nullptr;
  const char* last_ = nullptr;
  int number_ = 0;
};

}  // namespace stratagem::kernels
