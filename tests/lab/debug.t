#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The QEMU test on a debug kernel: KIND lockdep (with KASAN, PROVE_RCU, DEBUG_ATOMIC_SLEEP) or kcsan.
. tests/lab/lab.sh

tree=$(scripts/lab-kernel "${KIND:?lockdep or kcsan}") || bail "no $KIND kernel"
image=$BUILD/lab/$KIND/image
lab_modules "$tree" "$BUILD/lab/$KIND" qemu leak
lab "$KIND" qemu --image "$tree/arch/x86/boot/bzImage" --append slub_debug=FZ -- \
	/lib/lab/sibidle_test qemu "${CYCLES:-100}" "${CALLS:-100000}" $([ "$KIND" != lockdep ] || echo inexact)
end_tests
