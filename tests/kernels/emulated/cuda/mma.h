// WMMA on this processor, of 16 x 16 x 16: a lane has eight elements of each fragment side by side
// in a row, which CUDA leaves open.
#pragma once

#include <cuda_fp16.h>

#include <cstddef>

#include "tests/kernels/emulated/grid.hpp"

namespace nvcuda::wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major };

template <typename Use, int m, int n, int k, typename T, typename Layout = void>
struct fragment {
  static_assert(m == 16 && n == 16 && k == 16);
  T x[8];
};

/// Where in memory element i of this lane's is.
template <typename Layout>
std::size_t place(int i, unsigned distance) {
  const unsigned lane = stratagem::emulated::thread_of_block() % 32;
  const unsigned row = lane / 2, column = lane % 2 * 8 + static_cast<unsigned>(i);
  return std::is_same_v<Layout, col_major> ? column * distance + row : row * distance + column;
}

/// All lanes at once, from multiples of 32 bytes.
template <typename T>
void meet(const T* at, const stratagem::emulated::Site& here) {
  if (reinterpret_cast<std::uintptr_t>(at) % 32 != 0) {
    stratagem::emulated::complain("has a fragment of WMMA between multiples of 32 bytes");
    stratagem::emulated::stop();
  }
  stratagem::emulated::meet_warp(0xFFFFFFFFU, nullptr, nullptr, false, here);
}

template <typename Use, typename T, typename Layout>
void load_matrix_sync(fragment<Use, 16, 16, 16, T, Layout>& to, const T* from, unsigned distance,
                      stratagem::emulated::Site here = {__builtin_FILE(), __builtin_LINE()}) {
  meet(from, here);
  for (int i = 0; i < 8; ++i) to.x[i] = from[place<Layout>(i, distance)];
}
template <typename T>
void load_matrix_sync(fragment<accumulator, 16, 16, 16, T>& to, const T* from, unsigned distance,
                      layout_t,
                      stratagem::emulated::Site here = {__builtin_FILE(), __builtin_LINE()}) {
  meet(from, here);
  for (int i = 0; i < 8; ++i) to.x[i] = from[place<row_major>(i, distance)];
}
template <typename T>
void store_matrix_sync(T* to, const fragment<accumulator, 16, 16, 16, T>& from, unsigned distance,
                       layout_t,
                       stratagem::emulated::Site here = {__builtin_FILE(), __builtin_LINE()}) {
  meet(to, here);
  for (int i = 0; i < 8; ++i) to[place<row_major>(i, distance)] = from.x[i];
}
template <typename Fragment>
void fill_fragment(Fragment& to, float value) {
  for (auto& x : to.x) x = value;
}

template <typename A, typename B>
void mma_sync(fragment<accumulator, 16, 16, 16, float>& d,
              const fragment<matrix_a, 16, 16, 16, __half, A>& a,
              const fragment<matrix_b, 16, 16, 16, __half, B>& b,
              const fragment<accumulator, 16, 16, 16, float>& c,
              stratagem::emulated::Site here = {__builtin_FILE(), __builtin_LINE()}) {
  struct Brought {
    float* d;
    const __half *a, *b;
    const float* c;
  } mine{d.x, a.x, b.x, c.x};
  const auto multiply = [](stratagem::emulated::OfLanes of_lanes, unsigned) {
    float left[16][16], right[16][16];
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < 8; ++i) {
        const auto& from = *static_cast<const Brought*>(of_lanes[lane]);
        left[lane / 2][lane % 2 * 8 + i] = __half2float(from.a[i]);
        right[lane / 2][lane % 2 * 8 + i] = __half2float(from.b[i]);
      }
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < 8; ++i) {
        const auto& to = *static_cast<const Brought*>(of_lanes[lane]);
        float sum = to.c[i];
        for (int k = 0; k < 16; ++k) sum += left[lane / 2][k] * right[k][lane % 2 * 8 + i];
        to.d[i] = sum;
      }
  };
  stratagem::emulated::meet_warp(0xFFFFFFFFU, &mine, multiply, false, here);
}

}  // namespace nvcuda::wmma
