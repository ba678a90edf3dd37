/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The connection to `daqiri serve` on another host. All runs go over the same
 * one, unless a run has failed: then nobody knows what is under way on it. A
 * server that cannot be reached is not asked again.
 */

#include "tools/base/clock.h"
#include "tools/base/progress.h"
#include "tools/base/stop.h"
#include "tools/cells/cells.h"
#include "tools/peer/net.h"

#include <string.h>
#include <unistd.h>

#define PEER_END_NS 5000000000ull /* for a word that ends it */
/* Its program may have to wait for its processor before it ends. */
#define PEER_READY_NS 60000000000ull

void daqiri_cells_peer_init(daqiri_cells_peer_t *peer, const char *connect_to,
                            double patience)
{
    memset(peer, 0, sizeof(*peer));
    peer->connect_to    = connect_to;
    peer->patience      = patience;
    peer->fd            = -1;
    peer->failure.stage = "connect";
}

int daqiri_cells_peer_connect(daqiri_cells_peer_t *peer)
{
    const uint64_t deadline_ns = daqiri_now_ns() +
                                 (uint64_t)(peer->patience * 1e9);
    daqiri_progress_t progress;
    int ret;

    if (peer->is_lost) {
        return -1;
    }
    if (peer->fd >= 0) {
        return 0;
    }
    memset(&peer->failure, 0, sizeof(peer->failure));
    peer->failure.stage = "connect";
    daqiri_net_show(&progress);
    peer->fd = daqiri_net_connect(peer->connect_to, deadline_ns,
                                  &peer->failure);
    if (peer->fd >= 0) {
        peer->failure.stage = "control";
    }
    ret      = (peer->fd < 0) ? -1 :
               daqiri_net_hello(peer->fd, DAQIRI_PEER_FLOW, peer->version,
                                deadline_ns, &peer->failure);
    daqiri_net_show(NULL);
    if (ret == 0) {
        return 0;
    }
    peer->is_lost = 1;
    daqiri_cells_peer_close(peer);
    return -1;
}

int daqiri_cells_peer_ready(daqiri_cells_peer_t *peer)
{
    const uint64_t deadline_ns = daqiri_now_ns() + PEER_READY_NS;
    daqiri_peer_frame_t frame;

    daqiri_stop_own(); /* a run that was cut short has a good end, too */
    do {
        if (daqiri_net_recv_frame(peer->fd, &frame, deadline_ns,
                                  &peer->failure) != 0) {
            return -1;
        }
    } while (frame.kind == DAQIRI_PEER_DONE);
    return (frame.kind == DAQIRI_PEER_READY) ? 0 :
           daqiri_fail(&peer->failure, DAQIRI_CLASS_PROTOCOL, "the peer sent "
                       "\"%s\" after a run", daqiri_peer_kind_name(frame.kind));
}

void daqiri_cells_peer_close(daqiri_cells_peer_t *peer)
{
    const daqiri_peer_frame_t done = {.kind = DAQIRI_PEER_DONE};
    daqiri_failure_t ignored       = {0};

    if (peer->fd < 0) {
        return;
    }
    if (peer->failure.class_id == DAQIRI_CLASS_NONE) {
        daqiri_net_send_frame(peer->fd, &done, daqiri_now_ns() + PEER_END_NS,
                              &ignored);
    }
    close(peer->fd);
    peer->fd = -1;
}
