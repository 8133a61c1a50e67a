// RUN: cute-cache-policy-opt %S/copy.mlir -infer-invariant-copy=gpu-arch=sm_90a -o %t.once
// RUN: cute-cache-policy-opt %t.once -infer-invariant-copy=gpu-arch=sm_90a -o %t.twice
// RUN: diff %t.once %t.twice

// RUN: cute-cache-policy-opt %S/element.mlir -infer-invariant-copy=gpu-arch=sm_90a -o %t.once
// RUN: cute-cache-policy-opt %t.once -infer-invariant-copy=gpu-arch=sm_90a -o %t.twice
// RUN: diff %t.once %t.twice
