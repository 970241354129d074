/* SPDX-License-Identifier: BSD-3-Clause */
/* The forwarding modes, in testpmd's order. */
#include <stdio.h>
#include <string.h>

#include "fwd.h"

extern const struct fwd_mode fwd_io, fwd_mac, fwd_macswap, fwd_flowgen, fwd_rxonly, fwd_txonly,
		fwd_csum, fwd_icmpecho, fwd_noisy, fwd_5tswap;

static const struct fwd_mode *const modes[] = {
	&fwd_io,
	&fwd_mac,
	&fwd_macswap,
	&fwd_flowgen,
	&fwd_rxonly,
	&fwd_txonly,
	&fwd_csum,
	&fwd_icmpecho,
	&fwd_noisy,
	&fwd_5tswap,
};

const struct fwd_mode *
fwd_mode_find(const char *name)
{
	for (unsigned int i = 0; i < RTE_DIM(modes); i++)
		if (strcmp(modes[i]->name, name) == 0)
			return modes[i];
	return NULL;
}

const char *
fwd_mode_names(void)
{
	static char names[256];

	if (names[0] != '\0')
		return names;
	for (unsigned int i = 0; i < RTE_DIM(modes); i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
				i == 0 ? "" : " ", modes[i]->name);
	return names;
}
