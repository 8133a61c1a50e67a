"""Workload 8: kernels without any hint, whose loads `--infer-invariant-copy` finds to be invariant.

Each is written as one writes it first: plain copies, no cache policy, no `invariant=True`. The CUDA C++ twins
(`bench/cuda/inferred.cu`) are compiled with `const __restrict__` on their pointers, and without `__restrict__`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import cupy
import cutlass
import torch
from cutlass import BFloat16, Float32, Int32, cute

import cute_cache_policy

from .competitors import VECTOR, WORDS, Case, Launch, Shape, compiled, cuda_kernels, place
from .rowwise import normalized, scale_of, views

#: AdamW: learning rate, decay rates of the moments, epsilon, weight decay.
RATE, BETA1, BETA2, ADAM_EPSILON, DECAY = 1e-3, 0.9, 0.999, 1e-8, 0.01


@dataclass(frozen=True)
class Plain(Shape):
    """`columns`: elements of a row, of a head, or of a group with one scale. `softmax` rather than rmsnorm."""

    columns: int = 0
    softmax: bool = False


@cute.jit
def fetch(source: cute.Tensor):
    """The elements of `source` in registers."""
    fragment = cute.make_rmem_tensor(source.layout.shape, source.element_type)
    cute.autovec_copy(source, fragment)
    return fragment


@cute.kernel
def copy_loop(x: cute.Pointer, y: cute.Pointer, tiles: Int32, c: cutlass.Constexpr):
    tid, first, blocks = place()
    vectors = cute.make_layout((WORDS, tiles * c.threads * c.unroll))
    x, y = cute.make_tensor(x, vectors), cute.make_tensor(y, vectors)
    for tile in cutlass.range(first, tiles, blocks):
        for i in cutlass.range_constexpr(c.unroll):
            at = (tile * c.unroll + i) * c.threads + tid
            cute.autovec_copy(fetch(x[None, at]), y[None, at])


@cute.kernel
def rowwise(x: cute.Pointer, weight: cute.Pointer, y: cute.Pointer, rows: Int32, c: cutlass.Constexpr):
    """Rmsnorm or softmax of rows that a warp holds in registers."""
    tid, first, blocks = place()
    x, weight, y = views(x, weight, y, rows, c.columns)
    vectors = cutlass.const_expr(c.columns // VECTOR)
    warps = cutlass.const_expr(c.threads // 32)
    lane = tid % 32
    for tile in cutlass.range(first, rows // (warps * c.unroll), blocks):
        for i in cutlass.range_constexpr(c.unroll):
            row = (tile * c.unroll + i) * warps + tid // 32
            values = cute.make_rmem_tensor((VECTOR, vectors // 32), Float32)
            for v in cutlass.range_constexpr(vectors // 32):
                values[None, v].store(fetch(x[None, v * 32 + lane, row]).load().to(Float32))
            scale = scale_of(values, c.columns, c.softmax)
            for v in cutlass.range_constexpr(vectors // 32):
                factor = scale
                if cutlass.const_expr(not c.softmax):
                    factor = fetch(weight[None, v * 32 + lane]).load().to(Float32) * scale
                result = cute.make_rmem_tensor((VECTOR,), BFloat16)
                result.store((values[None, v].load() * factor).to(BFloat16))
                cute.autovec_copy(result, y[None, v * 32 + lane, row])


@cute.kernel
def rotary(
    x: cute.Pointer,
    cosines: cute.Pointer,
    sines: cute.Pointer,
    y: cute.Pointer,
    tokens: Int32,
    heads: Int32,
    c: cutlass.Constexpr,
):
    """Rotates the halves of every head by the angles of its token. Threads hold vectors, a block walks the tokens."""
    tid, first, blocks = place()
    half = cutlass.const_expr(c.columns // 2 // VECTOR)
    x = cute.make_tensor(x, cute.make_layout((VECTOR, half, 2, heads, tokens)))
    y = cute.make_tensor(y, cute.make_layout((VECTOR, half, 2, heads, tokens)))
    cosines = cute.make_tensor(cosines, cute.make_layout((VECTOR, half, tokens)))
    sines = cute.make_tensor(sines, cute.make_layout((VECTOR, half, tokens)))
    at, start = tid % half, tid // half
    step = cutlass.const_expr(c.threads // half)
    for token in cutlass.range(first, tokens, blocks):
        for turn in cutlass.range(heads // (step * c.unroll)):
            for i in cutlass.range_constexpr(c.unroll):
                head = (turn * c.unroll + i) * step + start
                cosine, sine = (fetch(t[None, at, token]).load().to(Float32) for t in (cosines, sines))
                a, b = (fetch(x[None, at, side, head, token]).load().to(Float32) for side in range(2))
                low, high = cute.make_rmem_tensor((VECTOR,), BFloat16), cute.make_rmem_tensor((VECTOR,), BFloat16)
                low.store((a * cosine - b * sine).to(BFloat16))
                high.store((b * cosine + a * sine).to(BFloat16))
                cute.autovec_copy(low, y[None, at, 0, head, token])
                cute.autovec_copy(high, y[None, at, 1, head, token])


@cute.kernel
def adamw(
    gradient: cute.Pointer,
    old: cute.Pointer,
    old_mean: cute.Pointer,
    old_square: cute.Pointer,
    new: cute.Pointer,
    new_mean: cute.Pointer,
    new_square: cute.Pointer,
    tiles: Int32,
    c: cutlass.Constexpr,
):
    """The first step of AdamW, from one set of float32 parameters and moments to another, on bfloat16 gradients."""
    tid, first, blocks = place()
    vectors = cute.make_layout((WORDS, tiles * c.threads * c.unroll))
    gradient = cute.make_tensor(gradient, vectors)
    old, old_mean, old_square = (cute.make_tensor(p, vectors) for p in (old, old_mean, old_square))
    new, new_mean, new_square = (cute.make_tensor(p, vectors) for p in (new, new_mean, new_square))
    for tile in cutlass.range(first, tiles, blocks):
        for i in cutlass.range_constexpr(c.unroll):
            at = (tile * c.unroll + i) * c.threads + tid
            g = fetch(gradient[None, at]).load().to(Float32)
            parameter, mean, square = fetch(old[None, at]), fetch(old_mean[None, at]), fetch(old_square[None, at])
            mean.store(mean.load() * BETA1 + g * (1 - BETA1))
            square.store(square.load() * BETA2 + g * g * (1 - BETA2))
            root = cute.math.sqrt(square.load() * (1 / (1 - BETA2)), fastmath=True) + ADAM_EPSILON
            step = mean.load() * (RATE / (1 - BETA1)) / root
            parameter.store(parameter.load() * (1 - RATE * DECAY) - step)
            cute.autovec_copy(mean, new_mean[None, at])
            cute.autovec_copy(square, new_square[None, at])
            cute.autovec_copy(parameter, new[None, at])


@cute.kernel
def dequantize(packed: cute.Pointer, scales: cute.Pointer, y: cute.Pointer, tiles: Int32, c: cutlass.Constexpr):
    """Eight 4-bit numbers in a word, and a scale for every group of `columns`, become bfloat16 numbers."""
    tid, first, blocks = place()
    words = tiles * c.threads * c.unroll
    packed = cute.make_tensor(packed, cute.make_layout(words))
    scales = cute.make_tensor(scales, cute.make_layout(words * VECTOR // c.columns))
    y = cute.make_tensor(y, cute.make_layout((VECTOR, words)))
    for tile in cutlass.range(first, tiles, blocks):
        for i in cutlass.range_constexpr(c.unroll):
            at = (tile * c.unroll + i) * c.threads + tid
            word, scale = packed[at], scales[at // (c.columns // VECTOR)]
            values = cute.make_rmem_tensor((VECTOR,), Float32)
            for k in cutlass.range_constexpr(VECTOR):
                values[k] = (((word >> (4 * k)) & 15) - 8).to(Float32) * scale
            result = cute.make_rmem_tensor((VECTOR,), BFloat16)
            result.store(values.load().to(BFloat16))
            cute.autovec_copy(result, y[None, at])


def plain_kernels(
    kernel: Any, tensors: Sequence[torch.Tensor], integers: Sequence[int], blocks: int, c: Plain
) -> dict[str, Launch]:
    """The kernel compiled by the stock compiler, by the plugin, and as CUDA C++ with and without `__restrict__`."""
    compilers = {"stock": cute.compile, "plugin": cute.compile[cute_cache_policy.InferInvariantCopy]}
    twins = {"CUDA C++": "-DRESTRICT=", "CUDA C++, const __restrict__": "-DRESTRICT=__restrict__"}
    scalars = [Int32(i) for i in integers]
    return {
        **{name: compiled(each, kernel, tensors, scalars, blocks, c) for name, each in compilers.items()},
        **cuda_kernels(twins, "inferred.cu", kernel.__name__, tensors, [cupy.int32(i) for i in integers], blocks, c),
    }


def cases(multiprocessors: int) -> Iterator[Case]:
    """The rows of this family on a GPU with so many multiprocessors."""
    for threads, per_sm, unroll in ((128, 1, 8), (256, 2, 8), (256, 8, 1)):
        yield _copy_case(multiprocessors, Plain(threads, per_sm, unroll))
    for softmax in (False, True):
        yield _rowwise_case(multiprocessors, Plain(256, 2, 2, 1024, softmax))
    yield _rotary_case(multiprocessors, Plain(128, 4, 2, 128))
    yield _adamw_case(multiprocessors, Plain(256, 2, 4))
    yield _dequantize_case(multiprocessors, Plain(256, 4, 8, 128))


def _copy_case(multiprocessors: int, c: Plain) -> Case:
    tile = c.threads * c.unroll * WORDS
    tiles = (256 << 20) // 4 // tile
    x = torch.randint(-(1 << 31), 1 << 31, (tiles * tile,), dtype=torch.int32, device="cuda")
    y = torch.empty_like(x)
    case = Case("8 load-store loop", str(c), 2 * x.nbytes, [y], lambda: [x])
    case.kernels = plain_kernels(copy_loop, [x, y], [tiles], multiprocessors * c.per_sm, c)
    return case


def _rowwise_case(multiprocessors: int, c: Plain) -> Case:
    blocks = multiprocessors * c.per_sm
    batch = blocks * (c.threads // 32) * c.unroll
    rows = max(1, (512 << 20) // (2 * c.columns * batch)) * batch
    x = torch.randn((rows, c.columns), device="cuda").to(torch.bfloat16)
    weight = torch.randn(c.columns, device="cuda").to(torch.bfloat16)
    y = torch.empty_like(x)

    name = "softmax" if c.softmax else "rmsnorm"
    shape, expected = f"{rows} x {c.columns}, {c}", lambda: [normalized(x, weight, c.softmax)]
    case = Case(f"8 {name}", shape, 2 * x.nbytes, [y], expected, tolerance=4e-3)
    case.kernels = plain_kernels(rowwise, [x, weight, y], [rows], blocks, c)
    return case


def _rotary_case(multiprocessors: int, c: Plain) -> Case:
    tokens, heads = 32768, 32
    x = torch.randn((tokens, heads, 2, c.columns // 2), device="cuda").to(torch.bfloat16)
    angles = torch.randn((tokens, 1, c.columns // 2), device="cuda")
    cosines, sines = angles.cos().to(torch.bfloat16), angles.sin().to(torch.bfloat16)
    y = torch.empty_like(x)

    def expected() -> list[torch.Tensor]:
        result = torch.empty_like(x)
        for part in range(0, tokens, 4096):
            a, b = (x[part : part + 4096, :, side].float() for side in range(2))
            cosine, sine = (t[part : part + 4096].float() for t in (cosines, sines))
            result[part : part + 4096, :, 0] = (a * cosine - b * sine).to(torch.bfloat16)
            result[part : part + 4096, :, 1] = (b * cosine + a * sine).to(torch.bfloat16)
        return [result]

    moved = 2 * x.nbytes + cosines.nbytes + sines.nbytes
    shape = f"{tokens} x {heads} x {c.columns}, {c}"
    case = Case("8 rotary embedding", shape, moved, [y], expected, tolerance=4e-3)
    case.kernels = plain_kernels(rotary, [x, cosines, sines, y], [tokens, heads], multiprocessors * c.per_sm, c)
    return case


def _adamw_case(multiprocessors: int, c: Plain) -> Case:
    tile = c.threads * c.unroll * WORDS
    tiles = (128 << 20) // 4 // tile
    gradient = torch.randn(tiles * tile, device="cuda").to(torch.bfloat16)
    old, mean = (torch.randn(tiles * tile, device="cuda") for _ in range(2))
    square = torch.rand_like(old) + 0.1
    new = [torch.empty_like(old) for _ in range(3)]

    def expected() -> list[torch.Tensor]:
        g = gradient.float()
        m, v = mean * BETA1 + g * (1 - BETA1), square * BETA2 + g * g * (1 - BETA2)
        step = m * (RATE / (1 - BETA1)) / ((v / (1 - BETA2)).sqrt() + ADAM_EPSILON)
        return [old * (1 - RATE * DECAY) - step, m, v]

    moved = gradient.nbytes + 6 * old.nbytes
    case = Case("8 optimizer step", f"AdamW, {c}", moved, new, expected, tolerance=1e-5)
    case.kernels = plain_kernels(adamw, [gradient, old, mean, square, *new], [tiles], multiprocessors * c.per_sm, c)
    return case


def _dequantize_case(multiprocessors: int, c: Plain) -> Case:
    tile = c.threads * c.unroll
    tiles = (128 << 20) // 4 // tile
    packed = torch.randint(-(1 << 31), 1 << 31, (tiles * tile,), dtype=torch.int32, device="cuda")
    scales = torch.rand(packed.numel() * VECTOR // c.columns, device="cuda") + 0.5
    y = torch.empty((packed.numel(), VECTOR), dtype=torch.bfloat16, device="cuda")

    def expected() -> list[torch.Tensor]:
        shifts = torch.arange(0, 32, 4, device="cuda", dtype=torch.int32)
        parts = zip(packed.split(1 << 22), scales.split((1 << 22) * VECTOR // c.columns))
        numbers = (((((w[:, None] >> shifts) & 15) - 8).view(-1, c.columns).float(), s) for w, s in parts)
        return [torch.cat([(n * s[:, None]).to(torch.bfloat16).view(-1, VECTOR) for n, s in numbers])]

    moved = packed.nbytes + scales.nbytes + y.nbytes
    case = Case("8 dequantization", f"4 bits, groups of {c.columns}, {c}", moved, [y], expected)
    case.kernels = plain_kernels(dequantize, [packed, scales, y], [tiles], multiprocessors * c.per_sm, c)
    return case
