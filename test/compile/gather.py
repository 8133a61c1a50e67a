# RUN: %python %s sm_90a --honor-cache-policy | FileCheck %s
# RUN: %python %s sm_100a --honor-cache-policy | FileCheck %s
"""A gather: the address of the second load is what the first one loaded, and each has its own policy."""

from cutlass import Float32, Int32, Int64, cute
from cutlass.cute.runtime import make_fake_compact_tensor

from support.show import show

EVICT_FIRST, EVICT_LAST = 0x12F0000000000000, 0x14F0000000000000
ROW = 4


@cute.kernel
def gather(index: cute.Tensor, table: cute.Tensor, target: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    scalar = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Int32, num_bits_per_copy=32, invariant=True)
    vector = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=128, invariant=True)
    number = cute.make_rmem_tensor((1,), Int32)
    row = cute.make_rmem_tensor((ROW,), Float32)
    cute.copy(scalar, cute.local_tile(index, (1,), (thread,)), number, cache_policy=Int64(EVICT_FIRST))
    cute.copy(vector, cute.local_tile(table, (ROW,), (number[0],)), row, cache_policy=Int64(EVICT_LAST))
    cute.autovec_copy(row, cute.local_tile(target, (ROW,), (thread,)))


@cute.jit
def launch(index: cute.Tensor, table: cute.Tensor, target: cute.Tensor):
    gather(index, table, target).launch(grid=[1, 1, 1], block=[32, 1, 1])


show(
    launch,
    make_fake_compact_tensor(Int32, (32,), assumed_align=4),
    make_fake_compact_tensor(Float32, (1024 * ROW,), assumed_align=16),
    make_fake_compact_tensor(Float32, (32 * ROW,), assumed_align=16),
)

# CHECK-LABEL: === PTX
# CHECK:         ld.global.nc.L2::cache_hint.b32 [[NUMBER:%r[0-9]+]], [%rd{{[0-9+]+}}], [[FIRST:%rd[0-9]+]];
# CHECK:         [[NUMBER]]
# CHECK:         ld.global.nc.L2::cache_hint.v4.b32 {{{.*}}}, [%rd{{[0-9+]+}}], [[LAST:%rd[0-9]+]];
# CHECK-NOT:     ld.global

# CHECK-LABEL: === SASS
# CHECK-NEXT:  LDG.E.CONSTANT policy=0x12f0000000000000
# CHECK-NEXT:  LDG.E.128.CONSTANT policy=0x14f0000000000000
# CHECK-NEXT:  STG.E.128 policy=default
