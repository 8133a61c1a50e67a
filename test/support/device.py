"""Memory of the GPU, through the CUDA driver alone: compute-sanitizer takes minutes to load the kernels of a framework.

source = Array(numpy.arange(32, dtype=numpy.float32))
compiled(source.pointer(Float32))
print(source.numpy())
"""

from __future__ import annotations

import functools
import os
import weakref
from typing import Any

import cuda.bindings.driver as driver
import numpy as np
from cutlass import cute
from cutlass.base_dsl.typing import Numeric
from cutlass.cute.runtime import make_ptr

__all__ = ["Array", "capability", "is_available", "is_sanitized"]


def _call(function: Any, *arguments: Any) -> Any:
    """Call a function of the driver. Raises RuntimeError with its error."""
    error, *values = function(*arguments)
    if error != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"{function.__name__}: {error!r}")
    return values[0] if values else None


@functools.cache
def _device() -> Any:
    """The first GPU; its primary context, which the DSL uses too, is made current."""
    _call(driver.cuInit, 0)
    device = _call(driver.cuDeviceGet, 0)
    _call(driver.cuCtxSetCurrent, _call(driver.cuDevicePrimaryCtxRetain, device))
    return device


@functools.cache
def is_available() -> bool:
    """Whether there is a GPU, and a driver for it."""
    try:
        _call(driver.cuInit, 0)
        return _call(driver.cuDeviceGetCount) > 0
    except RuntimeError:
        return False


def is_sanitized() -> bool:
    """Whether this process runs under compute-sanitizer."""
    return any(name.startswith("NV_SANITIZER") for name in os.environ)


def capability() -> tuple[int, int]:
    """The compute capability of the GPU, such as (9, 0)."""
    names = driver.CUdevice_attribute
    major = _call(driver.cuDeviceGetAttribute, names.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _device())
    minor = _call(driver.cuDeviceGetAttribute, names.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, _device())
    return major, minor


class Array:
    """A copy of a NumPy array in an allocation of its own, of exactly its size: memcheck sees accesses past its end."""

    def __init__(self, data: np.ndarray) -> None:
        _device()
        self._like = np.ascontiguousarray(data)
        self.address = int(_call(driver.cuMemAlloc, self._like.nbytes))
        weakref.finalize(self, _call, driver.cuMemFree, self.address)
        _call(driver.cuMemcpyHtoD, self.address, self._like.ctypes.data, self._like.nbytes)

    def pointer(self, dtype: type[Numeric]) -> cute.Pointer:
        """The argument for a kernel. An allocation is aligned to more than any load needs."""
        return make_ptr(dtype, self.address, cute.AddressSpace.gmem, assumed_align=32)

    def numpy(self) -> np.ndarray:
        """What the memory holds when all kernels are done."""
        data = np.empty_like(self._like)
        _call(driver.cuCtxSynchronize)
        _call(driver.cuMemcpyDtoH, data.ctypes.data, self.address, data.nbytes)
        return data
