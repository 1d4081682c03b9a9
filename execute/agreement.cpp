// Sends the gradients of the one device to all ranks, parameter by parameter.
#include "execute/agreement.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <type_traits>
#include <utility>

#include "execute/types.hpp"

namespace stratagem::execute {
namespace {

using model::TensorId;

/// What a rank had of the gradients of the first iteration, by parameter of the model: its parts.
template <typename T>
struct Gradients {
  struct Part {
    model::Origin origin;
    Value<T> value;
  };
  std::map<TensorId, std::vector<Part>> parts;
  std::vector<double> losses;
};

template <typename T>
Gradients<OnHost<T>> train(const Runnable& runnable, const Settings& settings,
                           kernels::Communicator& world, int iterations,
                           std::unique_ptr<Engine<T>> engine) {
  using Host = OnHost<T>;
  Gradients<Host> result;
  Settings looking = settings;
  looking.finds_faults = true;
  Interpreter<T> rank(runnable.program, runnable.graph, looking, world, std::move(engine));
  result.losses = rank.train(iterations, [&](TensorId parameter, const Value<Host>& gradient) {
    if (rank.iteration() > 0) return;
    const model::Origin origin = model::origin_of(runnable.graph.tensors[parameter], parameter);
    result.parts[origin.tensor].push_back({origin, gradient});
  });
  return result;
}

/// A gradient is rounding alone where its elements are this share of the largest gradient's, or
/// less. A softmax, for example, does not see a shift of all scores of a row: its gradient is 0.
template <typename T>
constexpr double rounding = std::is_same_v<T, double> ? 1e-12 : 1e-6;

/// The root mean square of a gradient's elements, of the gradient that has the largest one.
template <typename T>
double largest(const Gradients<T>& gradients) {
  double most = 0;
  for (const auto& [parameter, parts] : gradients.parts) {
    for (const auto& [origin, value] : parts) {
      double squares = 0;
      for (const T element : value.data)
        squares += static_cast<double>(element) * static_cast<double>(element);
      most = std::max(most,
                      squares / static_cast<double>(std::max<std::size_t>(1, value.data.size())));
    }
  }
  return std::sqrt(most);
}

/// The norm of the difference from a gradient over the norm of the gradient, over all ranks;
/// infinite where no rank has some element. 0 where both are rounding alone: their elements have a
/// root mean square of `nothing` or less, that of the difference of twice that.
template <typename T>
double distance(const std::vector<typename Gradients<T>::Part>& parts, std::span<const T> whole,
                double nothing, kernels::Communicator& world) {
  std::array<double, 3> squares{};  // the last counts elements
  std::vector<float> covered(whole.size());
  for (const auto& [origin, value] : parts) {
    const std::vector<std::int64_t> at = places(origin, value.region);
    for (std::size_t i = 0; i < at.size(); ++i) {
      const auto place = static_cast<std::size_t>(at[i]);
      const double wanted = static_cast<double>(whole[place]);
      const double difference = static_cast<double>(value.data[i]) - wanted;
      squares[0] += difference * difference;
      squares[1] += wanted * wanted;
      squares[2] += 1;
      covered[place] = 1;
    }
  }
  world.all_reduce(kernels::Reduction::sum, std::span<double>(squares));
  world.all_reduce(kernels::Reduction::maximum, std::span<float>(covered));
  const bool all = std::ranges::all_of(covered, [](float one) { return one == 1; });
  const double least = nothing * nothing * squares[2];
  // Of a gradient that is zero, too.
  if (all && (squares[0] == 0 || (squares[0] <= 4 * least && squares[1] <= least))) return 0;
  if (!all || std::isnan(squares[0]) || squares[1] == 0)
    return std::numeric_limits<double>::infinity();  // nothing to hold it to
  return std::sqrt(squares[0] / squares[1]);
}

/// What one device finds, which the first rank is; its losses on all ranks.
template <typename Host>
Gradients<Host> train_on_one_device(const Runnable& one_device, const Settings& settings,
                                    kernels::Communicator& world, int iterations) {
  Gradients<Host> reference;
  if (world.rank() == 0) {
    if (settings.current != nullptr) settings.current->during("the check's one device");
    const std::unique_ptr<kernels::Communicator> alone = kernels::lone();
    try {
      reference = train<Host>(one_device, settings, *alone, iterations,
                              std::make_unique<HostEngine<Host>>());
    } catch (const NotFinite& fault) {  // which only this rank has found
      throw Fault(std::string("the one device: ") + fault.what());
    }
  }
  reference.losses.resize(static_cast<std::size_t>(iterations));
  world.broadcast(0, std::span<double>(reference.losses));
  return reference;
}

double distance(const std::vector<double>& x, const std::vector<double>& y) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    difference += (x[i] - y[i]) * (x[i] - y[i]);
    size += y[i] * y[i];
  }
  if (difference == 0) return 0;
  return std::isnan(difference) ? std::numeric_limits<double>::infinity()
                                : std::sqrt(difference / size);
}

}  // namespace

template <typename T>
bool agrees(const Agreement& agreement) {
  if constexpr (std::is_same_v<T, double>)
    return agreement.gradients <= 1e-9 && agreement.losses <= 1e-9;
  if constexpr (sizeof(T) == 2) return agreement.gradients <= 2e-2 && agreement.losses <= 2e-2;
  return agreement.gradients <= 1e-5 && agreement.losses <= 1e-4;
}

template <typename T>
Agreement compare(const Runnable& plan, const Runnable& one_device, const Settings& settings,
                  kernels::Communicator& world, int iterations, const MakeEngine<T>& make_engine) {
  using Host = OnHost<T>;
  if (settings.current != nullptr) settings.current->during("the check");
  const Gradients<Host> trained = train<T>(plan, settings, world, iterations, make_engine());
  const Gradients<Host> reference =
      train_on_one_device<Host>(one_device, settings, world, iterations);
  double most = largest(reference);
  world.broadcast(0, std::span<double>(&most, 1));
  Agreement result{.losses = distance(trained.losses, reference.losses),
                   .gradients = 0,
                   .worst = {},
                   .trained_losses = trained.losses};
  for (std::size_t i = 0; i < one_device.graph.tensors.size(); ++i) {
    const model::Tensor& tensor = one_device.graph.tensors[i];
    const auto id = static_cast<TensorId>(i);
    if (tensor.role != model::Role::parameter || one_device.graph.gradient_of[id] < 0) continue;
    std::vector<Host> whole(static_cast<std::size_t>(model::element_count(tensor)));
    if (world.rank() == 0)
      std::ranges::copy(reference.parts.at(id).front().value.data, whole.begin());
    world.broadcast(0, std::span<Host>(whole));
    const auto parts = trained.parts.find(id);
    using Parts = std::vector<typename Gradients<Host>::Part>;
    const double here = distance<Host>(parts == trained.parts.end() ? Parts{} : parts->second,
                                       whole, rounding<Host> * most, world);
    ++result.parameters;
    if (result.worst.empty() || here > result.gradients) {
      result.gradients = here;
      result.worst = tensor.name;
    }
  }
  return result;
}

#define INSTANTIATE(T)                                                             \
  template bool agrees<T>(const Agreement&);                                       \
  template Agreement compare<T>(const Runnable&, const Runnable&, const Settings&, \
                                kernels::Communicator&, int, const MakeEngine<T>&);
STRATAGEM_FOR_HELD_TYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace stratagem::execute
