/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_PROMPT_H
#define APP_PROMPT_H

/*
 * testpmd's kind of command line: one table of commands, typed at a prompt or read from a file.
 */
#include <stdio.h>

#include "run.h"

/*
 * Carry out --cmdline-file, and then, with -i, what is typed, until quit, the end of the input or a signal. A line of
 * a file that fails ends it: 2 where it is no command, else what the command came to; err names file and line.
 * Returns 0, or -1 with err set.
 */
int prompt_run(struct run *r, struct err *err);

/* The commands with what they do, as text; for help, and, as troff, for the man page. */
void prompt_help(FILE *out);
void prompt_man(FILE *out);

#endif
