"""The ways to load with a cache policy that the benchmark compares, each behind the same call.

A workload writes its CuTe DSL kernel once, on `load` and `store`; the kernel is then compiled once for each `Load`.
Its CUDA C++ twin (`bench/cuda/`) has the same loops; it is compiled with and without `volatile` on its asm loads.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import cuda.bindings.driver as cuda_driver
import cupy
import cutlass
import torch
from cutlass import Float32, Int32, Int64, Uint32, cute
from cutlass.cute.runtime import make_ptr

import cute_cache_policy

__all__ = [
    "DROP",
    "KEEP",
    "NORMAL",
    "VECTOR",
    "WORDS",
    "Case",
    "Load",
    "Shape",
    "compiled",
    "cuda_kernels",
    "keep_fraction",
    "kernels",
    "load",
    "place",
    "store",
    "unpacked",
]

WORDS = 4  #: 32-bit words in one 128-bit access.
VECTOR = 8  #: bfloat16 elements in one.

Launch = Callable[[], None]


class Load(enum.Enum):
    """How a CuTe DSL kernel loads data that nobody writes meanwhile, and for which it has a cache policy."""

    INVARIANT = "stock, invariant"  # the policy is dropped by the compiler
    COHERENT = "stock, coherent"  # what one writes today to keep the policy
    INLINE_PTX = "inline_ptx"  # what one writes today to keep both
    PLUGIN = "plugin"


def _policy(priority: int, sixteenths: int) -> int:
    """What `createpolicy.fractional.L2::<priority>.b64 p, <sixteenths / 16>` yields, read off ptxas 13.0 for sm_90."""
    return (priority << 4 | sixteenths - 1) << 52


DROP = _policy(0x12, 16)  #: L2::evict_first: data that is used once.
NORMAL = _policy(0x16, 16)  #: L2::evict_normal: the same as no policy.
KEEP = _policy(0x14, 16)  #: L2::evict_last: data that will be used again.


def keep_fraction(sixteenths: int) -> int:
    """A policy that keeps so many sixteenths of the lines and treats the others as usual."""
    return _policy(0x14, sixteenths)


@cute.jit
def load(how: cutlass.Constexpr, source: cute.Tensor, policy: Int64):
    """A fragment with the elements of `source` (a contiguous, aligned vector of 4 to 16 bytes in global memory)."""
    fragment = cute.make_rmem_tensor(source.layout.shape, source.element_type)
    bits = cutlass.const_expr(cute.size(source) * source.element_type.width)
    if cutlass.const_expr(how is Load.INLINE_PTX):
        words = cute.recast_tensor(fragment, Uint32)
        count = cutlass.const_expr(bits // 32)
        outputs = ", ".join(f"{{$w{i}}}" for i in range(count))
        vector = f".v{count}.b32 {{{outputs}}}" if count > 1 else f".b32 {outputs}"
        values = cute.arch.inline_ptx(
            f"ld.global.nc.L2::cache_hint{vector}, [{{$r0}}], {{$r1}};",
            write_only_types=[Uint32] * count,
            read_only_args=[source.iterator, policy],
        )
        for i in cutlass.range_constexpr(count):
            words[i] = values[i] if count > 1 else values
    else:
        atom = cute.make_copy_atom(
            cute.nvgpu.CopyG2ROp(),
            source.element_type,
            num_bits_per_copy=bits,
            invariant=how is not Load.COHERENT,
        )
        cute.copy(atom, source, fragment, cache_policy=policy)
    return fragment


@cute.jit
def store(fragment: cute.Tensor, target: cute.Tensor, policy: Int64, hinted: cutlass.Constexpr = True):
    """Store a fragment, with a cache policy if it is to be hinted: the stock compiler keeps that of stores."""
    bits = cutlass.const_expr(cute.size(fragment) * fragment.element_type.width)
    atom = cute.make_copy_atom(cute.nvgpu.CopyR2GOp(), fragment.element_type, num_bits_per_copy=bits)
    if cutlass.const_expr(hinted):
        cute.copy(atom, fragment, target, cache_policy=policy)
    else:
        cute.copy(atom, fragment, target)


@cute.jit
def unpacked(fragment: cute.Tensor):
    """The float32 values of bfloat16 elements, an even number, in one instruction each as in the CUDA twins.

    What `to(Float32)` becomes needs two for each odd element.
    """
    words = cute.recast_tensor(fragment, Uint32)
    values = cute.make_rmem_tensor(2 * cute.size(words), Float32)
    bits = cute.recast_tensor(values, Uint32)
    for i in cutlass.range_constexpr(cute.size(words)):
        bits[2 * i] = words[i] << 16
        bits[2 * i + 1] = words[i] & Uint32(0xFFFF0000)
    return values.load()


@cute.jit
def place():
    """The thread, the block, and the number of blocks."""
    return cute.arch.thread_idx()[0], cute.arch.block_idx()[0], cute.arch.grid_dim()[0]


@dataclass(frozen=True)
class Shape:
    """What a kernel is specialized on; each family adds its own.

    Attributes:
        threads: threads a block.
        per_sm: blocks a multiprocessor.
        unroll: vectors, or rows, a thread and loop iteration.
    """

    threads: int
    per_sm: int
    unroll: int

    def __str__(self) -> str:
        return f"{self.per_sm} x {self.threads} threads/SM"


@dataclass
class Case:
    """One row of the benchmark: a workload in one configuration, with every competitor on the same data.

    Attributes:
        workload, shape: what the row is called.
        bytes: what has to move through device memory: each input read once, each output written once.
        outputs: what the kernels write.
        expected: what they have to write, from a reference that shares no code with them.
        tolerance: the largest relative error; 0 asks for equal bits.
        kernels: each competitor's launch on the current stream, by its name.
    """

    workload: str
    shape: str
    bytes: int
    outputs: Sequence[torch.Tensor]
    expected: Callable[[], Sequence[torch.Tensor]]
    tolerance: float = 0.0
    kernels: dict[str, Launch] = field(default_factory=dict)

    def check(self, name: str, expected: Sequence[torch.Tensor]) -> None:
        """Poison the outputs, run one competitor and compare. Raises AssertionError with its name."""
        for output in self.outputs:
            output.view(torch.uint8).fill_(0xCB)
        self.kernels[name]()
        torch.cuda.synchronize()
        for got, want in zip(self.outputs, expected):
            if self.tolerance == 0:
                assert torch.equal(got.view(torch.uint8), want.view(torch.uint8)), f"{name}: {self.shape}: bits differ"
            else:
                error = (got.double() - want.double()).norm() / want.double().norm()
                assert error <= self.tolerance, f"{name}: {self.shape}: relative error {error}"


_CUTE_TYPES = {torch.float32: cutlass.Float32, torch.bfloat16: cutlass.BFloat16, torch.int32: cutlass.Int32}


def compiled(
    compile_: Any, kernel: Any, tensors: Sequence[torch.Tensor], scalars: Sequence[Any], blocks: int, *constants: Any
) -> Launch:
    """The launch of `kernel(*pointers, *scalars, *constants)`; the last constant is a `Shape`."""
    c: Shape = constants[-1]

    @cute.jit
    def launch(arguments: Any, blocks: Int32, stream: cuda_driver.CUstream):
        kernel(*arguments, *constants).launch(
            grid=[blocks, 1, 1], block=[c.threads, 1, 1], stream=stream, min_blocks_per_mp=c.per_sm
        )

    pointers = [make_ptr(_CUTE_TYPES[t.dtype], t.data_ptr(), cute.AddressSpace.gmem, assumed_align=16) for t in tensors]
    arguments = (*pointers, *scalars), Int32(blocks)
    function = compile_(launch, *arguments, cuda_driver.CUstream(0))
    return lambda: function(*arguments, cuda_driver.CUstream(torch.cuda.current_stream().cuda_stream))


_CUDA = Path(__file__).parent / "cuda"


@functools.cache
def _cuda_module(source: str, defines: tuple[str, ...]) -> cupy.RawModule:
    """A source file compiled by nvcc for the GPU at hand, unless an earlier run did that."""
    major, minor = torch.cuda.get_device_capability()
    arch = f"sm_{major}{minor}{'a' if major >= 9 else ''}"
    command = ["nvcc", "-cubin", f"-arch={arch}", "-O3", "-std=c++17", *defines]
    texts = [(_CUDA / name).read_text() for name in (source, "policy.cuh")]
    key = hashlib.sha256(repr((command, texts)).encode()).hexdigest()[:16]
    cubin = Path(tempfile.gettempdir()) / f"cute-cache-policy-bench-{key}.cubin"
    if not cubin.exists():
        subprocess.run([*command, "-o", str(cubin), str(_CUDA / source)], check=True)
    return cupy.RawModule(path=str(cubin))


def cuda_kernels(
    variants: Mapping[str, str],
    source: str,
    name: str,
    tensors: Sequence[torch.Tensor],
    scalars: Sequence[Any],
    blocks: int,
    c: Shape,
) -> dict[str, Launch]:
    """Compile `name(*pointers, *scalars)` of a source, with the fields of `c` as macros, once for each of `variants`.

    A variant is a name and a flag for nvcc.
    """
    arguments = (*(cupy.uint64(t.data_ptr()) for t in tensors), *scalars)
    defines = [f"-D{key.upper()}={int(value)}" for key, value in asdict(c).items()]

    def compiled(flag: str) -> Launch:
        kernel = _cuda_module(source, (*defines, flag)).get_function(name)

        def run() -> None:
            with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
                kernel((blocks,), (c.threads,), arguments)

        return run

    return {variant: compiled(flag) for variant, flag in variants.items()}


def kernels(
    kernel: Any,
    source: str,
    tensors: Sequence[torch.Tensor],
    integers: Sequence[int],
    policies: Sequence[int],
    blocks: int,
    c: Shape,
) -> dict[str, Launch]:
    """`kernel(*pointers, *integers, *policies, how, c)` compiled for every `Load`, and its twin in a CUDA source.

    Asm loads of the twin are volatile, or not.
    """
    scalars = [*map(Int32, integers), *(Int64(p - (1 << 64) if p >> 63 else p) for p in policies)]
    plugin = cute.compile[cute_cache_policy.HonorCachePolicy]
    twins = {"CUDA C++, asm volatile": "-DVOLATILE=volatile", "CUDA C++, asm": "-DVOLATILE="}
    cuda_scalars = [*map(cupy.int32, integers), *map(cupy.uint64, policies)]
    return {
        **{
            how.value: compiled(
                plugin if how is Load.PLUGIN else cute.compile, kernel, tensors, scalars, blocks, how, c
            )
            for how in Load
        },
        **cuda_kernels(twins, source, kernel.__name__, tensors, cuda_scalars, blocks, c),
    }
