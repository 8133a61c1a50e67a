# RUN: %python %s sm_90a | FileCheck %s --check-prefixes=CHECK,OFF
# RUN: %python %s sm_90a --honor-cache-policy | FileCheck %s --check-prefixes=CHECK,ON,SM90
# RUN: %python %s sm_100a --honor-cache-policy | FileCheck %s --check-prefixes=CHECK,ON,SM100
"""The policy is an argument of the kernel: whoever launches it chooses, and nothing is compiled again."""

from cutlass import Float32, Int64, cute
from cutlass.cute.runtime import make_fake_compact_tensor

from support.show import show


@cute.kernel
def copy(source: cute.Tensor, target: cute.Tensor, policy: Int64):
    thread, _, _ = cute.arch.thread_idx()
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=64, invariant=True)
    fragment = cute.make_rmem_tensor((2,), Float32)
    cute.copy(atom, cute.local_tile(source, (2,), (thread,)), fragment, cache_policy=policy)
    cute.autovec_copy(fragment, cute.local_tile(target, (2,), (thread,)))


@cute.jit
def launch(source: cute.Tensor, target: cute.Tensor, policy: Int64):
    copy(source, target, policy).launch(grid=[1, 1, 1], block=[32, 1, 1])


show(launch, *(make_fake_compact_tensor(Float32, (64,), assumed_align=8) for _ in range(2)), Int64(0))

# Without the option the kernel does not even read the argument.

# CHECK-LABEL: === PTX
# OFF-NOT:       ld.param.b64 %rd{{[0-9]+}}, [{{.*}}param_2];
# ON:            ld.param.b64 [[POLICY:%rd[0-9]+]], [{{.*}}param_2];
# OFF:           ld.global.nc.v2.b32
# ON:            ld.global.nc.L2::cache_hint.v2.b32 {{{.*}}}, [%rd{{[0-9+]+}}], [[POLICY]];

# CHECK-LABEL: === SASS
# OFF-NEXT:    LDG.E.64.CONSTANT policy=default
# SM90-NEXT:   LDG.E.64.CONSTANT policy=c[0x0][0x220]
# SM100-NEXT:  LDG.E.64.CONSTANT policy=c[0x0][0x390]
# CHECK-NEXT:  STG.E.64 policy=default
