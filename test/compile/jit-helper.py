# RUN: %python %s sm_90a --honor-cache-policy | FileCheck %s
# RUN: %python %s sm_100a --honor-cache-policy | FileCheck %s
"""The copy stands in a `@cute.jit` helper that gets atom and policy; without a policy the same helper gives no hint."""

from __future__ import annotations

from cutlass import Float32, Int32, Int64, const_expr, cute
from cutlass.cute.runtime import make_fake_compact_tensor

from support.show import show

EVICT_FIRST = 0x12F0000000000000
VECTOR = 4


@cute.jit
def load(atom: cute.CopyAtom, source: cute.Tensor, at: Int32, policy: Int64 | None):
    fragment = cute.make_rmem_tensor((VECTOR,), Float32)
    if const_expr(policy is None):
        cute.copy(atom, cute.local_tile(source, (VECTOR,), (at,)), fragment)
    else:
        cute.copy(atom, cute.local_tile(source, (VECTOR,), (at,)), fragment, cache_policy=policy)
    return fragment


@cute.jit
def load_twice(atom: cute.CopyAtom, a: cute.Tensor, b: cute.Tensor, at: Int32, policy: Int64):
    return load(atom, a, at, policy).load() * load(atom, b, at, policy).load()


@cute.kernel
def blend(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, target: cute.Tensor, atom: cute.CopyAtom):
    thread, _, _ = cute.arch.thread_idx()
    fragment = load(atom, c, thread, None)
    fragment.store(load_twice(atom, a, b, thread, Int64(EVICT_FIRST)) + fragment.load())
    cute.autovec_copy(fragment, cute.local_tile(target, (VECTOR,), (thread,)))


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, target: cute.Tensor):
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=128, invariant=True)
    blend(a, b, c, target, atom).launch(grid=[1, 1, 1], block=[32, 1, 1])


show(launch, *(make_fake_compact_tensor(Float32, (32 * VECTOR,), assumed_align=16) for _ in range(4)))

# CHECK-LABEL: === PTX
# CHECK:         ld.param.b64 [[A:%rd[0-9]+]], [{{.*}}param_0];
# CHECK:         ld.param.b64 [[B:%rd[0-9]+]], [{{.*}}param_1];
# CHECK:         ld.param.b64 [[C:%rd[0-9]+]], [{{.*}}param_2];
# CHECK-DAG:     add.s64 [[AT_A:%rd[0-9]+]], [[A]],
# CHECK-DAG:     add.s64 [[AT_B:%rd[0-9]+]], [[B]],
# CHECK-DAG:     add.s64 [[AT_C:%rd[0-9]+]], [[C]],
# CHECK-DAG:     ld.global.nc.L2::cache_hint.v4.b32 {{{.*}}}, [[[AT_A]]], %rd{{[0-9]+}};
# CHECK-DAG:     ld.global.nc.L2::cache_hint.v4.b32 {{{.*}}}, [[[AT_B]]], %rd{{[0-9]+}};
# CHECK-DAG:     ld.global.nc.{{v4.b32|v2.b64}} {{{.*}}}, [[[AT_C]]];

# CHECK-LABEL: === SASS
# CHECK-DAG:   LDG.E.128.CONSTANT policy=0x12f0000000000000
# CHECK-DAG:   LDG.E.128.CONSTANT policy=0x12f0000000000000
# CHECK-DAG:   LDG.E.128.CONSTANT policy=default
# CHECK:       STG.E.128 policy=default
