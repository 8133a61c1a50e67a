// RUN: cute-cache-policy-opt %S/copy.mlir -convert-invariant-copy-to-nvvm=gpu-arch=sm_90a -o %t.once
// RUN: cute-cache-policy-opt %t.once -convert-invariant-copy-to-nvvm=gpu-arch=sm_90a -o %t.twice
// RUN: diff %t.once %t.twice

// RUN: cute-cache-policy-opt %S/policy-flow.mlir -convert-invariant-copy-to-nvvm=gpu-arch=sm_90a -o %t.once
// RUN: cute-cache-policy-opt %t.once -convert-invariant-copy-to-nvvm=gpu-arch=sm_90a -o %t.twice
// RUN: diff %t.once %t.twice

// RUN: cute-cache-policy-opt %S/widths.mlir -convert-invariant-copy-to-nvvm=gpu-arch=sm_100a -o %t.once
// RUN: cute-cache-policy-opt %t.once -convert-invariant-copy-to-nvvm=gpu-arch=sm_100a -o %t.twice
// RUN: diff %t.once %t.twice

// The pass changes nothing when it runs again on its own output.
