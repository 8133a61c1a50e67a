# RUN: %python %s sm_90a --honor-cache-policy | FileCheck %s
# RUN: %python %s sm_100a --honor-cache-policy | FileCheck %s
"""Two streams share an atom and differ in the policy: each load takes its own, in every turn of the loop."""

from cutlass import Float32, Int64, cute, range_constexpr
from cutlass.cute.runtime import make_fake_compact_tensor

from support.show import show

EVICT_FIRST, EVICT_LAST = 0x12F0000000000000, 0x14F0000000000000
VECTOR, TURNS = 4, 2


@cute.kernel
def dot(weight: cute.Tensor, activation: cute.Tensor, target: cute.Tensor, atom: cute.CopyAtom):
    thread, _, _ = cute.arch.thread_idx()
    left, right = (cute.make_rmem_tensor((VECTOR,), Float32) for _ in range(2))
    total = cute.make_rmem_tensor((VECTOR,), Float32)
    total.fill(0.0)
    for turn in range_constexpr(TURNS):
        at = (turn * 32 + thread,)
        cute.copy(atom, cute.local_tile(weight, (VECTOR,), at), left, cache_policy=Int64(EVICT_FIRST))
        cute.copy(atom, cute.local_tile(activation, (VECTOR,), at), right, cache_policy=Int64(EVICT_LAST))
        total.store(total.load() + left.load() * right.load())
    cute.autovec_copy(total, cute.local_tile(target, (VECTOR,), (thread,)))


@cute.jit
def launch(weight: cute.Tensor, activation: cute.Tensor, target: cute.Tensor):
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=128, invariant=True)
    dot(weight, activation, target, atom).launch(grid=[1, 1, 1], block=[32, 1, 1])


n = 32 * VECTOR * TURNS
show(launch, *(make_fake_compact_tensor(Float32, (n,), assumed_align=16) for _ in range(3)))

# CHECK-LABEL: === PTX
# CHECK:         ld.param.b64 [[WEIGHT:%rd[0-9]+]], [{{.*}}param_0];
# CHECK:         ld.param.b64 [[ACTIVATION:%rd[0-9]+]], [{{.*}}param_1];
# CHECK-DAG:     add.s64 [[LEFT:%rd[0-9]+]], [[WEIGHT]],
# CHECK-DAG:     add.s64 [[RIGHT:%rd[0-9]+]], [[ACTIVATION]],
# CHECK-DAG:     mov.b64 [[FIRST:%rd[0-9]+]], 1364590687093260288;
# CHECK-DAG:     mov.b64 [[LAST:%rd[0-9]+]], 1508705875169116160;
# CHECK-DAG:     ld.global.nc.L2::cache_hint.v4.b32 {{{.*}}}, [[[LEFT]]], [[FIRST]];
# CHECK-DAG:     ld.global.nc.L2::cache_hint.v4.b32 {{{.*}}}, [[[RIGHT]]], [[LAST]];

# CHECK-LABEL: === SASS
# CHECK-DAG:   LDG.E.128.CONSTANT policy=0x12f0000000000000
# CHECK-DAG:   LDG.E.128.CONSTANT policy=0x14f0000000000000
# CHECK-DAG:   LDG.E.128.CONSTANT policy=0x12f0000000000000
# CHECK-DAG:   LDG.E.128.CONSTANT policy=0x14f0000000000000
# CHECK:       STG.E.128 policy=default
