// SPDX-License-Identifier: GPL-2.0-only
/*
 * The idle callback: what runs between "this CPU has nothing to do" and "it has", in place of
 * the driver's own callback.
 *
 * RCU does not watch there and interrupts are off: no lock, no printk, no tracepoint, and between
 * the two writes of IA32_SPEC_CTRL no return and no indirect branch either, because nothing
 * restricts speculation there. docs/kernel-module.md has the argument in full.
 */
#include <linux/cpu.h>
#include <linux/cpuidle.h>
#include <linux/delay.h>
#include <linux/kallsyms.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/sched/smt.h>
#include <linux/smp.h>
#include <asm/cpufeature.h>
#include <asm/msr.h>
#include <asm/mwait.h>
#include <asm/nospec-branch.h>
#include <asm/tsc.h>

#include "compat.h"
#include "hook.h"

static_assert(SIBIDLE_STATES_MAX == CPUIDLE_STATE_MAX);
static_assert(SIBIDLE_NAME_LEN >= CPUIDLE_NAME_LEN);

/* intel_idle's private bits of cpuidle_state.flags, drivers/idle/intel_idle.c. */
#define FLAG_IBRS	 BIT(16) /* the callback clears IBRS */
#define FLAG_INIT_XSTATE BIT(17) /* the callback resets AMX state first */
#define FLAG_HINT(flags) (((flags) >> 24) & 0xff) /* flg2MWAIT() */

#define HINT_IRQ_WAKES 1 /* MWAIT ECX bit 0: a masked interrupt ends it too */

typedef int (*enter_fn)(struct cpuidle_device *dev, struct cpuidle_driver *drv, int index);

/* What is swapped. Written with cpuidle paused, read by the hook. */
struct hooked_state {
	enter_fn enter; /* NULL: left alone */
	u32 hint;
	bool modes; /* has keep and clear */
};

static struct hooked_state hooked[CPUIDLE_STATE_MAX];
static struct cpuidle_driver *hooked_driver; /* NULL: not installed */
static bool chained;

#define CELLS (SIBIDLE_MODES * CPUIDLE_STATE_MAX) /* mode * CPUIDLE_STATE_MAX + state */

struct hook_cpu {
	/* Written by sibidle_hook_mode(). */
	u32 mode;
	bool sample;

	/* Written by this CPU with interrupts off. */
	u32 running; /* cell of the period that runs, SIBIDLE_AWAKE outside the hook */
	u32 seq; /* odd while a period or a new value is added to its cell */
	u64 since; /* TSC when the period began */
	u64 kicks;
	u64 mismatches;
	struct sibidle_cell cells[CELLS];
};

/* Allocated: the area for static per-CPU data of all modules together is 8 KiB. */
static struct hook_cpu __percpu *hook_cpus;

static bool has_register(void)
{
	return boot_cpu_has(X86_FEATURE_MSR_SPEC_CTRL);
}

int sibidle_hook_init(void)
{
	unsigned int cpu;

	hook_cpus = alloc_percpu(struct hook_cpu);
	if (!hook_cpus)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		per_cpu_ptr(hook_cpus, cpu)->sample = has_register();
		per_cpu_ptr(hook_cpus, cpu)->running = SIBIDLE_AWAKE;
	}
	return 0;
}

void sibidle_hook_exit(void)
{
	free_percpu(hook_cpus);
}

/*
 * Begin and end of a period. Barriers for the compiler are enough: x86 shows the stores of this
 * CPU in their order, and who reads running finds the start that belongs to it.
 */
static __always_inline u64 period_begin(struct hook_cpu *c, u32 running)
{
	u64 start = rdtsc();

	c->since = start;
	barrier();
	WRITE_ONCE(c->running, running);
	return start;
}

static __always_inline void period_end(struct hook_cpu *c, struct sibidle_cell *cell, u64 start)
{
	c->seq++;
	barrier();
	cell->ticks += rdtsc() - start;
	cell->entries++;
	WRITE_ONCE(c->running, SIBIDLE_AWAKE);
	barrier();
	c->seq++;
}

/*
 * Count a reading under its value: nearly always the first one. No call, since it runs with IBRS
 * clear.
 */
static __always_inline void take_sample(struct hook_cpu *c, struct sibidle_cell *cell)
{
	u64 value = __rdmsr(MSR_IA32_SPEC_CTRL);
	unsigned int i;

	if (likely(cell->value[0] == value)) {
		cell->count[0]++;
		return;
	}
	/* A reader must not find a count without its value. */
	c->seq++;
	barrier();
	for (i = 0; i < SIBIDLE_VALUES_MAX; i++) {
		if (cell->count[i] == 0)
			cell->value[i] = value;
		if (cell->value[i] == value) {
			cell->count[i]++;
			break;
		}
	}
	if (i == SIBIDLE_VALUES_MAX)
		cell->other++;
	barrier();
	c->seq++;
}

/*
 * keep and clear: MWAIT with interrupts off. Flattened, since the compiler may otherwise leave what
 * is only "inline" in the headers out of line, and a return would stand between the two writes.
 */
static noinstr __flatten int sleep_ourselves(struct hook_cpu *c, const struct hooked_state *s,
					     u32 mode, int index)
{
	u32 running = mode * CPUIDLE_STATE_MAX + index;
	struct sibidle_cell *cell = &c->cells[running];
	u64 start = period_begin(c, running);

	/*
	 * The shadow stays as it is: an NMI that arrives before the second write finds in it that
	 * IBRS is wanted, sets the register and puts our 0 back. The restored value is the
	 * shadow's, because under kernel IBRS a context switch changes nothing else.
	 */
	if (mode == SIBIDLE_CLEAR)
		native_wrmsrl(MSR_IA32_SPEC_CTRL, 0);
	if (c->sample)
		take_sample(c, cell);
	mwait_idle_with_hints(s->hint, HINT_IRQ_WAKES);
	if (mode == SIBIDLE_CLEAR)
		native_wrmsrl(MSR_IA32_SPEC_CTRL, this_cpu_read(x86_spec_ctrl_current));

	period_end(c, cell, start);
	return index;
}

/* stock: the driver's callback. */
static noinstr int sleep_as_driver(struct cpuidle_device *dev, struct cpuidle_driver *drv,
				   int index)
{
	struct hook_cpu *c = raw_cpu_ptr(hook_cpus);
	struct sibidle_cell *cell = &c->cells[SIBIDLE_STOCK * CPUIDLE_STATE_MAX + index];
	u64 start;

	OPTIMIZER_HIDE_VAR(cell); /* keeps it, instead of working it out again */
	start = period_begin(c, SIBIDLE_STOCK * CPUIDLE_STATE_MAX + index);
	if (c->sample)
		take_sample(c, cell);
	index = hooked[index].enter(dev, drv, index);
	if (!raw_irqs_disabled())
		sibidle_irq_disable();
	period_end(c, cell, start);
	return index;
}

static noinstr int hook_enter(struct cpuidle_device *dev, struct cpuidle_driver *drv, int index)
{
	struct hook_cpu *c = raw_cpu_ptr(hook_cpus);
	const struct hooked_state *s = &hooked[index];
	u32 mode = READ_ONCE(c->mode);

	if (mode != SIBIDLE_STOCK && s->modes)
		return sleep_ourselves(c, s, mode, index);
	return sleep_as_driver(dev, drv, index);
}

/*
 * Runs on the CPU, wakes it by that, and looks whether IBRS is as the kernel wants it. Only that bit:
 * under kernel IBRS a context switch writes a task's STIBP and SSBD to the shadow alone, and the
 * register follows when the task returns to user space.
 */
static void arrive(void *unused)
{
	struct hook_cpu *c = this_cpu_ptr(hook_cpus);
	u64 shadow, value;

	WRITE_ONCE(c->kicks, c->kicks + 1);
	if (!has_register())
		return;
	shadow = this_cpu_read(x86_spec_ctrl_current);
	rdmsrl(MSR_IA32_SPEC_CTRL, value);
	if ((value ^ shadow) & SPEC_CTRL_IBRS) {
		WRITE_ONCE(c->mismatches, c->mismatches + 1);
		wrmsrl(MSR_IA32_SPEC_CTRL, shadow);
	}
}

void sibidle_hook_mode(unsigned int cpu, enum sibidle_mode mode, bool sample)
{
	struct hook_cpu *c = per_cpu_ptr(hook_cpus, cpu);

	WRITE_ONCE(c->sample, sample && has_register());
	if (READ_ONCE(c->mode) == mode)
		return;
	WRITE_ONCE(c->mode, mode);
	/* An idle CPU sleeping by MWAIT is woken by a write to its flags, others by an IPI. */
	smp_call_function_single(cpu, arrive, NULL, 1);
}

enum sibidle_mode sibidle_hook_mode_of(unsigned int cpu)
{
	return READ_ONCE(per_cpu_ptr(hook_cpus, cpu)->mode);
}

/*
 * The idle driver with a reference on its module, or NULL. A module's memory outlives a grace
 * period after its driver is unregistered, so what is found here can be asked for one.
 */
static struct cpuidle_driver *driver_get(void)
{
	struct cpuidle_driver *drv;

	rcu_read_lock();
	drv = cpuidle_get_driver();
	if (drv && !try_module_get(drv->owner))
		drv = NULL;
	rcu_read_unlock();
	return drv;
}

static void driver_put(struct cpuidle_driver *drv)
{
	if (drv)
		module_put(drv->owner);
}

static bool is_intel_idle(const struct cpuidle_driver *drv)
{
	return strcmp(drv->name, "intel_idle") == 0;
}

/* MWAIT whose ECX bit 0 counts, as intel_idle demands too. */
static bool can_mwait(void)
{
	u32 needed = CPUID5_ECX_EXTENSIONS_SUPPORTED | CPUID5_ECX_INTERRUPT_BREAK;

	return boot_cpu_has(X86_FEATURE_MWAIT) && !boot_cpu_has_bug(X86_BUG_MONITOR) &&
	       boot_cpu_data.cpuid_level >= CPUID_MWAIT_LEAF &&
	       (cpuid_ecx(CPUID_MWAIT_LEAF) & needed) == needed;
}

static bool hookable(const struct cpuidle_state *state)
{
	return state->enter && !(state->flags & (CPUIDLE_FLAG_POLLING | CPUIDLE_FLAG_COUPLED |
						 CPUIDLE_FLAG_RCU_IDLE));
}

/* The driver's own callback, whether hooked or not. */
static enter_fn stock_callback(const struct cpuidle_driver *drv, int i)
{
	return drv == hooked_driver && hooked[i].enter ? hooked[i].enter : drv->states[i].enter;
}

/* The last part of a symbol's name, as the idle drivers name their callbacks. */
static void callback_name(enter_fn enter, char name[SIBIDLE_SYMBOL_LEN])
{
	char symbol[KSYM_SYMBOL_LEN];

	sprint_symbol_no_offset(symbol, (unsigned long)enter);
	strscpy(name, symbol, SIBIDLE_SYMBOL_LEN);
}

static bool has_modes(const struct cpuidle_driver *drv, int i)
{
	const struct cpuidle_state *state = &drv->states[i];
	char name[SIBIDLE_SYMBOL_LEN];

	if (drv == hooked_driver)
		return hooked[i].modes;
	if (!is_intel_idle(drv) || !can_mwait() || !hookable(state))
		return false;
	/* Only the callback knows how to put AMX state aside. */
	if ((state->flags & FLAG_INIT_XSTATE) && boot_cpu_has(X86_FEATURE_AMX_TILE))
		return false;
	/* In some guests intel_idle sleeps by HLT and its states carry no hint. */
	callback_name(stock_callback(drv, i), name);
	return !strstarts(name, "intel_idle_hlt");
}

static bool any_modes(const struct cpuidle_driver *drv)
{
	int i;

	for (i = 0; i < drv->state_count; i++)
		if (has_modes(drv, i))
			return true;
	return false;
}

int sibidle_hook_install(void)
{
	struct cpuidle_driver *drv;
	int i;

	if (hooked_driver)
		return 0;
	drv = driver_get();
	if (!drv)
		return -ENODEV;
	cpuidle_pause_and_lock();
	for (i = 0; i < drv->state_count; i++) {
		if (!hookable(&drv->states[i]))
			continue;
		hooked[i].modes = has_modes(drv, i);
		hooked[i].hint = FLAG_HINT(drv->states[i].flags);
		hooked[i].enter = drv->states[i].enter;
		/* The hook finds what it needs as soon as it can be found. */
		smp_wmb();
		WRITE_ONCE(drv->states[i].enter, hook_enter);
	}
	hooked_driver = drv;
	/* The code has to stay until no CPU can be in it. */
	__module_get(THIS_MODULE);
	cpuidle_resume_and_unlock();
	return 0;
}

static bool any_inside(void)
{
	unsigned int cpu;

	for_each_online_cpu(cpu)
		if (READ_ONCE(per_cpu_ptr(hook_cpus, cpu)->running) != SIBIDLE_AWAKE)
			return true;
	return false;
}

bool sibidle_hook_remove(void)
{
	struct cpuidle_driver *drv = hooked_driver;
	int i;

	if (!drv)
		return true;
	cpuidle_pause_and_lock();
	chained = false;
	/*
	 * The driver itself may have put its callback back meanwhile, as acpi_idle does when the
	 * firmware's states change. Only an address that is neither its nor ours is a stranger's.
	 */
	for (i = 0; i < CPUIDLE_STATE_MAX; i++)
		if (hooked[i].enter && READ_ONCE(drv->states[i].enter) != hook_enter &&
		    READ_ONCE(drv->states[i].enter) != hooked[i].enter)
			chained = true;
	if (chained) {
		cpuidle_resume_and_unlock();
		return false;
	}
	for (i = 0; i < CPUIDLE_STATE_MAX; i++)
		if (READ_ONCE(drv->states[i].enter) == hook_enter)
			WRITE_ONCE(drv->states[i].enter, hooked[i].enter);
	cpuidle_resume_and_unlock();

	/*
	 * A CPU may have read our address without having reached our code: it has interrupts
	 * off, so it answers an IPI only when it is through. It may be inside a callback that
	 * takes interrupts while it sleeps: then it answers and is still inside, so it is woken
	 * until it is out. And it may have left the last marked line without having returned:
	 * that is what the second IPI is for.
	 */
	kick_all_cpus_sync();
	while (any_inside()) {
		wake_up_all_idle_cpus();
		usleep_range(100, 500);
	}
	kick_all_cpus_sync();

	memset(hooked, 0, sizeof(hooked));
	hooked_driver = NULL;
	driver_put(drv);
	module_put(THIS_MODULE);
	return true;
}

bool sibidle_hook_installed(void)
{
	return hooked_driver;
}

bool sibidle_hook_chained(void)
{
	return chained;
}

/* Why there is no kernel IBRS to clear. X86_FEATURE_KERNEL_IBRS alone says that there is. */
static enum sibidle_refusal ibrs_refusal(void)
{
	if (boot_cpu_has(X86_FEATURE_KERNEL_IBRS))
		return SIBIDLE_OK;
	if (boot_cpu_data.x86_vendor != X86_VENDOR_INTEL)
		return SIBIDLE_NOT_INTEL;
	/* Under enhanced IBRS the bit is set once and for all. */
	if (x86_spec_ctrl_base & SPEC_CTRL_IBRS)
		return SIBIDLE_EIBRS;
	if (boot_cpu_has(X86_FEATURE_RETPOLINE) || boot_cpu_has(X86_FEATURE_RETPOLINE_LFENCE))
		return SIBIDLE_OTHER_MITIGATION;
	return SIBIDLE_NO_MITIGATION;
}

enum sibidle_refusal sibidle_hook_refusal(int cpu, enum sibidle_mode mode)
{
	enum sibidle_refusal refusal = SIBIDLE_OK;
	struct cpuidle_driver *drv;

	if (cpu >= 0 && !cpu_online(cpu))
		return SIBIDLE_CPU_OFFLINE;
	if (mode == SIBIDLE_CLEAR) {
		if (ibrs_refusal() != SIBIDLE_OK)
			return ibrs_refusal();
		if (!sched_smt_active())
			return SIBIDLE_SMT_INACTIVE;
	}
	drv = driver_get();
	if (!drv)
		refusal = SIBIDLE_NO_DRIVER;
	else if (mode != SIBIDLE_STOCK && !is_intel_idle(drv))
		refusal = SIBIDLE_OTHER_DRIVER;
	else if (mode != SIBIDLE_STOCK && !any_modes(drv))
		refusal = SIBIDLE_NO_MWAIT;
	driver_put(drv);
	return refusal;
}

void sibidle_hook_info(struct sibidle_info *info)
{
	struct cpuidle_driver *drv;
	int i;

	info->stock_refusal = sibidle_hook_refusal(-1, SIBIDLE_STOCK);
	info->keep_refusal = sibidle_hook_refusal(-1, SIBIDLE_KEEP);
	info->clear_refusal = sibidle_hook_refusal(-1, SIBIDLE_CLEAR);
	if (hooked_driver)
		info->flags |= SIBIDLE_HOOKED;
	if (chained)
		info->flags |= SIBIDLE_CHAINED;
	if (has_register())
		info->flags |= SIBIDLE_REGISTER_READABLE;
	drv = driver_get();
	if (!drv)
		return;
	strscpy(info->driver, drv->name, sizeof(info->driver));
	info->nr_states = drv->state_count;
	for (i = 0; i < drv->state_count; i++) {
		struct sibidle_state *out = &info->states[i];

		strscpy(out->name, drv->states[i].name, sizeof(out->name));
		callback_name(stock_callback(drv, i), out->callback);
		if (!hookable(&drv->states[i]))
			continue;
		out->flags |= SIBIDLE_STATE_HOOKABLE;
		if (has_modes(drv, i)) {
			out->flags |= SIBIDLE_STATE_MODES;
			out->hint = FLAG_HINT(drv->states[i].flags);
		}
		if (strstarts(out->callback, "intel_idle_ibrs")) {
			out->flags |= SIBIDLE_STATE_CLEARS;
			/* Only the boot parameter has it clear where the table does not say so. */
			if (!(drv->states[i].flags & FLAG_IBRS))
				info->flags |= SIBIDLE_IBRS_OFF;
		}
	}
	driver_put(drv);
}

/*
 * A cell, when nothing was added to it meanwhile. May sleep: in a guest the CPU that adds may itself
 * be off its processor just then.
 */
static bool copy_cell(const struct hook_cpu *c, struct sibidle_cell *to,
		      const struct sibidle_cell *from)
{
	int tries;
	u32 seq;

	for (tries = 0; tries < 1000; tries++) {
		seq = READ_ONCE(c->seq);
		smp_rmb();
		data_race(memcpy(to, from, sizeof(*to)));
		smp_rmb();
		if (!(seq & 1) && READ_ONCE(c->seq) == seq)
			return true;
		if (tries < 100)
			cpu_relax();
		else
			usleep_range(100, 200);
	}
	return false;
}

int sibidle_hook_stats(struct sibidle_stats *stats)
{
	struct hook_cpu *c = per_cpu_ptr(hook_cpus, stats->cpu);
	int tries, m, i;
	u32 seq, running;

	/*
	 * A period that ended meanwhile: once more. A CPU whose periods are shorter than the time
	 * this takes never holds still; then such a short period may be missing.
	 */
	for (tries = 0; tries < 10; tries++) {
		seq = READ_ONCE(c->seq);
		smp_rmb();
		for (m = 0; m < SIBIDLE_MODES; m++)
			for (i = 0; i < CPUIDLE_STATE_MAX; i++)
				if (!copy_cell(c, &stats->cells[m][i],
					       &c->cells[m * CPUIDLE_STATE_MAX + i]))
					return -EAGAIN;
		running = READ_ONCE(c->running);
		smp_rmb();
		stats->since = READ_ONCE(c->since);
		stats->now = rdtsc_ordered();
		smp_rmb();
		if (!(seq & 1) && READ_ONCE(c->seq) == seq)
			break;
	}
	stats->idle_mode = running == SIBIDLE_AWAKE ? 0 : running / CPUIDLE_STATE_MAX;
	stats->idle_state = running == SIBIDLE_AWAKE ? running : running % CPUIDLE_STATE_MAX;
	stats->mode = READ_ONCE(c->mode);
	stats->kicks = READ_ONCE(c->kicks);
	stats->mismatches = READ_ONCE(c->mismatches);
	return 0;
}

static void read_register(void *arg)
{
	struct sibidle_register *reg = arg;

	rdmsrl(MSR_IA32_SPEC_CTRL, reg->value);
	reg->shadow = this_cpu_read(x86_spec_ctrl_current);
}

int sibidle_hook_register(struct sibidle_register *reg)
{
	if (!has_register())
		return -EOPNOTSUPP;
	return smp_call_function_single(reg->cpu, read_register, reg, 1);
}
