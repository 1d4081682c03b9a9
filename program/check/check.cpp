// The checks in order: each may rely on those before it.
#include "program/check/check.hpp"

#include "program/check/arrivals.hpp"
#include "program/check/deadlock.hpp"
#include "program/check/lives.hpp"
#include "program/check/references.hpp"
#include "program/check/rendezvous.hpp"

namespace stratagem::program {

void check(const Program& program) {
  check_references(program);
  const Rendezvous rendezvous(program);
  check_deadlock(program, rendezvous);
  check_arrivals(program, rendezvous);
  check_lives(program);
}

}  // namespace stratagem::program
