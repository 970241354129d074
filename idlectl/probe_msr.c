/* SPDX-License-Identifier: BSD-3-Clause */
/* idlectl probe msr: what one WRMSR costs; with --exits, what exits of guests do. */
#include <string.h>

#include "probe_exits.h"

enum { EMPTY, SPEC_CTRL, TSC_AUX, TSC_DEADLINE, SELF_IPI };

static const struct local_case cases[] = {
	[EMPTY] = { "nothing", SIBIDLE_MSR_NOTHING, 0, 0, -1, NULL, NULL },
	[SPEC_CTRL] = { "SPEC_CTRL", SIBIDLE_MSR_SPEC_CTRL, 0, 0, EMPTY, NULL, NULL },
	[TSC_AUX] = { "TSC_AUX", SIBIDLE_MSR_TSC_AUX, 0, 0, EMPTY, NULL, NULL },
	[TSC_DEADLINE] = { "TSC_DEADLINE", SIBIDLE_MSR_TSC_DEADLINE, 0, 0, EMPTY, NULL, NULL },
	[SELF_IPI] = { "self-IPI", SIBIDLE_MSR_SELF_IPI, 0, 0, EMPTY, NULL, NULL },
};
#define NB_CASES (sizeof(cases) / sizeof(cases[0]))

int
probe_msr(struct probe_report *r, const struct probe_options *o, struct err *err)
{
	if (o->exits)
		return probe_exits(r, o, err);
	if (o->script != NULL || o->pid != 0 || o->duration > 0)
		return err_set(err, EXIT_USAGE, "--%s: needs --exits",
				o->script != NULL	      ? "script"
						: o->pid != 0 ? "pid"
							      : "duration");
	if (probe_local(r, o, SIBIDLE_PROBE_MSR, cases, NB_CASES, true, err) != 0)
		return -1;
	r->unlike = "whole exits, on the host";
	exits_publish_means(r);
	if (strcmp(probe_where(), "guest") == 0)
		report_note(r, "guest: a write that the hypervisor intercepts is timed with its exit");
	return 0;
}
