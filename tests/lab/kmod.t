#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The module as source and as built: by the headers of both kernels and of their flavours, without
# a warning of gcc or sparse, and with nothing in the hook that must not be there.
. tests/lab/lab.sh

# builds RELEASE OUT ARGUMENTS: without a word
builds() {
	local release=$1 out=$2
	shift 2
	scripts/kmod --release "$release" --out "$out" "$@" >"$tmp/log" 2>&1 && [ ! -s "$tmp/log" ] &&
		[ -s "$out/sibidle.ko" ] && return 0
	cat "$tmp/log"
	return 1
}

for kernel in 6.1 6.12; do
	for flavour in amd64 rt-amd64 cloud-amd64; do
		release=$(scripts/headers $kernel $flavour) || bail "no headers of $kernel $flavour"
		ok "$release: builds with W=1 and WERROR, without a warning" \
			builds "$release" "$tmp/$release" W=1 CONFIG_WERROR=y
		ok "$release: and without one of sparse" \
			builds "$release" "$tmp/sparse-$release" C=2
		# Elsewhere the kernel's own inline functions are longer.
		counts=
		[ $flavour != amd64 ] || counts=counts
		/usr/bin/python3 tests/lab/paths.py "$tmp/$release/sibidle.ko" $counts >"$tmp/paths"
		pass_on "$release" $? <"$tmp/paths"
	done
	release=$(scripts/headers $kernel)
	ok "$release: the module is licensed and versioned" eval \
		'strings -a "$tmp/$release/sibidle.ko" | grep -qx license=GPL &&
			strings -a "$tmp/$release/sibidle.ko" | grep -qx version=0.1.0'
done

# By hand, in a copy elsewhere, both ways.
cp -r kmod "$tmp/copy"
make -s -C "$tmp/copy" clean KDIR="/usr/src/linux-headers-$release" >/dev/null 2>&1
ok "make -C kmod" make -s -C "$tmp/copy" KDIR="/usr/src/linux-headers-$release"
ok "make -C HEADERS M=DIR modules" eval 'make -s -C "$tmp/copy" clean \
	KDIR="/usr/src/linux-headers-$release" && make -s -C "/usr/src/linux-headers-$release" \
	M="$tmp/copy" modules'
ok "make install puts the rules in their places" eval 'make -s -C "$tmp/copy" install \
	KDIR="/usr/src/linux-headers-$release" DEPMOD=true \
	INSTALL_MOD_PATH="$tmp/root" DESTDIR="$tmp/root" >"$tmp/log" 2>&1 &&
	[ -s "$tmp/root/etc/udev/rules.d/90-sibidle.rules" ] &&
	[ -s "$tmp/root/etc/modprobe.d/sibidle.conf" ] &&
	[ -n "$(find "$tmp/root/lib/modules/$release" -name "sibidle.ko*")" ]'

# The ABI stands alone, without padding, in C and C++.
printf '#include "sibidle.h"\nstruct sibidle_info i; struct sibidle_set s;\n' >"$tmp/abi.c"
printf 'struct sibidle_stats t; struct sibidle_register r;\n' >>"$tmp/abi.c"
ok "sibidle.h is C11, without padding" gcc -std=c11 -pedantic -Wall -Wextra -Wpadded -Werror \
	-Ikmod -c -o /dev/null "$tmp/abi.c"
ok "the same for 32 bits, which has the same layout" gcc -m32 -std=c11 -Wpadded -Werror -Ikmod \
	-isystem "/usr/include/$(gcc -print-multiarch)" -fsyntax-only "$tmp/abi.c"
ok "nothing in it is Linux 6.12's alone" eval '! grep -n "KERNEL_VERSION" kmod/hook.c kmod/lease.c'
# dkms.conf is shell, and names what is there.
ok "dkms.conf names the module and its version" eval '(dkms_tree=/ kernel_source_dir=/ &&
	. kmod/dkms.conf && [ "${BUILT_MODULE_NAME[0]}" = sibidle ] &&
	grep -q "MODULE_VERSION(\"$PACKAGE_VERSION\")" kmod/lease.c)'

end_tests
