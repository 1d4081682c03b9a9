// How NCCL is waited for and given up, with functions in place of NCCL's: needs no GPU.
#include "kernels/ranks/inside/nccl_guard.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/input_error.hpp"
#include "kernels/ranks/device_communicator.hpp"
#include "tests/catch.hpp"

using namespace stratagem;
using namespace stratagem::kernels;

namespace {

/// What the stand-in has been asked for, and what it answers.
struct Stage {
  int pending = 0;                   ///< states that are still in progress
  ncclResult_t state = ncclSuccess;  ///< thereafter
  ncclResult_t finalised = ncclSuccess;
  int groups = 0, finalises = 0, destroys = 0, aborts = 0;
};
Stage stage;
int dummy = 0;

Nccl stand_in() {
  stage = {};
  Nccl nccl;
  nccl.ncclGetErrorString = [](ncclResult_t code) -> const char* {
    return code == ncclRemoteError ? "remote process exited" : "some error";
  };
  nccl.ncclGetLastError = [](ncclComm_t) -> const char* { return "socket closed\nby peer\n"; };
  nccl.ncclCommInitRankConfig = [](ncclComm_t* made, int, ncclUniqueId, int, ncclConfig_t* how) {
    *made = reinterpret_cast<ncclComm_t>(&dummy);
    return how->blocking == 0 ? ncclInProgress : ncclInvalidUsage;
  };
  nccl.ncclCommGetAsyncError = [](ncclComm_t, ncclResult_t* state) {
    *state = stage.pending-- > 0 ? ncclInProgress : stage.state;
    return ncclSuccess;
  };
  nccl.ncclCommFinalize = [](ncclComm_t) {
    ++stage.finalises;
    return stage.finalised;
  };
  nccl.ncclCommDestroy = [](ncclComm_t) {
    ++stage.destroys;
    return ncclSuccess;
  };
  nccl.ncclCommAbort = [](ncclComm_t) {
    ++stage.aborts;
    return ncclSuccess;
  };
  nccl.ncclGroupStart = [] {
    ++stage.groups;
    return ncclSuccess;
  };
  nccl.ncclGroupEnd = [] {
    --stage.groups;
    return ncclInProgress;
  };
  return nccl;
}

constexpr int never = 1'000'000'000;

/// A guard that has made its group, which gives up after a tenth of a second.
struct Guarded {
  explicit Guarded(GivingUp giving_up = {.limit = Seconds{0.1}})
      : nccl(stand_in()), guard(std::in_place, nccl, "ranks 0, 1", std::move(giving_up)) {
    stage.pending = 3;
    guard->create(2, {}, 0);
  }
  Nccl nccl;
  std::optional<NcclGuard> guard;
};

const auto in_progress = [](ncclComm_t) { return ncclInProgress; };

TEST_CASE("what is in progress is waited for, and at the end a group is finalised and destroyed") {
  Guarded guarded;
  stage.pending = 5;
  (*guarded.guard)("all_reduce", in_progress);
  CHECK(stage.pending < 0);
  int looks = 0;
  guarded.guard->await([&] { return ++looks == 4; });
  CHECK(looks == 4);
  guarded.guard.reset();
  CHECK(stage.finalises == 1);
  CHECK(stage.destroys == 1);
  CHECK(stage.aborts == 0);
}

TEST_CASE("calls that are made together are between the start and the end of a group") {
  Guarded guarded;
  guarded.guard->together("messages", [](ncclComm_t) {
    CHECK(stage.groups == 1);
    return ncclSuccess;
  });
  CHECK(stage.groups == 0);
}

TEST_CASE("a code of NCCL is an error with the operation, the group and NCCL's words in one line") {
  Guarded guarded;
  CHECK_THROWS_WITH((*guarded.guard)("broadcast", [](ncclComm_t) { return ncclInvalidArgument; }),
                    "broadcast of ranks 0, 1: NCCL: some error: socket closed by peer");
  CHECK(stage.aborts == 1);
  // From then on there is nothing but that error, and nothing is freed twice.
  CHECK_THROWS_AS((*guarded.guard)("reduce", in_progress), CommunicationError);
  CHECK_THROWS_WITH(guarded.guard->await([] { return true; }), ContainsSubstring("given up"));
  guarded.guard.reset();
  CHECK(stage.aborts == 1);
  CHECK(stage.finalises + stage.destroys == 0);
}

TEST_CASE("an asynchronous error ends the waiting, with what was asked for") {
  Guarded guarded;
  (*guarded.guard)("all_gather", in_progress);
  stage.state = ncclRemoteError;
  CHECK_THROWS_WITH(guarded.guard->await([] { return false; }),
                    StartsWith("all_gather of ranks 0, 1: NCCL: remote process exited"));
  CHECK(stage.aborts == 1);
}

TEST_CASE("of several operations the first and the last are named") {
  Guarded guarded;
  for (const char* name : {"all_gather", "reduce", "broadcast"})
    (*guarded.guard)(name, in_progress);
  guarded.guard->await([] { return true; });
  for (const char* name : {"all_reduce", "messages"}) (*guarded.guard)(name, in_progress);
  stage.state = ncclRemoteError;
  CHECK_THROWS_WITH(
      guarded.guard->await([] { return false; }),
      StartsWith("one of 2 operations, from all_reduce to messages, of ranks 0, 1: NCCL"));
}

TEST_CASE("a rank that does not come is given up after the limit, asking and waiting") {
  for (const bool asking : {true, false}) {
    Guarded guarded;
    const auto begin = std::chrono::steady_clock::now();
    if (asking) {
      stage.pending = never;
      CHECK_THROWS_WITH((*guarded.guard)("all_reduce", in_progress),
                        StartsWith("all_reduce of ranks 0, 1: gave up after"));
    } else {
      (*guarded.guard)("all_reduce", in_progress);
      CHECK_THROWS_WITH(guarded.guard->await([] { return false; }),
                        StartsWith("all_reduce of ranks 0, 1: gave up after"));
    }
    const std::chrono::duration<double> lasted = std::chrono::steady_clock::now() - begin;
    CHECK(lasted.count() >= 0.1);
    CHECK(lasted.count() < 2);
    CHECK(stage.aborts == 1);
  }
}

TEST_CASE("the limit that stands without being asked for is over before half a minute") {
  CHECK(GivingUp{}.limit < 30_s);
}

TEST_CASE("a rank whose process is gone is named within two seconds") {
  int asked = 0;
  Guarded guarded({.limit = Seconds{20}, .gone = [&asked]() -> std::string {
                     ++asked;
                     return "rank 1 (process 123)";
                   }});
  (*guarded.guard)("reduce_scatter", in_progress);
  const auto begin = std::chrono::steady_clock::now();
  CHECK_THROWS_WITH(guarded.guard->await([] { return false; }),
                    "reduce_scatter of ranks 0, 1: rank 1 (process 123) died");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(2));
  CHECK(asked == 1);
}

TEST_CASE("a group that cannot be made is aborted") {
  const Nccl nccl = stand_in();
  NcclGuard guard(nccl, "ranks 0, 1", {.limit = Seconds{0.1}});
  stage.pending = never;
  CHECK_THROWS_WITH(guard.create(2, {}, 0), StartsWith("making a group of ranks 0, 1: gave up"));
  CHECK(stage.aborts == 1);
}

TEST_CASE("others that do not come to the end are not waited for for ever, nor is that an error") {
  Guarded guarded;
  stage.finalised = ncclInProgress;
  stage.pending = never;
  CHECK_NOTHROW(guarded.guard.reset());
  CHECK(stage.finalises == 1);
  CHECK(stage.aborts == 1);
  CHECK(stage.destroys == 0);
}

TEST_CASE("an error that passes by a group aborts it: the others may never come to the end") {
  try {
    Guarded guarded;
    throw InputError("a", "", "b", "c");
  } catch (const InputError&) {
    CHECK(stage.aborts == 1);
    CHECK(stage.finalises == 0);
  }
}

TEST_CASE("a library that is not there is told in one line") {
  try {
    static_cast<void>(Nccl::load("libno_such_nccl.so.2"));
    FAIL("loaded what is not there");
  } catch (const DeviceError& error) {
    const std::string text = error.what();
    CHECK_THAT(text, StartsWith("collectives of GPUs need NCCL, which cannot be loaded: "));
    CHECK_THAT(text, ContainsSubstring("libno_such_nccl.so.2"));
    CHECK(std::ranges::count(text, '\n') == 0);
  }
}

TEST_CASE("a library that has no such functions is refused") {
  CHECK_THROWS_WITH(Nccl::load("libm.so.6"), StartsWith("NCCL of libm.so.6 is older than 2.14"));
}

TEST_CASE("the library that is there tells its version, whether or not there is a GPU") {
  try {
    const std::string version = nccl_version();
    CHECK(version.starts_with(std::to_string(NCCL_MAJOR) + "."));
    CHECK(std::ranges::count(version, '.') == 2);
  } catch (const DeviceError& error) {
    WARN("no NCCL here: " << error.what());
  }
}

TEST_CASE("every type has its size") {
  CHECK(size_of(device_element_of<const std::byte>) == 1);
  CHECK(size_of(device_element_of<Half>) == sizeof(Half));
  CHECK(size_of(device_element_of<const BFloat16>) == sizeof(BFloat16));
  CHECK(size_of(device_element_of<float>) == sizeof(float));
  CHECK(size_of(device_element_of<double>) == sizeof(double));
}

}  // namespace
