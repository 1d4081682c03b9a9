// Helpers on other machines, over TCP.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "search/crew.hpp"

namespace stratagem::search {

/// An open port. Helpers that connect with the secret join the crew, which ends them when it is
/// destroyed itself. A helper whose machine falls silent is gone after half a minute.
class Port {
 public:
  /// `crew` must outlive it. Throws InputError where no port can be opened.
  explicit Port(Crew& crew);
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  /// A line for those that help: hosts, of which one is reached from each machine, the port, and a
  /// secret, without which nobody is listened to.
  [[nodiscard]] std::string address() const;

 private:
  struct Listener;
  std::unique_ptr<Listener> listener_;
};

/// Answers questions, `threads` at once, until whoever asks them ends it, or is gone. What `answer`
/// throws is for whoever asks to find out: it is told that there is no answer. Returns whether
/// anybody was reached: whoever comes when the port is closed again has nothing to do.
bool help(const std::string& address, int threads,
          const std::function<std::string(const std::string&)>& answer);

}  // namespace stratagem::search
