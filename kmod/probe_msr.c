// SPDX-License-Identifier: GPL-2.0-only
/*
 * msr: one WRMSR, of registers that can be rewritten with what is in them, and of the x2APIC's
 * interrupt to oneself. On a guest it is the cost of the exit that the write causes, if it does.
 */
#include <asm/cpufeature.h>
#include <asm/irq_vectors.h>
#include <asm/msr-index.h>

#include "probe.h"

#define X2APIC_SELF_IPI 0x83f

/* Interrupts are off, so that the value is still the register's own when it is written. */
static __always_inline int rewrite(struct sibidle_sample *s, u32 msr)
{
	u64 value = __rdmsr(msr);

	s->begin = probe_tsc();
	native_wrmsrl(msr, value);
	s->end = probe_tsc();
	return 0;
}

static int spec_ctrl(struct probe_run *run, struct sibidle_sample *s)
{
	return rewrite(s, MSR_IA32_SPEC_CTRL);
}

static int tsc_aux(struct probe_run *run, struct sibidle_sample *s)
{
	return rewrite(s, MSR_TSC_AUX);
}

/*
 * A deadline that passes between reading and writing has fired once when it is read and is in the past
 * when it is written, which fires at once: with interrupts off both are one pending interrupt.
 */
static int tsc_deadline(struct probe_run *run, struct sibidle_sample *s)
{
	return rewrite(s, MSR_IA32_TSC_DEADLINE);
}

static int self_ipi(struct probe_run *run, struct sibidle_sample *s)
{
	return probe_interrupt_self(run, s, X2APIC_SELF_IPI, IRQ_WORK_VECTOR, NULL);
}

static enum sibidle_refusal needs_spec_ctrl(void)
{
	return boot_cpu_has(X86_FEATURE_MSR_SPEC_CTRL) ? SIBIDLE_OK : SIBIDLE_NO_SPEC_CTRL;
}

static enum sibidle_refusal needs_tsc_deadline(void)
{
	return boot_cpu_has(X86_FEATURE_TSC_DEADLINE_TIMER) ? SIBIDLE_OK : SIBIDLE_NO_TSC_DEADLINE;
}

static const struct probe_op ops[SIBIDLE_MSR_OPS] = {
	[SIBIDLE_MSR_NOTHING] = { .once = probe_nothing },
	[SIBIDLE_MSR_SPEC_CTRL] = { .once = spec_ctrl, .refusal = needs_spec_ctrl },
	[SIBIDLE_MSR_TSC_AUX] = { .once = tsc_aux, .refusal = probe_needs_tsc_aux },
	[SIBIDLE_MSR_TSC_DEADLINE] = { .once = tsc_deadline, .refusal = needs_tsc_deadline },
	[SIBIDLE_MSR_SELF_IPI] = { .once = self_ipi,
				   .refusal = probe_needs_x2apic,
				   .irqs_on = true },
};

const struct probe probe_msr = {
	.ops = ops,
	.nr_ops = SIBIDLE_MSR_OPS,
	.interrupts = probe_irq_work_interrupts,
};
