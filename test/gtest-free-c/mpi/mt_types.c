/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Messages whose elements lie apart at one end or both: of every basic type, and of
 * structures. UCP cuts what is longer than a message of the transport into fragments,
 * and an MPI may unpack whole elements only, so that it matters where the cuts are.
 */

#include "mt.h"

#include <complex.h>
#include <stdlib.h>
#include <string.h>

#define MT_TAG_TYPE 23

/* How the elements lie. */
typedef enum {
    MT_TIGHT,     /* one behind the other                                   */
    MT_PAIRS,     /* two, and room for one                                  */
    MT_APART,     /* one, and room for one                                  */
    MT_BACKWARDS, /* the same from the end to the beginning                 */
    MT_LAYOUTS
} mt_layout_t;

/* Two members, which MPI sends one by one. The second layout is as C has it. */
typedef struct {
    double number;
    int    count;
} mt_pair_t;

/* Bytes of a message, around which something changes: what goes inline, a page,
 * zcopy, a message of the transport (softverbs and emulated devices), rendezvous. */
static const size_t mt_edges[] = {64,    128,   4096,   8192,   8256,  12272,
                                  14400, 16384, 16432,  20480,  32768, 32816,
                                  65536, 98304, 131072, 262144, 1048576};

#define MT_NUM_EDGES (sizeof(mt_edges) / sizeof(mt_edges[0]))

static MPI_Datatype mt_layout_type(mt_layout_t layout, MPI_Datatype element,
                                   size_t size, size_t count)
{
    MPI_Datatype type;

    switch (layout) {
    case MT_TIGHT:
        MPI_Type_contiguous((int)count, element, &type);
        break;
    case MT_PAIRS:
        MPI_Type_vector((int)(count / 2), 2, 3, element, &type);
        break;
    case MT_APART:
        MPI_Type_vector((int)count, 1, 2, element, &type);
        break;
    default:
        MPI_Type_create_hvector((int)count, 1, -2 * (MPI_Aint)size, element,
                                &type);
        break;
    }
    MPI_Type_commit(&type);
    return type;
}

/* In elements, where element i is, counted from the beginning of 2 * count. */
static size_t mt_layout_place(mt_layout_t layout, size_t count, size_t i)
{
    switch (layout) {
    case MT_TIGHT:
        return i;
    case MT_PAIRS:
        return (i / 2) * 3 + (i % 2);
    case MT_APART:
        return 2 * i;
    default:
        return 2 * (count - 1 - i);
    }
}

/* Where MPI is told that the buffer begins. */
static char *mt_layout_start(mt_layout_t layout, char *buffer, size_t size,
                             size_t count)
{
    return (layout == MT_BACKWARDS) ? (buffer + 2 * (count - 1) * size) : buffer;
}

/* To a rank, which may be this one, and from it, at the same time. */
static void mt_types_swap(void *tx, MPI_Datatype tx_type, void *rx,
                          MPI_Datatype rx_type, size_t bytes, int peer)
{
    MPI_Request request[2];

    MPI_Irecv(rx, 1, rx_type, peer, MT_TAG_TYPE, MPI_COMM_WORLD, &request[0]);
    MPI_Isend(tx, 1, tx_type, peer, MT_TAG_TYPE, MPI_COMM_WORLD, &request[1]);
    mt_count_sent(bytes, peer);
    mt_wait_all(2, request);
}

/* A basic type. Of a long double 10 bytes are the number, of 16 (x86-64); the others
 * are anybody's. */
typedef struct {
    MPI_Datatype type;
    size_t       size, used;
} mt_element_t;

/* Of the elements in @a packed, which a rank has sent, the bytes that are anybody's
 * become those that were sent. */
static void mt_types_pad(char *packed, const mt_element_t *element, size_t count,
                         int sender, uint64_t serial)
{
    size_t bytes = count * element->size;
    char *sent   = mt_alloc(bytes);
    size_t i, at;

    mt_fill(sent, bytes, sender, mt.rank, serial);
    for (i = 0; i < count; i++) {
        at = i * element->size + element->used;
        memcpy(packed + at, sent + at, element->size - element->used);
    }
    free(sent);
}

/* Elements are compared byte by byte: a number that is filled with any bytes may be
 * none. */
static void mt_types_message(const mt_element_t *element, size_t count,
                             mt_layout_t from, mt_layout_t to, int peer)
{
    size_t size          = element->size;
    size_t bytes         = count * size;
    char *packed         = mt_alloc(bytes);
    char *tx             = mt_alloc(2 * bytes);
    char *rx             = mt_alloc(2 * bytes);
    MPI_Datatype tx_type = mt_layout_type(from, element->type, size, count);
    MPI_Datatype rx_type = mt_layout_type(to, element->type, size, count);
    size_t i;

    mt_fill(packed, bytes, mt.rank, peer, from);
    for (i = 0; i < count; i++) {
        memcpy(tx + mt_layout_place(from, count, i) * size, packed + i * size,
               size);
    }
    memset(rx, 0, 2 * bytes);
    mt_types_swap(mt_layout_start(from, tx, size, count), tx_type,
                  mt_layout_start(to, rx, size, count), rx_type, bytes, peer);
    for (i = 0; i < count; i++) {
        memcpy(packed + i * size, rx + mt_layout_place(to, count, i) * size,
               size);
    }
    mt_types_pad(packed, element, count, peer, from);
    mt_check(packed, bytes, peer, mt.rank, from);
    MPI_Type_free(&tx_type);
    MPI_Type_free(&rx_type);
    free(packed);
    free(tx);
    free(rx);
}

/* Around each edge, tight to apart and the other way round, with a peer and with
 * oneself. An odd count has no pairs. */
static void mt_types_element(const mt_element_t *element, int peer)
{
    int layout, more;
    size_t i, count;

    for (i = 0; i < MT_NUM_EDGES; i++) {
        for (more = -1; more <= 1; more++) {
            count  = mt_edges[i] / element->size + more;
            layout = (count % 2 == 0) ? MT_PAIRS : MT_APART;
            for (; layout < MT_LAYOUTS; layout++) {
                mt_types_message(element, count, MT_TIGHT,
                                 (mt_layout_t)layout, peer);
            }
            mt_types_message(element, count, MT_APART, MT_TIGHT, peer);
        }
    }
}

/* A double and an int, 12 bytes for MPI and 16 for C. */
static MPI_Datatype mt_pair_type(int is_tight)
{
    const int lengths[2]      = {1, 1};
    const MPI_Aint places[2]  = {0, is_tight ? (MPI_Aint)sizeof(double)
                                             : (MPI_Aint)offsetof(mt_pair_t,
                                                                  count)};
    MPI_Datatype types[2]     = {MPI_DOUBLE, MPI_INT};
    MPI_Aint extent           = is_tight ? (MPI_Aint)(sizeof(double) +
                                                      sizeof(int))
                                         : (MPI_Aint)sizeof(mt_pair_t);
    MPI_Datatype members, type;

    MPI_Type_create_struct(2, lengths, places, types, &members);
    MPI_Type_create_resized(members, 0, extent, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&members);
    return type;
}

static void mt_types_pairs(size_t count, int peer)
{
    const size_t size  = sizeof(double) + sizeof(int);
    char *tx           = mt_alloc(count * size);
    mt_pair_t *rx      = mt_alloc(count * sizeof(*rx));
    MPI_Datatype tight = mt_pair_type(1), loose = mt_pair_type(0);
    MPI_Datatype tx_type, rx_type;
    size_t i;

    MPI_Type_contiguous((int)count, tight, &tx_type);
    MPI_Type_contiguous((int)count, loose, &rx_type);
    MPI_Type_commit(&tx_type);
    MPI_Type_commit(&rx_type);
    mt_fill(tx, count * size, mt.rank, peer, 0);
    memset(rx, 0, count * sizeof(*rx));
    mt_types_swap(tx, tx_type, rx, rx_type, count * size, peer);
    for (i = 0; i < count; i++) {
        memcpy(tx + i * size, &rx[i].number, sizeof(double));
        memcpy(tx + i * size + sizeof(double), &rx[i].count, sizeof(int));
    }
    mt_check(tx, count * size, peer, mt.rank, 0);
    MPI_Type_free(&tx_type);
    MPI_Type_free(&rx_type);
    MPI_Type_free(&tight);
    MPI_Type_free(&loose);
    free(tx);
    free(rx);
}

static void mt_types_all(int peer)
{
    const mt_element_t elements[] = {
        {MPI_CHAR, sizeof(char), sizeof(char)},
        {MPI_SHORT, sizeof(short), sizeof(short)},
        {MPI_INT, sizeof(int), sizeof(int)},
        {MPI_FLOAT, sizeof(float), sizeof(float)},
        {MPI_LONG, sizeof(long), sizeof(long)},
        {MPI_DOUBLE, sizeof(double), sizeof(double)},
        {MPI_C_FLOAT_COMPLEX, sizeof(float complex), sizeof(float complex)},
        {MPI_LONG_DOUBLE, sizeof(long double), 10},
        {MPI_C_DOUBLE_COMPLEX, sizeof(double complex), sizeof(double complex)},
    };
    size_t i;

    for (i = 0; i < sizeof(elements) / sizeof(elements[0]); i++) {
        mt_types_element(&elements[i], peer);
    }
    for (i = 0; i < MT_NUM_EDGES; i++) {
        mt_types_pairs(mt_edges[i] / (sizeof(double) + sizeof(int)), peer);
    }
}

void mt_case_types(void)
{
    int peer = mt.rank ^ 1;

    mt_types_all(mt.rank);
    if (peer < mt.np) {
        mt_types_all(peer);
    }
}
