"""The kernel of NVIDIA/cutlass issue 3726: what the compiler makes of its cache policy without and with the option.

Prints the loads in the PTX of both compiles. Where there is a GPU, the kernel also runs and its output is checked.
"""

from __future__ import annotations

import os
import tempfile

from cutlass import BFloat16, cute
from cutlass.cute.runtime import make_ptr

from cute_cache_policy import EVICT_FIRST, HonorCachePolicy

BITS, THREADS = 256, 128
ELEMENTS = BITS // BFloat16.width
BYTES = THREADS * BITS // 8


@cute.kernel
def copy_kernel(source: cute.Tensor, target: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), BFloat16, num_bits_per_copy=BITS, invariant=True)
    fragment = cute.make_rmem_tensor((ELEMENTS,), BFloat16)
    cute.copy(atom, cute.local_tile(source, (ELEMENTS,), (thread,)), fragment, cache_policy=EVICT_FIRST)
    cute.autovec_copy(fragment, cute.local_tile(target, (ELEMENTS,), (thread,)))


@cute.jit
def copy(source: cute.Pointer, target: cute.Pointer):
    layout = cute.make_layout(THREADS * ELEMENTS)
    tensors = cute.make_tensor(source, layout), cute.make_tensor(target, layout)
    copy_kernel(*tensors).launch(grid=[1, 1, 1], block=[THREADS, 1, 1])


def pointers(*addresses: int) -> list[cute.Pointer]:
    """Arguments of `copy`: 32-byte aligned addresses in global memory."""
    return [make_ptr(BFloat16, address, cute.AddressSpace.gmem, assumed_align=32) for address in addresses]


def loads(arch: str, *, honor_cache_policy: bool) -> list[str]:
    """The loads from global memory in the PTX of `copy`."""
    compiler = cute.compile[HonorCachePolicy] if honor_cache_policy else cute.compile
    with tempfile.TemporaryDirectory() as directory:
        compiled = compiler(copy, *pointers(0, 0), options=f"--gpu-arch {arch} --keep-ptx --dump-dir {directory}")
        lines = compiled.artifacts.PTX.splitlines()
    return [" ".join(line.split()) for line in lines if "ld.global" in line]


def run_and_check() -> str:
    """Run `copy` on the first GPU, if there is one. Raises AssertionError if the output is not the input."""
    from cuda.bindings import runtime as cuda

    error, count = cuda.cudaGetDeviceCount()
    if error or not count:
        return "not run: there is no GPU"
    data, result = os.urandom(BYTES), bytearray(BYTES)
    addresses = [cuda.cudaMalloc(BYTES)[1] for _ in range(2)]
    cuda.cudaMemcpy(addresses[0], data, BYTES, cuda.cudaMemcpyKind.cudaMemcpyHostToDevice)
    arguments = pointers(*addresses)
    cute.compile[HonorCachePolicy](copy, *arguments)(*arguments)
    cuda.cudaMemcpy(result, addresses[1], BYTES, cuda.cudaMemcpyKind.cudaMemcpyDeviceToHost)
    assert result == data, "expects the output to be the input"
    return f"run: all {BYTES} bytes are right"


def main() -> None:
    for arch in ("sm_90a", "sm_100a"):
        for title, honor_cache_policy in (("without the option", False), ("with the option", True)):
            print(f"{arch}, {title}:")
            for line in loads(arch, honor_cache_policy=honor_cache_policy):
                print(f"    {line}")
    print(run_and_check())


if __name__ == "__main__":
    main()
