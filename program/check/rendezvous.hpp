// Which collectives of which sequences match each other.
#pragma once

#include <string>
#include <vector>

#include "program/check/describe.hpp"
#include "program/program.hpp"

namespace stratagem::program {

/// A device at a seat.
struct Seated {
  int device = 0;
  int seat = 0;
};

/// A seat is a group as all devices of one sequence see it. Seats whose devices share a
/// communicator are in company: the k-th collective of one in an iteration matches the k-th of the
/// others.
class Rendezvous {
 public:
  /// Throws InputError if a device of a communicator does not know it, if two of its devices post
  /// different collectives, or if a collective has no communicator. Expects check_references.
  explicit Rendezvous(const Program& program);

  /// How many groups devices know.
  [[nodiscard]] int groups() const { return groups_; }
  [[nodiscard]] int sequence(int seat) const { return seat / groups_; }
  /// What a seat posts in one iteration: what runs in its round first, then what lags by one, and so
  /// on.
  [[nodiscard]] const std::vector<Place>& posted(int seat) const { return posted_[seat]; }
  /// By communicator: its devices, ascending.
  [[nodiscard]] const std::vector<std::vector<Seated>>& communicators() const { return seated_; }
  /// Companies of two seats and more.
  [[nodiscard]] const std::vector<std::vector<int>>& companies() const { return companies_; }

 private:
  void count_groups();
  void post();
  void check_bound() const;
  void seat_devices();
  void find_companies();
  void compare() const;
  [[nodiscard]] bool same(int a, int b) const;
  [[nodiscard]] int seat(int sequence, int group) const { return sequence * groups_ + group; }
  [[nodiscard]] const Sequence& sequence_of(int seat) const {
    return program_.sequences[sequence(seat)];
  }
  void compare(int communicator) const;
  [[nodiscard]] std::string text_of(const Seated& seated, std::size_t k) const;

  const Program& program_;
  int groups_ = 0;
  std::vector<std::vector<Place>> posted_;   ///< by seat
  std::vector<std::vector<Seated>> seated_;  ///< by communicator
  std::vector<std::vector<int>> companies_;
};

}  // namespace stratagem::program
