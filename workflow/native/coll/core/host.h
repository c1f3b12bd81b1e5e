/* The host of this process and the group (switch) of that host: from MPI, COLL_HOSTS and COLL_GROUPS. */
#ifndef CORE_HOST_H
#define CORE_HOST_H

#include "core/call.h"

/* Reads and checks COLL_HOSTS and COLL_GROUPS as a whole. False, with the message of core/settings.h: they are wrong.
 * Asks no other rank. */
bool coll_host_init(void);
const char *coll_host(void);          /* name of the node of this process */
bool coll_host_is_given(void);        /* by COLL_HOSTS */
bool coll_groups_are_given(void);     /* by COLL_GROUPS */
const char *coll_group_of_host(void); /* NULL when COLL_GROUPS does not list the host */
void coll_host_free(void);

#endif
