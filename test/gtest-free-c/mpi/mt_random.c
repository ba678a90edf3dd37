/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Random traffic. All ranks draw the same list of messages from the seed; each
 * sends and receives its own part of it, a batch at a time, in an order of its
 * own. Nothing keeps the ranks in step but the messages themselves.
 */

#include "mt.h"

#include <stdlib.h>

#define MT_BATCH   64
#define MT_BATCHES 24

typedef struct mt_message {
    int sender;
    int receiver;
    size_t size;
} mt_message_t;

/* What one rank has of one batch. */
typedef struct mt_part {
    MPI_Request requests[2 * MT_BATCH];
    MPI_Status statuses[2 * MT_BATCH];
    int indexes[2 * MT_BATCH]; /* into the batch; receives and sends mixed */
    char *buffers[2 * MT_BATCH];
    int count;
} mt_part_t;

/* Even over the powers of two up to 1 MiB, so that every way of sending has
 * its share; zero now and then. */
static size_t mt_random_size(t_rng_t *rng)
{
    size_t size = (size_t)1 << t_rng_below(rng, 21);

    return t_rng_below(rng, size + 1);
}

static void mt_draw_batch(t_rng_t *rng, mt_message_t *batch)
{
    int i;

    for (i = 0; i < MT_BATCH; ++i) {
        batch[i].sender   = (int)t_rng_below(rng, (uint64_t)mt.np);
        batch[i].receiver = (int)t_rng_below(rng, (uint64_t)mt.np);
        batch[i].size     = mt_random_size(rng);
    }
}

static void mt_post_receive(mt_part_t *part, const mt_message_t *message,
                            int index)
{
    int i = part->count++;

    part->indexes[i] = index;
    part->buffers[i] = mt_alloc(message->size);
    MPI_Irecv(part->buffers[i], (int)message->size, MPI_BYTE, message->sender,
              index, MPI_COMM_WORLD, &part->requests[i]);
}

static void mt_post_send(mt_part_t *part, const mt_message_t *message,
                         int index, uint64_t serial)
{
    int i = part->count++;

    part->indexes[i] = -1;
    part->buffers[i] = mt_alloc(message->size);
    mt_fill(part->buffers[i], message->size, message->sender,
            message->receiver, serial);
    mt_isend(part->buffers[i], message->size, message->receiver, index,
             &part->requests[i]);
}

/* The order differs from rank to rank; the batch does not. */
static void mt_shuffle(t_rng_t *rng, int *order)
{
    int i, j, swap;

    for (i = 0; i < MT_BATCH; ++i) {
        j        = (int)t_rng_below(rng, (uint64_t)i + 1);
        swap     = (j < i) ? order[j] : i;
        order[j] = i;
        order[i] = swap;
    }
}

static void mt_post_part(mt_part_t *part, const mt_message_t *batch,
                         const int *order, uint64_t first_serial)
{
    int i, index;

    part->count = 0;
    for (i = 0; i < MT_BATCH; ++i) {
        index = order[i];
        if (batch[index].receiver == mt.rank) {
            mt_post_receive(part, &batch[index], index);
        }
        if (batch[index].sender == mt.rank) {
            mt_post_send(part, &batch[index], index,
                         first_serial + (uint64_t)index);
        }
    }
}

static void mt_finish_part(mt_part_t *part, const mt_message_t *batch,
                           uint64_t first_serial)
{
    const mt_message_t *message;
    int i;

    MPI_Waitall(part->count, part->requests, part->statuses);
    for (i = 0; i < part->count; ++i) {
        if (part->indexes[i] >= 0) {
            message = &batch[part->indexes[i]];
            mt_check_status(&part->statuses[i], message->size, message->sender,
                            part->indexes[i]);
            mt_check(part->buffers[i], message->size, message->sender, mt.rank,
                     first_serial + (uint64_t)part->indexes[i]);
        }
        free(part->buffers[i]);
    }
}

void mt_case_random(void)
{
    t_rng_t shared = mt_rng(0);
    t_rng_t own    = mt_rng(1 + (uint64_t)mt.rank);
    mt_message_t batch[MT_BATCH];
    int order[MT_BATCH];
    uint64_t serial;
    mt_part_t part;

    for (serial = 0; serial < MT_BATCHES * MT_BATCH; serial += MT_BATCH) {
        mt_draw_batch(&shared, batch);
        mt_shuffle(&own, order);
        mt_post_part(&part, batch, order, serial);
        mt_finish_part(&part, batch, serial);
    }
}
