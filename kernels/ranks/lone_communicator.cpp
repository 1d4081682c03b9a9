// A communicator of one rank: what it sends it receives.
#include <cstring>
#include <deque>
#include <utility>

#include "kernels/ranks/communicator.hpp"

namespace stratagem::kernels {
namespace {

void copy(Source from, Target to) {
  expects(from.count == to.count && from.element == to.element,
          "a message is received as it was sent");
  if (from.count > 0) std::memcpy(to.data, from.data, from.count * size_of(from.element));
}

/// Messages that have not met their counterparts yet, oldest first.
struct Mailbox {
  std::deque<std::pair<int, Source>> sent;
  std::deque<std::pair<int, Target>> received;
  int next = 0;  ///< number of the next message, to know it by

  void deliver() {
    while (!sent.empty() && !received.empty()) {
      copy(sent.front().second, received.front().second);
      sent.pop_front();
      received.pop_front();
    }
  }
};

class LonePending : public Pending {
 public:
  LonePending(std::shared_ptr<Mailbox> mailbox, int first, int last)
      : mailbox_(std::move(mailbox)), first_(first), last_(last) {}

  void wait() override {
    const auto mine = [this](const auto& waiting) {
      return waiting.first >= first_ && waiting.first < last_;
    };
    for (const auto& waiting : mailbox_->sent) expects(!mine(waiting), never);
    for (const auto& waiting : mailbox_->received) expects(!mine(waiting), never);
  }

 private:
  static constexpr const char* never = "a lone rank starts both ends of a message before it waits";
  std::shared_ptr<Mailbox> mailbox_;
  int first_, last_;
};

class Lone : public Communicator {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }
  [[nodiscard]] std::unique_ptr<Communicator> group(const std::vector<int>& ranks) override {
    expects(ranks == std::vector<int>{0}, "a group of one rank has that one");
    return lone();
  }
  void barrier() override {}

  [[nodiscard]] std::unique_ptr<Pending> start(const std::vector<Sent>& sent,
                                               const std::vector<Received>& received) override {
    const int first = mailbox_->next;
    for (const Sent& message : sent) {
      expects(message.to == 0, only);
      mailbox_->sent.emplace_back(mailbox_->next++, message.values);
    }
    for (const Received& message : received) {
      expects(message.from == 0, only);
      mailbox_->received.emplace_back(mailbox_->next++, message.values);
    }
    mailbox_->deliver();
    return std::make_unique<LonePending>(mailbox_, first, mailbox_->next);
  }

 protected:
  void do_all_reduce(Reduction, Target) override {}
  void do_all_gather(Source part, Target whole) override { copy(part, whole); }
  void do_reduce_scatter(Reduction, Source whole, Target part) override { copy(whole, part); }
  void do_broadcast(int root, Target) override { expects(root == 0, only); }
  void do_reduce(Reduction, int root, Target) override { expects(root == 0, only); }
  void do_all_to_all(Source out, Target in) override { copy(out, in); }

 private:
  static constexpr const char* only = "a lone rank knows rank 0 only";
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
};

}  // namespace

std::unique_ptr<Communicator> lone() { return std::make_unique<Lone>(); }

}  // namespace stratagem::kernels
