/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "mechanisms.h"
#include "sysroot.h"

#define TTL_GRACE_S 2.0

static const char *const mode_words[SIBIDLE_MODES] = {
	[SIBIDLE_STOCK] = "stock",
	[SIBIDLE_KEEP] = "keep",
	[SIBIDLE_CLEAR] = "clear",
};

static const char *const refusal_texts[SIBIDLE_REFUSALS] = {
	[SIBIDLE_OK] = "available",
	[SIBIDLE_CPU_OFFLINE] = "the CPU is off line",
	[SIBIDLE_EIBRS] = "there is no kernel IBRS, enhanced IBRS is in use",
	[SIBIDLE_NOT_INTEL] = "there is no kernel IBRS on a CPU that is not Intel's",
	[SIBIDLE_OTHER_MITIGATION] =
			"there is no kernel IBRS, another spectre_v2 mitigation is in use",
	[SIBIDLE_NO_MITIGATION] = "there is no kernel IBRS, the spectre_v2 mitigation is off",
	[SIBIDLE_SMT_INACTIVE] = "SMT is not active",
	[SIBIDLE_OTHER_DRIVER] = "the idle driver is not intel_idle",
	[SIBIDLE_NO_DRIVER] = "there is no idle driver",
	[SIBIDLE_NO_MWAIT] = "no idle state sleeps by MWAIT",
	[SIBIDLE_TSC_UNSTABLE] = "the kernel does not trust the TSC",
	[SIBIDLE_NO_X2APIC] = "the APIC is not in x2APIC mode",
	[SIBIDLE_NO_SPEC_CTRL] = "the CPU has no IA32_SPEC_CTRL",
	[SIBIDLE_NO_TSC_AUX] = "the CPU has no IA32_TSC_AUX",
	[SIBIDLE_NO_TSC_DEADLINE] = "the APIC timer has no TSC-deadline mode",
};

const char *
sibidle_mode_word(unsigned int mode)
{
	return mode < SIBIDLE_MODES ? mode_words[mode] : "unknown";
}

const char *
sibidle_end_word(unsigned int end)
{
	static const char *const words[SIBIDLE_ENDS] = {
		[SIBIDLE_NEVER] = "no reason known",
		[SIBIDLE_CLOSED] = "closed",
		[SIBIDLE_EXPIRED] = "its time was over",
		[SIBIDLE_OFFLINE] = "the CPU went off line",
		[SIBIDLE_SUSPEND] = "the machine was suspended",
		[SIBIDLE_REBOOT] = "the machine shuts down",
	};

	return end < SIBIDLE_ENDS ? words[end] : "unknown reason";
}

const char *
sibidle_refusal_text(unsigned int refusal)
{
	return refusal < SIBIDLE_REFUSALS ? refusal_texts[refusal] : "unknown reason";
}

int
sibidle_open(struct sibidle *m, bool changes, struct err *err)
{
	m->fd = -1;
	if (!sys_live())
		return err_set(err, EXIT_SKIPPED, "a recorded tree has no sibidle.ko");
	m->fd = open(SIBIDLE_DEVICE, (changes ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (m->fd < 0 && (errno == ENOENT || errno == ENXIO || errno == ENODEV))
		return err_set(err, EXIT_SKIPPED,
				"%s: sibidle.ko is not loaded (docs/kernel-module.md)",
				SIBIDLE_DEVICE);
	if (m->fd < 0)
		return err_set(err, EXIT_FAILED, "%s: %s", SIBIDLE_DEVICE, strerror(errno));
	if (sibidle_refresh(m, err) == 0)
		return 0;
	sibidle_close(m);
	return -1;
}

int
sibidle_refresh(struct sibidle *m, struct err *err)
{
	memset(&m->info, 0, sizeof(m->info));
	m->info.size = sizeof(m->info);
	if (ioctl(m->fd, SIBIDLE_IOC_INFO, &m->info) == 0 && m->info.abi == SIBIDLE_ABI)
		return 0;
	return err_set(err, EXIT_SKIPPED, "the sibidle.ko that is loaded is not of this version");
}

void
sibidle_close(struct sibidle *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}

int
sibidle_stats(const struct sibidle *m, unsigned int cpu, struct sibidle_stats *stats,
		struct err *err)
{
	memset(stats, 0, sizeof(*stats));
	stats->size = sizeof(*stats);
	stats->cpu = cpu;
	if (ioctl(m->fd, SIBIDLE_IOC_STATS, stats) == 0)
		return 0;
	return err_set(err, EXIT_FAILED, "%s: counts of CPU %u: %s", SIBIDLE_DEVICE, cpu,
			strerror(errno));
}

uint64_t
sibidle_ns(const struct sibidle *m, uint64_t ticks)
{
	return m->info.tsc_khz == 0 ? 0 : (uint64_t)((double)ticks * 1e6 / m->info.tsc_khz);
}

static uint32_t
refusal(const struct sibidle_info *info, unsigned int mode)
{
	const uint32_t refusals[SIBIDLE_MODES] = {
		[SIBIDLE_STOCK] = info->stock_refusal,
		[SIBIDLE_KEEP] = info->keep_refusal,
		[SIBIDLE_CLEAR] = info->clear_refusal,
	};

	return refusals[mode];
}

int
sibidle_check(unsigned int cpu, const struct word_row *row, struct err *err)
{
	struct sibidle m;
	uint32_t why;

	(void)cpu;
	if (sibidle_open(&m, false, err) != 0)
		return -1;
	why = refusal(&m.info, row->value);
	sibidle_close(&m);
	if (why == SIBIDLE_OK)
		return 0;
	return err_set(err, EXIT_SKIPPED, "%s", sibidle_refusal_text(why));
}

/* A held state that does not know keep and clear would leave them without an effect. */
static int
check_state(const struct control *c, const struct word *w, struct err *err)
{
	const struct word *state = scenario_word(c->scenario, WORD_STATE);

	for (unsigned int i = 0; state != NULL && i < c->module.info.nr_states; i++)
		if (strcasecmp(c->module.info.states[i].name, state->name) == 0 &&
				(c->module.info.states[i].flags & SIBIDLE_STATE_MODES) == 0)
			return err_set(err, EXIT_SKIPPED, "%s: idle state %s has no such mode here",
					w->name, state->name);
	return 0;
}

static struct sibidle_samples
count(const struct sibidle_stats *s, unsigned int mode)
{
	struct sibidle_samples n = { 0 };

	for (unsigned int i = 0; i < SIBIDLE_STATES_MAX; i++) {
		const struct sibidle_cell *cell = &s->cells[mode][i];

		for (unsigned int v = 0; v < SIBIDLE_VALUES_MAX; v++) {
			n.samples += cell->count[v];
			n.with_ibrs += (cell->value[v] & SPEC_CTRL_IBRS) != 0 ? cell->count[v] : 0;
		}
	}
	return n;
}

int
sibidle_apply(struct control *c, const struct word *w, struct err *err)
{
	struct sibidle_set set = { .size = sizeof(set), .cpu = c->cpu, .mode = w->row->value };
	struct sibidle_stats stats;
	int saved;

	if (sibidle_open(&c->module, true, err) != 0)
		return -1;
	if (set.mode != SIBIDLE_STOCK && check_state(c, w, err) != 0)
		return -1;
	if (sibidle_stats(&c->module, c->cpu, &stats, err) != 0)
		return -1;
	c->at_apply = count(&stats, set.mode);
	/* For a holder that is stopped: one that runs gives everything back before. */
	if (c->ttl > 0 && 1e3 * (c->ttl + TTL_GRACE_S) <= SIBIDLE_TTL_MAX_MS) {
		set.flags |= SIBIDLE_SET_TTL;
		set.ttl_ms = (uint32_t)(1e3 * (c->ttl + TTL_GRACE_S));
	}
	if (ioctl(c->module.fd, SIBIDLE_IOC_SET, &set) == 0)
		return 0;
	saved = errno;
	if (saved == EOPNOTSUPP)
		return err_set(err, EXIT_SKIPPED, "%s: %s", w->name,
				sibidle_refusal_text(set.refusal));
	return err_set(err, EXIT_FAILED, "%s: %s: %s", w->name, SIBIDLE_DEVICE,
			saved == EBUSY ? "another program leases that CPU" : strerror(saved));
}

void
sibidle_let_go(struct control *c)
{
	struct sibidle_stats stats;
	struct err none;

	if (c->module.fd >= 0 && scenario_word(c->scenario, WORD_MODE) != NULL &&
			sibidle_stats(&c->module, c->cpu, &stats, &none) == 0 &&
			stats.owner != SIBIDLE_MINE)
		fprintf(stderr, "%s: the module let CPU %u go before its time (%s)\n", c->who,
				c->cpu, sibidle_end_word(stats.ended));
	sibidle_close(&c->module);
}

/* Returns 0 where the samples are as the mode has them. */
static int
check_samples(const struct control *c, const struct word *w, const struct sibidle_samples *n,
		struct err *err)
{
	if (w->row->value == SIBIDLE_CLEAR && n->with_ibrs != 0)
		return err_set(err, EXIT_FAILED, "clear: IBRS was set in idle on CPU %u", c->cpu);
	if (w->row->value == SIBIDLE_KEEP && n->with_ibrs != n->samples &&
			c->module.info.clear_refusal == SIBIDLE_OK)
		return err_set(err, EXIT_FAILED, "keep: IBRS was clear in idle on CPU %u", c->cpu);
	return 0;
}

/*
 * The CPU has to enter idle in the mode, and with the register as the mode has it. One that cannot be
 * woken may have done so before we look: the change of mode woke it, so that the period that runs was
 * sampled, if the register can be read, since then.
 */
static int
watch(struct control *c, const struct word *w, struct err *err)
{
	const struct timespec nap = { .tv_nsec = 2000000 };
	bool sampled = (c->module.info.flags & SIBIDLE_REGISTER_READABLE) != 0;
	bool kicked = cpuidle_kick(c->cpu);
	struct sibidle_stats stats;
	struct sibidle_samples before, n;

	if (sibidle_stats(&c->module, c->cpu, &stats, err) != 0)
		return -1;
	before = kicked ? count(&stats, w->row->value) : c->at_apply;
	for (int i = 0; i < (int)(VERIFY_S / 2e-3); i++) {
		nanosleep(&nap, NULL);
		if (kicked)
			cpuidle_kick(c->cpu);
		if (sibidle_stats(&c->module, c->cpu, &stats, err) != 0)
			return -1;
		n = count(&stats, w->row->value);
		n.samples -= before.samples;
		n.with_ibrs -= before.with_ibrs;
		if (n.samples > 0)
			return check_samples(c, w, &n, err);
		if (!sampled && stats.idle_mode == w->row->value &&
				stats.idle_state != SIBIDLE_AWAKE)
			return 0;
	}
	return err_set(err, EXIT_FAILED, "%s: CPU %u did not idle within %g s%s", w->name, c->cpu,
			VERIFY_S, kicked ? ": is it busy?" : ": this process may not wake it");
}

int
sibidle_verify(struct control *c, const struct word *w, struct err *err)
{
	struct sibidle_stats stats;

	if (sibidle_stats(&c->module, c->cpu, &stats, err) != 0)
		return -1;
	if (stats.owner != SIBIDLE_MINE || stats.mode != w->row->value)
		return err_set(err, EXIT_FAILED, "%s: CPU %u is in mode %s, and its lease is %s",
				w->name, c->cpu, sibidle_mode_word(stats.mode),
				stats.owner == SIBIDLE_MINE ? "ours" : "not ours");
	if (load_never_idles(c->scenario))
		return 0;
	return watch(c, w, err);
}
