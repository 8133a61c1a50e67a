# RUN: %python %s sm_90a --honor-cache-policy | FileCheck %s --check-prefixes=CHECK,SM90
# RUN: %python %s sm_100a --honor-cache-policy | FileCheck %s --check-prefixes=CHECK,SM100
"""Load qualifiers beside `invariant=True`, in atoms that reach the kernel as arguments."""

import sys

from cutlass import Float32, Int32, Int64, cute
from cutlass.cute.nvgpu import CacheEvictionPriority, CopyG2ROp, L2PrefetchSize, LoadCacheMode
from cutlass.cute.runtime import make_fake_compact_tensor

from support.show import show

ARGUMENTS = [*(make_fake_compact_tensor(Float32, (256,), assumed_align=32) for _ in range(2)), Int32(0), Int64(0)]


@cute.kernel
def copy(
    source: cute.Tensor, target: cute.Tensor, count: Int32, policy: Int64, tiled: cute.TiledCopy, atom: cute.CopyAtom
):
    thread, _, _ = cute.arch.thread_idx()
    slices = tiled.get_slice(thread)
    parts = slices.partition_S(source), slices.partition_D(target)
    fragment = cute.make_fragment_like(parts[0])
    cute.copy(tiled, parts[0], fragment, cache_policy=policy)
    cute.autovec_copy(fragment, parts[1])
    piece = cute.make_rmem_tensor((4,), Float32)
    if count > 0:
        cute.copy(atom, cute.local_tile(source, (4,), (thread,)), piece)
        cute.autovec_copy(piece, cute.local_tile(target, (4,), (thread,)))


@cute.jit
def launch(source: cute.Tensor, target: cute.Tensor, count: Int32, policy: Int64):
    no_allocate = cute.make_copy_atom(
        CopyG2ROp(),
        Float32,
        num_bits_per_copy=128,
        invariant=True,
        l1c_evict_priority=CacheEvictionPriority.NO_ALLOCATE,
        l2_prefetch_size=L2PrefetchSize.SIZE_256B,
    )
    streaming = cute.make_copy_atom(
        CopyG2ROp(), Float32, num_bits_per_copy=128, invariant=True, load_cache_mode=LoadCacheMode.STREAMING
    )
    tiled = cute.make_tiled_copy_tv(no_allocate, cute.make_layout(32), cute.make_layout(4))
    copy(source, target, count, policy, tiled, streaming).launch(grid=[1, 1, 1], block=[32, 1, 1])


show(launch, *ARGUMENTS, title="arguments")

# CHECK-LABEL: === PTX arguments
# CHECK:         ld.global.nc.L1::no_allocate.L2::cache_hint.L2::256B.v4.b32 {{{.*}}}, [%rd{{[0-9+]+}}], %rd{{[0-9]+}};
# CHECK:         ld.global.nc.L1::no_allocate.L2::cache_hint.L2::256B.v4.b32 {{{.*}}}, [%rd{{[0-9+]+}}], %rd{{[0-9]+}};
# CHECK:         ld.global.cs.nc.v4.b32 {{{.*}}}, [%rd{{[0-9+]+}}];
# CHECK-LABEL: === SASS arguments
# SM90-NEXT:     LDG.E.NA.LTC256B.128.CONSTANT policy=c[0x0][0x228]
# SM100-NEXT:    LDG.E.NA.LTC256B.128.CONSTANT policy=c[0x0][0x398]
# CHECK:         LDG.E.EF.128.CONSTANT policy=default


@cute.kernel
def copy_wide(source: cute.Tensor, target: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    atom = cute.make_copy_atom(
        CopyG2ROp(),
        Float32,
        num_bits_per_copy=256,
        invariant=True,
        l2_evict_priority=CacheEvictionPriority.EVICT_FIRST,
    )
    fragment = cute.make_rmem_tensor((8,), Float32)
    cute.copy(atom, cute.local_tile(source, (8,), (thread,)), fragment)
    cute.autovec_copy(fragment, cute.local_tile(target, (8,), (thread,)))


@cute.jit
def launch_wide(source: cute.Tensor, target: cute.Tensor):
    copy_wide(source, target).launch(grid=[1, 1, 1], block=[32, 1, 1])


# A static L2 priority takes no policy register.

if sys.argv[1] == "sm_100a":
    show(launch_wide, *ARGUMENTS[:2], title="static L2 priority")

# SM100-LABEL: === PTX static L2 priority
# SM100:         ld.global.nc.L2::evict_first.v8.b32 {{{.*}}}, [%rd{{[0-9+]+}}];
# SM100-LABEL: === SASS static L2 priority
# SM100-NEXT:    LDG.E.EFL2.256.CONSTANT policy=default
