/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_CSV_H
#define APP_CSV_H

/*
 * Fields of a CSV file, RFC 4180, from whatever bytes there are.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "err.h"

#define CSV_FIELD_MAX 256 /* bytes of a field that are kept, the final NUL included */

/* How a field ended. */
enum csv_end {
	CSV_FIELD, /* another field follows in the row */
	CSV_ROW, /* last of its row */
	CSV_CUT, /* the file ends here, without a line end */
	CSV_BROKEN, /* not CSV; err is set */
};

struct csv {
	FILE *in;
	const char *name; /* of the file, for messages */
	unsigned long line; /* of the next character, from 1 */
	bool nul; /* the field holds a NUL byte */
	size_t len; /* bytes of the field; field holds CSV_FIELD_MAX - 1 of them at the most */
	char field[CSV_FIELD_MAX];
};

/*
 * Read the next field into csv->field. LF and CRLF end a row; a line end between quotes does
 * not. CSV_BROKEN with err set (exit code 1) for a NUL byte, a stray quote or carriage return,
 * a quote that is never closed, and for an error of the stream.
 */
enum csv_end csv_read(struct csv *csv, struct err *err);

/*
 * Decimal digits only: no sign, no blank, no base. An empty text is UINT64_MAX, unknown.
 * Returns -1 for anything else and above max.
 */
int csv_integer(const char *text, uint64_t max, uint64_t *value);

/*
 * Digits with a point and an exponent, none of the other things that strtod() takes. An empty
 * text is NAN, unknown. Returns -1 for anything else and for what a double cannot hold.
 */
int csv_number(const char *text, double *value);

/* Replace control characters: garbage in a file must not command a terminal. Returns text. */
char *csv_visible(char *text);

#endif
