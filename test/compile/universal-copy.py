# RUN: %python %s sm_90a | FileCheck %s --check-prefixes=CHECK,OFF
# RUN: %python %s sm_90a --honor-cache-policy | FileCheck %s --check-prefixes=CHECK,ON
# RUN: %python %s sm_100a --honor-cache-policy | FileCheck %s --check-prefixes=CHECK,ON
"""A universal copy in both directions, with a cache policy that its atom cannot hold."""

import cutlass
from cutlass import BFloat16, Int64, cute
from cutlass.cute.runtime import make_fake_compact_tensor

from support.show import show

EVICT_FIRST = 0x12F0000000000000
EVICT_LAST = 0x14F0000000000000
ELEMENTS = (8,)


@cute.kernel
def copy(source: cute.Tensor, target: cute.Tensor, bits: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), BFloat16, num_bits_per_copy=bits)
    fragment = cute.make_rmem_tensor(ELEMENTS, BFloat16)
    cute.copy(atom, cute.local_tile(source, ELEMENTS, (thread,)), fragment, cache_policy=Int64(EVICT_FIRST))
    cute.copy(atom.with_(cache_policy=Int64(EVICT_LAST)), fragment, cute.local_tile(target, ELEMENTS, (thread,)))


@cute.jit
def launch(source: cute.Tensor, target: cute.Tensor, bits: cutlass.Constexpr):
    copy(source, target, bits).launch(grid=[1, 1, 1], block=[32, 1, 1])


for bits, alignment in ((128, 16), (0, 8)):
    tensors = [make_fake_compact_tensor(BFloat16, (32 * 8,), assumed_align=alignment) for _ in range(2)]
    show(launch, *tensors, bits, title=f"{alignment} bytes aligned")

# Without the option the policies are dropped: the stock compiler, as it is.

# With it they are there, in accesses as wide as without.

# CHECK-LABEL: === PTX 16 bytes aligned
# OFF:           ld.global.v4.b32 {{{.*}}}, [%rd{{[0-9+]+}}];
# OFF:           st.global.v4.b32 [%rd{{[0-9+]+}}], {{{.*}}};
# ON:            ld.global.L2::cache_hint.v4.b32 {{{.*}}}, [%rd{{[0-9+]+}}], %rd{{[0-9]+}};
# ON:            st.global.L2::cache_hint.v4.b32 [%rd{{[0-9+]+}}], {{{.*}}}, %rd{{[0-9]+}};

# CHECK-LABEL: === SASS 16 bytes aligned
# OFF-NEXT:    LDG.E.128 policy=default
# OFF-NEXT:    STG.E.128 policy=default
# ON-NEXT:     LDG.E.128 policy=0x12f0000000000000
# ON-NEXT:     STG.E.128 policy=0x14f0000000000000

# CHECK-LABEL: === PTX 8 bytes aligned
# CHECK-LABEL: === SASS 8 bytes aligned
# OFF-NEXT:    LDG.E.64 policy=default
# OFF-NEXT:    LDG.E.64 policy=default
# OFF-NEXT:    STG.E.64 policy=default
# OFF-NEXT:    STG.E.64 policy=default
# ON-NEXT:     LDG.E.64 policy=0x12f0000000000000
# ON-NEXT:     LDG.E.64 policy=0x12f0000000000000
# ON-NEXT:     STG.E.64 policy=0x14f0000000000000
# ON-NEXT:     STG.E.64 policy=0x14f0000000000000
