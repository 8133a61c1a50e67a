"""Copy atoms in CuTe DSL IR: what an atom's type says, and whether an atom value carries a cache policy.

The policy is a run-time field of the atom (`cute_nvgpu.atom.set_value<cache_policy>`); the type of an atom does not
tell whether it was set. `PolicyFlow` finds out, through control flow, kernel arguments and calls.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field

from cutlass._mlir import ir

from .bindings import defining_op, memory_space, operands, results, type_text
from .dataflow import CALL_OPS, CallGraph, Edge, incoming
from .pass_manager import apply_patterns
from .ptx import CONSTANT_POLICIES, L2Priority
from .qualifiers import is_qualified, static_l2_priority, without_spelling

__all__ = [
    "COPY_OPS",
    "EVICT_NORMAL_POLICY",
    "RECORD_OP",
    "AtomType",
    "Census",
    "PolicyFlow",
    "PolicyTrace",
    "attach_policy",
    "compiler_sees_policy",
    "copy_atom",
    "kind_with_policy",
    "policy_setter",
    "policy_value",
    "record_policy",
    "records_policy",
    "set_policy",
    "sets_policy",
]

#: The ops that execute a copy atom; operand 0 is the atom or a tiled copy of it.
COPY_OPS = ("cute.copy", "cute.copy_atom_call")

SET_VALUE = "cute_nvgpu.atom.set_value"
GET_VALUE = "cute_nvgpu.atom.get_value"

#: Gives a policy to an atom whose type has no field for one: `unrealized_conversion_cast %atom, %policy : !atom, i64 to
#: !atom`. The compiler knows nothing of it; see `record_policy`.
RECORD_OP = "builtin.unrealized_conversion_cast"

#: The priority of an access without a policy (PTX ISA 9.7.9.2).
EVICT_NORMAL_POLICY = CONSTANT_POLICIES[L2Priority.EVICT_NORMAL]


@dataclass(frozen=True)
class AtomType:
    """What the type of a copy atom, or of a tiled copy, says about its atom.

    Attributes:
        kind: the mnemonic of the atom: `g2r`, `r2g`, `universal_copy`, ...
        parameters: the text of its parameters, such as `bf16 copy_bits = 128 invariant = true`.
    """

    kind: str
    parameters: str

    @property
    def invariant(self) -> bool:
        """Whether loads through the atom are promised to read memory that nobody writes meanwhile."""
        return self.qualified or "invariant = true" in self.parameters

    @property
    def qualified(self) -> bool:
        """Whether the atom is invariant and has load qualifiers: the compiler cannot lower it (see `qualifiers`)."""
        return self.kind == "g2r" and is_qualified(self.parameters)

    def __str__(self) -> str:
        """The atom as its user asked for it: `g2r bf16 copy_bits = 128 invariant = true`."""
        if not self.qualified:
            return f"{self.kind} {self.parameters}"
        priority = self.static_l2_priority
        static = f" l2_evict_priority = {priority.name.lower()}" if priority else ""
        return f"{self.kind} {without_spelling(self.parameters)}{static} invariant = true"

    @property
    def element_bits(self) -> int:
        """The width of an element that the atom copies, in bits: 16 for `bf16`, 8 for `f8E4M3FN`."""
        match = re.match(r"[a-z]+(\d+)", self.parameters)
        assert match is not None, self.parameters
        return int(match[1])

    @property
    def static_l2_priority(self) -> L2Priority | None:
        """The static L2 eviction priority of its loads."""
        return static_l2_priority(self.parameters) if self.qualified else None

    def expandable(self, type_: ir.Type) -> ir.Type | None:
        """What the compiler can expand in the place of `type_`, the type that this atom was read off; None for `type_`.

        It makes coherent loads with the qualifiers of the atom.
        """
        return ir.Type.parse(without_spelling(type_text(type_)), type_.context) if self.qualified else None

    def coherent(self, type_: ir.Type) -> ir.Type:
        """What loads like `type_`, the type that this atom was read off, without a promise about the memory."""
        return self.expandable(type_) or ir.Type.parse(type_text(type_).replace(" invariant = true", ""), type_.context)

    @classmethod
    def of(cls, type_: ir.Type) -> AtomType | None:
        """The atom in `type_`, or None if it is no copy atom or tiled copy."""
        return cls._parse(type_text(type_))

    @classmethod
    @functools.lru_cache(maxsize=1024)
    def _parse(cls, text: str) -> AtomType | None:
        match = re.match(r"(?:!cute\.tiled_copy<)?!cute_nvgpu\.atom\.(\w+)<([^<>]*)", text)
        return cls(match[1], match[2].strip()) if match else None


def copy_atom(op: ir.Operation) -> AtomType | None:
    """The atom type of a copy op (one of `COPY_OPS`)."""
    return AtomType.of(operands(op)[0].type)


#: The kind of atom that holds a policy, by the memory of the source and of the destination.
KINDS_WITH_POLICY = {("gmem", "rmem"): "g2r", ("rmem", "gmem"): "r2g"}


def kind_with_policy(copy: ir.Operation) -> str | None:
    """The kind of atom that holds the policy of a universal copy; None if PTX has no hint for its memories."""
    return KINDS_WITH_POLICY.get((memory_space(operands(copy)[1]), memory_space(operands(copy)[2])))


def sets_policy(op: ir.Operation) -> bool:
    """Whether `op` gives the atom in its first operand the policy in its second."""
    return (op.name == SET_VALUE and "cache_policy" in str(op.attributes["field"])) or records_policy(op)


def policy_setter(copy: ir.Operation) -> ir.Operation | None:
    """The op that sets the policy of a copy on every path: only ops that hand the atom on are between."""
    value = operands(copy)[0]
    while (op := defining_op(value)) is not None and not sets_policy(op):
        atoms = [operand for operand in operands(op) if AtomType.of(operand.type)]
        if len(atoms) != 1 or len(op.regions) or op.name in CALL_OPS:
            return None
        (value,) = atoms
    return op


def compiler_sees_policy(copy: ir.Operation) -> bool:
    """Whether the atom of a copy is set right in front of it, where the compiler looks for a policy."""
    op = defining_op(operands(copy)[0])
    return op is not None and sets_policy(op) and not records_policy(op)


def records_policy(op: ir.Operation) -> bool:
    """Whether `op` records a policy for an atom that has no field for it (see `record_policy`)."""
    return op.name == RECORD_OP and len(op.operands) == 2 and AtomType.of(operands(op)[0].type) is not None


@dataclass
class Census:
    """What copies there are in a module.

    Attributes:
        atoms: the types of the atoms that they execute.
        has_records: whether any policy is recorded (see `record_policy`).
    """

    atoms: set[AtomType] = field(default_factory=set)
    has_records: bool = False

    @classmethod
    def of(cls, module: ir.Operation) -> Census:
        """Walk `module` once."""
        census = cls()
        apply_patterns(module, {RECORD_OP: census._see_cast, **dict.fromkeys(COPY_OPS, census._see_copy)})
        return census

    def _see_cast(self, op: ir.Operation, _: object) -> bool:
        self.has_records |= records_policy(op)
        return False

    def _see_copy(self, op: ir.Operation, _: object) -> bool:
        if atom := copy_atom(op):
            self.atoms.add(atom)
        return False


def attach_policy(
    atom: ir.Value, policy: ir.Value, loc: ir.Location | None, ip: ir.InsertionPoint | None
) -> ir.Value | None:
    """The atom with a policy that the DSL refused, or None unless the atom is an invariant G2R atom.

    A release may refuse that pair because its compiler drops the policy (NVIDIA/cutlass pull request 3727).
    """
    type_ = AtomType.of(atom.type)
    if type_ is None or type_.kind != "g2r" or not type_.invariant:
        return None
    attributes = {"field": policy_field(type_)}
    return results(ir.Operation.create(SET_VALUE, [atom.type], [atom, policy], attributes, loc=loc, ip=ip))[0]


def record_policy(atom: ir.Value, policy: ir.Value, loc: ir.Location | None, ip: ir.InsertionPoint | None) -> ir.Value:
    """The atom, with a record of the policy that the user gave it although its type has no field for one.

    The DSL drops such a policy in Python. The record keeps it in the IR, for passes to lower or to complain about;
    `strip-policy-record` takes it out again.
    """
    return results(ir.Operation.create(RECORD_OP, [atom.type], [atom, policy], loc=loc, ip=ip))[0]


@dataclass
class PolicyTrace:
    """Where the atom of one copy may have got its cache policy from.

    Attributes:
        setters: the `atom.set_value<cache_policy>` ops that reach the copy.
        bare: the edges along which an atom without a policy reaches it.
    """

    setters: list[ir.Operation] = field(default_factory=list)
    bare: list[Edge] = field(default_factory=list)

    @property
    def carries_policy(self) -> bool:
        """Whether the copy has a policy on at least one path."""
        return bool(self.setters)


class PolicyFlow:
    """Traces the atoms of one module."""

    def __init__(self, calls: CallGraph) -> None:
        self._calls = calls

    def trace(self, copy: ir.Operation) -> PolicyTrace:
        """Trace the atom of a copy op back to where its policy was, or was not, set."""
        found = PolicyTrace()
        seen: set[ir.Value] = set()
        pending = [Edge(copy, 0)]
        while pending:
            edge = pending.pop()
            value = edge.value
            if value in seen:
                continue
            edges = incoming(value, self._calls)
            if edges:
                seen.add(value)
                pending.extend(edges)
            elif edges is not None:
                found.bare.append(edge)
            elif sets_policy(setter := value.owner.operation):
                found.setters.append(setter)
            elif forwards := [i for i, v in enumerate(operands(value.owner.operation)) if AtomType.of(v.type)]:
                # a tiled copy of an atom, another field set, a select between atoms
                seen.add(value)
                pending.extend(Edge(value.owner.operation, i) for i in forwards)
            else:
                found.bare.append(edge)
        return found


def set_policy(edge: Edge, policy: int) -> None:
    """Give the atom that flows along `edge`, and no other use of it, the constant cache policy `policy`."""
    value = edge.value
    with ir.InsertionPoint(edge.op), edge.op.location:
        i64 = ir.IntegerType.get_signless(64)
        constant = ir.Operation.create("arith.constant", [i64], attributes={"value": ir.IntegerAttr.get(i64, policy)})
        setter = ir.Operation.create(
            SET_VALUE,
            [value.type],
            [value, results(constant)[0]],
            {"field": policy_field(AtomType.of(value.type))},
        )
    edge.op.operands[edge.index] = results(setter)[0]


def policy_field(atom: AtomType | None) -> ir.Attribute:
    """The attribute that names the cache policy among the run-time fields of an atom."""
    assert atom is not None
    return ir.Attribute.parse(f"#cute_nvgpu.atom_copy_field_{atom.kind}<cache_policy>")


def policy_value(copy: ir.Operation, atom: AtomType) -> ir.Value:
    """The cache policy of a copy whose atom carries one, as an i64 value in front of the copy."""
    if setter := policy_setter(copy):
        return operands(setter)[1]
    with ir.InsertionPoint(copy), copy.location:
        getter = ir.Operation.create(
            GET_VALUE, [ir.IntegerType.get_signless(64)], operands(copy)[:1], {"field": policy_field(atom)}
        )
    return results(getter)[0]
