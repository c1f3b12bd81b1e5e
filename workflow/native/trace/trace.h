/* The trace of one rank: a file of fixed-size records in a shared memory mapping.
 *
 * A record is written by storing to mapped memory: this needs no system call, and the kernel keeps what was stored even
 * if the process dies. The file consists of a header and slots. A slot holds a record or, directly after its record, a
 * part of the record's list of numbers. The first slot whose operation is 0 ends the trace, also that of a killed rank.
 * Byte order and alignment are native; workflow/collstudy/launch/tracefile.py reads the file. Raise TRACE_VERSION when
 * anything here changes. */
#ifndef TRACE_H
#define TRACE_H

#include "operations.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_MAGIC "COLTRACE"
#define TRACE_VERSION 3

#define NONE (-1)

/* Most datatypes of one call: of its buffers, or of the blocks of an all-to-all with a type for each. */
enum { CALL_TYPES = 6 };

/* Times are nanoseconds since the end of MPI_Init; cpu times are those of the calling thread. */
typedef struct Record {
    uint16_t operation;
    uint16_t ran;          /* number of the text that describes what ran, see ran.c; 0: unknown. Of OP_text: its own */
    uint32_t listed;       /* length of the record's list, in the slots that follow */
    uint64_t communicator; /* 0: MPI_COMM_WORLD; else the same on all of its members, see communicator.c */
    int32_t root;          /* rank in the communicator; NONE where the operation has none */
    union {
        /* Of all operations but collectives: ranks in MPI_COMM_WORLD, or NONE, and tags. */
        struct {
            int32_t to, from;
            int32_t send_tag, receive_tag;
        };
        /* Of collectives: numbers of the texts that describe datatypes and operation, see types.c (0: no data), and
         * where the program calls, see site.c. */
        struct {
            uint16_t types[CALL_TYPES];
            uint16_t site;
            uint16_t reduction;
        };
    };
    uint32_t request;        /* number of the request that the call starts, from 1; 0: none */
    uint64_t sent, received; /* bytes in the send buffer and in the receive buffer, all blocks together */
    int64_t start, end;
    int64_t cpu_start, cpu_end;
} Record;

#define NUMBERS_PER_SLOT ((sizeof(Record) - 8) / 8)

typedef struct Header {
    char magic[8];
    uint32_t version, record_bytes;
    int32_t rank, size;
    int64_t started; /* seconds since 1970 */
    char host[64];
    char operations[512]; /* names in the order of their numbers, from 1, each followed by a blank */
} Header;

/* A call that is being recorded. */
typedef struct Call {
    bool recorded;
    int64_t start, cpu_start;
} Call;

/* file.c */
void trace_open(int rank, int size);
void trace_close(void);
/* Makes an empty file in the folder of the traces: `spawned` if the program spawns processes, which are not traced;
 * `threads` if several threads of a rank make calls; `several` if a trace of the rank was there already; `ordered` if
 * it has an operation that does not commute; `unrecorded-<what>` if it makes calls that are not recorded. */
void trace_mark(const char *name);
bool trace_is_open(void);
bool trace_has_threads(void);
void trace_set_origin(void);
Call trace_enter(void);
/* Fills in the times and stores the record with its list. */
void trace_leave(const Call *call, Record *record, const int64_t *list, uint32_t listed);
/* Stores a record of something that takes no time, with its list. */
void trace_note(Record *record, const int64_t *list, uint32_t listed);
/* Stores a record as it is, with its list. */
void trace_keep(const Record *record, const int64_t *list, uint32_t listed);

/* texts.c: each rank stores a text once, as the list of an OP_text record; records refer to it by its number, from 1.
 */
enum { TEXT_BYTES = 512 };
/* Returns the number of a text shorter than TEXT_BYTES; 0 if there are too many. */
uint16_t text_number(const char *text);

/* types.c */
/* Returns the number of the text that describes a datatype: `double`, `derived (8 B)`. */
uint16_t type_number(MPI_Datatype type);
/* The same for the operation of a reduction: `sum`, `user`. */
uint16_t reduction_number(MPI_Op op);

/* site.c */
/* Returns the number of the text that says where the program calls, from the return address of a recorded function and
 * from its frame: `0x53f2a1 _ZN9LAMMPS_NS6Thermo7computeEi /usr/lib/liblammps.so.0`, the offset in an object, the
 * exported function (or `-`) and the object; 0: unknown. */
uint16_t site_number(const void *address, const void *frame);
#define SITE_NUMBER() site_number(__builtin_return_address(0), __builtin_dwarf_cfa())

/* fortran.c */
/* Returns whether a library has the Fortran bindings of an MPI library. */
bool has_bindings(const char *library);

/* ran.c: the component and the algorithm that ran a collective; only if COLLTRACE_RAN is set. */
void ran_open(void);
/* Called when a call begins: forgets the algorithms seen before. */
void ran_begin(void);
/* Returns the number of the text that describes the collective that just returned; 0: unknown. */
uint16_t ran_number(MPI_Comm comm, enum operation operation);

/* symbols.c: the algorithms of a library that does not export them. */
void symbols_open(void);
void symbols_begin(void);
/* Writes the functions that ran since symbols_begin() to `text`, separated by `+`; false if they cannot be seen. */
bool symbols_end(char *text, size_t room);

/* communicator.c */
uint64_t communicator_id(MPI_Comm comm);
int communicator_size(MPI_Comm comm);
/* Returns the rank in MPI_COMM_WORLD of a rank of a communicator; MPI_PROC_NULL and MPI_ANY_SOURCE stay unchanged. */
int world_rank(MPI_Comm comm, int rank);
/* The same for members, which are valid after their communicator was freed. */
typedef struct Members Members;
const Members *members_of(MPI_Comm comm);
int world_rank_of(const Members *members, int rank);
/* Assigns an id to a new communicator and records its members; ignores MPI_COMM_NULL and intercommunicators. */
void communicator_created(MPI_Comm created);
/* Called before and after a call that begins to duplicate a communicator (MPI_Comm_idup). */
void communicator_duplicating(MPI_Comm comm, bool begins);

/* request.c: requests that have not completed, by handle. */
typedef struct Pending {
    uint32_t number; /* 0: unknown request */
    bool wildcard;   /* receive with a wildcard: source and tag are known at its end */
    bool cancelled;  /* the program has asked for its cancellation */
    const Members *members;
} Pending;

uint32_t request_started(MPI_Request handle, bool wildcard, MPI_Comm comm);
Pending request_find(MPI_Request handle);
/* Returns the request, which has ended. */
Pending request_ended(MPI_Request handle);
/* Persistent requests: the call that MPI_Start will start. */
void request_initialised(MPI_Request handle, const Record *what, bool wildcard, MPI_Comm comm);
/* Fills in the record of a persistent request that was started; false if its call is not recorded. */
bool request_restarted(MPI_Request handle, Record *record);
void request_freed(MPI_Request handle);
void request_cancelled(MPI_Request handle);

#endif
