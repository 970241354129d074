#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# sibidle.ko under QEMU: leases, refusals, malformed ioctls, and cycles of load, hook, toggle,
# unhook, unload, on both kernels. CYCLES a kernel (60), CALLS of the fuzz loop (100000).
. tests/lab/lab.sh

for kernel in 6.1 6.12; do
	lab_kernel $kernel qemu naive leak
	# With slub_debug the slab counts are exact, and overruns are seen.
	lab "$kernel" qemu --kernel $kernel --append slub_debug=FZ -- \
		/lib/lab/both qemu "${CYCLES:-60}" "${CALLS:-100000}"
	# What the test is worth: the naive order of unloading does not pass it.
	machine qemu --kernel $kernel -- \
		/lib/lab/sibidle_test cycles 100 /lib/lab/sibidle-naive.ko
	ok "$kernel: the naive order of unloading is found out" eval \
		'[ $rc -eq 125 ] || grep -q "^not ok 1 .*unhook" "$out"'
done

lab "not Intel's, no MWAIT, TSC unstable" qemu --kernel $kernel --model EPYC,-monitor --append tsc=unstable -- \
	sh /lib/lab/probes.sh unstable
machine qemu --kernel $kernel --append mitigations=off -- /lib/lab/sibidle_test no_mitigation
ok "clear is refused without mitigations" grep -q "^ok 1 .*mitigation is off" "$out"
ok "reboot gives leased CPUs back" eval 'grep -q "^ok 2" "$out" &&
	grep -q "sibidle: 2 CPUs given back: the machine shuts down" "$log"'

end_tests
