"""Which arguments of a kernel `convert-invariant-copy-to-nvvm` takes for the same memory, by what a launch passes."""

import warnings
from typing import Any

import pytest
from cutlass import Constexpr, Float32, Int32, Int64, cute
from cutlass.cute.runtime import make_fake_compact_tensor

from cute_cache_policy import CachePolicyWarning
from support.ptx import compile_to_ptx, global_loads

LENGTH = 1024


@cute.kernel
def shift(source: cute.Tensor, target: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=128, invariant=True)
    fragment = cute.make_rmem_tensor((4,), Float32)
    cute.copy(atom, cute.local_tile(source, (4,), (thread,)), fragment, cache_policy=Int64(1))
    cute.autovec_copy(fragment, cute.local_tile(target, (4,), (thread + 1,)))


@cute.jit
def launch(tensor: cute.Tensor, first: Int32, second: Int32, view: Constexpr, twin: Constexpr):
    shift(view(tensor, first), twin(tensor, second)).launch(grid=[1, 1, 1], block=[32, 1, 1])


def whole(tensor: Any, number: Any) -> Any:
    return tensor


def rows(tensor: Any) -> Any:
    return cute.make_tensor(tensor.iterator, cute.make_layout((LENGTH, 4), stride=(1, LENGTH)))


def by_offset(number: int) -> Any:
    return lambda tensor, _: cute.make_tensor(tensor.iterator + LENGTH * number, cute.make_layout(LENGTH))


def by_slice(number: int) -> Any:
    return lambda tensor, _: rows(tensor)[None, number]


def by_tile(number: int) -> Any:
    return lambda tensor, _: cute.local_tile(tensor, (LENGTH,), (number,))


def by_domain(number: int) -> Any:
    return lambda tensor, _: cute.domain_offset((LENGTH * number,), tensor)


def by_argument(tensor: Any, number: Any) -> Any:
    return rows(tensor)[None, number]


def by_integer(tensor: Any, _: Any) -> Any:
    pointer = cute.make_ptr(Float32, tensor.iterator.toint(), cute.AddressSpace.gmem, assumed_align=16)
    return cute.make_tensor(pointer, tensor.layout)


def filtered(tensor: Any, _: Any) -> Any:
    return cute.filter(tensor)


PARTS = [by_offset, by_slice, by_tile, by_domain]


def is_coherent(view: Any, twin: Any) -> bool:
    tensor = make_fake_compact_tensor(Float32, (4 * LENGTH,), assumed_align=16)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CachePolicyWarning)
        options = "--honor-cache-policy"
        (load,) = global_loads(compile_to_ptx(launch, tensor, Int32(1), Int32(2), view, twin, options=options))
    coherent = ".nc" not in load
    assert coherent == any("which is passed the same tensor" in str(w.message) for w in caught)
    return coherent


@pytest.mark.parametrize("view", [whole, by_integer, filtered, *(part(0) for part in PARTS)])
def test_view_of_the_whole(view: Any) -> None:
    assert is_coherent(view, whole)


@pytest.mark.parametrize("part", PARTS)
def test_part_made_twice(part: Any) -> None:
    assert is_coherent(part(1), part(1))


@pytest.mark.parametrize("part", PARTS)
def test_different_parts(part: Any) -> None:
    assert not is_coherent(part(0), part(1))
    assert not is_coherent(part(1), part(2))


def test_parts_that_arguments_choose() -> None:
    assert not is_coherent(by_argument, by_argument)
    assert not is_coherent(by_argument, by_slice(3))
