// The watchdog: it knows the living from the dead, and says who is missing when it gives up.
#include "kernels/ranks/watchdog.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>

#include "tests/catch.hpp"

namespace stratagem::kernels::watchdog_test {

namespace {

/// A child process that does `work` and then sleeps until it is killed.
pid_t child_that(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child != 0) return child;
  work();
  while (true) pause();
}

struct Ended {
  int exit = -1;
  std::string said;  ///< on stderr
};

/// Waits for a child that does `work` with its stderr in a pipe.
Ended outcome_of(const std::function<void()>& work) {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const pid_t child = child_that([&] {
    dup2(ends[1], STDERR_FILENO);
    ::close(ends[1]);
    work();
  });
  ::close(ends[1]);
  Ended result;
  std::array<char, 256> text{};
  for (ssize_t got = 0; (got = read(ends[0], text.data(), text.size())) > 0;)
    result.said.append(text.data(), static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) result.exit = WEXITSTATUS(status);
  return result;
}

/// A rank 3 in a barrier that nobody else comes to, with rank 1 for a neighbour.
Ended waiting_for(const Process& neighbour, Seconds limit) {
  return outcome_of([&] {
    static Watchdog watchdog(3, {{.rank = 1, .process = neighbour}}, limit);
    static const std::string group = "ranks 1, 3";
    watchdog.begin("barrier", group);
  });
}

TEST_CASE("a process runs until it ends, also while nobody has asked for its exit code") {
  const Process here = process_of(getpid());
  CHECK(runs(here));
  CHECK_FALSE(runs({.number = here.number, .started = here.started + 1}));  // its number, reused
  CHECK_FALSE(runs({.number = here.number, .started = 0}));

  const pid_t child = child_that([] {});
  const Process other = process_of(child);
  CHECK(runs(other));
  kill(child, SIGKILL);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);  // dead, but not buried
  CHECK_FALSE(runs(other));
  waitpid(child, nullptr, 0);
  CHECK_FALSE(runs(other));
}

TEST_CASE("a rank that waits for a dead neighbour ends soon and names it") {
  const pid_t neighbour = child_that([] {});
  const Process process = process_of(neighbour);
  kill(neighbour, SIGKILL);
  waitpid(neighbour, nullptr, 0);
  const Ended ended = waiting_for(process, Seconds{60});
  CHECK(ended.exit == 1);
  CHECK(ended.said == "stratagem: rank 3: rank 1 (process " + std::to_string(neighbour) +
                          ") died during barrier of ranks 1, 3\n");
}

TEST_CASE("a rank that waits too long for a living one gives up and says what for") {
  const Ended ended = waiting_for(process_of(getpid()), Seconds{1});
  CHECK(ended.exit == 1);
  CHECK(ended.said ==
        "stratagem: rank 3: gave up after 1 s during barrier of ranks 1, 3: a rank did not come, "
        "or has died on another server\n");
}

TEST_CASE("a rank that waits for nobody is left alone") {
  static const std::string group = "all";
  Watchdog watchdog(0, {{.rank = 1, .process = {}}}, Seconds{0.1});
  watchdog.begin("barrier", group);
  watchdog.end();
  usleep(1'200'000);
  CHECK(true);  // this process is still there
}

}  // namespace

}  // namespace stratagem::kernels::watchdog_test
