"""Where a value comes from, through control flow and calls.

`incoming` is the one place that knows how values cross `scf` regions, function boundaries and kernel launches. The
analyses on top of it (which policy an atom carries, which kernel argument an address belongs to) only have to
know the ordinary ops between two such crossings.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cutlass._mlir import ir

from .bindings import FUNCTION_OPS, operands, raw
from .pass_manager import Pattern, apply_patterns

__all__ = ["CallGraph", "Edge", "incoming"]


#: Ops that hand operands on to a function or kernel of the module, and which of their `operandSegmentSizes` says how
#: many. None, or an op of a release without segments: the last ones.
CALL_OPS: dict[str, int | None] = {
    "cuda.launch": 4,
    "cuda.launch_ex": None,
    "func.call": None,
    "gpu.launch_func": 11,
    "lir.launch": 0,
    "llvm.call": 0,
}


@dataclass(frozen=True)
class Edge:
    """A use of a value: operand number `index` of `op`, from where it flows on into another value."""

    op: ir.Operation
    index: int

    @property
    def value(self) -> ir.Value:
        """The value that flows along the edge."""
        return operands(self.op)[self.index]


@dataclass
class CallGraph:
    """The calls and kernel launches of a module, by the name of what they call; found on first use."""

    root: ir.Operation
    _callers: dict[str, list[ir.Operation]] | None = field(default=None, repr=False)

    def callers(self, function: ir.Operation) -> list[ir.Operation]:
        """The calls and launches of `function`; none is known for a function that is only called from outside."""
        if self._callers is None:
            apply_patterns(self.root, self.collectors())
        assert self._callers is not None
        if "sym_name" not in function.attributes:
            return []
        return self._callers.get(ir.StringAttr(function.attributes["sym_name"]).value, [])

    def collectors(self) -> dict[str, Pattern]:
        """The patterns that find the calls, for one who is about to walk `root` anyway."""
        self._callers = {}
        return dict.fromkeys(CALL_OPS, self._collect)

    def _collect(self, op: ir.Operation, _: object) -> bool:
        callee = "kernel" if op.name == "gpu.launch_func" else "callee"
        if callee in op.attributes:
            assert self._callers is not None
            name = str(op.attributes[callee]).rpartition("@")[2].strip('"')
            self._callers.setdefault(name, []).append(op)
        return False


def incoming(value: ir.Value, calls: CallGraph) -> list[Edge] | None:
    """The edges along which control flow hands other values on to `value`.

    Returns None if `value` is the result of an ordinary op, and an empty list if it enters from outside: an argument of
    a function that nothing in the module calls, or of a region whose op is not known here.
    """
    owner = value.owner
    if isinstance(owner, ir.Block):
        return _into_argument(ir.BlockArgument(value), owner, calls)
    op = owner.operation
    if not len(op.regions):
        return None
    return _into_result(op, ir.OpResult(value).result_number)


def _terminator(block: ir.Block) -> ir.Operation:
    return block.operations[len(block.operations) - 1].operation


def _into_result(op: ir.Operation, number: int) -> list[Edge]:
    if op.name == "scf.while":
        # scf.condition(%go) %forwarded...
        return [Edge(_terminator(op.regions[0].blocks[0]), number + 1)]
    edges = [Edge(_terminator(block), number) for region in op.regions for block in region.blocks]
    if op.name == "scf.for":
        # (%lower, %upper, %step, %init...): the loop may run zero times
        edges.append(Edge(op, 3 + number))
    return [edge for edge in edges if edge.index < len(edge.op.operands)]


def _along_jump(jump: ir.Operation, target: ir.Block, number: int) -> list[Edge]:
    """The edges from a jump of the `cf` dialect into argument `number` of the block `target`."""
    if jump.name == "cf.br":
        return [Edge(jump, number)]
    if jump.name != "cf.cond_br":
        return []
    # (%condition, for the first successor..., for the second...)
    first = ir.DenseI32ArrayAttr(jump.attributes["operandSegmentSizes"])[1]
    starts = zip(jump.successors, (1, 1 + first))
    return [Edge(jump, start + number) for block, start in starts if block == target]


def _into_argument(argument: ir.BlockArgument, block: ir.Block, calls: CallGraph) -> list[Edge]:
    op, number = block.owner.operation, argument.arg_number
    if op.name == "scf.for":
        # the first argument is the induction variable
        return [] if number == 0 else [Edge(op, 2 + number), Edge(_terminator(block), number - 1)]
    if op.name == "scf.while":
        before, after = (region.blocks[0] for region in op.regions)
        if block == before:
            return [Edge(op, number), Edge(_terminator(after), number)]
        return [Edge(_terminator(before), number + 1)]
    if block != op.regions[0].blocks[0]:
        # a block is its successor's predecessor once for each way into it
        jumps = dict.fromkeys(_terminator(before) for before in block.predecessors)
        return [edge for jump in jumps for edge in _along_jump(jump, block, number)]
    if op.name in FUNCTION_OPS:
        arity = len(raw(block.arguments))
        starts = ((call, _first_passed(call, arity)) for call in calls.callers(op))
        return [Edge(call, start + number) for call, start in starts if start >= 0]
    return []


def _first_passed(call: ir.Operation, arity: int) -> int:
    """The number of the first operand that a call passes to a function of `arity` arguments; negative if none fits."""
    segment = CALL_OPS[call.name]
    if segment is None or "operandSegmentSizes" not in call.attributes:
        return len(call.operands) - arity
    sizes = ir.DenseI32ArrayAttr(call.attributes["operandSegmentSizes"])
    return sum(sizes[i] for i in range(segment)) if sizes[segment] == arity else -1
