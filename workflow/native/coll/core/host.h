/* The host of this process and the group (switch) of that host: from MPI, COLL_HOSTS and COLL_GROUPS. */
#ifndef CORE_HOST_H
#define CORE_HOST_H

#include "core/call.h"

/* Reads and checks COLL_HOSTS and COLL_GROUPS entirely, without communication. Returns false and sets the message of
 * core/settings.h if they are invalid. */
bool coll_host_init(void);
const char *coll_host(void);          /* name of the node of this process */
bool coll_host_is_given(void);        /* whether COLL_HOSTS is set */
bool coll_groups_are_given(void);     /* whether COLL_GROUPS is set */
const char *coll_group_of_host(void); /* NULL when COLL_GROUPS does not list the host */
void coll_host_free(void);

#endif
