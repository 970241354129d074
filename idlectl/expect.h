/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_EXPECT_H
#define IDLECTL_EXPECT_H

/*
 * Whether the effect is to be expected on a machine: doctor's verdict, for other programs.
 */
#include "topology.h"

enum expectation { EFFECT_EXPECTED, EFFECT_NOT_EXPECTED, EFFECT_UNKNOWN };

/* For the measured CPU; *text is the last line of idlectl doctor, to be freed. */
enum expectation doctor_expects(const struct topology *t, unsigned int cpu, char **text);

#endif
