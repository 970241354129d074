/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "mechanisms.h"
#include "sysroot.h"

/* In this file 0 means no limit and "n/a" a limit of 0: the scenario's limit is 1 and more. */
#define FILE_OF SYS_CPU "/cpu%u/power/pm_qos_resume_latency_us"

int
qos_check(unsigned int cpu, const struct word_row *row, struct err *err)
{
	if (!sys_exists(FILE_OF, cpu))
		return err_set(err, EXIT_SKIPPED, "this kernel has no latency limit of CPU %u",
				cpu);
	/* There is nothing to limit then. */
	return cpuidle_check(cpu, row, err);
}

int
qos_apply(struct control *c, const struct word *w, struct err *err)
{
	char *path = sys_format(FILE_OF, c->cpu), *value = sys_format("%" PRIu64, w->number);
	int rc = journal_write(&c->journal, path, value, err);

	free(path);
	free(value);
	return rc;
}

bool
qos_allows(const struct word *limit, const struct idle_state *state)
{
	return state->latency_us <= limit->number;
}

int
qos_verify(struct control *c, const struct word *w, struct err *err)
{
	struct idle_states states;
	bool allowed[IDLE_STATES_MAX] = { false };
	uint64_t now = 0;

	if (!sys_read_u64(&now, FILE_OF, c->cpu) || now != w->number)
		return err_set(err, EXIT_FAILED,
				"limit: CPU %u has a limit of %" PRIu64 " us, not %" PRIu64, c->cpu,
				now, w->number);
	/* A held state was watched, and fits. */
	if (!sys_live() || load_never_idles(c->scenario) ||
			scenario_word(c->scenario, WORD_STATE) != NULL)
		return 0;
	cpuidle_read(&states, c->cpu);
	for (unsigned int i = 0; i < states.nb; i++)
		allowed[i] = qos_allows(w, &states.at[i]);
	return cpuidle_watch(c->cpu, w, allowed, err);
}
