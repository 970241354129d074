/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_RESUME_H
#define APP_RESUME_H

/*
 * resume.json: what --resume needs to go on with a run, and what has to be as it was for that.
 */
#include <jansson.h>

#include "err.h"
#include "experiment.h"

struct resume {
	json_t *machine; /* what has to be the same: resume_machine() */
	json_t *before; /* environment_json() when the run began */
	char run_id[64];
	uint64_t tsc_hz; /* 0 before the first block */
	uint32_t sessions; /* that measured, 1 at least */
	struct checkpoint done;
};

/*
 * The boot, the machine's software, the CPUs, and the command line but for --resume and --dry-run. A new
 * reference.
 */
json_t *resume_machine(int argc, char *const argv[], const struct placement *p);

/*
 * Read dir/resume.json into a zeroed r. Returns 1, 0 where the directory is missing or empty and a run has
 * to begin, or -1 with err set (exit code 1): a finished run, or a file that is none of ours.
 */
int resume_read(struct resume *r, const char *dir, struct err *err);

/* Whether the machine is as it was; else -1 with err set (exit code 1), which says what differs. */
int resume_check(const struct resume *r, const json_t *machine, const char *dir, struct err *err);

/* What resume_read() reads. A new reference. */
json_t *resume_json(const struct resume *r);

void resume_free(struct resume *r);

#endif
