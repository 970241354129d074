/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
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
	/* One error is one line, whatever a file name or a library's message holds; names may be UTF-8. */
	for (char *c = err->text; *c != '\0'; c++)
		if (iscntrl((unsigned char)*c))
			*c = isspace((unsigned char)*c) ? ' ' : '?';
	return -1;
}

char *
one_line(char *text)
{
	for (char *c = text; *c != '\0'; c++)
		if (!isprint((unsigned char)*c) || (unsigned char)*c > 126)
			*c = isspace((unsigned char)*c) ? ' ' : '?';
	return text;
}
