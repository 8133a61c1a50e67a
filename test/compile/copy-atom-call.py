# RUN: %python %s sm_90a --honor-cache-policy | FileCheck %s
# RUN: %python %s sm_100a --honor-cache-policy | FileCheck %s
"""`cute.copy_atom_call` is lowered as `cute.copy` is, and its predicate stays on the load."""

from cutlass import Boolean, Float16, Int64, cute
from cutlass.cute.runtime import make_fake_compact_tensor

from support.show import show

EVICT_FIRST = 0x12F0000000000000
VECTOR = 4


@cute.kernel
def add(left: cute.Tensor, right: cute.Tensor, target: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float16, num_bits_per_copy=64, invariant=True)
    a, b = (cute.make_rmem_tensor((VECTOR,), Float16) for _ in range(2))
    b.fill(0.0)
    policy = Int64(EVICT_FIRST)
    cute.copy_atom_call(atom, cute.local_tile(left, (VECTOR,), (thread,)), a, cache_policy=policy)
    inside = cute.make_rmem_tensor((1,), Boolean)
    inside[0] = thread * VECTOR < right.shape[0]
    # one vector, and a predicate for it
    vector = cute.make_layout(((VECTOR, 1),))
    here = cute.make_tensor(cute.local_tile(right, (VECTOR,), (thread,)).iterator, vector)
    cute.copy_atom_call(atom, here, cute.make_tensor(b.iterator, vector), pred=inside, cache_policy=policy)
    a.store(a.load() + b.load())
    cute.autovec_copy(a, cute.local_tile(target, (VECTOR,), (thread,)))


@cute.jit
def launch(left: cute.Tensor, right: cute.Tensor, target: cute.Tensor):
    add(left, right, target).launch(grid=[1, 1, 1], block=[32, 1, 1])


whole = make_fake_compact_tensor(Float16, (32 * VECTOR,), assumed_align=8)
part = make_fake_compact_tensor(Float16, (cute.sym_int(divisibility=VECTOR),), assumed_align=8)
show(launch, whole, part, whole)

# CHECK-LABEL: === PTX
# CHECK:         @%p1 bra [[SKIP:.*]];
# CHECK:         ld.global.nc.L2::cache_hint.v2.b32 {{{.*}}}, [%rd{{[0-9+]+}}], %rd{{[0-9]+}};
# CHECK:       [[SKIP]]:
# CHECK:         st.global

# CHECK-LABEL: === SASS
# CHECK-COUNT-2: LDG.E.64.CONSTANT policy=0x12f0000000000000
# CHECK-NEXT:  STG.E.64 policy=default
