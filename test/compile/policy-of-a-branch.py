# RUN: %python %s sm_90a | FileCheck %s --check-prefixes=CHECK,OFF
# RUN: %python %s sm_90a --honor-cache-policy | FileCheck %s --check-prefixes=CHECK,ON
# RUN: %python %s sm_100a --honor-cache-policy | FileCheck %s --check-prefixes=CHECK,ON
"""Coherent copies in both directions whose policy depends on an argument of the kernel."""

from cutlass import Float32, Int64, cute
from cutlass.cute.runtime import make_fake_compact_tensor

from support.show import show

EVICT_FIRST = 0x12F0000000000000
EVICT_LAST = 0x14F0000000000000
ELEMENTS = (4,)


@cute.kernel
def copy(source: cute.Tensor, target: cute.Tensor, hot: Int64):
    thread, _, _ = cute.arch.thread_idx()
    load = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=128)
    store = cute.make_copy_atom(cute.nvgpu.CopyR2GOp(), Float32, num_bits_per_copy=128)
    if hot > 0:
        load = load.with_(cache_policy=Int64(EVICT_LAST))
        store = store.with_(cache_policy=Int64(EVICT_FIRST))
    else:
        load = load.with_(cache_policy=Int64(EVICT_FIRST))
    fragment = cute.make_rmem_tensor(ELEMENTS, Float32)
    cute.copy(load, cute.local_tile(source, ELEMENTS, (thread,)), fragment)
    cute.copy(store, fragment, cute.local_tile(target, ELEMENTS, (thread,)))


@cute.jit
def launch(source: cute.Tensor, target: cute.Tensor, hot: Int64):
    copy(source, target, hot).launch(grid=[1, 1, 1], block=[32, 1, 1])


tensors = [make_fake_compact_tensor(Float32, (32 * 4,), assumed_align=16) for _ in range(2)]
show(launch, *tensors, Int64(1))

# Without the option the policies are dropped: the stock compiler, as it is.

# With it the policy is chosen at run time; without one (0x16f0000000000000) the priority is the normal one.

# CHECK-LABEL: === PTX
# OFF-NOT:       selp
# OFF:           ld.global.v4.b32 {{{.*}}}, [%rd{{[0-9+]+}}];
# OFF:           st.global.v4.b32 [%rd{{[0-9+]+}}], {{{.*}}};
# ON:            selp.b64 [[LOAD:%rd[0-9]+]], 1508705875169116160, 1364590687093260288, %p{{[0-9]+}};
# ON:            ld.global.L2::cache_hint.v4.b32 {{{.*}}}, [%rd{{[0-9+]+}}], [[LOAD]];
# ON:            selp.b64 [[STORE:%rd[0-9]+]], 1364590687093260288, 1652821063244972032, %p{{[0-9]+}};
# ON:            st.global.L2::cache_hint.v4.b32 [%rd{{[0-9+]+}}], {{{.*}}}, [[STORE]];

# CHECK-LABEL: === SASS
# OFF-NEXT:    LDG.E.128 policy=default
# OFF-NEXT:    STG.E.128 policy=default
# ON-NEXT:     LDG.E.128 policy={{.*}}SEL{{.*}}
# ON-NEXT:     STG.E.128 policy={{.*}}SEL{{.*}}
