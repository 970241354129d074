// SPDX-License-Identifier: GPL-2.0-only
/*
 * eoi: the x2APIC's end of interrupt, written directly and through the kernel's callback, while no
 * interrupt is in service: there is none to end. That the APIC does nothing then is inferred.
 */
#include <asm/apic.h>

#include "compat.h"
#include "probe.h"

#define X2APIC_EOI 0x80b
#define X2APIC_ISR 0x810 /* the first of 8 registers of 32 bits */

static bool in_service(void)
{
	unsigned int i;

	for (i = 0; i < 8; i++)
		if (__rdmsr(X2APIC_ISR + i))
			return true;
	return false;
}

static int direct(struct probe_run *run, struct sibidle_sample *s)
{
	if (in_service())
		return -EBUSY;
	s->begin = probe_tsc();
	native_wrmsrl(X2APIC_EOI, 0);
	s->end = probe_tsc();
	return 0;
}

static int callback(struct probe_run *run, struct sibidle_sample *s)
{
	if (in_service())
		return -EBUSY;
	s->begin = probe_tsc();
	sibidle_apic_eoi();
	s->end = probe_tsc();
	return 0;
}

static const struct probe_op ops[SIBIDLE_EOI_OPS] = {
	[SIBIDLE_EOI_NOTHING] = { .once = probe_nothing },
	[SIBIDLE_EOI_DIRECT] = { .once = direct, .refusal = probe_needs_x2apic },
	[SIBIDLE_EOI_CALLBACK] = { .once = callback, .refusal = probe_needs_x2apic },
};

const struct probe probe_eoi = {
	.ops = ops,
	.nr_ops = SIBIDLE_EOI_OPS,
};
