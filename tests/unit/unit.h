/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_H
#define UNIT_H

/*
 * What the unit tests share.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "topology.h"

/* Within a share of what is wanted. */
static inline void
assert_near(double got, double wanted, double share)
{
	if (fabs(got - wanted) <= share * fabs(wanted))
		return;
	print_error("%.12g is not %.12g within %g of it\n", got, wanted, share);
	fail();
}

/* A machine that hwloc makes up. */
static inline struct topology
synthetic(const char *text)
{
	struct topology t;
	struct err err;

	assert_int_equal(setenv("HWLOC_SYNTHETIC", text, 1), 0);
	assert_int_equal(topology_open(&t, NULL, &err), 0);
	return t;
}

#endif
