// Waits for NCCL, and gives up.
#include "kernels/ranks/inside/nccl_guard.hpp"

#include <cmath>
#include <exception>
#include <thread>
#include <utility>

namespace stratagem::kernels {

class NcclGuard::Wait {
 public:
  Wait(NcclGuard& guard, std::string operation) : guard_(guard), operation_(std::move(operation)) {}

  /// A little longer each time; throws where the others will not come.
  void once() {
    const std::chrono::duration<double> lasted = Clock::now() - begin_;
    look(lasted);
    if (lasted < std::chrono::milliseconds(1))
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(lasted.count() < 1 ? 50 : 1000));
  }

 private:
  void look(std::chrono::duration<double> lasted) {
    const GivingUp& giving_up = guard_.giving_up_;
    if (lasted >= look_again_ && giving_up.gone) {
      look_again_ = lasted + std::chrono::milliseconds(500);
      if (const std::string rank = giving_up.gone(); !rank.empty())
        guard_.give_up(operation_, rank + " died");
    }
    if (lasted.count() > giving_up.limit.value)
      guard_.give_up(operation_, "gave up after " +
                                     std::to_string(std::lround(giving_up.limit.value)) +
                                     " s: a rank did not come, or has died on another server");
  }

  NcclGuard& guard_;
  std::string operation_;
  Clock::time_point begin_ = Clock::now();
  std::chrono::duration<double> look_again_ = std::chrono::seconds(1);
};

NcclGuard::NcclGuard(const Nccl& nccl, std::string group, GivingUp giving_up)
    : nccl_(nccl), group_(std::move(group)), giving_up_(std::move(giving_up)) {}

NcclGuard::~NcclGuard() {
  if (communicator_ == nullptr) return;
  try {
    if (std::uncaught_exceptions() == 0) {
      settle("the end", nccl_.ncclCommFinalize(communicator_));
      static_cast<void>(nccl_.ncclCommDestroy(communicator_));
      return;
    }
  } catch (...) {
    // Whatever it was: nobody waits for this group any more.
  }
  abort();
}

void NcclGuard::create(int ranks, const ncclUniqueId& id, int rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  settle("making a group", nccl_.ncclCommInitRankConfig(&communicator_, ranks, id, rank, &config));
}

void NcclGuard::await(const std::function<bool()>& done) {
  expect_alive("waiting");
  Wait wait(*this, asked());
  while (!done()) {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t code = nccl_.ncclCommGetAsyncError(communicator_, &state);
    for (const ncclResult_t each : {code, state})
      if (each != ncclSuccess && each != ncclInProgress) give_up(asked(), words_of(each));
    wait.once();
  }
  number_ = 0;
}

void NcclGuard::expect_alive(const char* operation) const {
  if (failed_)
    throw CommunicationError(std::string(operation) + " of " + group_ +
                             ": this group was given up before");
  expects(communicator_ != nullptr, "a group has been made before it communicates");
}

void NcclGuard::note(const char* operation) {
  if (number_++ == 0) first_ = operation;
  last_ = operation;
}

std::string NcclGuard::asked() const {
  if (number_ == 0) return "waiting";
  if (number_ == 1) return first_;
  return "one of " + std::to_string(number_) + " operations, from " + first_ + " to " + last_ + ",";
}

void NcclGuard::settle(const char* operation, ncclResult_t code) {
  Wait wait(*this, operation);
  while (code == ncclInProgress) {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t read = nccl_.ncclCommGetAsyncError(communicator_, &state);
    code = read == ncclSuccess ? state : read;
    if (code == ncclInProgress) wait.once();
  }
  if (code != ncclSuccess) give_up(operation, words_of(code));
}

std::string NcclGuard::words_of(ncclResult_t code) const {
  std::string text = nccl_.ncclGetErrorString(code);
  const char* more = nccl_.ncclGetLastError(communicator_);
  if (more != nullptr && *more != '\0') text += ": " + std::string(more);
  text.erase(text.find_last_not_of(" \n") + 1);
  for (char& letter : text)
    if (letter == '\n') letter = ' ';
  return "NCCL: " + text;
}

void NcclGuard::give_up(const std::string& operation, const std::string& why) {
  failed_ = true;
  abort();
  throw CommunicationError(operation + " of " + group_ + ": " + why);
}

void NcclGuard::abort() noexcept {
  if (communicator_ != nullptr) static_cast<void>(nccl_.ncclCommAbort(communicator_));
  communicator_ = nullptr;
}

}  // namespace stratagem::kernels
