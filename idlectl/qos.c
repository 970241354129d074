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
qos_apply(struct control *c, const struct word *w, struct err *err)
{
	char *path = sys_format(FILE_OF, c->cpu), *value = sys_format("%" PRIu64, w->number);
	int rc;

	if (!sys_exists("%s", path))
		rc = err_set(err, EXIT_SKIPPED, "limit: this kernel has no latency limit of CPU %u",
				c->cpu);
	else
		rc = journal_write(&c->journal, path, value, err);
	free(path);
	free(value);
	return rc;
}

int
qos_verify(struct control *c, const struct word *w, struct err *err)
{
	uint64_t now = 0;

	if (sys_read_u64(&now, FILE_OF, c->cpu) && now == w->number)
		return 0;
	return err_set(err, EXIT_FAILED,
			"limit: CPU %u has a limit of %" PRIu64 " us, not %" PRIu64, c->cpu, now,
			w->number);
}
