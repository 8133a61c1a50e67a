// RUN: not cute-cache-policy-opt %s -convert-async-copy-to-nvvm=ptxas=new 2>&1 | FileCheck %s

// CHECK: 'ptxas' expects a version such as '13.4.59', but got 'new'
