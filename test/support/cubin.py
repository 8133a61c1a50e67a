"""What ptxas made of a kernel: machine code and registers, read with cuobjdump."""

from __future__ import annotations

import re
import subprocess
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Kernel", "kernels"]


@dataclass(frozen=True)
class Kernel:
    """One kernel of a cubin.

    Attributes:
        instructions: the machine instructions in order, without addresses and without the padding at the end.
        registers: 32-bit registers that a thread takes.
    """

    instructions: tuple[str, ...]
    registers: int

    @property
    def opcodes(self) -> tuple[str, ...]:
        """The mnemonics alone, such as `LDG.E.128.CONSTANT`."""
        return tuple(re.sub(r"^@!?U?P\w+ ", "", text).split()[0] for text in self.instructions)


def kernels(cubin: bytes) -> dict[str, Kernel]:
    """The kernels in a cubin, by name."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        usage, code = (_cuobjdump(option, file.name) for option in ("-res-usage", "-sass"))
    registers = dict(re.findall(r"Function (\S+):\n.*?\bREG:(\d+)", usage))
    found = {}
    for section in code.split("Function : ")[1:]:
        name = section.split(None, 1)[0]
        instructions = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", section, re.MULTILINE)
        while instructions and instructions[-1].split()[0] in ("NOP", "BRA"):
            instructions.pop()
        found[name] = Kernel(tuple(instructions), int(registers[name]))
    return found


def _cuobjdump(option: str, path: str) -> str:
    (cuobjdump,) = Path(sysconfig.get_path("purelib")).glob("nvidia/*/bin/cuobjdump")
    environment = {"PATH": str(cuobjdump.parent)}  # it runs nvdisasm
    done = subprocess.run([cuobjdump, option, path], env=environment, capture_output=True, text=True, check=True)
    return done.stdout
