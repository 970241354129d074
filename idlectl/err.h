/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_ERR_H
#define IDLECTL_ERR_H

/*
 * Exit codes of all programs of this project; docs/results.md explains each.
 */
enum exit_code {
	EXIT_DONE = 0, /* done, and no regression where a verdict was asked for */
	EXIT_FAILED = 1, /* could not do it */
	EXIT_USAGE = 2, /* the command line is wrong */
	EXIT_REGRESSION = 3, /* the verdict is a regression */
	EXIT_SKIPPED = 4, /* not applicable on this machine */
	EXIT_INCONCLUSIVE = 5, /* the verdict cannot be given */
	EXIT_UNRESTORED = 6, /* the machine's state could not be put back */
};

/* Why something failed: one line for a person, and the exit code it ends in. */
struct err {
	enum exit_code code;
	char text[512];
};

/*
 * Fill in an error. The text is one line without a newline and names the culprit.
 * Returns -1, so that callers can write "return err_set(...)".
 */
int err_set(struct err *err, enum exit_code code, const char *fmt, ...)
		__attribute__((format(printf, 3, 4)));

/* Make one line of printable ASCII of text that comes from elsewhere, in place. Returns it. */
char *one_line(char *text);

#endif
