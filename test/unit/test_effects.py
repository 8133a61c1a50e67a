"""Which PTX text counts as writing global memory."""

import pytest

from cute_cache_policy.effects import asm_may_write

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
