/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "command.h"
#include "sysroot.h"

int
command_cpu(const struct options *o, const struct topology *t, int fallback, bool off,
		struct err *err)
{
	int cpu = o->cpu >= 0 ? o->cpu : fallback;
	hwloc_bitmap_t valid;
	char *list = NULL;
	bool found;

	valid = hwloc_bitmap_dup(t->online);
	if (off) {
		hwloc_bitmap_t present = hwloc_bitmap_alloc();

		if (sys_read_list(present, SYS_CPU "/present"))
			hwloc_bitmap_or(valid, valid, present);
		hwloc_bitmap_free(present);
	}
	found = cpu >= 0 && hwloc_bitmap_isset(valid, (unsigned int)cpu);
	if (!found) {
		hwloc_bitmap_list_asprintf(&list, valid);
		err_set(err, EXIT_USAGE, "--cpu %d: off line or does not exist; there are %s", cpu,
				list != NULL ? list : "none");
		free(list);
	}
	hwloc_bitmap_free(valid);
	return found ? cpu : -1;
}

void
command_json(const json_t *json, size_t flags)
{
	json_dumpf(json, stdout, flags);
	putchar('\n');
}
