# RUN: %python %s sm_90a --honor-cache-policy --generate-line-info | FileCheck %s
# RUN: %python %s sm_100a --honor-cache-policy --generate-line-info | FileCheck %s
"""With line info, debuggers and profilers show each load at the line of the `cute.copy` that it comes from."""

from cutlass import BFloat16, Int64, cute
from cutlass.cute.runtime import make_fake_compact_tensor

from support.show import show

EVICT_FIRST = 0x12F0000000000000


@cute.kernel
def add(left: cute.Tensor, right: cute.Tensor, target: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), BFloat16, num_bits_per_copy=128, invariant=True)
    a, b = (cute.make_rmem_tensor((8,), BFloat16) for _ in range(2))
    policy = Int64(EVICT_FIRST)
    cute.copy(atom, cute.local_tile(left, (8,), (thread,)), a, cache_policy=policy)
    # CHECK:      // begin inline asm
    # CHECK-NEXT: .loc 1 [[# @LINE - 2]]
    # CHECK-NOT:  .loc
    # CHECK:      ld.global.nc.L2::cache_hint
    cute.copy(atom, cute.local_tile(right, (8,), (thread,)), b, cache_policy=policy)
    # CHECK:      // begin inline asm
    # CHECK-NEXT: .loc 1 [[# @LINE - 2]]
    # CHECK-NOT:  .loc
    # CHECK:      ld.global.nc.L2::cache_hint
    a.store(a.load() + b.load())
    cute.autovec_copy(a, cute.local_tile(target, (8,), (thread,)))


@cute.jit
def launch(left: cute.Tensor, right: cute.Tensor, target: cute.Tensor):
    add(left, right, target).launch(grid=[1, 1, 1], block=[32, 1, 1])


show(launch, *(make_fake_compact_tensor(BFloat16, (256,), assumed_align=16) for _ in range(3)))
