"""Which PTX text, and which ops, count as writing global memory."""

import re
from pathlib import Path

import pytest
from cutlass._mlir import dialects

from cute_cache_policy.effects import DESTINATION, WRITERS, asm_may_write
from cute_cache_policy.origins import LOADS

READS = [
    "",
    "mov.f32 $0, $1;",
    "createpolicy.fractional.L2::evict_last.b64 {$w0}, {$r0};",
    "ld.global.nc.L2::cache_hint.v4.b32 {$0, $1, $2, $3}, [$4], $5;",
    "{ .reg .pred p; setp.ne.b32 p, $1, 0; @p ld.global.b32 $0, [$2]; }",
    "st.shared.v4.b32 [$0], {$1, $2, $3, $4};",
    "red.shared::cta.add.u32 [$0], $1;",
    "cp.async.ca.shared.global.L2::128B [$0], [$1], 16;",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];",
    "cp.async.bulk.commit_group;",
    "mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1;",
    "loop: @!p bra loop; // st.global",
    "/* st.global.b32 [$0], $1; */ mov.b32 $0, $1;",
]
WRITES = [
    "st.global.b32 [$0], $1;",
    "st.b32 [$0], $1;",
    "@p st.global.b32 [$0], $1;",
    "@ p st.global.b32 [$0], $1;",
    "/* one\n bar */ st.global.b32 [$0], $1;",
    "MACRO [$0], $1;",
    "cp.async.bulk\n\t.global .shared::cta.bulk_group [$0], [$1], 256;",
    "$(st.global.b32 [$0], $1;$|$)",
    "mov.b32 $0, $1;\n\tst.global.b32 [$2], $1;",
    "{ .reg .b32 t; mov.b32 t, $1; st.volatile.global.b32 [$0], t; }",
    "again: st.relaxed.gpu.global.b32 [$0], $1;",
    "red.global.add.u32 [$0], $1;",
    "atom.add.u32 $0, [$1], $2;",
    "cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], $2;",
    "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [$0, {$1}], [$2];",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [$0], [$1], $2;",
    "multimem.st.global.f32 [$0], $1;",
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [$0], $1, [$2]; st.global.b32 [$3], $1;",
    "call helper, ($0);",
    "frobnicate.b32 $0, $1;",
]


@pytest.mark.parametrize("text", READS)
def test_text_that_only_reads(text: str) -> None:
    assert not asm_may_write(text)


@pytest.mark.parametrize("text", WRITES)
def test_text_that_may_write(text: str) -> None:
    assert asm_may_write(text)


#: Ops that write shared or tensor memory, or nothing but registers.
ELSEWHERE = re.compile(
    r"""cute_nvgpu\.atom\..* | .*tmem_.*store.* | lir\.tmem.* | nvvm\.(store\.async|st(matrix|.*shared).*)
      | nvvm\.(tcgen05|barrier|cp\.async\.bulk\.commit).* | llvm\.intr\.(stackrestore|vector\.reduce.*|vp\.reduce.*)""",
    re.VERBOSE,
)


#: What the operand that holds the written address is called, the first that an op has.
DESTINATIONS = (r"override.*", r"d(st.*)?", r"gmem_data_addr|tmaDescriptor", r"ptrs?|addr", r"data|a")


def ops_of_this_release() -> dict[str, list[str]]:
    """The names of the operands of every op, by the name of the op."""
    found: dict[str, list[str]] = {}
    for folder in dialects.__path__:
        for path in Path(folder).glob("_*_ops_gen.py"):
            for definition in path.read_text().split("\nclass ")[1:]:
                for name in re.findall(r'OPERATION_NAME = "((?:cute|cute_nvgpu|lir|llvm|nvvm)\.[^"]+)"', definition):
                    found.setdefault(name, re.findall(r"operands\.append\((?:_\w+\()?(\w+)", definition))
    assert len(found) > 500
    return found


def test_every_op_that_sounds_like_a_write_is_known() -> None:
    """A release that brings new ones fails here."""
    writes = r"store|scatter|memcpy|memset|memmove|atomic|cmpxchg|multimem\.(st|red)|\.red\b|global\.shared|s2g"
    names = {name for name in ops_of_this_release() if re.search(writes, name) and not ELSEWHERE.fullmatch(name)}
    assert not names - WRITERS


def test_the_destination_of_every_write_is_the_operand_of_that_name() -> None:
    """A release that reorders operands fails here."""
    ops, right = ops_of_this_release(), {}
    for name in DESTINATION.keys() & ops.keys():
        right[name] = next(
            (index for want in DESTINATIONS for index, has in enumerate(ops[name]) if re.fullmatch(want, has)), None
        )
    assert len(right) > 30
    assert right == {name: DESTINATION[name] for name in right}


def test_every_op_that_sounds_like_a_load_of_an_address_is_known() -> None:
    assert {name for name in ops_of_this_release() if re.match(r"cute\..*\b(load|deref_desc)", name)} <= LOADS
