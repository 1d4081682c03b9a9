// The checks in order: each may rely on those before it.
#include "strategies/check.hpp"

#include "strategies/check/arrivals.hpp"
#include "strategies/check/deadlock.hpp"
#include "strategies/check/lives.hpp"
#include "strategies/check/references.hpp"
#include "strategies/check/rendezvous.hpp"

namespace stratagem::strategies {

void check(const Program& program) {
  check_references(program);
  const Rendezvous rendezvous(program);
  check_deadlock(program, rendezvous);
  check_arrivals(program, rendezvous);
  check_lives(program);
}

}  // namespace stratagem::strategies
