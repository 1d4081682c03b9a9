// What all engines do alike.
#include "execute/engine.hpp"

#include "base/input_error.hpp"
#include "kernels/half.hpp"

namespace stratagem::execute {

template <typename T>
Shared<T> view(Engine<T>& engine, const Shared<T>& whole, const Region& part) {
  if (whole->region == part) return whole;
  expects(shows(whole->region, part), "what a task reads is here");
  const bool mask = !whole->bytes.empty();
  const List list = mask ? List::bytes : (whole->wide.empty() ? List::data : List::wide);
  const Shared<T> result = zeros(engine, list, part);
  const placement::ValuePart& from = whole->region.mask.value;
  const placement::ValuePart& to = part.mask.value;
  const bool first = to.index % (to.count / from.count) == 0;
  if (mask || first) engine.copy_part(*whole, *result);
  return result;
}

template Shared<float> view<float>(Engine<float>&, const Shared<float>&, const Region&);
template Shared<double> view<double>(Engine<double>&, const Shared<double>&, const Region&);
template Shared<kernels::Half> view<kernels::Half>(Engine<kernels::Half>&,
                                                   const Shared<kernels::Half>&, const Region&);
template Shared<kernels::BFloat16> view<kernels::BFloat16>(Engine<kernels::BFloat16>&,
                                                           const Shared<kernels::BFloat16>&,
                                                           const Region&);

}  // namespace stratagem::execute
