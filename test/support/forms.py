"""Every load that an invariant copy can ask for, and a kernel that executes them all.

The forms leave out what only repeats a default: `LoadCacheMode.ALWAYS` (`.ca`) and the priority EVICT_NORMAL.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import cutlass
from cutlass import Int64, Uint8, cute
from cutlass.cute.nvgpu import CacheEvictionPriority, CopyG2ROp, L2PrefetchSize, LoadCacheMode

__all__ = ["THREADS", "Form", "copy_forms", "forms"]

THREADS = 32


class Form(NamedTuple):
    """One form: the width of the copy in bits, whether it takes a cache policy, and the fields of its atom."""

    bits: int
    hinted: bool
    fields: dict[str, Any]


#: A cache mode or an L1 priority: the default, 2 modes and 4 priorities.
L1 = [
    {},
    *({"load_cache_mode": mode} for mode in (LoadCacheMode.GLOBAL, LoadCacheMode.STREAMING)),
    *({"l1c_evict_priority": p} for p in CacheEvictionPriority if p is not CacheEvictionPriority.EVICT_NORMAL),
]

PREFETCH = [{}, *({"l2_prefetch_size": L2PrefetchSize[f"SIZE_{size}B"]} for size in (64, 128, 256))]

STATIC_L2 = [
    {},
    *({"l2_evict_priority": p} for p in (CacheEvictionPriority.EVICT_FIRST, CacheEvictionPriority.EVICT_LAST)),
]


def forms(*widths: int) -> list[Form]:
    """Every form of `widths` bits: 56 each below 256, 168 for 256."""
    return [
        Form(bits, hinted, {**l1, **prefetch, **l2})
        for bits in widths
        for hinted, l1, prefetch, l2 in itertools.product(
            (False, True), L1, PREFETCH, STATIC_L2 if bits == 256 else STATIC_L2[:1]
        )
    ]


@cute.kernel
def _copy_forms(src: cute.Tensor, dst: cute.Tensor, chosen: cutlass.Constexpr, policy: Int64):
    thread, _, _ = cute.arch.thread_idx()
    for number, form in enumerate(chosen):
        atom = cute.make_copy_atom(CopyG2ROp(), Uint8, num_bits_per_copy=form.bits, invariant=True, **form.fields)
        fragment = cute.make_rmem_tensor((form.bits // 8,), Uint8)
        source, target = (cute.local_tile(t, (form.bits // 8,), (number * THREADS + thread,)) for t in (src, dst))
        if cutlass.const_expr(form.hinted):
            cute.copy(atom, source, fragment, cache_policy=policy)
        else:
            cute.copy(atom, source, fragment)
        cute.autovec_copy(fragment, target)


@cute.jit
def copy_forms(source: cute.Pointer, target: cute.Pointer, chosen: cutlass.Constexpr, policy: Int64):
    """Copy `THREADS` pieces of one width for each form, from `source` to `target`."""
    layout = cute.make_layout(len(chosen) * THREADS * chosen[0].bits // 8)
    _copy_forms(cute.make_tensor(source, layout), cute.make_tensor(target, layout), chosen, policy).launch(
        grid=[1, 1, 1], block=[THREADS, 1, 1]
    )
