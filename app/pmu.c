/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pmu.h"

static int
open_event(uint64_t config, int tid, int group)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = config,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
				PERF_FORMAT_TOTAL_TIME_RUNNING,
	};

	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, group, PERF_FLAG_FD_CLOEXEC);
}

int
pmu_open(struct pmu *p, int tid, struct err *err)
{
	p->member = -1;
	p->fd = open_event(PERF_COUNT_HW_CPU_CYCLES, tid, -1);
	if (p->fd < 0 && (errno == EACCES || errno == EPERM))
		return err_set(err, EXIT_FAILED, "--record-perf-events: not permitted: %s",
				strerror(errno));
	if (p->fd < 0)
		return err_set(err, EXIT_SKIPPED,
				"--record-perf-events: this machine has no cycle counter for perf: %s",
				strerror(errno));
	p->member = open_event(PERF_COUNT_HW_INSTRUCTIONS, tid, p->fd);
	if (p->member < 0) {
		pmu_close(p);
		return err_set(err, EXIT_SKIPPED,
				"--record-perf-events: this machine has no instruction counter for perf: %s",
				strerror(errno));
	}
	return 0;
}

void
pmu_read(const struct pmu *p, struct pmu_counts *c)
{
	/* read_format: number of events, time enabled, time running, a value each. */
	uint64_t v[5];

	memset(c, 0, sizeof(*c));
	if (p->fd < 0 || read(p->fd, v, sizeof(v)) != (ssize_t)sizeof(v) || v[0] != 2)
		return;
	c->exact = v[1] == v[2];
	c->core_cycles = v[3];
	c->instructions = v[4];
}

void
pmu_close(struct pmu *p)
{
	if (p->member >= 0)
		close(p->member);
	if (p->fd >= 0)
		close(p->fd);
	p->fd = p->member = -1;
}
