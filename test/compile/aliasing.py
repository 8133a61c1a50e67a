# RUN: %python %s sm_90a --honor-cache-policy | FileCheck %s
"""Copies whose source the same kernel also writes stay coherent, with their policy; all others become non-coherent.

Each kernel adds `x` to `data`: an invariant copy with a policy reads a tile of each. `data` is what varies below; the
load of `x` is non-coherent in every kernel. Only whole variants are shown, as `name: loads and stores of data`.
"""

import re
import sys
import tempfile
import warnings
from pathlib import Path

import cutlass
from cutlass import Float32, Int32, Int64, cute
from cutlass.cute.nvgpu import cpasync
from cutlass.cute.runtime import make_fake_compact_tensor

from cute_cache_policy import CachePolicyWarning

EVICT_FIRST, EVICT_LAST = 0x12F0000000000000, 0x14F0000000000000
THREADS, VECTOR = 64, 4
ATOM_BITS = 32 * VECTOR


def thread():
    return cute.arch.thread_idx()[0]


def tile(tensor):
    return cute.local_tile(tensor, (VECTOR,), (thread(),))


def shared(elements):
    return cute.make_tensor(cute.arch.alloc_smem(Float32, elements, alignment=128), cute.make_layout((elements,)))


def read(source, policy=EVICT_LAST):
    """An invariant copy of a tile, with a policy."""
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=ATOM_BITS, invariant=True)
    fragment = cute.make_rmem_tensor((VECTOR,), Float32)
    cute.copy(atom, source, fragment, cache_policy=Int64(policy))
    return fragment


def add(data, x):
    """The sum of a tile of `data`, which is loaded with evict_last, and one of `x`, with evict_first."""
    sum_ = cute.make_rmem_tensor((VECTOR,), Float32)
    sum_.store(read(data).load() + read(tile(x), EVICT_FIRST).load())
    return sum_


# The same kernel argument, stored to by every means.


@cute.kernel
def in_place(data: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
    cute.autovec_copy(add(tile(data), x), tile(data))


@cute.kernel
def reload(data: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
    cute.autovec_copy(add(tile(data), x), tile(data))
    cute.autovec_copy(read(tile(data)), tile(y))


@cute.kernel
def store_element(data: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
    data[thread()] = add(tile(data), x)[0]


@cute.kernel
def store_vector(data: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
    tile(data).store(add(tile(data), x).load())


@cute.kernel
def store_pointer(data: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
    cute.arch.store(data.iterator + thread(), add(tile(data), x)[0])


@cute.kernel
def atomic(data: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
    cute.arch.atomic_add(data.iterator + thread(), add(tile(data), x)[0])


@cute.kernel
def inline_ptx(data: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
    value = add(tile(data), x)[0]
    cute.arch.inline_ptx("st.global.f32 [{$r0}], {$r1};", read_only_args=[(data.iterator + thread()).toint(), value])


@cute.kernel
def bulk_copy(data: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
    staged = shared(THREADS)
    staged[thread()] = add(tile(data), x)[0]
    cute.copy(cute.make_copy_atom(cpasync.CopyBulkS2GOp(), Float32), staged, cute.local_tile(data, (THREADS,), (0,)))


# Through views, offsets, alignment, recasts, integers and control flow.


@cute.kernel
def offset(data: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
    shifted = cute.make_tensor((data.iterator + 4 * thread()).align(16), cute.make_layout((VECTOR,)))
    cute.autovec_copy(add(shifted, x), tile(data))


@cute.kernel
def recast(data: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
    words = cute.recast_tensor(tile(data), Int32)
    words[0] = add(tile(data), x)[0].to(Int32)


@cute.kernel
def integer(data: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
    address = data.iterator.toint() + 16 * thread().to(Int64)
    again = cute.make_ptr(Float32, address, cute.AddressSpace.gmem, assumed_align=16)
    cute.autovec_copy(add(tile(data), x), cute.make_tensor(again, cute.make_layout((VECTOR,))))


@cute.kernel
def views(data: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
    rows = cute.zipped_divide(cute.composition(data, cute.make_layout((16, 16))), (VECTOR, 1))
    mine = cute.group_modes(cute.logical_divide(rows[(None, None), (thread() % 4, thread() // 4)], (VECTOR,)), 0, 2)
    cute.autovec_copy(add(cute.make_tensor(mine.iterator, cute.make_layout((VECTOR,))), x), tile(data))


@cute.kernel
def partition(data: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float32, num_bits_per_copy=ATOM_BITS)
    tiled = cute.make_tiled_copy_tv(atom, cute.make_layout((THREADS,)), cute.make_layout((VECTOR,)))
    mine = tiled.get_slice(thread()).partition_D(data)
    cute.copy(tiled, cute.make_tensor(add(tile(data), x).iterator, mine.layout), mine)


@cute.kernel
def branch(data: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
    address = y.iterator.toint()
    if thread() < 32:
        address = data.iterator.toint()
    target = cute.make_ptr(Float32, address, cute.AddressSpace.gmem, assumed_align=16)
    cute.autovec_copy(add(tile(data), x), tile(cute.make_tensor(target, data.layout)))


@cute.kernel
def loop(data: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
    pointer = data.iterator
    for _ in cutlass.range(thread(), unroll=1):
        cute.autovec_copy(add(tile(data), x), cute.make_tensor(pointer.align(16), cute.make_layout((VECTOR,))))
        pointer = pointer + VECTOR


@cute.kernel
def tma_store(data: cute.Tensor, x: cute.Tensor, atom: cute.CopyAtom, coordinates: cute.Tensor):
    staged = shared(THREADS)
    staged[thread()] = add(tile(data), x)[0]
    target = cute.group_modes(cute.local_tile(coordinates, (THREADS,), (0,)), 0, 1)
    parts = cpasync.tma_partition(atom, 0, cute.make_layout(1), cute.group_modes(staged, 0, 1), target)
    cute.copy(atom, *parts)


# Left non-coherent.


@cute.kernel
def other_tensor(data: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
    cute.autovec_copy(add(tile(data), x), tile(y))


@cute.kernel
def other_memory(data: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
    staged = shared(THREADS * VECTOR)
    cute.autovec_copy(add(tile(data), x), tile(staged))
    cute.arch.barrier()
    cute.autovec_copy(tile(staged), tile(y))


@cute.kernel
def offset_from_data(data: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
    index = data[thread()].to(Int32)
    cute.autovec_copy(add(tile(data), x), cute.local_tile(y, (VECTOR,), (index,)))


@cute.kernel
def reading_ptx(data: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
    address = (data.iterator + thread()).toint()
    more = cute.arch.inline_ptx("ld.global.f32 {$w0}, [{$r0}];", write_only_types=[Float32], read_only_args=[address])
    y[thread()] = add(tile(data), x)[0] + more


@cute.kernel
def fill(data: cute.Tensor):
    data[thread()] = Float32(0)


def host(kernel, *order):
    """A host function that launches `kernel` on its arguments (data, x, y) in the given order."""

    @cute.jit
    def launch(data: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
        tensors = (data, x, y)
        kernel(*(tensors[i] for i in order)).launch(grid=[1, 1, 1], block=[THREADS, 1, 1])

    return launch


@cute.jit
def launch_tma(data: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
    operation = cpasync.CopyBulkTensorTileS2GOp()
    atom, coordinates = cpasync.make_tiled_tma_atom(operation, data, cute.make_layout((THREADS,)), (THREADS,))
    tma_store(data, x, atom, coordinates).launch(grid=[1, 1, 1], block=[THREADS, 1, 1])


@cute.jit
def launch_two(data: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
    fill(data).launch(grid=[1, 1, 1], block=[THREADS, 1, 1])
    other_tensor(data, x, y).launch(grid=[1, 1, 1], block=[THREADS, 1, 1])


def show(launch, name):
    """Prints how many loads of each kind a kernel has, and the warnings."""
    arch, *options = sys.argv[1:]
    tensors = [make_fake_compact_tensor(Float32, (4 * THREADS,), assumed_align=16) for _ in range(3)]
    with tempfile.TemporaryDirectory() as directory, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CachePolicyWarning)
        keep = f"--gpu-arch {arch} --keep-ptx --dump-dir {directory} --generate-line-info"
        compiled = cute.compile(launch, *tensors, options=" ".join([keep, *options]))
    loads = re.findall(r"ld\.global(\.nc)?\.L2::cache_hint", compiled.artifacts.PTX)
    print(f"=== {name}: {loads.count('')} coherent, {loads.count('.nc')} non-coherent")
    for warning in caught:
        if warning.category is CachePolicyWarning:
            print(f"{Path(warning.filename).name}: {warning.message}".replace(", ", "\n"))


MUST = [in_place, reload, store_element, store_vector, store_pointer, atomic, inline_ptx, bulk_copy]
MUST += [offset, recast, integer, views, partition, branch, loop]
MUST_NOT = [other_tensor, other_memory, offset_from_data, reading_ptx]
for kernel in [*MUST, *MUST_NOT]:
    show(host(kernel, 0, 1, 2), kernel.__name__)
show(launch_tma, "tma_store")
show(host(other_tensor, 0, 1, 0), "same tensor as data and y")
show(host(other_tensor, 0, 1, 1), "same tensor as x and y")
show(launch_two, "two kernels")

# One warning per copy, at its line; it names the tensor, the kernel and the line of the write.
# CHECK:      === in_place: 1 coherent, 1 non-coherent
# CHECK-NEXT: aliasing.py: 'cute.copy' op becomes a coherent load
# CHECK-NEXT: because kernel 'in_place' also writes 'data' at line {{[0-9]+}}: use invariant=False
# CHECK-NEXT: === reload: 2 coherent, 1 non-coherent
# CHECK-NEXT: aliasing.py: 'cute.copy' op becomes a coherent load
# CHECK-NEXT: because kernel 'reload' also writes 'data' at line {{[0-9]+}}: use invariant=False
# CHECK-NEXT: aliasing.py: 'cute.copy' op becomes a coherent load
# CHECK-NEXT: because kernel 'reload' also writes 'data' at line {{[0-9]+}}: use invariant=False
# CHECK-NEXT: === store_element: 1 coherent, 1 non-coherent
# CHECK-NEXT: aliasing.py: 'cute.copy' op becomes a coherent load
# CHECK-NEXT: because kernel 'store_element' also writes 'data' at line {{[0-9]+}}: use invariant=False
# CHECK-NEXT: === store_vector: 1 coherent, 1 non-coherent
# CHECK-NEXT: aliasing.py: 'cute.copy' op becomes a coherent load
# CHECK-NEXT: because kernel 'store_vector' also writes 'data' at line {{[0-9]+}}: use invariant=False
# CHECK-NEXT: === store_pointer: 1 coherent, 1 non-coherent
# CHECK-NEXT: aliasing.py: 'cute.copy' op becomes a coherent load
# CHECK-NEXT: because kernel 'store_pointer' also writes 'data' at line {{[0-9]+}}: use invariant=False
# CHECK-NEXT: === atomic: 1 coherent, 1 non-coherent
# CHECK-NEXT: aliasing.py: 'cute.copy' op becomes a coherent load
# CHECK-NEXT: because kernel 'atomic' also writes 'data' at line {{[0-9]+}}: use invariant=False
# CHECK-NEXT: === inline_ptx: 1 coherent, 1 non-coherent
# CHECK-NEXT: aliasing.py: 'cute.copy' op becomes a coherent load
# CHECK-NEXT: because kernel 'inline_ptx' also writes 'data' at line {{[0-9]+}}: use invariant=False
# CHECK-NEXT: === bulk_copy: 1 coherent, 1 non-coherent
# CHECK-NEXT: aliasing.py: 'cute.copy' op becomes a coherent load
# CHECK-NEXT: because kernel 'bulk_copy' also writes 'data' at line {{[0-9]+}}: use invariant=False
# CHECK-NEXT: === offset: 1 coherent, 1 non-coherent
# CHECK-NEXT: aliasing.py: 'cute.copy' op becomes a coherent load
# CHECK-NEXT: because kernel 'offset' also writes 'data' at line {{[0-9]+}}: use invariant=False
# CHECK-NEXT: === recast: 1 coherent, 1 non-coherent
# CHECK-NEXT: aliasing.py: 'cute.copy' op becomes a coherent load
# CHECK-NEXT: because kernel 'recast' also writes 'data' at line {{[0-9]+}}: use invariant=False
# CHECK-NEXT: === integer: 1 coherent, 1 non-coherent
# CHECK-NEXT: aliasing.py: 'cute.copy' op becomes a coherent load
# CHECK-NEXT: because kernel 'integer' also writes 'data' at line {{[0-9]+}}: use invariant=False
# CHECK-NEXT: === views: 1 coherent, 1 non-coherent
# CHECK-NEXT: aliasing.py: 'cute.copy' op becomes a coherent load
# CHECK-NEXT: because kernel 'views' also writes 'data' at line {{[0-9]+}}: use invariant=False
# CHECK-NEXT: === partition: 1 coherent, 1 non-coherent
# CHECK-NEXT: aliasing.py: 'cute.copy' op becomes a coherent load
# CHECK-NEXT: because kernel 'partition' also writes 'data' at line {{[0-9]+}}: use invariant=False
# CHECK-NEXT: === branch: 1 coherent, 1 non-coherent
# CHECK-NEXT: aliasing.py: 'cute.copy' op becomes a coherent load
# CHECK-NEXT: because kernel 'branch' also writes 'data' at line {{[0-9]+}}: use invariant=False
# CHECK-NEXT: === loop: 1 coherent, 1 non-coherent
# CHECK-NEXT: aliasing.py: 'cute.copy' op becomes a coherent load
# CHECK-NEXT: because kernel 'loop' also writes 'data' at line {{[0-9]+}}: use invariant=False
# CHECK-NEXT: === other_tensor: 0 coherent, 2 non-coherent
# CHECK-NEXT: === other_memory: 0 coherent, 2 non-coherent
# CHECK-NEXT: === offset_from_data: 0 coherent, 2 non-coherent
# CHECK-NEXT: === reading_ptx: 0 coherent, 2 non-coherent
# CHECK-NEXT: === tma_store: 1 coherent, 1 non-coherent
# CHECK-NEXT: aliasing.py: 'cute.copy' op becomes a coherent load
# CHECK-NEXT: because kernel 'tma_store' also writes 'atom' at line {{[0-9]+}}
# CHECK-NEXT: which is passed the same tensor as 'data': use invariant=False
# CHECK-NEXT: === same tensor as data and y: 1 coherent, 1 non-coherent
# CHECK-NEXT: aliasing.py: 'cute.copy' op becomes a coherent load
# CHECK-NEXT: because kernel 'other_tensor' also writes 'y' at line {{[0-9]+}}
# CHECK-NEXT: which is passed the same tensor as 'data': use invariant=False
# CHECK-NEXT: === same tensor as x and y: 1 coherent, 1 non-coherent
# CHECK-NEXT: aliasing.py: 'cute.copy' op becomes a coherent load
# CHECK-NEXT: because kernel 'other_tensor' also writes 'y' at line {{[0-9]+}}
# CHECK-NEXT: which is passed the same tensor as 'x': use invariant=False
# CHECK-NEXT: === two kernels: 0 coherent, 2 non-coherent
