/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <stdlib.h>

#include "mechanisms.h"
#include "sysroot.h"

#define FILE_OF SYS_CPU "/cpu%u/online"

/* Whether this process could go on without the CPU. */
static bool
may_run_elsewhere(unsigned int cpu)
{
	hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
	char *status = sys_read("/proc/self/status"), *save = NULL;
	bool elsewhere;

	/* Not sched_getaffinity(), whose mask has a size that has to be guessed. */
	for (char *line = status == NULL ? NULL : strtok_r(status, "\n", &save); line != NULL;
			line = strtok_r(NULL, "\n", &save))
		if (strncmp(line, "Cpus_allowed_list:\t", 19) == 0)
			hwloc_bitmap_list_sscanf(allowed, line + 19);
	hwloc_bitmap_clr(allowed, cpu);
	elsewhere = !hwloc_bitmap_iszero(allowed);
	hwloc_bitmap_free(allowed);
	free(status);
	return elsewhere;
}

int
hotplug_check(unsigned int cpu, const struct word_row *row, struct err *err)
{
	(void)row;
	if (!sys_exists(FILE_OF, cpu))
		return err_set(err, EXIT_SKIPPED, "CPU %u cannot be taken off line", cpu);
	return 0;
}

int
hotplug_apply(struct control *c, const struct word *w, struct err *err)
{
	char *path;
	int rc;

	(void)w;
	if (sys_live() && !may_run_elsewhere(c->cpu))
		return err_set(err, EXIT_USAGE,
				"offline: CPU %u is the only one that this process may run on",
				c->cpu);
	path = sys_format(FILE_OF, c->cpu);
	rc = journal_write(&c->journal, path, "0", err);
	free(path);
	return rc;
}

bool
hotplug_online(unsigned int cpu)
{
	uint64_t online = 1;

	sys_read_u64(&online, FILE_OF, cpu);
	return online != 0;
}

int
hotplug_verify(struct control *c, const struct word *w, struct err *err)
{
	(void)w;
	if (!hotplug_online(c->cpu))
		return 0;
	return err_set(err, EXIT_FAILED, "offline: CPU %u is on line", c->cpu);
}
