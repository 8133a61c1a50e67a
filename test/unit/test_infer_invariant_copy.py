"""Each rule of `infer-invariant-copy`: a kernel whose loads it makes non-coherent, and one that it must leave alone.

A kernel reads `data` and writes `out`; what varies is given as functions, as in `test_infer_aliasing.py`, which has the
rule that matters most: nothing is inferred of what the kernel writes.
"""

from collections.abc import Callable
from typing import Any

import cutlass
import pytest
from cutlass import Float32, Int32, Int64, cute
from cutlass.base_dsl.common import DSLUserCodeError
from cutlass.cute.nvgpu import CacheEvictionPriority, L2PrefetchSize, LoadCacheMode, MemoryOrder, MemoryScope, cpasync
from cutlass.cute.runtime import make_fake_compact_tensor, make_ptr

import cute_cache_policy
from cute_cache_policy import CachePolicyError
from support.ptx import compile_to_ptx, global_loads

THREADS, VECTOR = 64, 4
EVICT_FIRST = 0x12F0000000000000
NC = "ld.global.nc.v4.b32"


def thread() -> Any:
    return cute.arch.thread_idx()[0]


def tile(tensor: Any) -> Any:
    return cute.local_tile(tensor, (VECTOR,), (thread(),))


def fragment() -> Any:
    return cute.make_rmem_tensor((VECTOR,), Float32)


def shared(elements: int) -> Any:
    return cute.make_tensor(cute.arch.alloc_smem(Float32, elements, alignment=128), cute.make_layout((elements,)))


def copied(operation: Any, source: Any, *, bits: int = 32 * VECTOR, policy: Any = None, **fields: Any) -> Any:
    atom = cute.make_copy_atom(operation, Float32, num_bits_per_copy=bits, **fields)
    target = fragment()
    cute.copy(atom, source, target, **({} if policy is None else {"cache_policy": Int64(policy)}))
    return target


def autovec(source: Any) -> Any:
    target = fragment()
    cute.autovec_copy(source, target)
    return target


def loads(
    body: Callable[[Any, Any], None],
    *,
    options: str = "--infer-invariant-copy",
    arch: str = "sm_90a",
    launch_with: dict[str, Any] | None = None,
) -> list[str]:
    """The loads of global memory of a kernel that runs `body(data, out)`."""
    settings = launch_with or {}

    @cute.kernel
    def kernel(data: cute.Tensor, out: cute.Tensor, address: Int64):
        body(data, out)

    @cute.jit
    def launch(data: cute.Tensor, out: cute.Tensor, address: Int64):
        kernel(data, out, address).launch(grid=[1, 1, 1], block=[THREADS, 1, 1], **settings)

    tensors = [make_fake_compact_tensor(Float32, (2 * THREADS * VECTOR,), assumed_align=32) for _ in range(2)]
    return global_loads(compile_to_ptx(launch, *tensors, Int64(0), options=options, arch=arch))


def reads(load: Callable[[Any], Any]) -> Callable[[Any, Any], None]:
    """A body that loads a vector of `data` and stores it to `out`."""

    def body(data: Any, out: Any) -> None:
        cute.autovec_copy(load(tile(data)), tile(out))

    return body


def element(source: Any) -> Any:
    target = fragment()
    for i in range(VECTOR):
        target[i] = source[i]
    return target


def tiled(source: Any) -> Any:
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float32, num_bits_per_copy=32)
    copy = cute.make_tiled_copy_tv(atom, cute.make_layout((1,)), cute.make_layout((VECTOR,)))
    target = fragment()
    part = copy.get_slice(0)
    cute.copy(copy, part.partition_S(source), part.partition_D(target))
    return target


def atom_call(source: Any) -> Any:
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=32 * VECTOR)
    target = fragment()
    cute.copy_atom_call(atom, source, target)
    return target


def predicated(source: Any) -> Any:
    target = fragment()
    predicate = cute.make_rmem_tensor((1, 1), cutlass.Boolean)
    predicate[0] = thread() < 7
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=32 * VECTOR)
    one = cute.make_layout(((VECTOR, 1), 1))
    source, rows = cute.make_tensor(source.iterator, one), cute.make_tensor(target.iterator, one)
    cute.copy(atom, source, rows, pred=predicate)
    return target


def vector(source: Any) -> Any:
    target = fragment()
    target.store(source.load())
    return target


def pointer(source: Any) -> Any:
    target = fragment()
    target.fill(0.0)
    target[0] = source.iterator.load()
    return target


G2R, UNIVERSAL = cute.nvgpu.CopyG2ROp, cute.nvgpu.CopyUniversalOp

MUST = [
    (autovec, {NC}),
    (lambda s: copied(UNIVERSAL(), s), {NC}),
    (lambda s: copied(UNIVERSAL(), s, bits=32), {"ld.global.nc.b32"}),
    (lambda s: copied(G2R(), s), {NC}),
    (tiled, {"ld.global.nc.b32"}),
    (atom_call, {NC}),
    (predicated, {NC}),
    (vector, {NC}),
    (element, {NC}),
    (pointer, {"ld.global.nc.b32"}),
    # what the copy asked for is kept
    (lambda s: copied(G2R(), s, policy=EVICT_FIRST), {"ld.global.nc.L2::cache_hint.v4.b32"}),
    (
        lambda s: copied(G2R(), s, l1c_evict_priority=CacheEvictionPriority.NO_ALLOCATE),
        {"ld.global.nc.L1::no_allocate.v4.b32"},
    ),
    (lambda s: copied(G2R(), s, l2_prefetch_size=L2PrefetchSize.SIZE_256B), {"ld.global.nc.L2::256B.v4.b32"}),
    (lambda s: copied(G2R(), s, load_cache_mode=LoadCacheMode.STREAMING), {"ld.global.cs.nc.v4.b32"}),
    # it was invariant before
    (lambda s: copied(G2R(), s, invariant=True), {NC}),
]

MUST_NOT = [
    lambda s: copied(G2R(), s, memory_order=MemoryOrder.RELAXED, memory_scope=MemoryScope.GPU),
    lambda s: copied(G2R(), s, memory_order=MemoryOrder.ACQUIRE, memory_scope=MemoryScope.SYS),
    lambda s: copied(G2R(), s, memory_order=MemoryOrder.VOLATILE),
    # `.lu` and `.cv` are the cache operators that non-coherent loads do not have
    lambda s: copied(G2R(), s, load_cache_mode=LoadCacheMode.LAST_USE),
    lambda s: copied(G2R(), s, load_cache_mode=LoadCacheMode.NONE),
]


@pytest.mark.parametrize(("load", "expected"), MUST)
def test_weak_loads_become_non_coherent(load: Any, expected: set[str]) -> None:
    assert set(loads(reads(load))) == expected


@pytest.mark.parametrize("load", MUST_NOT)
def test_other_loads_stay_as_they_are(load: Any) -> None:
    assert loads(reads(load)) == loads(reads(load), options="")
    assert not any(".nc" in name for name in loads(reads(load)))


@pytest.mark.parametrize(("load", "expected"), MUST[:10])
def test_nothing_happens_without_the_option(load: Any, expected: set[str]) -> None:
    assert {name.replace(".global", ".global.nc") for name in loads(reads(load), options="")} == expected


def staged_by_cp_async(data: Any, out: Any) -> None:
    staged = shared(VECTOR)
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), Float32, num_bits_per_copy=128)
    cute.copy(atom, tile(data), staged)
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    cute.autovec_copy(staged, tile(out))


def test_cp_async_and_shared_memory_stay() -> None:
    assert loads(staged_by_cp_async) == []


def test_loads_beside_cp_async() -> None:
    def body(data: Any, out: Any) -> None:
        staged_by_cp_async(data, out)
        out[thread() + THREADS * VECTOR] = data[thread()]

    assert loads(body) == ["ld.global.nc.b32"]


# What the kernel does besides, and whether the proof survives it.


def barrier(data: Any, out: Any) -> None:
    cute.arch.barrier()


def shuffle(data: Any, out: Any) -> None:
    out[thread()] = cute.arch.shuffle_sync_bfly(data[thread()], offset=1)


def shared_atomic(data: Any, out: Any) -> None:
    cute.arch.atomic_add(shared(1).iterator, Float32(1))


def reading_ptx(data: Any, out: Any) -> None:
    out[thread()] = cute.arch.inline_ptx("mov.f32 {$w0}, {$r0};", write_only_types=[Float32], read_only_args=[data[0]])


def printing(data: Any, out: Any) -> None:
    cute.printf("%f", data[0])


def gather(data: Any, out: Any) -> None:
    out[data[thread()].to(Int32)] = Float32(0)


def atomic(data: Any, out: Any) -> None:
    cute.arch.atomic_add(out.iterator, Float32(1))


def writing_ptx(data: Any, out: Any) -> None:
    cute.arch.inline_ptx("st.global.f32 [{$r0}], {$r1};", read_only_args=[out.iterator.toint(), data[0]])


def unknown_ptx(data: Any, out: Any) -> None:
    cute.arch.inline_ptx("discard.global.L2 [{$r0}], 128;", read_only_args=[out.iterator.toint()])


def loaded_address(data: Any, out: Any) -> None:
    address = cute.recast_tensor(data, Int64)[0]
    cute.make_ptr(Float32, address, cute.AddressSpace.gmem, assumed_align=4).store(Float32(0))


@cute.jit
def loaded_address_on_a_path(data: cute.Tensor, out: cute.Tensor):
    address = out.iterator.toint()
    if thread() == 0:
        address = cute.recast_tensor(data, Int64)[0]
    cute.make_ptr(Float32, address, cute.AddressSpace.gmem, assumed_align=4).store(Float32(0))


@cute.jit
def offset_by_a_loop(data: cute.Tensor, out: cute.Tensor):
    address = out.iterator.toint()
    for _ in range(thread()):
        address = address + 4
    cute.make_ptr(Float32, address, cute.AddressSpace.gmem, assumed_align=4).store(Float32(0))


def aligned(data: Any, out: Any) -> None:
    address = (out.iterator.toint() & -16) | 4
    cute.make_ptr(Float32, address, cute.AddressSpace.gmem, assumed_align=4).store(Float32(0))


def sum_of_addresses(data: Any, out: Any) -> None:
    address = out.iterator.toint() - data.iterator.toint()
    cute.make_ptr(Float32, address, cute.AddressSpace.gmem, assumed_align=4).store(Float32(0))


def dependent_launch(data: Any, out: Any) -> None:
    cute.arch.griddepcontrol_wait()


@pytest.mark.parametrize(
    "besides", [barrier, shuffle, shared_atomic, reading_ptx, printing, gather, offset_by_a_loop, aligned]
)
def test_harmless_company(besides: Any) -> None:
    def body(data: Any, out: Any) -> None:
        reads(autovec)(data, out)
        besides(data, out)

    assert NC in loads(body)
    assert all(".nc" in name for name in loads(body))


@pytest.mark.parametrize(
    "besides",
    [
        atomic,
        writing_ptx,
        unknown_ptx,
        loaded_address,
        loaded_address_on_a_path,
        sum_of_addresses,
        dependent_launch,
    ],
)
def test_company_that_ends_the_proof(besides: Any) -> None:
    def body(data: Any, out: Any) -> None:
        reads(autovec)(data, out)
        besides(data, out)

    assert not any(".nc" in name for name in loads(body))


def test_address_argument_ends_the_proof() -> None:
    @cute.kernel
    def kernel(data: cute.Tensor, address: Int64):
        target = cute.make_ptr(Float32, address, cute.AddressSpace.gmem, assumed_align=16)
        cute.autovec_copy(autovec(tile(data)), tile(cute.make_tensor(target, cute.make_layout((THREADS * VECTOR,)))))

    @cute.jit
    def launch(data: cute.Tensor, address: Int64):
        kernel(data, address).launch(grid=[1, 1, 1], block=[THREADS, 1, 1])

    data = make_fake_compact_tensor(Float32, (THREADS * VECTOR,), assumed_align=16)
    assert global_loads(compile_to_ptx(launch, data, Int64(0), options="--infer-invariant-copy")) == [
        "ld.global.v4.b32"
    ]


def test_dependent_launch_attribute_ends_the_proof() -> None:
    assert loads(reads(autovec), launch_with={"use_pdl": True}) == ["ld.global.v4.b32"]
    assert loads(reads(autovec), launch_with={"use_pdl": False}) == [NC]


@pytest.mark.parametrize("order", [(0, 0), (0, 1)])
def test_same_tensor_passed_twice(order: tuple[int, int]) -> None:
    @cute.kernel
    def kernel(data: cute.Tensor, out: cute.Tensor):
        value = autovec(tile(data))
        value.store(value.load() + value.load())
        cute.autovec_copy(value, tile(out))

    @cute.jit
    def launch(first: cute.Tensor, second: cute.Tensor):
        tensors = (first, second)
        kernel(tensors[order[0]], tensors[order[1]]).launch(grid=[1, 1, 1], block=[THREADS, 1, 1])

    tensors = [make_fake_compact_tensor(Float32, (THREADS * VECTOR,), assumed_align=16) for _ in range(2)]
    found = global_loads(compile_to_ptx(launch, *tensors, options="--infer-invariant-copy"))
    assert found == [NC if order == (0, 1) else "ld.global.v4.b32"]


def test_restrict_marks_single_arguments() -> None:
    def body(marks: bool) -> Callable[[Any, Any], None]:
        @cute.kernel
        def kernel(data: cute.Tensor, more: cute.Tensor, out: cute.Tensor):
            source = cute_cache_policy.restrict(data) if marks else data
            value: Any = source[thread()]
            out[thread()] = value + more[thread() + 1]

        @cute.jit
        def launch(data: cute.Tensor, more: cute.Tensor, out: cute.Tensor):
            kernel(data, more, out).launch(grid=[1, 1, 1], block=[THREADS, 1, 1])

        return launch

    tensors = [make_fake_compact_tensor(Float32, (2 * THREADS,), assumed_align=16) for _ in range(3)]
    for options in ("", "--infer-invariant-copy"):
        found = sorted(global_loads(compile_to_ptx(body(True), *tensors, options=options)))
        assert found == ["ld.global.b32", "ld.global.nc.b32"]
    assert global_loads(compile_to_ptx(body(False), *tensors)) == ["ld.global.b32"] * 2


def test_restrict_takes_pointers() -> None:
    @cute.kernel
    def kernel(data: cute.Pointer, out: cute.Pointer):
        value: Any = cute.make_tensor(cute_cache_policy.restrict(data), cute.make_layout(THREADS))[thread()]
        cute.make_tensor(out, cute.make_layout(THREADS))[thread()] = value

    @cute.jit
    def launch(data: cute.Pointer, out: cute.Pointer):
        kernel(data, out).launch(grid=[1, 1, 1], block=[THREADS, 1, 1])

    pointers = [make_ptr(Float32, 16, cute.AddressSpace.gmem, assumed_align=16) for _ in range(2)]
    assert global_loads(compile_to_ptx(launch, *pointers)) == ["ld.global.nc.b32"]


def test_restrict_of_anything_else_is_an_error() -> None:
    wrong: Any = 3
    with pytest.raises(CachePolicyError, match="'restrict' expects a tensor or a pointer, but got 3"):
        cute_cache_policy.restrict(wrong)


def test_restrict_counts_in_its_own_compile_alone() -> None:
    def marked(data: Any, out: Any) -> None:
        out[thread()] = cute_cache_policy.restrict(data)[thread()] + 1

    with cute_cache_policy.report() as report:
        assert loads(marked, options="") == ["ld.global.nc.b32"]
        assert [bool(argument.reason) for argument in report.arguments] == [False, True]
        assert loads(reads(autovec), options="") == ["ld.global.v4.b32"]
    assert len(report.arguments) == 2


def test_restrict_is_no_promise_about_what_the_kernel_writes() -> None:
    def body(data: Any, out: Any) -> None:
        marked = cute_cache_policy.restrict(out)
        out[thread()] = marked[thread()] + 1

    assert loads(body) == ["ld.global.b32"]


def test_report_has_a_verdict_on_every_argument() -> None:
    with cute_cache_policy.report() as report:
        loads(reads(autovec), options="--infer-invariant-copy --generate-line-info")
    data, out = report.arguments
    assert (data.argument, data.reason) == ("'data'", "")
    assert out.argument == "'out'" and out.reason.startswith("written at line ")


def test_report_names_what_ended_the_proof() -> None:
    reasons = {
        atomic: "an atomic is executed",
        writing_ptx: "inline assembly may write",
        loaded_address: "an address of unknown origin is written",
        dependent_launch: "programmatic dependent launch",
    }
    for body, reason in reasons.items():
        with cute_cache_policy.report() as report:
            loads(body)
        # without line information, releases from 4.7 on know no line
        assert {record.reason.partition(" at line")[0] for record in report.arguments} == {reason}


def by_distance(data: Any, out: Any) -> None:
    """Writes `data` through `out` and the distance between the two."""
    values = autovec(tile(data))
    distance = (data.iterator.toint() - out.iterator.toint()) // 4
    (out.iterator + distance + thread()).store(values[0])


def by_distance_of_elements(data: Any, out: Any) -> None:
    """The same, between what the thread has in each of them."""
    values = autovec(tile(data))
    offset = 4 * thread().to(Int64)
    distance = ((data.iterator.toint() + offset) - (out.iterator.toint() + offset)) // 4
    (out.iterator + distance + thread()).store(values[0])


def by_number_of(number: Callable[[Int64], Int64]) -> Callable[[Any, Any], None]:
    """Writes to an address that was loaded, and a number made from the address of `out` added to it."""

    def body(data: Any, out: Any) -> None:
        values = autovec(tile(data))
        address = cute.recast_tensor(out, Int64)[0] + number(out.iterator.toint())
        cute.make_ptr(Float32, address, cute.AddressSpace.gmem, assumed_align=4).store(values[0])

    return body


NUMBERS = {
    "remainder": lambda address: address % 16,
    "low bits": lambda address: address & 15,
    "bank": lambda address: ((address >> 4) & 7) * 16,
    "negative": lambda address: Int64(0) - address,
}


def by_mask(data: Any, out: Any) -> None:
    """Writes to `out`, or to an address that was loaded: chosen bit by bit."""
    values = autovec(tile(data))
    loaded = cute.recast_tensor(out, Int64)[0]
    mask = Int64(thread() % 2) - Int64(1)
    chosen = (out.iterator.toint() & mask) | (loaded & ~mask)
    target = cute.make_ptr(Float32, chosen, cute.AddressSpace.gmem, assumed_align=4)
    cute.make_tensor(target, cute.make_layout((THREADS,)))[thread()] = values[0]


@pytest.mark.parametrize("body", [by_distance, by_distance_of_elements, by_mask, *map(by_number_of, NUMBERS.values())])
def test_address_put_together_from_others_ends_the_proof(body: Callable[[Any, Any], None]) -> None:
    found = loads(body)
    assert found and not any(".nc" in load for load in found)


@pytest.mark.parametrize("view", [cute.zipped_divide, cute.tiled_divide, cute.local_tile])
def test_views_of_one_tensor_on_the_host_are_the_same_memory(view: Any) -> None:
    @cute.kernel
    def kernel(read: cute.Tensor, other: cute.Tensor, written: cute.Tensor):
        total = fragment()
        total.store(autovec(tile_of(read)).load() + autovec(tile_of(other)).load())
        cute.autovec_copy(total, tile_of(written))

    def tile_of(tensor: Any) -> Any:
        return tile(cute.make_tensor(tensor.iterator, cute.make_layout((THREADS * VECTOR,))))

    def seen(tensor: Any) -> Any:
        return view(tensor, (VECTOR,), (0,)) if view is cute.local_tile else view(tensor, (VECTOR,))

    @cute.jit
    def launch(data: cute.Tensor, other: cute.Tensor):
        kernel(seen(data), seen(other), seen(data)).launch(grid=[1, 1, 1], block=[THREADS, 1, 1])

    tensors = [make_fake_compact_tensor(Float32, (THREADS * VECTOR,), assumed_align=16) for _ in range(2)]
    found = global_loads(compile_to_ptx(launch, *tensors, options="--infer-invariant-copy"))
    assert sorted(found) == ["ld.global.nc.v4.b32", "ld.global.v4.b32"]


def test_a_policy_that_a_universal_copy_loses_is_no_secret_to_the_verifier() -> None:
    body = reads(lambda source: copied(cute.nvgpu.CopyUniversalOp(), source, policy=EVICT_FIRST))
    with pytest.raises(DSLUserCodeError, match="expects its cache policy to reach memory"):
        loads(body, options="--infer-invariant-copy --verify-cache-policy")
