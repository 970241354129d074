/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>

#include "err.h"

int
err_set(struct err *err, enum exit_code code, const char *fmt, ...)
{
	va_list ap;

	err->code = code;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	/* One error is one line, whatever a file name or a library's message holds. */
	for (char *c = err->text; *c != '\0'; c++)
		if (*c == '\n' || *c == '\r')
			*c = ' ';
	return -1;
}
