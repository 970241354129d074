#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# sibidle.ko under Bochs, with real intel_idle and kernel IBRS: what is in the register in idle,
# and no interrupt handler without IBRS. KERNELS (6.1), TOGGLES under interrupts (200). With LONG=1
# more boots: the test driver in intel_idle's place, enhanced IBRS, and intel_idle.ibrs_off.
. tests/lab/lab.sh

toggles=${TOGGLES:-200}
for kernel in ${KERNELS:-6.1}; do
	lab_kernel "$kernel" norestore
	lab "$kernel, emulated" bochs --kernel "$kernel" -- /lib/lab/both bochs "$toggles"
	[ -n "${LONG-}" ] || continue
	lab "$kernel, emulated, test driver" bochs --kernel "$kernel" \
		--append intel_idle.max_cstate=0 -- /lib/lab/sibidle_test driver "$toggles"
	lab "$kernel, emulated, enhanced IBRS" bochs --kernel "$kernel" \
		--append spectre_v2=auto -- /lib/lab/sibidle_test eibrs
	[ "$kernel" != 6.12 ] || lab "$kernel, emulated, ibrs_off" bochs --kernel "$kernel" \
		--append intel_idle.ibrs_off -- /lib/lab/sibidle_test ibrs_off
done

end_tests
