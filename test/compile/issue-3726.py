# RUN: %python %s sm_90a | FileCheck %s --check-prefixes=CHECK,OFF
# RUN: %python %s sm_90a --honor-cache-policy | FileCheck %s --check-prefixes=CHECK,SM90
# RUN: %python %s sm_100a | FileCheck %s --check-prefixes=CHECK,OFF
# RUN: %python %s sm_100a --honor-cache-policy | FileCheck %s --check-prefixes=CHECK,SM100
"""The kernel of https://github.com/NVIDIA/cutlass/issues/3726: an invariant copy of bf16 with a cache policy."""

import cutlass
from cutlass import BFloat16, Int64, cute
from cutlass.cute.runtime import make_fake_compact_tensor

from support.show import show

EVICT_FIRST = 0x12F0000000000000


@cute.kernel
def copy(source: cute.Tensor, target: cute.Tensor, bits: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), BFloat16, num_bits_per_copy=bits, invariant=True)
    elements = (bits // BFloat16.width,)
    fragment = cute.make_rmem_tensor(elements, BFloat16)
    cute.copy(atom, cute.local_tile(source, elements, (thread,)), fragment, cache_policy=Int64(EVICT_FIRST))
    cute.autovec_copy(fragment, cute.local_tile(target, elements, (thread,)))


@cute.jit
def launch(source: cute.Tensor, target: cute.Tensor, bits: cutlass.Constexpr):
    copy(source, target, bits).launch(grid=[1, 1, 1], block=[32, 1, 1])


for bits in (128, 256):
    tensors = [make_fake_compact_tensor(BFloat16, (32 * 16,), assumed_align=32) for _ in range(2)]
    show(launch, *tensors, bits, title=f"{bits} bits")

# Without the option the policy is dropped: the stock compiler, as it is.

# With it, every load has the policy of the copy; 256 bits are two loads below sm_100.

# CHECK-LABEL: === PTX 128 bits
# OFF:           ld.global.nc.v4.b32 {{{.*}}}, [%rd{{[0-9+]+}}];
# SM90:          ld.global.nc.L2::cache_hint.v4.b32 {{{.*}}}, [%rd{{[0-9+]+}}], %rd{{[0-9]+}};
# SM100:         ld.global.nc.L2::cache_hint.v4.b32 {{{.*}}}, [%rd{{[0-9+]+}}], %rd{{[0-9]+}};
# CHECK-NOT:     ld.global
# CHECK:         st.global.v4.b32

# CHECK-LABEL: === SASS 128 bits
# OFF-NEXT:    LDG.E.128.CONSTANT policy=default
# SM90-NEXT:   LDG.E.128.CONSTANT policy=0x12f0000000000000
# SM100-NEXT:  LDG.E.128.CONSTANT policy=0x12f0000000000000
# CHECK-NEXT:  STG.E.128 policy=default

# CHECK-LABEL: === PTX 256 bits
# SM90:          ld.global.nc.L2::cache_hint.v4.b32 {{{.*}}}, [[[ADDRESS:%rd[0-9]+]]], [[POLICY:%rd[0-9]+]];
# SM90:          ld.global.nc.L2::cache_hint.v4.b32 {{{.*}}}, [[[ADDRESS]]+16], [[POLICY]];
# SM100:         ld.global.nc.L2::cache_hint.v8.b32 {{{.*}}}, [%rd{{[0-9+]+}}], %rd{{[0-9]+}};
# OFF:           ld.global.nc.v{{[48]}}.b32
# CHECK:         st.global

# CHECK-LABEL: === SASS 256 bits
# OFF-NEXT:    LDG.E.{{.*}}CONSTANT policy=default
# SM90-NEXT:   LDG.E.128.CONSTANT policy=0x12f0000000000000
# SM90-NEXT:   LDG.E.128.CONSTANT policy=0x12f0000000000000
# SM90-NEXT:   STG.E.128 policy=default
# SM100-NEXT:  LDG.E.ENL2.256.CONSTANT policy=0x12f0000000000000
# SM100-NEXT:  STG.E.ENL2.256 policy=default
