/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_MECHANISMS_H
#define IDLECTL_MECHANISMS_H

/*
 * What the rows of the scenario table call, a mechanism a file. All return 0, or -1 with err set.
 */
#include "control.h"

/* cpuidle.c: all idle states but one disabled. Verified by the counts of the states that are used. */
int cpuidle_apply(struct control *c, const struct word *w, struct err *err);
int cpuidle_verify(struct control *c, const struct word *w, struct err *err);

/* qos.c: the resume latency limit of the CPU. */
int qos_apply(struct control *c, const struct word *w, struct err *err);
int qos_verify(struct control *c, const struct word *w, struct err *err);

/* hotplug.c: the CPU off line. */
int hotplug_apply(struct control *c, const struct word *w, struct err *err);
int hotplug_verify(struct control *c, const struct word *w, struct err *err);

/* sibidle.c: a mode of the module; its lease ends with the descriptor. */
int sibidle_apply(struct control *c, const struct word *w, struct err *err);
int sibidle_verify(struct control *c, const struct word *w, struct err *err);

/* load.c: a thread on the CPU. */
enum load_kind { LOAD_BUSY, LOAD_PAUSE, LOAD_MEM, LOAD_SYSCALL, LOAD_WAKE };
int load_apply(struct control *c, const struct word *w, struct err *err);
int load_verify(struct control *c, const struct word *w, struct err *err);
void load_end(struct load *l);

/* Whether a scenario keeps the CPU from idling at all. */
bool load_never_idles(const struct scenario *s);

/* What verifying waits for an idle CPU at most. */
#define VERIFY_S 1.0

#endif
