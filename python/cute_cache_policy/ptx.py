"""A typed model of one PTX instruction: the global load, `ld.global`.

PTX text is produced here and nowhere else. `GlobalLoad` holds one form of the instruction,
`GlobalLoad.violations` says which rules of the PTX ISA a form breaks, `GlobalLoad.text` spells it:

    ld.global{.cop}{.nc}{.level1::eviction_priority}{.level2::eviction_priority}
             {.level::cache_hint}{.level::prefetch_size}{.vec}.type d, [a]{, cache-policy};

Source of every rule: PTX ISA 9.0, sections 9.7.9.8 (`ld`) and 9.7.9.9 (`ld.global.nc`), and section 9.7.9.1 for
the cache operators. `RULES` is the readable table of them; the test suite assembles the full product of
qualifiers with ptxas and checks that the table and ptxas agree.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["RULES", "CacheOperator", "GlobalLoad", "L1Priority", "L2Priority", "PrefetchSize", "Rule", "Target"]


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
    """`.level2::eviction_priority`: a static L2 priority, no policy register."""

    EVICT_NORMAL = ".L2::evict_normal"
    EVICT_FIRST = ".L2::evict_first"
    EVICT_LAST = ".L2::evict_last"


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
        register_bits: bits of one destination register: 8, 16, 32 or 64 (`.type` is `.b<register_bits>`).
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

        `destinations` names `vector` registers, `address` is what stands between the brackets, `policy` the 64-bit
        policy register; it is given exactly when `cache_hint` is set.
        """
        if len(destinations) != self.vector:
            raise ValueError(f"expects {self.vector} destination registers, but got {len(destinations)}")
        if self.cache_hint != (policy is not None):
            raise ValueError(f"expects a policy operand exactly with '.L2::cache_hint', but got {policy!r}")
        joined = ", ".join(destinations)
        data = f"{{{joined}}}" if self.vector > 1 else joined
        return f"{self.mnemonic} {data}, [{address}]{f', {policy}' if policy else ''};"

    def violations(self, target: Target) -> list[str]:
        """What forbids this form on `target`: one sentence a broken rule, none if the form is legal."""
        return [rule.message for rule in RULES if rule.broken(self, target)]


@dataclass(frozen=True)
class Rule:
    """One rule of the PTX ISA: `broken(load, target)` says that it forbids the form.

    `ptx` is the PTX ISA version that introduced the qualifier the rule is about, `section` where it stands.
    """

    message: str
    ptx: str
    section: str
    broken: Callable[[GlobalLoad, Target], bool]


_SHAPES = {(r, v) for r, v in [(8, 1), (16, 1), (32, 1), (64, 1), (32, 2), (64, 2), (32, 4), (64, 4), (32, 8)]}
_SHAPES |= {(8, 2), (8, 4), (16, 2), (16, 4)}
_STATIC_L2_SHAPES = {(32, 8), (64, 4)}

RULES: tuple[Rule, ...] = (
    Rule(
        "'ld' expects 1, 2, 4 or 8 registers of 8, 16, 32 or 64 bits and at most 256 bits in all",
        "1.0",
        "9.7.9.8",
        lambda load, _: (load.register_bits, load.vector) not in _SHAPES,
    ),
    Rule(
        "a 256-bit load ('.v8.b32', '.v4.b64') expects sm_100 or later",
        "8.8",
        "9.7.9.8",
        lambda load, target: load.bits == 256 and target.sm < 100,
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
        "'.nc' excludes the cache operators '.lu' and '.cv': use '.ca', '.cg' or '.cs'",
        "3.1",
        "9.7.9.9",
        lambda load, _: load.non_coherent and load.cop in (CacheOperator.LU, CacheOperator.CV),
    ),
    Rule(
        "a static L2 eviction priority expects a 256-bit load ('.v8.b32' or '.v4.b64'): use a cache policy",
        "8.8",
        "9.7.9.8",
        lambda load, _: load.l2 is not None and (load.register_bits, load.vector) not in _STATIC_L2_SHAPES,
    ),
)
