"""A typed model of the PTX instructions that this package writes: the global load and `createpolicy`.

PTX text is produced here and nowhere else. A `GlobalLoad` or a `CreatePolicy` holds one form of its instruction,
`violations` says which rules of the PTX ISA the form breaks, `text` spells it:

    ld.global{.cop}{.nc}{.level1::eviction_priority}{.level2::eviction_priority}
             {.level::cache_hint}{.level::prefetch_size}{.vec}.type d, [a]{, cache-policy};

    createpolicy.fractional.L2::primary{.L2::secondary}.b64 cache-policy, fraction;
    createpolicy.range.global.L2::primary{.L2::secondary}.b64 cache-policy, [a], primary-size, total-size;

Source of every rule: PTX ISA 9.0, sections 9.7.9.1 (cache operators), 9.7.9.2 (cache eviction priority hints), 9.7.9.8
(`ld`), 9.7.9.9 (`ld.global.nc`) and 9.7.9.18 (`createpolicy`). `RULES` and `POLICY_RULES` are the readable tables of
them; the test suite assembles the full product of qualifiers with ptxas and checks that tables and ptxas agree.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = [
    "CONSTANT_POLICIES",
    "POLICY_RULES",
    "RULES",
    "CacheOperator",
    "CreatePolicy",
    "GlobalLoad",
    "L1Priority",
    "L2Priority",
    "PrefetchSize",
    "Rule",
    "Target",
    "load_shape",
]


class CacheOperator(enum.Enum):
    """`.cop`: which cache levels keep the line."""

    CA = ".ca"
    CG = ".cg"
    CS = ".cs"
    LU = ".lu"
    CV = ".cv"


class L1Priority(enum.Enum):
    """`.level1::eviction_priority`."""

    EVICT_NORMAL = ".L1::evict_normal"
    EVICT_UNCHANGED = ".L1::evict_unchanged"
    EVICT_FIRST = ".L1::evict_first"
    EVICT_LAST = ".L1::evict_last"
    NO_ALLOCATE = ".L1::no_allocate"


class L2Priority(enum.Enum):
    """`.level2::eviction_priority` of a load (static: no policy register), or one of the priorities in a policy."""

    EVICT_NORMAL = ".L2::evict_normal"
    EVICT_FIRST = ".L2::evict_first"
    EVICT_LAST = ".L2::evict_last"
    EVICT_UNCHANGED = ".L2::evict_unchanged"


class PrefetchSize(enum.Enum):
    """`.level::prefetch_size`, in bytes."""

    B64 = ".L2::64B"
    B128 = ".L2::128B"
    B256 = ".L2::256B"


@dataclass(frozen=True, order=True)
class Target:
    """A GPU target such as `sm_90a`.

    Attributes:
        sm: the number in the name (90 for `sm_90a`).
        suffix: `""`, `"a"` (architecture specific) or `"f"` (family specific).
    """

    sm: int
    suffix: str = ""

    @classmethod
    def parse(cls, name: str) -> Target:
        """Read a target name. Raises ValueError unless it looks like `sm_90`, `sm_90a` or `sm_100f`."""
        match = re.fullmatch(r"sm_(\d{2,3})([af]?)", name)
        if match is None:
            raise ValueError(f"expects a GPU architecture such as 'sm_90a', but got {name!r}")
        return cls(int(match[1]), match[2])

    def __str__(self) -> str:
        return f"sm_{self.sm}{self.suffix}"


@dataclass(frozen=True)
class GlobalLoad:
    """One form of `ld.global`.

    Attributes:
        register_bits: bits of one destination register: 8, 16, 32, 64 or 128 (`.type` is `.b<register_bits>`).
        vector: number of destination registers (`.vec`): 1, 2, 4 or 8.
        non_coherent: `.nc`, a load through the read-only data path.
        cop, l1, l2, prefetch: optional qualifiers.
        cache_hint: `.L2::cache_hint`, the load takes a 64-bit cache policy operand.
    """

    register_bits: int
    vector: int = 1
    non_coherent: bool = True
    cop: CacheOperator | None = None
    l1: L1Priority | None = None
    l2: L2Priority | None = None
    prefetch: PrefetchSize | None = None
    cache_hint: bool = False

    @property
    def bits(self) -> int:
        """Bits that one execution of the instruction loads."""
        return self.register_bits * self.vector

    @property
    def mnemonic(self) -> str:
        """The instruction without operands, such as `ld.global.nc.L2::cache_hint.v4.b32`."""
        qualifiers = (self.l1, self.l2)
        return "".join(
            [
                "ld.global",
                self.cop.value if self.cop else "",
                ".nc" if self.non_coherent else "",
                *(q.value for q in qualifiers if q),
                ".L2::cache_hint" if self.cache_hint else "",
                self.prefetch.value if self.prefetch else "",
                f".v{self.vector}" if self.vector > 1 else "",
                f".b{self.register_bits}",
            ]
        )

    def text(self, destinations: list[str], address: str, policy: str | None = None) -> str:
        """The whole statement.

        `destinations` names `vector` registers, `address` is the memory operand, such as `[%rd1+16]`, `policy` the
        64-bit policy register; it is given exactly when `cache_hint` is set.
        """
        if len(destinations) != self.vector:
            raise ValueError(f"expects {self.vector} destination registers, but got {len(destinations)}")
        if self.cache_hint != (policy is not None):
            raise ValueError(f"expects a policy operand exactly with '.L2::cache_hint', but got {policy!r}")
        joined = ", ".join(destinations)
        data = f"{{{joined}}}" if self.vector > 1 else joined
        return f"{self.mnemonic} {data}, {address}{f', {policy}' if policy else ''};"

    def pieces(self, target: Target) -> list[GlobalLoad]:
        """The loads to execute in turn instead of this one: two of 128 bits where `target` has none of 256 bits."""
        if self.bits == 256 and target.sm < 100 and self.l2 is None:
            return [dataclasses.replace(self, vector=self.vector // 2)] * 2
        return [self]

    def violations(self, target: Target) -> list[str]:
        """What forbids this form on `target`: one sentence a broken rule, none if the form is legal."""
        return [f"{rule.message} (PTX ISA {rule.section})" for rule in RULES if rule.broken(self, target)]


def load_shape(bits: int, element_bits: int) -> GlobalLoad:
    """The registers of a load of `bits` (8 to 256) bits of elements of `element_bits` bits each.

    They are 32 bits wide where the data allows it, as in the compiler's own non-coherent loads; 64-bit registers hold
    64-bit elements alone, because register pairs fragment the register file.
    """
    register = 64 if element_bits >= 64 else min(bits, 32)
    return GlobalLoad(register, bits // register)


@dataclass(frozen=True)
class CreatePolicy:
    """One form of `createpolicy`: `.range` if it has sizes, otherwise `.fractional`.

    Attributes:
        primary: the priority of the accesses that the policy is about.
        secondary: the priority of the others; PTX takes `EVICT_UNCHANGED` where it is left out.
        fraction: the share of accesses that get `primary`, if known at compile time.
        sizes: bytes of the primary range, and of primary and secondary ranges together, if known at compile time.
    """

    primary: L2Priority
    secondary: L2Priority | None = None
    fraction: float | None = None
    sizes: tuple[int | None, int | None] | None = None

    @property
    def mnemonic(self) -> str:
        """The instruction without operands, such as `createpolicy.fractional.L2::evict_first.b64`."""
        kind = "fractional" if self.sizes is None else "range.global"
        secondary = self.secondary.value if self.secondary else ""
        return f"createpolicy.{kind}{self.primary.value}{secondary}.b64"

    def text(self, policy: str, *inputs: str) -> str:
        """The whole statement.

        `policy` is the 64-bit destination register, `inputs` are the fraction, or the address and the two sizes.
        """
        if len(inputs) != (1 if self.sizes is None else 3):
            raise ValueError(f"expects a fraction, or an address and two sizes, but got {inputs}")
        address = [f"[{inputs[0]}]", *inputs[1:]] if self.sizes is not None else inputs
        return f"{self.mnemonic} {', '.join([policy, *address])};"

    def violations(self, target: Target) -> list[str]:
        """What forbids this form on `target`: one sentence a broken rule, none if the form is legal."""
        return [f"{rule.message} (PTX ISA {rule.section})" for rule in POLICY_RULES if rule.broken(self, target)]


@dataclass(frozen=True)
class AsyncCopy:
    """One form of `cp.async`, the non-bulk copy from global to shared memory .

    Attributes:
        size: bytes copied: 4, 8 or 16.
        cop: `.ca`, or `.cg` with 16 bytes.
        cache_hint: `.L2::cache_hint`, the copy takes a 64-bit cache policy operand.
    """

    size: int
    cop: CacheOperator
    cache_hint: bool = False

    @property
    def mnemonic(self) -> str:
        """The instruction without operands, such as `cp.async.cg.shared.global.L2::cache_hint`."""
        return f"cp.async{self.cop.value}.shared.global{'.L2::cache_hint' if self.cache_hint else ''}"

    def text(self, target: str, source: str, source_size: str | None = None, policy: str | None = None) -> str:
        """The whole statement.

        `target` and `source` are what stands between the brackets, `source_size` is the register with the number of
        bytes to read (zeros take the place of the others), `policy` is given exactly when `cache_hint` is set.
        """
        if self.cache_hint != (policy is not None):
            raise ValueError(f"expects a policy operand exactly with '.L2::cache_hint', but got {policy!r}")
        operands = [f"[{target}]", f"[{source}]", str(self.size), *filter(None, (source_size, policy))]
        return f"{self.mnemonic} {', '.join(operands)};"

    def violations(self, target: Target) -> list[str]:
        """What forbids this form on `target`: one sentence a broken rule, none if the form is legal."""
        return [f"{rule.message} (PTX ISA {rule.section})" for rule in ASYNC_RULES if rule.broken(self, target)]


#: What `createpolicy.fractional.L2::<priority>.b64 p, 1.0` yields on every target with cache policies.
CONSTANT_POLICIES = {
    L2Priority.EVICT_FIRST: 0x12F0000000000000,
    L2Priority.EVICT_LAST: 0x14F0000000000000,
    L2Priority.EVICT_NORMAL: 0x16F0000000000000,
    L2Priority.EVICT_UNCHANGED: 0x10F0000000000000,
}


Form = TypeVar("Form")


@dataclass(frozen=True)
class Rule(Generic[Form]):
    """One rule of the PTX ISA: `broken(form, target)` says that it forbids the form of an instruction.

    `ptx` is the PTX ISA version that introduced the qualifier the rule is about, `section` where it stands.
    """

    message: str
    ptx: str
    section: str
    broken: Callable[[Form, Target], bool]


#: Register width and count of the 256-bit loads.
_WIDE = ((32, 8), (64, 4))


def _has_shape(load: GlobalLoad) -> bool:
    registers = load.register_bits in (8, 16, 32, 64, 128) and load.vector in (1, 2, 4, 8)
    return registers and (load.bits <= 128 or (load.register_bits, load.vector) in _WIDE)


RULES: tuple[Rule[GlobalLoad], ...] = (
    Rule(
        "'ld' expects 1, 2, 4 or 8 registers and at most 128 bits in all, or '.v8.b32' or '.v4.b64'",
        "1.0",
        "9.7.9.8",
        lambda load, _: not _has_shape(load),
    ),
    Rule(
        "a 256-bit load ('.v8.b32', '.v4.b64') expects sm_100 or later",
        "8.8",
        "9.7.9.8",
        lambda load, target: load.bits == 256 and target.sm < 100,
    ),
    Rule(
        "'.b128' expects sm_70 or later",
        "8.3",
        "9.7.9.8",
        lambda load, target: load.register_bits == 128 and target.sm < 70,
    ),
    Rule(
        "'.L2::cache_hint' expects sm_80 or later",
        "7.4",
        "9.7.9.8",
        lambda load, target: load.cache_hint and target.sm < 80,
    ),
    Rule(
        "an L1 eviction priority expects sm_70 or later",
        "7.4",
        "9.7.9.8",
        lambda load, target: load.l1 is not None and target.sm < 70,
    ),
    Rule(
        "an L2 prefetch size expects sm_75 or later",
        "7.4",
        "9.7.9.8",
        lambda load, target: load.prefetch is not None and target.sm < 75,
    ),
    Rule(
        "the 256-byte L2 prefetch size expects sm_80 or later",
        "7.4",
        "9.7.9.8",
        lambda load, target: load.prefetch is PrefetchSize.B256 and target.sm < 80,
    ),
    Rule(
        "a cache operator excludes an L1 eviction priority: use one of the two",
        "7.4",
        "9.7.9.8",
        lambda load, _: load.cop is not None and load.l1 is not None,
    ),
    Rule(
        "'.nc' excludes the cache operators '.lu' and '.cv': use '.ca', '.cg' or '.cs' (ALWAYS, GLOBAL or STREAMING)",
        "3.1",
        "9.7.9.9",
        lambda load, _: load.non_coherent and load.cop in (CacheOperator.LU, CacheOperator.CV),
    ),
    Rule(
        "a static L2 eviction priority expects a 256-bit load ('.v8.b32' or '.v4.b64'): use a cache policy",
        "8.8",
        "9.7.9.9",
        lambda load, _: load.l2 is not None and (load.register_bits, load.vector) not in _WIDE,
    ),
    Rule(
        "a static L2 eviction priority expects sm_100 or later: use a cache policy",
        "8.8",
        "9.7.9.9",
        lambda load, target: load.l2 is not None and target.sm < 100,
    ),
    Rule(
        "a static L2 eviction priority is one of first, last and normal: use a cache policy for unchanged",
        "8.8",
        "9.7.9.9",
        lambda load, _: load.l2 is L2Priority.EVICT_UNCHANGED,
    ),
)

_SECONDARY = (None, L2Priority.EVICT_FIRST, L2Priority.EVICT_UNCHANGED)


def _sizes_fit(sizes: tuple[int | None, int | None]) -> bool:
    primary, total = sizes
    known = [size for size in sizes if size is not None]
    return all(0 <= size < 2**32 for size in known) and (primary is None or total is None or primary <= total)


POLICY_RULES: tuple[Rule[CreatePolicy], ...] = (
    Rule(
        "a cache policy expects sm_80 or later",
        "7.4",
        "9.7.9.18",
        lambda _, target: target.sm < 80,
    ),
    Rule(
        "a secondary priority is EVICT_FIRST or EVICT_UNCHANGED",
        "7.4",
        "9.7.9.18",
        lambda policy, _: policy.secondary not in _SECONDARY,
    ),
    Rule(
        "a fraction is more than 0 and at most 1",
        "7.4",
        "9.7.9.18",
        lambda policy, _: policy.fraction is not None and not 0 < policy.fraction <= 1,
    ),
    Rule(
        "sizes are 32-bit numbers of bytes, and the primary range is part of the total",
        "7.4",
        "9.7.9.18",
        lambda policy, _: policy.sizes is not None and not _sizes_fit(policy.sizes),
    ),
)

ASYNC_RULES: tuple[Rule[AsyncCopy], ...] = (
    Rule("'cp.async' expects 4, 8 or 16 bytes", "7.0", "9.7.9.25.3.1", lambda copy, _: copy.size not in (4, 8, 16)),
    Rule(
        "'cp.async.cg' expects 16 bytes: use LoadCacheMode.ALWAYS for fewer",
        "7.0",
        "9.7.9.25.3.1",
        lambda copy, _: copy.cop is CacheOperator.CG and copy.size != 16,
    ),
    Rule("'cp.async' expects sm_80 or later", "7.0", "9.7.9.25.3.1", lambda _, target: target.sm < 80),
)
