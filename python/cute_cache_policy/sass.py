"""SASS: which cache policy each access of global memory takes.

An access names a *descriptor*, a pair of uniform registers: `LDG.E.128.CONSTANT R8, desc[UR4][R2.64]`. A descriptor
that the driver passes in constant memory is the default; a policy is what a program puts in its place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .ptx import Target

__all__ = ["Access", "global_accesses"]

#: Where a kernel finds the default descriptor in constant memory, by the first target that does.
DEFAULT_DESCRIPTOR = {100: "c[0x0][0x358]", 90: "c[0x0][0x208]", 80: "c[0x0][0x118]"}


@dataclass(frozen=True)
class Access:
    """One load or store of global memory.

    Attributes:
        mnemonic: such as `LDG.E.128.CONSTANT`.
        policy: `default`, the 64 bits of a constant policy such as `0x12f0000000000000`, the place in constant memory
            of a kernel argument such as `c[0x0][0x220]`, the mnemonic of the instruction that computes it, or `nothing`
            where no instruction does.
    """

    mnemonic: str
    policy: str

    def __str__(self) -> str:
        return f"{self.mnemonic} policy={self.policy}"


def global_accesses(sass: str, target: Target) -> list[Access]:
    """The accesses of global memory in the order of the text.

    What a descriptor holds is what the nearest instruction above the access put there: right for kernels whose
    branches do not write descriptors, which is for the reader of a failing test to see.
    """
    default = next(place for sm, place in DEFAULT_DESCRIPTOR.items() if sm <= target.sm)
    writes: dict[int, str] = {}
    accesses: list[Access] = []
    for line in re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?\w+ )?(.*?) ;", sass):
        mnemonic, _, rest = line.partition(" ")
        if mnemonic.startswith(("LDG", "STG")):
            register = re.search(r"desc\[UR(\d+)\]", rest)
            # sm_80 leaves the default descriptor out of the text
            policy = _descriptor(writes, int(register[1])) if register else default
            accesses.append(Access(mnemonic, "default" if policy == default else policy))
        elif written := re.match(r"UR(\d+)(?:, (.*))?", rest):
            first, value = int(written[1]), written[2] or ""
            plain = mnemonic.startswith(("ULDC", "LDCU", "UMOV"))
            for register in range(first, first + _registers(mnemonic)):
                writes[register] = value if plain else mnemonic
    return accesses


def _registers(mnemonic: str) -> int:
    """How many uniform registers an instruction writes."""
    return {"64": 2, "128": 4}.get(mnemonic.rpartition(".")[2], 1)


def _descriptor(writes: dict[int, str], register: int) -> str:
    """What the pair of uniform registers from `register` on holds."""
    low, high = (writes.get(number, "nothing") for number in (register, register + 1))
    if low == high:
        return low
    if low.startswith("0x") and high.startswith("0x"):
        return f"0x{int(high, 16):08x}{int(low, 16):08x}"
    return f"{low}, {high}"
