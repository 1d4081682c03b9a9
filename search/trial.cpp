// Asks the store, the bounds and the simulator, in this order.
#include "search/trial.hpp"

#include <algorithm>
#include <functional>

#include "base/input_error.hpp"
#include "base/json_copy.hpp"
#include "base/malformed_input.hpp"
#include "base/quantity_text.hpp"
#include "base/read_file.hpp"
#include "search/partition/searcher.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"

namespace stratagem::search {
namespace {

using Status = study::Outcome::Status;

/// The key, what was expected there, and what was found.
std::string reason(const InputError& error) {
  return error.path.substr(error.path.rfind('/') + 1) + ": " + error.expected +
         (error.found.empty() ? "" : ", found " + error.found);
}

/// Does a step of a plan. What is wrong with it there is why it is none.
void unless_refused(const Space& space, std::string& refused, const std::function<void()>& step) {
  try {
    step();
  } catch (const MalformedInput&) {
    throw;
  } catch (const InputError& error) {
    if (!error.file.empty() && error.file != space.file()) throw;
    refused = reason(error);
  }
}

std::string text_of(const Bounded& one) {
  Json json = Json::object();
  json.set("refused", one.refused)
      .set("gpus", one.gpus)
      .set("lacks", one.lacks.value)
      .set("time", one.bounds.iteration_time.value)
      .set("memory", one.bounds.memory.value);
  if (one.settings) json.set("settings", *one.settings);
  return json.text();
}

Bounded bounded_from(const JsonReader& json) {
  Bounded one{.bounds = {.iteration_time = Seconds{json.at("time").number()},
                         .memory = Bytes{json.at("memory").number()}},
              .gpus = static_cast<int>(json.at("gpus").whole_number()),
              .lacks = Bytes{json.at("lacks").number()},
              .refused = json.at("refused").text()};
  if (json.has("settings")) one.settings = copy_of(json.at("settings"));
  return one;
}

std::string text_of(const Trial& one) {
  return Json::object()
      .set("status", static_cast<int>(one.status))
      .set("reason", one.reason)
      .set("simulated", one.simulated)
      .set("lacks", one.lacks.value)
      .set("gpus", one.gpus)
      .set("memory", one.memory.value)
      .set("tight", one.tight)
      .set("at_least", one.at_least.value)
      .set("time", one.iteration_time.value)
      .set("exposed", one.exposed_communication.value)
      .set("bubble", one.bubble_fraction)
      .set("rate", one.model_rate.value)
      .set("steady", one.steady)
      .text();
}

Trial trial_from(const JsonReader& json) {
  return {.status = static_cast<Status>(json.at("status").whole_number()),
          .reason = json.at("reason").text(),
          .simulated = json.at("simulated").boolean(),
          .lacks = Bytes{json.at("lacks").number()},
          .gpus = static_cast<int>(json.at("gpus").whole_number()),
          .memory = Bytes{json.at("memory").number()},
          .tight = json.at("tight").boolean(),
          .at_least = Seconds{json.at("at_least").number()},
          .iteration_time = Seconds{json.at("time").number()},
          .exposed_communication = Seconds{json.at("exposed").number()},
          .bubble_fraction = json.at("bubble").number(),
          .model_rate = FlopsPerSecond{json.at("rate").number()},
          .steady = json.at("steady").boolean()};
}

/// A turn, while it lives, if turns are counted.
class Turn {
 public:
  explicit Turn(std::counting_semaphore<>* turns) : turns_(turns) {
    if (turns_ != nullptr) turns_->acquire();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (turns_ != nullptr) turns_->release();
  }

 private:
  std::counting_semaphore<>* turns_;
};

/// What others know of a question, else what `answer` says, which the store knows from then on.
template <typename Answer>
Answer known(const Others& others, const std::string& question, Answer (*read)(const JsonReader&),
             const std::function<Answer()>& answer) {
  if (others.store != nullptr) {
    if (const auto text = others.store->find(question))
      return read(JsonReader::from_text(*text, "store"));
  }
  const auto told = others.crew == nullptr ? std::nullopt : others.crew->ask(question);
  const auto in_turn = [&] {
    const Turn turn(others.turns);
    return answer();
  };
  const Answer found = told ? read(JsonReader::from_text(*told, "another rank")) : in_turn();
  if (others.store != nullptr) others.store->keep(question, text_of(found));
  return found;
}

/// Questions are one of these, then the settings. Between them are, of bounds, the searcher, if
/// there is one, and a blank, and of a trial its limit.
const std::string of_bounds = "bounds ";
const std::string of_trial = "no longer than ";

/// Settings with other ones over them.
Json over(const Json& changes, const Json& settings) {
  return copy_of(JsonReader::from_text(changes.text(), "found")
                     .over(JsonReader::from_text(settings.text(), "settings")));
}

/// The settings with what a searcher finds for them.
Json divided(const Space& space, const Json& settings, const std::string& name) {
  const Searcher& searcher = *std::ranges::find(searchers(), name, &Searcher::name);
  const study::Run run = study::resolved_over(space.defaults(), settings, "divided");
  if (run.refused) throw InputError(*run.refused);
  const std::optional<Proposal> found = searcher.propose(run);
  if (!found)
    throw InputError("", searcher.key, "a division by " + name + " that fits into memory", "none");
  return over(Json::object().set("strategy", found->strategy), settings);
}

Bounded bound(const Space& space, const Json& settings,
              const std::optional<std::string>& searcher) {
  Bounded result;
  unless_refused(space, result.refused, [&] {
    if (searcher) result.settings = divided(space, settings, *searcher);
    const study::Run run =
        study::run_over(space.defaults(), result.settings.value_or(settings), "bounded");
    result.read = true;
    if (run.refused) throw InputError(*run.refused);
    result.bounds = study::bounds(run);
    result.gpus = run.gpus;
    result.lacks = std::max(Bytes{}, result.bounds.memory - run.profile.memory.size.value);
  });
  return result;
}

void take(Trial& result, const study::Simulated& simulated) {
  const study::Outcome& outcome = simulated.outcome;
  result = {.status = outcome.status,
            .reason = outcome.reason,
            .simulated = outcome.metrics.has_value(),
            .lacks = outcome.gpu_shortfall + outcome.host_shortfall + outcome.drives_shortfall,
            .gpus = outcome.gpus,
            .memory = outcome.memory.used,
            .tight = !outcome.tight.empty(),
            .at_least = simulated.at_least};
  if (!outcome.metrics) return;
  result.iteration_time = outcome.metrics->iteration_time;
  result.exposed_communication = outcome.metrics->exposed_communication;
  result.bubble_fraction = outcome.metrics->bubble_fraction;
  result.model_rate = outcome.model_rate();
  result.steady = outcome.metrics->steady;
}

Trial simulate(const Space& space, const Json& settings, std::optional<Seconds> no_longer_than) {
  Trial result;
  std::string refused;
  unless_refused(space, refused, [&] {
    const study::Run run = study::run_over(space.defaults(), settings, "simulated");
    take(result, study::simulate(run, {.memory_first = true, .no_longer_than = no_longer_than}));
  });
  if (!refused.empty()) result = {.status = Status::refused, .reason = refused};
  return result;
}

/// The bytes of this program, as a number (FNV-1a, 64 bits).
std::string this_program() {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : read_file("/proc/self/exe"))
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return std::to_string(hash);
}

}  // namespace

Bounded bounded(const Space& space, std::size_t number, const Others& others) {
  Json settings;
  std::optional<std::string> searcher;
  bool left_out = false;
  std::string refused;
  unless_refused(space, refused, [&] {
    settings = space.settings(number);
    searcher = space.searcher(number);
    left_out = space.leaves_out(number);
  });
  if (left_out || !refused.empty()) return {.left_out = left_out, .refused = refused};
  const std::string question = of_bounds + (searcher ? *searcher + " " : "");
  return known<Bounded>(others, question + settings.text(), &bounded_from,
                        [&] { return bound(space, settings, searcher); });
}

Trial tried(const Space& space, const Json& settings, std::optional<Seconds> no_longer_than,
            const Others& others) {
  const std::string limit = no_longer_than ? Json(no_longer_than->value).text() : "any";
  return known<Trial>(others, of_trial + limit + " " + settings.text(), &trial_from,
                      [&] { return simulate(space, settings, no_longer_than); });
}

std::string answer(const Space& space, const std::string& question) {
  const auto settings = [&](std::size_t from) {
    return copy_of(JsonReader::from_text(question.substr(from), "question"));
  };
  if (question.starts_with(of_bounds)) {
    const std::size_t from = question.find('{');
    std::optional<std::string> searcher;
    if (from > of_bounds.size())
      searcher = question.substr(of_bounds.size(), from - 1 - of_bounds.size());
    return text_of(bound(space, settings(from), searcher));
  }
  expects(question.starts_with(of_trial), "questions are about bounds or trials");
  const std::size_t end = question.find(' ', of_trial.size());
  const std::string limit = question.substr(of_trial.size(), end - of_trial.size());
  std::optional<Seconds> no_longer_than;
  if (limit != "any") no_longer_than = Seconds{JsonReader::from_text(limit, "limit").number()};
  return text_of(simulate(space, settings(end + 1), no_longer_than));
}

std::string context_of(const Space& space) {
  const Json no_price =
      study::variants({{.path = study::price_path, .values = {Json()}}}).front().settings;
  const JsonReader without_price = study::set_over(no_price, space.defaults());
  std::string text = this_program() + "\n" + without_price.dump() + "\n";
  for (const std::string& file : study::files_named(space.defaults())) {
    if (file != space.file()) text += read_file(file) + "\n";
  }
  return text;
}

}  // namespace stratagem::search
