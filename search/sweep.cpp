// Best first: all plans are bounded. Those with the least bounds are bounded once more, by their
// programs, and simulated if they still come first.
#include "search/sweep.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <utility>

#include "base/parallel.hpp"
#include "base/quantity_text.hpp"
#include "study/plan_of.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"

namespace stratagem::search {
namespace {

/// Plans that take their turn before the last of the best is compared again. It does not depend on
/// the number of threads, so neither does which plans are simulated.
constexpr std::size_t at_once = 8;
/// Combinations that are bounded between two reports.
constexpr std::size_t reported = 64;

using Status = study::Outcome::Status;

constexpr double longest = std::numeric_limits<double>::infinity();

/// A plan that may be among the best.
struct Candidate {
  std::size_t number = 0;
  study::Bounds bounds;
  int gpus = 0;
  std::optional<Json> settings = {};  ///< as Bounded has them
  bool by_program = false;            ///< is the bound of its time that of its program?
};

/// N for each number, so that alike reasons count together.
std::string without_numbers(const std::string& text) {
  const auto is = [&](std::size_t i, int (*kind)(int)) {
    return i < text.size() && kind(static_cast<unsigned char>(text[i])) != 0;
  };
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool in_word = i > 0 && is(i - 1, std::isalpha);
    if (!is(i, std::isdigit) || in_word) {
      result += text[i];
    } else if (i == 0 || !is(i - 1, std::isdigit)) {
      result += 'N';
    }
  }
  return result;
}

double score(Objective objective, Seconds time, Bytes memory, int gpus) {
  switch (objective) {
    case Objective::time:
      return time.value;
    case Objective::cost:
      return time.value * gpus;
    default:
      return memory.value;
  }
}

class Sweep {
 public:
  Sweep(const Space& space, const SweepOptions& options,
        const std::function<void(const Progress&)>& report)
      : space_(space), options_(options), report_(report), turns_(options.threads) {
    options_.others.turns = &turns_;
  }

  Swept run() {
    bound_all();
    while (may_be_better()) take_turns();
    result_.not_better += candidates_.size();
    return std::move(result_);
  }

 private:
  void bound_all() {
    result_.combinations = space_.size();
    for (std::size_t first = 0; first < space_.size(); first += reported) {
      std::vector<Bounded> some(std::min(reported, space_.size() - first));
      for_each_index(some.size(), threads(),
                     [&](std::size_t i) { some[i] = bounded(space_, first + i, options_.others); });
      const bool read = std::ranges::any_of(some, &Bounded::read);
      read_ = read_ || read;
      for (std::size_t i = 0; i < some.size(); ++i) sort_out(first + i, some[i]);
      if (read) space_.finish();
      tell();
    }
    const Others& others = options_.others;
    if (!read_ && (others.store != nullptr || others.crew != nullptr)) finish_unread();
  }

  /// One for each helper, which waits for its answers.
  [[nodiscard]] int threads() const {
    const Crew* crew = options_.others.crew;
    return options_.threads + (crew == nullptr ? 0 : static_cast<int>(crew->size()));
  }

  /// Others knew all of it, so nobody here has asked for the keys of the defaults yet.
  void finish_unread() {
    for (std::size_t number = 0; number < space_.size() && !read_; ++number)
      read_ = bounded(space_, number).read;
    if (read_) space_.finish();
  }

  void sort_out(std::size_t number, const Bounded& one) {
    ++bounded_;
    if (one.left_out) {
      ++result_.left_out;
    } else if (!one.refused.empty()) {
      refuse(one.refused);
    } else if (one.lacks > Bytes{}) {
      does_not_fit(number, one.settings, one.lacks,
                   "needs at least " + to_text(one.bounds.memory) + ", a GPU has " +
                       to_text(one.bounds.memory - one.lacks));
    } else {
      await({.number = number, .bounds = one.bounds, .gpus = one.gpus, .settings = one.settings});
    }
  }

  void await(const Candidate& one) { candidates_.emplace(std::pair(least(one), one.number), one); }

  void refuse(const std::string& reason) {
    Refused& alike = result_.refused[without_numbers(reason)];
    if (++alike.combinations == 1) alike.reason = reason;
  }

  void does_not_fit(std::size_t number, const std::optional<Json>& settings, Bytes lacks,
                    const std::string& reason) {
    if (result_.too_large++ > 0 && lacks >= result_.nearest_lacks) return;
    result_.nearest = number;
    result_.nearest_settings = settings ? *settings : space_.settings(number);
    result_.nearest_lacks = lacks;
    result_.nearest_reason = reason;
  }

  [[nodiscard]] double least(const Candidate& one) const {
    return score(options_.objective, one.bounds.iteration_time, one.bounds.memory, one.gpus);
  }
  [[nodiscard]] double score_of(const Answer& answer) const {
    const Trial& trial = answer.trial;
    return score(options_.objective, trial.iteration_time, trial.memory, trial.gpus);
  }
  [[nodiscard]] double worst_of_best() const {
    if (options_.best == 0 || result_.answers.size() < options_.best) return longest;
    return score_of(result_.answers[options_.best - 1]);
  }

  /// What the first candidate scores at least.
  [[nodiscard]] double least_left() const {
    if (candidates_.empty()) return longest;
    return candidates_.begin()->first.first;
  }
  [[nodiscard]] bool may_be_better() const {
    return !candidates_.empty() && least_left() <= worst_of_best();
  }

  void take_turns() {
    std::vector<Candidate> some;
    while (some.size() < at_once && may_be_better())
      some.push_back(candidates_.extract(candidates_.begin()).mapped());
    const double next = least_left();
    std::vector<Answer> answers(some.size());
    for_each_index(some.size(), threads(),
                   [&](std::size_t i) { answers[i] = answered(some[i], next); });
    for (std::size_t i = 0; i < some.size(); ++i) take(some[i], std::move(answers[i]));
    tell();
  }

  /// Its program bounds the time more closely than its outline. By that it may have to wait for
  /// another turn, behind the `next` candidate; then it is only held against the last of the best.
  [[nodiscard]] Answer answered(const Candidate& one, double next) const {
    Answer answer{.number = one.number,
                  .settings = one.settings ? *one.settings : space_.settings(one.number),
                  .bounds = one.bounds,
                  .trial = {}};
    const double most = one.by_program ? worst_of_best() : std::min(next, worst_of_best());
    std::optional<Seconds> no_longer_than;
    if (options_.objective != Objective::memory && most < longest) {
      const double gpus = options_.objective == Objective::cost ? one.gpus : 1;
      // Rounded up: equal scores are told apart by their numbers, not here.
      no_longer_than = Seconds{std::nextafter(most / gpus, longest)};
    }
    answer.trial = tried(space_, answer.settings, no_longer_than, options_.others);
    answer.bounds.iteration_time = std::max(one.bounds.iteration_time, answer.trial.at_least);
    return answer;
  }

  void take(Candidate one, Answer answer) {
    const Trial& trial = answer.trial;
    if (trial.status == Status::refused) return refuse(trial.reason);
    if (trial.status == Status::not_asked) {
      if (one.by_program) {
        ++result_.not_better;
        return;
      }
      one.bounds = answer.bounds;
      one.by_program = true;
      return await(one);
    }
    if (trial.simulated) ++result_.simulated;
    if (trial.status != Status::ok)
      return does_not_fit(answer.number, answer.settings, trial.lacks, trial.reason);
    const auto place = std::ranges::upper_bound(
        result_.answers, std::pair(score_of(answer), answer.number), {},
        [&](const Answer& other) { return std::pair(score_of(other), other.number); });
    result_.answers.insert(place, std::move(answer));
  }

  void tell() const {
    if (!report_) return;
    report_({.bounded = bounded_,
             .combinations = result_.combinations,
             .simulated = result_.simulated,
             .candidates = candidates_.size(),
             .leading = result_.answers.empty() ? nullptr : &result_.answers.front()});
  }

  const Space& space_;
  SweepOptions options_;
  const std::function<void(const Progress&)>& report_;
  /// That may fit, by the least that they can score and their number.
  std::map<std::pair<double, std::size_t>, Candidate> candidates_;
  std::size_t bounded_ = 0;
  std::counting_semaphore<> turns_;
  bool read_ = false;  ///< has any combination been read?
  Swept result_;
};

}  // namespace

Swept sweep(const Space& space, const SweepOptions& options,
            const std::function<void(const Progress&)>& report) {
  try {
    return Sweep(space, options, report).run();
  } catch (const InputError& error) {
    throw study::named(space.origin(), error);
  }
}

Steps steps(const Progress& now) {
  if (now.bounded < now.combinations)
    return {"combinations bounded", now.bounded, now.combinations};
  return {"plans simulated at most", now.simulated, now.simulated + now.candidates};
}

std::vector<Explanation> explain(const Space& space, const Swept& swept, std::size_t count,
                                 int threads) {
  std::vector<Explanation> explanations;
  for (std::size_t i = 0; i < std::min(count, swept.answers.size()); ++i) {
    const Json& settings = swept.answers[i].settings;
    const study::Run run = study::resolved_over(space.defaults(), settings, "explained");
    explanations.push_back({study::simulate(run, {}).outcome, study::gains(run, threads)});
  }
  return explanations;
}

std::vector<const Answer*> front(const std::vector<Answer>& answers) {
  const auto no_worse = [](const Answer& a, const Answer& b) {
    return a.trial.iteration_time <= b.trial.iteration_time && a.trial.memory <= b.trial.memory &&
           a.trial.gpus <= b.trial.gpus;
  };
  std::vector<const Answer*> result;
  for (const Answer& one : answers) {
    const bool beaten = std::ranges::any_of(answers, [&](const Answer& other) {
      return no_worse(other, one) && (!no_worse(one, other) || &other < &one);
    });
    if (!beaten) result.push_back(&one);
  }
  std::ranges::stable_sort(result, {}, [](const Answer* one) { return one->trial.iteration_time; });
  return result;
}

}  // namespace stratagem::search
