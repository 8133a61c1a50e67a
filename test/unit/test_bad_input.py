"""Input that is wrong, and input that is merely odd: nothing aborts the process, every refusal says what it refuses.

`IR` and `OPTIONS` list what was tried. After each of them the process and the DSL are still of use.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cutlass import Constexpr, Float32, Int64, cute
from cutlass.base_dsl.common import DSLUserCodeError
from cutlass.cute.runtime import make_fake_compact_tensor

from cute_cache_policy import CachePolicyError, HonorCachePolicy
from support.scale import HINTED, arguments, launch, loads

TYPES = """
!gmem = !cute.memref<f32, gmem, align<16>, "(4,1):(1,0)">
!smem = !cute.memref<f32, smem, align<16>, "(4,1):(1,0)">
!rmem = !cute.memref<f32, rmem, align<32>, "(4,1):(1,0)">
!atom = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 invariant = true>
"""

SET = "%hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom, i64)\n"
COPY = "cute.copy(%hinted, %source, %target) : (!atom, !gmem, !rmem)\n"


def kernel(body: str, name: str = "kernels", parameters: str = "%source: !gmem, %policy: i64", end: str = "return"):
    """A gpu.module with a kernel around `body`."""
    signature = f"%target: !rmem, %atom: !atom, {parameters}"
    return f"gpu.module @{name} {{ cuda.kernel @k({signature}) {{\n{body}\n{end}\n}} }}\n"


GOOD = TYPES + kernel(SET + COPY)

#: Input: the text of a module, and what the driver says of it; or how many loads it makes of it, if it is legal.
IR: dict[str, tuple[str, str | int]] = {
    "nothing": ("", 0),
    "empty module": ("module {}", 0),
    "kernel without a body": (TYPES + "gpu.module @kernels { cuda.kernel @k(%source: !gmem) }", 0),
    "kernel without locations": (GOOD, 1),
    "two gpu.modules": (TYPES + kernel(SET + COPY, "a") + kernel(SET + COPY, "b"), 2),
    "no gpu.module": (TYPES + "func.func private @declared(!gmem)", 0),
    "recursive function": (
        TYPES
        + "func.func @f(%source: !gmem, %target: !rmem, %hinted: !atom) {\n"
        + COPY
        + "func.call @f(%source, %target, %hinted) : (!gmem, !rmem, !atom) -> ()\nreturn }",
        0,
    ),
    "loop of blocks": (
        TYPES
        + kernel(SET + "cf.br ^loop(%hinted : !atom)\n^loop(%next: !atom):\n" + COPY, end="cf.br ^loop(%next : !atom)"),
        1,
    ),
    "not a module": ("this is no IR", "custom op 'this' is unknown"),
    "half a module": (GOOD[: len(GOOD) * 2 // 3], "expected|undeclared"),
    "undefined value": (TYPES + kernel(SET.replace("%atom", "%nothing")), "use of undeclared SSA value name"),
    "unknown op": ('"nowhere.op"() : () -> ()', "unregistered dialect"),
    "unknown atom": (
        TYPES + kernel("%a = cute.make_atom() : () -> !cute_nvgpu.atom.teleport<f32>"),
        "unknown type `atom.teleport`",
    ),
    "odd width": (GOOD.replace("copy_bits = 128", "copy_bits = 96"), "expects copy_bits to be a power of 2"),
    "policy of 32 bits": (
        TYPES + kernel(SET.replace("i64", "i32") + COPY, parameters="%source: !gmem, %policy: i32"),
        "Invalid operand type for field cache_policy",
    ),
    "source in shared memory": (
        TYPES + kernel(SET + COPY.replace("!gmem", "!smem"), parameters="%source: !smem, %policy: i64"),
        "expects src to be gmem-based or generic memref, but got smem",
    ),
    "copy without operands": (TYPES + kernel('"cute.copy"() : () -> ()'), "expected 1 or more operands"),
    "copy without a target": (
        TYPES
        + kernel(
            SET
            + '"cute.copy"(%hinted, %source) <{operandSegmentSizes = array<i32: 1, 1, 0, 0>}> : (!atom, !gmem) -> ()'
        ),
        "expects at least one tensor for src and dst operands",
    ),
    "copy without segments": (
        TYPES + kernel(SET + '"cute.copy"(%hinted, %source, %target) : (!atom, !gmem, !rmem) -> ()'),
        "does not match with the total size",
    ),
    "branch without a region": (
        TYPES
        + kernel(
            '%true = arith.constant true\n%hinted = "scf.if"(%true) ({\n'
            + SET.replace("%hinted", "%inner")
            + "scf.yield %inner : !atom\n}, {}) : (i1) -> !atom\n"
            + COPY
        ),
        "must have an else block",
    ),
}


def opt(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run `cute-cache-policy-opt` in a process of its own."""
    command = [sys.executable, "-m", "cute_cache_policy.opt", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True)


@pytest.mark.parametrize("text, expected", IR.values(), ids=IR.keys())
def test_ir(text: str, expected: str | int) -> None:
    done = opt("-convert-invariant-copy-to-nvvm=gpu-arch=sm_90a", stdin=text)
    if isinstance(expected, int):
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count(HINTED) == expected
    else:
        assert done.returncode == 1
        assert re.search(f"error: .*({expected})", done.stderr), done.stderr
        assert "Traceback" not in done.stderr


def test_the_process_survives_all_ir() -> None:
    """One process takes all of it, and the good module last."""
    done = opt(
        "-split-input-file",
        "-convert-invariant-copy-to-nvvm",
        stdin="\n// -----\n".join([*(t for t, _ in IR.values()), GOOD]),
    )
    assert done.returncode == 1
    assert HINTED in done.stdout.rpartition("// -----")[2]


#: Compile options that make no sense, and what the DSL or the plugin says of them.
OPTIONS = {
    "--honor-cache-policy=maybe": "malformed",
    "--honor-cache-policy maybe": "malformed",
    "--honor-cache-policy --gpu-arch sm_999": "sm_999",
    "--honor-cache-policy --gpu-arch sm_75": "sm_75",
    "--honor-cache-policy --gpu-arch gfx90a": "gfx90a",
}


@pytest.mark.parametrize("options, message", OPTIONS.items())
def test_options(options: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=message):
        cute.compile(launch, *arguments(), options=options)
    cute.compile(
        launch, *arguments(), options=f"--honor-cache-policy --gpu-arch sm_90a --keep-ptx --dump-dir {tmp_path}"
    )
    assert loads(tmp_path) == [HINTED]


def test_option_that_is_neither_on_nor_off() -> None:
    with pytest.raises(CachePolicyError, match="'HonorCachePolicy' expects True or False, but got 'maybe'"):
        cute.compile[HonorCachePolicy("maybe")]  # type: ignore[arg-type]


def test_a_target_that_the_dsl_does_not_know() -> None:
    with pytest.raises(DSLUserCodeError, match=r"expects one of .*sm_90a.* as the target, but got 'sm_75'"):
        cute.compile(launch, *arguments(), options="--honor-cache-policy --gpu-arch sm_75")
    with pytest.raises(KeyError):
        cute.compile(launch, *arguments(), options="--gpu-arch sm_75")


@pytest.mark.parametrize("arch", ["sm90", "sm_9000", "gfx90a", ""])
def test_target_of_a_pass(arch: str) -> None:
    done = opt(f"-convert-invariant-copy-to-nvvm=gpu-arch={arch}", stdin=GOOD)
    assert done.returncode == 1
    assert re.fullmatch(r"cute-cache-policy-opt: error: .*expects .*, but got .*\n", done.stderr), done.stderr


#: A compile of 100 copies, in the middle of which something happens; then the same compile without it.
IN_THE_MIDDLE = """
import os, signal, sys
import cutlass
from cutlass import Float32, Int64, cute
from cute_cache_policy.passes.convert_invariant_copy_to_nvvm import InvariantCopyPattern
from support.scale import arguments, copy_vector

@cute.kernel
def kernel(x: cute.Tensor, y: cute.Tensor):
    for i in cutlass.range_constexpr(100):
        tile = (cute.local_tile(t, (512,), (i,)) for t in (x, y))
        copy_vector(*tile, Int64(0x12F0000000000000))

@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor):
    kernel(x, y).launch(grid=[1, 1, 1], block=[128, 1, 1])

# a shell starts what runs in the background with Ctrl-C ignored
signal.signal(signal.SIGINT, signal.default_int_handler)
original = InvariantCopyPattern.__call__
seen = 0

def broken(self, op, rewriter):
    global seen
    if op.name == "cute.copy":
        seen += 1
    if seen == 50:
        WHAT_HAPPENS
    return original(self, op, rewriter)

InvariantCopyPattern.__call__ = broken
options = "--honor-cache-policy --gpu-arch sm_90a"
try:
    cute.compile(launch, *arguments(), options=options)
except BaseException as raised:
    print(type(raised).__name__, raised)
else:
    print("nothing raised")
InvariantCopyPattern.__call__ = original
compiled = cute.compile(launch, *arguments(), options=f"{options} --keep-ptx --dump-dir {sys.argv[1]}")
"""


@pytest.mark.parametrize(
    "happens, raised",
    [
        ("os.kill(os.getpid(), signal.SIGINT)", "KeyboardInterrupt"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise SystemExit(3)", "SystemExit 3"),
        ("raise ValueError('of ours')", "ValueError of ours"),
        ("raise MemoryError", "MemoryError"),
        ("(f := lambda: f())()", "RecursionError"),
        ("op.location.emit_error('said, not raised'); raise RuntimeError('raised')", "RuntimeError raised"),
    ],
)
def test_in_the_middle_of_a_pass(happens: str, raised: str, tmp_path: Path) -> None:
    """What comes out is what went in, and the next compile has all its loads."""
    script = tmp_path / "program.py"
    script.write_text(IN_THE_MIDDLE.replace("WHAT_HAPPENS", happens))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, script, tmp_path], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(raised), done.stdout
    assert loads(tmp_path) == 100 * [HINTED]


#: Copies that the DSL's verifier refuses: alignment of the source, layouts of source and fragment, and what it says.
INVALID = {
    "misaligned": (4, (4,), (1,), (1,), "src ptr bit alignment to be divisible"),
    "strided": (16, (4, 2), (2, 8), (1, 4), "atom strides of src and dst to be static"),
    "fragment of another size": (16, (8,), (1,), (0,), "atom strides of src and dst to be static"),
}


@cute.kernel
def invalid_copy(x: cute.Tensor, shape: Constexpr, source: Constexpr, target: Constexpr):
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=128, invariant=True)
    fragment = cute.make_rmem_tensor((16,), Float32)
    cute.copy(
        atom,
        cute.make_tensor(x.iterator, cute.make_layout(shape, stride=source)),
        cute.make_tensor(fragment.iterator, cute.make_layout(shape, stride=target)),
        cache_policy=Int64(0),
    )
    cute.autovec_copy(fragment, x)


@cute.jit
def launch_invalid(x: cute.Tensor, shape: Constexpr, source: Constexpr, target: Constexpr):
    invalid_copy(x, shape, source, target).launch(grid=[1, 1, 1], block=[1, 1, 1])


@pytest.mark.parametrize("alignment, shape, source, target, message", INVALID.values(), ids=INVALID.keys())
def test_an_invalid_copy_is_refused_before_it_is_gone(
    alignment: int, shape: Any, source: Any, target: Any, message: str
) -> None:
    """The DSL verifies a module behind the passes, when a copy that it would refuse has long become loads."""
    x = make_fake_compact_tensor(Float32, (16,), assumed_align=alignment)
    with pytest.raises(DSLUserCodeError, match=message):
        cute.compile(launch_invalid, x, shape, source, target, options="--honor-cache-policy --gpu-arch sm_90a")
