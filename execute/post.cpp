// Hands on to the engine and the communicator.
#include "execute/post.hpp"

#include "execute/engine.hpp"
#include "kernels/half.hpp"

namespace stratagem::execute {

template <typename T>
std::span<OnHost<T>> HostPost<T>::open(const Value<T>& value) {
  return engine_.open(value, packing_.out);
}

template <typename T>
std::span<OnHost<T>> HostPost<T>::place(const Value<T>& value) {
  return engine_.place(value, packing_.in);
}

template <typename T>
void HostPost<T>::close(Sent message, const Value<T>& value) {
  engine_.close(message, value);
}

template <typename T>
void HostPost<T>::pack(const Value<T>& whole, const Region& region, Host* to) {
  engine_.pack(whole, region, to);
}

template <typename T>
void HostPost<T>::unpack(const Host* from, const Region& region, const Value<T>& whole, bool adds) {
  engine_.unpack(from, region, whole, adds);
}

template <typename T>
void HostPost<T>::all_reduce(kernels::Reduction reduction, Message values) {
  group_.all_reduce(reduction, values);
}

template <typename T>
void HostPost<T>::reduce_scatter(kernels::Reduction reduction, Sent whole, Message part) {
  group_.reduce_scatter(reduction, kernels::In<Host>(whole), part);
}

template <typename T>
void HostPost<T>::all_gather(Sent part, Message whole) {
  group_.all_gather(kernels::In<Host>(part), whole);
}

template <typename T>
void HostPost<T>::all_to_all(Sent out, Message in) {
  group_.all_to_all(kernels::In<Host>(out), in);
}

template class HostPost<float>;
template class HostPost<double>;
template class HostPost<kernels::Half>;
template class HostPost<kernels::BFloat16>;

}  // namespace stratagem::execute
