// Rows and columns of an operand as arrays of Eigen.
#pragma once

#include <Eigen/Core>

#include "kernels/operand.hpp"

namespace stratagem::kernels {

template <typename T>
using RowArray = Eigen::Array<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <typename T>
using Column = Eigen::Array<T, Eigen::Dynamic, 1>;

template <typename T>
Eigen::Map<const RowArray<T>> rows_of(const Rows& shape, In<T> x) {
  return {x.data(), shape.rows, shape.columns};
}
template <typename T>
Eigen::Map<RowArray<T>> rows_of(const Rows& shape, Out<T> x) {
  return {x.data(), shape.rows, shape.columns};
}

template <typename T>
Eigen::Map<const Column<T>> all_of(In<T> x) {
  return {x.data(), static_cast<Eigen::Index>(x.size())};
}
template <typename T>
Eigen::Map<Column<T>> all_of(Out<T> x) {
  return {x.data(), static_cast<Eigen::Index>(x.size())};
}

}  // namespace stratagem::kernels
