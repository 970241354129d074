#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# sibidle.ko under Bochs, with real intel_idle and kernel IBRS: what is in the register in idle,
# and no interrupt handler without IBRS. KERNELS (6.1), TOGGLES under interrupts (200).
. tests/lab/lab.sh

for kernel in ${KERNELS:-6.1}; do
	lab_kernel "$kernel"
	lab "$kernel, emulated" bochs --kernel "$kernel" --build "$BUILD" --timeout \
		"${LIMIT:-900}" -- /lib/lab/sibidle_test bochs "${TOGGLES:-200}"
done

end_tests
