// SPDX-License-Identifier: GPL-2.0-only
/*
 * An interrupt storm on one CPU that watches itself: timers and IPIs hit the CPU while it idles,
 * and every interrupt handler there reads IA32_SPEC_CTRL and counts whether IBRS is clear in it.
 * The readings are taken in the tracepoints at the start of the handlers, so interrupts that are
 * not of our making count too, and in the timer and the IPI themselves. It is also counted how
 * many of them interrupted code of the module "inside", which tells whether that module sleeps
 * with interrupts on.
 *
 * clear_ms holds IBRS clear for so long with interrupts on when the module is loaded: a control
 * that shows what a handler that runs without IBRS looks like here.
 */
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/kallsyms.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/smp.h>
#include <linux/tracepoint.h>
#include <asm/irq_regs.h>
#include <asm/msr.h>
#include <asm/nospec-branch.h>

static unsigned int cpu;
module_param(cpu, uint, 0444);
MODULE_PARM_DESC(cpu, "CPU that the storm hits");
static unsigned int timer_us = 500;
module_param(timer_us, uint, 0444);
MODULE_PARM_DESC(timer_us, "period of the timer");
static unsigned int ipi_us = 700;
module_param(ipi_us, uint, 0444);
MODULE_PARM_DESC(ipi_us, "time between two IPIs");
static unsigned int clear_ms;
module_param(clear_ms, uint, 0444);
MODULE_PARM_DESC(clear_ms, "control: hold IBRS clear with interrupts on for so long at load");

static char *inside = "[sibidle]";
module_param(inside, charp, 0444);
MODULE_PARM_DESC(inside, "module whose interruptions are counted, in brackets");

/* Readings, all of this CPU with interrupts off. */
static ulong timers, timers_clear, ipis, ipis_clear, handlers, handlers_clear;
module_param(timers, ulong, 0444);
module_param(timers_clear, ulong, 0444);
module_param(ipis, ulong, 0444);
module_param(ipis_clear, ulong, 0444);
module_param(handlers, ulong, 0444);
module_param(handlers_clear, ulong, 0444);
static ulong interrupted; /* of the handlers, those that interrupted the module inside */
module_param(interrupted, ulong, 0444);

static struct hrtimer timer;
static struct task_struct *sender;

static void look(ulong *all, ulong *clear)
{
	u64 value;

	if (raw_smp_processor_id() != cpu)
		return;
	WRITE_ONCE(*all, *all + 1);
	if (!boot_cpu_has(X86_FEATURE_MSR_SPEC_CTRL))
		return;
	rdmsrl(MSR_IA32_SPEC_CTRL, value);
	if (!(value & SPEC_CTRL_IBRS))
		WRITE_ONCE(*clear, *clear + 1);
}

/* One probe for tracepoints of different arguments: it looks at none of them. */
static void handler_entered(void *data)
{
	struct pt_regs *regs = get_irq_regs();
	char symbol[KSYM_SYMBOL_LEN];

	look(&handlers, &handlers_clear);
	if (raw_smp_processor_id() != cpu || !regs || user_mode(regs))
		return;
	if (regs->ip < MODULES_VADDR || regs->ip >= MODULES_END)
		return;
	sprint_symbol(symbol, regs->ip); /* ends in " [module]" */
	if (strstr(symbol, inside))
		WRITE_ONCE(interrupted, interrupted + 1);
}

static const char *const points[] = {
	"local_timer_entry",	      "reschedule_entry", "call_function_entry",
	"call_function_single_entry", "irq_work_entry",	  "irq_handler_entry",
};

static struct tracepoint *found[ARRAY_SIZE(points)];

static void find_point(struct tracepoint *tp, void *unused)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(points); i++)
		if (strcmp(tp->name, points[i]) == 0)
			found[i] = tp;
}

static enum hrtimer_restart timer_fired(struct hrtimer *t)
{
	look(&timers, &timers_clear);
	hrtimer_forward_now(t, ns_to_ktime(timer_us * 1000ULL));
	return HRTIMER_RESTART;
}

static void ipi_arrived(void *unused)
{
	look(&ipis, &ipis_clear);
}

static int send(void *unused)
{
	while (!kthread_should_stop()) {
		smp_call_function_single(cpu, ipi_arrived, NULL, 1);
		usleep_range(ipi_us, ipi_us + 50);
	}
	return 0;
}

static long start_timer(void *unused)
{
	u64 saved;

	hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	timer.function = timer_fired;
	hrtimer_start(&timer, ns_to_ktime(timer_us * 1000ULL), HRTIMER_MODE_REL_PINNED_HARD);
	if (clear_ms) {
		preempt_disable();
		rdmsrl(MSR_IA32_SPEC_CTRL, saved);
		wrmsrl(MSR_IA32_SPEC_CTRL, 0);
		mdelay(clear_ms);
		wrmsrl(MSR_IA32_SPEC_CTRL, saved);
		preempt_enable();
	}
	return 0;
}

static void unwatch(void)
{
	unsigned int i;

	hrtimer_cancel(&timer);
	for (i = 0; i < ARRAY_SIZE(points); i++)
		if (found[i])
			tracepoint_probe_unregister(found[i], handler_entered, NULL);
	tracepoint_synchronize_unregister();
}

static int __init storm_init(void)
{
	unsigned int i;

	if (clear_ms && !boot_cpu_has(X86_FEATURE_MSR_SPEC_CTRL))
		return -EOPNOTSUPP;
	for_each_kernel_tracepoint(find_point, NULL);
	for (i = 0; i < ARRAY_SIZE(points); i++)
		if (!found[i] || tracepoint_probe_register(found[i], handler_entered, NULL))
			pr_warn("storm: no tracepoint %s\n", points[i]);
	work_on_cpu(cpu, start_timer, NULL);
	sender = kthread_run(send, NULL, "sibidle_storm");
	if (IS_ERR(sender)) {
		unwatch();
		return PTR_ERR(sender);
	}
	return 0;
}

static void __exit storm_exit(void)
{
	kthread_stop(sender);
	unwatch();
}

module_init(storm_init);
module_exit(storm_exit);

MODULE_DESCRIPTION("Interrupt storm for tests of sibidle");
MODULE_LICENSE("GPL");
