// kernels/inside/ptx.cuh, on this processor: what PTX says of mma.m16n8k16, ldmatrix and cp.async,
// as of compute capability 8.0.
#pragma once

#include "kernels/inside/elements.cuh"
#include "tests/kernels/emulated/grid.hpp"

namespace stratagem::kernels {

template <typename T, int width>
constexpr bool on_tensor_cores() {
  return true;
}

inline float power_of_2(float x) {
  const float result = exp2f(x);
  return result < 0x1p-126F ? 0.0F : result;
}

/// Element `half` of two that share a register.
template <typename T>
float element_of(unsigned pair, int half) {
  T result;
  result.bits = static_cast<std::uint16_t>(pair >> (16 * half));
  return result;
}

template <typename T>
void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                  emulated::Site here = {__builtin_FILE(), __builtin_LINE()}) {
  struct Brought {
    float* c;
    const unsigned* a;
    unsigned b[2];
  } mine{c, a, {b0, b1}};
  const auto multiply = [](emulated::OfLanes of_lanes, unsigned) {
    float left[16][16], right[16][8];
    for (int lane = 0; lane < 32; ++lane) {
      const auto& from = *static_cast<const Brought*>(of_lanes[lane]);
      const int g = lane / 4, t = lane % 4;
      for (int i = 0; i < 8; ++i)
        left[g + i / 2 % 2 * 8][2 * t + i / 4 * 8 + i % 2] = element_of<T>(from.a[i / 2], i % 2);
      for (int i = 0; i < 4; ++i)
        right[2 * t + i / 2 * 8 + i % 2][g] = element_of<T>(from.b[i / 2], i % 2);
    }
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < 4; ++i) {
        float& sum = static_cast<const Brought*>(of_lanes[lane])->c[i];
        for (int k = 0; k < 16; ++k)
          sum += left[lane / 4 + i / 2 * 8][k] * right[k][lane % 4 * 2 + i % 2];
      }
  };
  emulated::meet_warp(0xFFFFFFFFU, &mine, multiply, false, here);
}

/// Four matrices; `transposed`: element (g, c) of a lane comes from row c, column g.
template <typename T, bool transposed>
void load_four(unsigned (&to)[4], const T* row, const emulated::Site& here) {
  struct Brought {
    unsigned* to;
    const T* row;
    unsigned first;
  } mine{to, row, emulated::thread_of_block() / 32 * 32};
  const auto load = [](emulated::OfLanes of_lanes, unsigned) {
    const auto lane = [&](int i) -> const Brought& {
      return *static_cast<const Brought*>(of_lanes[i]);
    };
    for (unsigned i = 0; i < 32; ++i)
      emulated::touch_as(lane(0).first + i, lane(static_cast<int>(i)).row, 16, false);
    for (int i = 0; i < 32; ++i)
      for (int matrix = 0; matrix < 4; ++matrix) {
        unsigned pair = 0;
        for (int half = 0; half < 2; ++half) {
          const int r = i / 4, c = i % 4 * 2 + half;
          const T& element = transposed ? lane(8 * matrix + c).row[r] : lane(8 * matrix + r).row[c];
          pair |= static_cast<unsigned>(element.bits) << (16 * half);
        }
        lane(i).to[matrix] = pair;
      }
  };
  emulated::meet_warp(0xFFFFFFFFU, &mine, load, false, here);
}

template <typename T>
void load_matrices(unsigned (&to)[4], const T* row,
                   emulated::Site here = {__builtin_FILE(), __builtin_LINE()}) {
  load_four<T, false>(to, row, here);
}
template <typename T>
void load_transposed(unsigned (&to)[4], const T* row,
                     emulated::Site here = {__builtin_FILE(), __builtin_LINE()}) {
  load_four<T, true>(to, row, here);
}

inline void copy_16(void* to, const void* from, bool there) {
  emulated::begin_copy(to, there ? from : nullptr);
}
inline void end_copies() { emulated::end_copies_of_group(); }
template <int open>
void wait_for_copies() {
  emulated::wait_for_groups(open);
}

}  // namespace stratagem::kernels
