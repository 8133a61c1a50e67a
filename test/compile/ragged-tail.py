# RUN: %python %s sm_90a | FileCheck %s --check-prefixes=CHECK,OFF
# RUN: %python %s sm_90a --honor-cache-policy | FileCheck %s --check-prefixes=CHECK,ON
# RUN: %python %s sm_100a --honor-cache-policy | FileCheck %s --check-prefixes=CHECK,ON
"""A tiled copy with predicates, over a tensor whose extent is only known at run time: no byte past the end is read."""

from cutlass import BFloat16, Boolean, Int64, cute, range_constexpr
from cutlass.cute.runtime import make_fake_compact_tensor

from support.show import show

EVICT_FIRST = 0x12F0000000000000
VECTOR = 8


@cute.kernel
def copy(source: cute.Tensor, target: cute.Tensor, load: cute.TiledCopy, tiler: cute.Shape):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    slices = load.get_slice(thread)
    here = slices.partition_S(cute.local_tile(source, tiler, (block,)))
    there = slices.partition_D(cute.local_tile(target, tiler, (block,)))
    where = slices.partition_S(cute.local_tile(cute.make_identity_tensor(source.shape), tiler, (block,)))
    fragment = cute.make_fragment_like(here)
    inside = cute.make_rmem_tensor((where.shape[0][1], where.shape[1]), Boolean)
    for i in range_constexpr(cute.size(inside)):
        inside[0, i] = cute.elem_less(where[(0, 0), i], source.shape)
    cute.copy(load, here, fragment, pred=inside, cache_policy=Int64(EVICT_FIRST))
    for i in range_constexpr(cute.size(inside)):
        if inside[0, i]:
            cute.autovec_copy(fragment[None, i], there[None, i])


@cute.jit
def launch(source: cute.Tensor, target: cute.Tensor):
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), BFloat16, num_bits_per_copy=128, invariant=True)
    load = cute.make_tiled_copy_tv(atom, cute.make_layout(32), cute.make_layout(VECTOR))
    tiler = (2 * 32 * VECTOR,)
    blocks = cute.ceil_div(source.shape[0], tiler[0])
    copy(source, target, load, tiler).launch(grid=[blocks, 1, 1], block=[32, 1, 1])


n = cute.sym_int(divisibility=VECTOR)
show(launch, *(make_fake_compact_tensor(BFloat16, (n,), assumed_align=16) for _ in range(2)))

# Each of the two loads is behind a branch of its own.

# CHECK-LABEL: === PTX
# CHECK:         @%p[[#]] bra
# OFF-NEXT:      ld.global.nc.v4.b32
# ON:            ld.global.nc.L2::cache_hint.v4.b32
# CHECK-NOT:     ld.global
# CHECK:       {{^}}$L__BB0_{{.*}}:
# CHECK:         @%p[[#]] bra
# OFF-NEXT:      ld.global.nc.v4.b32
# ON:            ld.global.nc.L2::cache_hint.v4.b32
# CHECK-NOT:     ld.global
# CHECK:       {{^}}$L__BB0_{{.*}}:
# CHECK-NOT:     ld.global

# CHECK-LABEL: === SASS
# ON-COUNT-2:  LDG.E.128.CONSTANT policy=0x12f0000000000000
# OFF-COUNT-2: LDG.E.128.CONSTANT policy=default
# CHECK-NOT:   LDG
