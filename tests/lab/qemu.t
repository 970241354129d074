#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# sibidle.ko under QEMU: leases, refusals, malformed ioctls, and cycles of load, hook, toggle,
# unhook, unload, on both kernels. CYCLES a kernel (100), CALLS of the fuzz loop (100000).
. tests/lab/lab.sh

for kernel in 6.1 6.12; do
	lab_kernel $kernel
	lab "$kernel" qemu --kernel $kernel --build "$BUILD" --timeout "${LIMIT:-900}" -- \
		/lib/lab/sibidle_test qemu "${CYCLES:-100}" "${CALLS:-100000}"
	# What the test is worth: the naive order of unloading does not pass it.
	scripts/lab qemu --kernel $kernel --module "${image%/image}/ours/sibidle.ko" \
		--modules "$image" --log "$BUILD/lab/naive-$kernel.log" --timeout 300 -- \
		/lib/lab/sibidle_test cycles 100 /lib/lab/sibidle-naive.ko \
		>"$BUILD/lab/naive.out" 2>&1
	rc=$?
	ok "$kernel: the naive order of unloading is found out" eval \
		'[ $rc -eq 125 ] || grep -q "^not ok 1 .*unhook" "$BUILD/lab/naive.out"'
done

end_tests
