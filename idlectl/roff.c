/* SPDX-License-Identifier: BSD-3-Clause */
#include "roff.h"

void
roff_text(FILE *out, const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", out);
	for (; *text != '\0'; text++)
		if (*text == '-')
			fputs("\\-", out);
		else if (*text == '\\')
			fputs("\\e", out);
		else
			fputc(*text, out);
	fputc('\n', out);
}
