/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "csv.h"

char *
csv_visible(char *text)
{
	for (char *c = text; *c != '\0'; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	return text;
}

static enum csv_end
csv_broken(const struct csv *csv, unsigned long line, const char *what, struct err *err)
{
	err_set(err, EXIT_FAILED, "%s:%lu: %s", csv->name, line, what);
	csv_visible(err->text);
	return CSV_BROKEN;
}

static int
csv_getc(struct csv *csv)
{
	int c = getc_unlocked(csv->in);

	if (c == '\n')
		csv->line++;
	return c;
}

static void
csv_store(struct csv *csv, int c)
{
	if (csv->len < sizeof(csv->field) - 1)
		csv->field[csv->len] = (char)c;
	csv->len++;
	csv->nul |= c == '\0';
}

/* What stands between quotes. Returns the character after the closing one, or EOF. */
static int
csv_quoted(struct csv *csv)
{
	for (;;) {
		int c = csv_getc(csv);

		if (c == '"') {
			c = csv_getc(csv);
			if (c != '"')
				return c;
		} else if (c == EOF) {
			return EOF;
		}
		csv_store(csv, c);
	}
}

/* Store a field. Returns the character behind it, or EOF; '\n' for a line end of either kind. */
static int
csv_take(struct csv *csv, bool *quoted)
{
	int c = csv_getc(csv);

	*quoted = c == '"';
	if (*quoted)
		c = csv_quoted(csv);
	else
		for (; c != ',' && c != '\r' && c != '\n' && c != '"' && c != EOF;
				c = csv_getc(csv))
			csv_store(csv, c);
	if (c != '\r')
		return c;
	c = csv_getc(csv);
	return c == '\n' || c == EOF ? c : '\r';
}

enum csv_end
csv_read(struct csv *csv, struct err *err)
{
	unsigned long line = csv->line;
	bool quoted;
	int c;

	csv->len = 0;
	csv->nul = false;
	c = csv_take(csv, &quoted);
	csv->field[csv->len < sizeof(csv->field) ? csv->len : sizeof(csv->field) - 1] = '\0';
	if (ferror(csv->in) != 0)
		return csv_broken(csv, line, strerror(errno), err);
	if (csv->nul)
		return csv_broken(csv, line, "a NUL byte", err);
	if (c == ',')
		return CSV_FIELD;
	if (c == '\n')
		return CSV_ROW;
	if (c == EOF && quoted && csv->line != line)
		return csv_broken(csv, line, "a quote that is never closed", err);
	if (c == EOF)
		return CSV_CUT;
	if (quoted)
		return csv_broken(csv, line, "text after a closing quote", err);
	if (c == '"')
		return csv_broken(csv, line, "a quote within a field", err);
	return csv_broken(csv, line, "a carriage return within a line", err);
}

int
csv_integer(const char *text, uint64_t max, uint64_t *value)
{
	uint64_t sum = 0;

	*value = UINT64_MAX;
	if (text[0] == '\0')
		return 0;
	for (; *text >= '0' && *text <= '9'; text++) {
		unsigned int digit = (unsigned int)(*text - '0');

		if (digit > max || sum > (max - digit) / 10)
			return -1;
		sum = sum * 10 + digit;
	}
	*value = sum;
	return *text == '\0' ? 0 : -1;
}

int
csv_number(const char *text, double *value)
{
	char *end;

	*value = NAN;
	if (text[0] == '\0')
		return 0;
	if (text[0] < '0' || text[0] > '9' || strspn(text, "0123456789.eE+-") != strlen(text))
		return -1;
	*value = strtod(text, &end);
	return *end == '\0' && isfinite(*value) ? 0 : -1;
}
