// Which collectives of which sequences match each other.
#pragma once

#include <string>
#include <vector>

#include "program/check/describe.hpp"
#include "program/program.hpp"

namespace stratagem::program {

/// A device of a communicator, and the endpoint by which it communicates.
struct Member {
  int device = 0;
  int endpoint = 0;
};

/// An endpoint is a group as all devices of one sequence see it. Endpoints whose devices share a
/// communicator are peers: the k-th collective of one in an iteration matches the k-th of the
/// others.
class Rendezvous {
 public:
  /// Throws InputError if a device of a communicator does not know it, if two of its devices post
  /// different collectives, or if a collective has no communicator. Expects check_references.
  explicit Rendezvous(const Program& program);

  /// How many groups devices know.
  [[nodiscard]] int groups() const { return groups_; }
  [[nodiscard]] int sequence(int endpoint) const { return endpoint / groups_; }
  /// What an endpoint posts in one iteration: what runs in its round first, then what lags by one,
  /// and so on.
  [[nodiscard]] const std::vector<TaskOfCall>& posted(int endpoint) const {
    return posted_[endpoint];
  }
  /// By communicator: its devices, ascending.
  [[nodiscard]] const std::vector<std::vector<Member>>& communicators() const { return members_; }
  /// Sets of peers: two endpoints and more.
  [[nodiscard]] const std::vector<std::vector<int>>& peer_sets() const { return peer_sets_; }

 private:
  void count_groups();
  void post();
  void check_bound() const;
  void find_members();
  void find_peers();
  void compare() const;
  [[nodiscard]] bool same(int a, int b) const;
  [[nodiscard]] int endpoint(int sequence, int group) const { return sequence * groups_ + group; }
  [[nodiscard]] const Sequence& sequence_of(int endpoint) const {
    return program_.sequences[sequence(endpoint)];
  }
  void compare(int communicator) const;
  [[nodiscard]] std::string text_of(const Member& member, std::size_t k) const;

  const Program& program_;
  int groups_ = 0;
  std::vector<std::vector<TaskOfCall>> posted_;  ///< by endpoint
  std::vector<std::vector<Member>> members_;     ///< by communicator
  std::vector<std::vector<int>> peer_sets_;
};

}  // namespace stratagem::program
