"""The rule tables of `ptx.py` against ptxas: a form is legal by the tables if and only if ptxas assembles it."""

from __future__ import annotations

import itertools
import re
import shutil
import struct
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

from cute_cache_policy.ptx import (
    RULES,
    CacheOperator,
    CreatePolicy,
    GlobalLoad,
    L1Priority,
    L2Priority,
    PrefetchSize,
    Target,
)

#: The register classes by their width, and the class for a value by the width of the value.
REGISTERS = {"%h": 16, "%r": 32, "%d": 64, "%q": 128}
REGISTER = {8: "%h", **{bits: name for name, bits in REGISTERS.items()}}

LOADS = [
    GlobalLoad(bits, vector, True, cop, l1, l2, prefetch, hint)
    for bits, vector, cop, l1, l2, prefetch, hint in itertools.product(
        (8, 16, 32, 64, 128),
        (1, 2, 4, 8),
        (None, *CacheOperator),
        (None, *L1Priority),
        (None, *L2Priority),
        (None, *PrefetchSize),
        (False, True),
    )
]

#: How many of LOADS a target has.
LEGAL = {"sm_75": 378, "sm_80": 1008, "sm_90a": 1008, "sm_100a": 1584, "sm_120a": 1584}


def find_ptxas() -> str | None:
    """The ptxas of the PyPI package `nvidia-cuda-nvcc`, or else the one in the search path."""
    try:
        packaged = [file for file in metadata.files("nvidia-cuda-nvcc") or [] if file.name == "ptxas"]
    except metadata.PackageNotFoundError:
        packaged = []
    return str(packaged[0].locate()) if packaged else shutil.which("ptxas")


def assembled(statements: list[str], target: str, directory: Path, version: str = "8.8") -> list[bool]:
    """Whether ptxas assembles each statement for `target`; it reports the line of every one that it does not."""
    ptxas = find_ptxas()
    if ptxas is None:
        pytest.skip("ptxas is missing: install nvidia-cuda-nvcc")
    # only the classes that are in use: 128 bits are newer than the rest
    used = [f".reg .b{bits} {name}<8>;" for name, bits in REGISTERS.items() if any(name in text for text in statements)]
    declarations = " ".join([*used, ".reg .b64 %a, %p;"])
    header = [f".version {version}", f".target {target}", ".address_size 64", ".visible .entry f() {", declarations]
    source = directory / "forms.ptx"
    source.write_text("\n".join([*header, *statements, "ret; }"]))
    command = [ptxas, "-arch", target, str(source), "-o", str(directory / "forms.cubin")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    refused = {int(line) - len(header) - 1 for line in re.findall(r"line (\d+); +error", run.stderr)}
    assert (run.returncode == 0) == (not refused) and refused <= set(range(len(statements))), run.stderr
    return [number not in refused for number in range(len(statements))]


def statement(load: GlobalLoad) -> str:
    destinations = [f"{REGISTER[load.register_bits]}{number}" for number in range(load.vector)]
    return load.text(destinations, "[%a]", "%p" if load.cache_hint else None)


def hexadecimal(value: float) -> str:
    """A PTX literal that is exactly `value`."""
    return f"0f{struct.pack('>f', value).hex()}"


@pytest.mark.parametrize("target", LEGAL)
def test_a_load_is_legal_exactly_if_ptxas_assembles_it(target: str, tmp_path: Path) -> None:
    by_ptxas = assembled([statement(load) for load in LOADS], target, tmp_path)
    by_table = [not load.violations(Target.parse(target)) for load in LOADS]
    assert [load.mnemonic for load, ptxas, table in zip(LOADS, by_ptxas, by_table) if ptxas != table] == []
    assert sum(by_table) == LEGAL[target]


@pytest.mark.parametrize(
    ("load", "target", "before"),
    [
        (GlobalLoad(32, cache_hint=True), "sm_80", "7.3"),
        (GlobalLoad(32, l1=L1Priority.NO_ALLOCATE), "sm_80", "7.3"),
        (GlobalLoad(32, prefetch=PrefetchSize.B256), "sm_80", "7.3"),
        (GlobalLoad(32, 8), "sm_100", "8.7"),
        (GlobalLoad(64, 4, l2=L2Priority.EVICT_FIRST), "sm_100", "8.7"),
    ],
    ids=lambda value: value.mnemonic if isinstance(value, GlobalLoad) else value,
)
def test_a_qualifier_is_as_old_as_its_rule_says(load: GlobalLoad, target: str, before: str, tmp_path: Path) -> None:
    # every one of them is newer than sm_60
    (version,) = {rule.ptx for rule in RULES if rule.broken(load, Target(60))}
    assert assembled([statement(load)], target, tmp_path, version) == [True]
    assert assembled([statement(load)], target, tmp_path, before) == [False]


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120a"])
def test_a_policy_is_legal_exactly_if_ptxas_assembles_it(target: str, tmp_path: Path) -> None:
    priorities = list(itertools.product(L2Priority, (None, *L2Priority)))
    fractions = (0.0, -0.5, 2.0**-149, 0.25, 1.0, 1.5)
    sizes = ((0, 0), (0, 1), (1, 1), (2, 1), (4096, 2**32 - 1), (2**32 - 1, 2**32 - 1), (1, 0))
    policies = [CreatePolicy(*pair, fraction=fraction) for pair in priorities for fraction in fractions]
    policies += [CreatePolicy(*pair, sizes=size) for pair in priorities for size in sizes]
    statements = [
        policy.text("%p", *(["%a", *map(str, policy.sizes)] if policy.sizes else [hexadecimal(policy.fraction or 0.0)]))
        for policy in policies
    ]
    by_ptxas = assembled(statements, target, tmp_path)
    by_table = [not policy.violations(Target.parse(target)) for policy in policies]
    assert [text for text, ptxas, table in zip(statements, by_ptxas, by_table) if ptxas != table] == []
    assert any(by_table) == (target != "sm_75") and not all(by_table)


@pytest.mark.parametrize(
    ("destinations", "policy", "message"),
    [
        (["%r0"], "%p", "expects 2 destination registers, but got 1"),
        (["%r0", "%r1"], None, "expects a policy operand exactly with '.L2::cache_hint', but got None"),
    ],
)
def test_text_refuses_operands_that_do_not_fit(destinations: list[str], policy: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        GlobalLoad(32, 2, cache_hint=True).text(destinations, "[%a]", policy)


@pytest.mark.parametrize("name", ["sm_9", "90a", "sm_90b", "compute_90", ""])
def test_target_names_are_checked(name: str) -> None:
    with pytest.raises(ValueError, match="expects a GPU architecture such as 'sm_90a', but got"):
        Target.parse(name)


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_a_wide_load_is_split_where_the_target_has_none(target: str) -> None:
    pieces = GlobalLoad(32, 8).pieces(Target.parse(target))
    assert [piece.mnemonic for piece in pieces] == (
        ["ld.global.nc.v8.b32"] if target == "sm_100a" else ["ld.global.nc.v4.b32"] * 2
    )
