// How long a matrix multiplication takes: tiles, waves of tiles, and a ramp along K; on a processor
// one tile.
#pragma once

#include "base/quantity.hpp"
#include "cost/kernel.hpp"
#include "cost/profile.hpp"

namespace stratagem::cost {

/// The library may choose any tile (tm, tn) of a fixed list and any split of K into s parts; we
/// assume it chooses the fastest:
///
///     tiles   = ceil(m/tm) * ceil(n/tn) * batch * s
///     waves   = ceil(tiles / multiprocessors)
///     rate    = efficiency * I / (I + half_intensity) * peak / multiprocessors, I = tm*tn/(tm+tn)
///     compute = waves * 2*tm*tn * (k/s + ramp) / rate
///     memory  = traffic / (memory_bandwidth * streaming)
///     t       = fixed + (compute^4 + memory^4)^(1/4)
///
/// For s > 1 the traffic includes partial sums of 4 bytes, written and read. The fourth powers are
/// a maximum with a round corner: 19 % above it where both are equal, 1.5 % where one is half.
/// Only those multiprocessors count that the kernel does not spare, each with its share of the
/// peak; at least one. Holds for dense operands whose rows begin at multiples of 16 bytes. Others
/// reach at most the share `unaligned` of the peak, where it is known: compute is at least
/// 2*m*n*k*batch over that rate. Where it is not known, a stack says whether batches of them miss
/// the tensor cores (cost/rules.hpp, UnalignedBatches).
/// Error, cross-validated: in the profile; docs/records/calibration.md says for which shapes it is
/// larger.
/// Source: the tile and wave picture is NVIDIA's "Matrix Multiplication Background" guide.
///
/// On a processor (Profile::of_processor) the library packs each operand once for all of the
/// product, as much work as it has elements, so the product is one tile: I = m*n/(m+n), no waves,
/// no splits,
///
///     compute = batch * 2*m*n * (k + ramp) / rate
///
/// and fixed and memory as above. Of 30 products on a core of a Xeon (OpenBLAS) that leaves a
/// median error of 4 % where tiles leave 8 % (docs/records/calibration-machines.md). Source: Goto
/// and van de Geijn, Anatomy of high-performance matrix multiplication, ACM TOMS 34(3), 2008.
/// Throws InputError if the profile has no peak for the kernel's data type.
Seconds gemm_time(const Kernel&, const GemmConstants&, const Profile&);

/// The same with the constants that the profile has for the kernel's data type.
Seconds gemm_time(const Kernel&, const Profile&);

}  // namespace stratagem::cost
