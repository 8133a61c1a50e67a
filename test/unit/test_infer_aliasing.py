"""Kernels that write what they read, by every way to write and to compute an address: `infer-invariant-copy` leaves
their loads alone. Each has a twin that writes another argument, and whose loads it makes non-coherent."""

from typing import Any

import pytest
from cutlass import Float32, Int32, Int64, cute
from cutlass.cute.nvgpu import cpasync
from cutlass.cute.runtime import make_fake_compact_tensor

from support.ptx import compile_to_ptx, global_loads

THREADS, VECTOR = 64, 4


def thread() -> Any:
    return cute.arch.thread_idx()[0]


def vector_at(pointer: Any) -> Any:
    return cute.make_tensor(pointer, cute.make_layout((VECTOR,)))


def tile(tensor: Any) -> Any:
    return cute.local_tile(tensor, (VECTOR,), (thread(),))


# How the vector of a thread is found in a tensor.


def by_tile(tensor: Any) -> Any:
    return tile(tensor)


def by_offset(tensor: Any) -> Any:
    return vector_at((tensor.iterator + VECTOR * thread()).align(16))


def by_slice(tensor: Any) -> Any:
    return cute.zipped_divide(tensor, (VECTOR,))[None, thread()]


def by_composition(tensor: Any) -> Any:
    return cute.zipped_divide(cute.composition(tensor, cute.make_layout((THREADS * VECTOR,))), (VECTOR,))[
        None, thread()
    ]


def by_partition(tensor: Any) -> Any:
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float32, num_bits_per_copy=128)
    tiled = cute.make_tiled_copy_tv(atom, cute.make_layout((THREADS,)), cute.make_layout((VECTOR,)))
    return vector_at(tiled.get_slice(thread()).partition_S(tensor).iterator.align(16))


def by_integer(tensor: Any) -> Any:
    address = tensor.iterator.toint() + 4 * VECTOR * thread().to(Int64)
    return vector_at(cute.make_ptr(Float32, address, cute.AddressSpace.gmem, assumed_align=16))


def by_recast(tensor: Any) -> Any:
    return cute.recast_tensor(cute.recast_tensor(tile(tensor), Int32), Float32)


@cute.jit
def by_branch(tensor: cute.Tensor):
    start: Any = tensor.iterator
    address = tensor.iterator.toint()
    if thread() % 2 == 0:
        address = (start + VECTOR).toint()
    return vector_at(cute.make_ptr(Float32, address, cute.AddressSpace.gmem, assumed_align=16))


@cute.jit
def by_loop(tensor: cute.Tensor):
    pointer: Any = tensor.iterator
    for _ in range(thread()):
        pointer = (pointer + VECTOR).align(16)
    return vector_at(pointer)


@cute.jit
def by_call(tensor: cute.Tensor):
    return tile(cute.make_tensor(tensor.iterator, tensor.layout))


CHAINS = [
    by_tile,
    by_offset,
    by_slice,
    by_composition,
    by_partition,
    by_integer,
    by_recast,
    by_branch,
    by_loop,
    by_call,
]

# How a vector is written. Those in `ENDS_PROOF` let nothing be proven, whatever they write.


def store_copy(target: Any, value: Any) -> None:
    cute.autovec_copy(value, target)


def store_vector(target: Any, value: Any) -> None:
    target.store(value.load())


def store_element(target: Any, value: Any) -> None:
    target[1] = value[0]


def store_r2g(target: Any, value: Any) -> None:
    atom = cute.make_copy_atom(cute.nvgpu.CopyR2GOp(), Float32, num_bits_per_copy=128)
    cute.copy(atom, value, vector_at(target.iterator.align(16)))


def store_pointer(target: Any, value: Any) -> None:
    (target.iterator + 1).store(value[0])


def store_arch(target: Any, value: Any) -> None:
    cute.arch.store(target.iterator + 1, value[0])


def store_bulk(target: Any, value: Any) -> None:
    staged = cute.make_tensor(cute.arch.alloc_smem(Float32, VECTOR, alignment=128), cute.make_layout((VECTOR,)))
    staged[0] = value[0]
    cute.copy(cute.make_copy_atom(cpasync.CopyBulkS2GOp(), Float32), staged, target)


def add_atomic(target: Any, value: Any) -> None:
    cute.arch.atomic_add(target.iterator, value[0])


def store_ptx(target: Any, value: Any) -> None:
    cute.arch.inline_ptx("st.global.f32 [{$r0}], {$r1};", read_only_args=[target.iterator.toint(), value[0]])


STORES = [store_copy, store_vector, store_element, store_r2g, store_pointer, store_arch, store_bulk]
ENDS_PROOF = [add_atomic, store_ptx]

# How a vector is read.


def load_copy(source: Any) -> Any:
    fragment = cute.make_rmem_tensor((VECTOR,), Float32)
    cute.autovec_copy(source, fragment)
    return fragment


def load_g2r(source: Any) -> Any:
    fragment = cute.make_rmem_tensor((VECTOR,), Float32)
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=32)
    cute.copy(atom, source, fragment)
    return fragment


def load_vector(source: Any) -> Any:
    fragment = cute.make_rmem_tensor((VECTOR,), Float32)
    fragment.store(source.load())
    return fragment


def load_element(source: Any) -> Any:
    fragment = cute.make_rmem_tensor((VECTOR,), Float32)
    fragment.fill(0.0)
    fragment[0] = source[0]
    return fragment


LOADS = [load_copy, load_g2r, load_vector, load_element]


def loads_of(load: Any, store: Any, chain: Any, in_place: bool) -> list[str]:
    """The loads of a kernel that reads `data` and writes `data`, or `other`."""

    @cute.kernel
    def kernel(data: cute.Tensor, other: cute.Tensor):
        value = load(by_tile(data))
        value.store(value.load() + value.load())
        store(chain(data if in_place else other), value)

    @cute.jit
    def launch(data: cute.Tensor, other: cute.Tensor):
        kernel(data, other).launch(grid=[1, 1, 1], block=[THREADS, 1, 1])

    tensors = [make_fake_compact_tensor(Float32, (2 * THREADS * VECTOR,), assumed_align=16) for _ in range(2)]
    loads = global_loads(compile_to_ptx(launch, *tensors, options="--infer-invariant-copy"))
    assert loads
    return loads


#: Every way to write with every way to compute the address; the ways to read take turns.
PAIRS = [(store, chain) for store in STORES for chain in CHAINS]
CASES = [
    pytest.param(LOADS[i % len(LOADS)], *pair, id=f"{pair[0].__name__}-{pair[1].__name__}")
    for i, pair in enumerate(PAIRS)
]


@pytest.mark.parametrize(("load", "store", "chain"), CASES)
def test_only_what_is_never_written_becomes_non_coherent(load: Any, store: Any, chain: Any) -> None:
    assert not any(".nc" in name for name in loads_of(load, store, chain, in_place=True))
    assert all(".nc" in name for name in loads_of(load, store, chain, in_place=False))


@pytest.mark.parametrize("stored", ["data", "part of data", "other"])
def test_tma_store_through_an_atom_that_the_host_made(stored: str) -> None:
    @cute.kernel
    def kernel(data: cute.Tensor, atom: cute.CopyAtom, coordinates: cute.Tensor):
        staged = cute.make_tensor(cute.arch.alloc_smem(Float32, THREADS, alignment=128), cute.make_layout((THREADS,)))
        staged[thread()] = data[thread()]
        target = cute.group_modes(cute.local_tile(coordinates, (THREADS,), (0,)), 0, 1)
        cute.copy(
            atom,
            *cpasync.tma_partition(atom, 0, cute.make_layout(1), cute.group_modes(staged, 0, 1), target),
        )

    @cute.jit
    def launch(data: cute.Tensor, other: cute.Tensor):
        tensor = other if stored == "other" else data if stored == "data" else cute.local_tile(data, (THREADS,), (1,))
        operation = cpasync.CopyBulkTensorTileS2GOp()
        atom, coordinates = cpasync.make_tiled_tma_atom(operation, tensor, cute.make_layout((THREADS,)), (THREADS,))
        kernel(data, atom, coordinates).launch(grid=[1, 1, 1], block=[THREADS, 1, 1])

    tensors = [make_fake_compact_tensor(Float32, (2 * THREADS,), assumed_align=16) for _ in range(2)]
    found = global_loads(compile_to_ptx(launch, *tensors, options="--infer-invariant-copy"))
    assert found == ["ld.global.nc.b32" if stored == "other" else "ld.global.b32"]


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("store", ENDS_PROOF)
def test_what_ends_the_proof(store: Any, in_place: bool) -> None:
    assert not any(".nc" in name for name in loads_of(load_copy, store, by_tile, in_place))
