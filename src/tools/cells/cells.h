/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The engine of `daqiri sweep`, `drop-curve`, `pingpong` and `tcp`: rows of runs. Each
 * run is a daqiri-flow of its own, both of its ends on this host or one of them, in
 * the environment of `daqiri run`; so one that hangs or dies takes nothing with
 * it.
 *
 *   cells_opts.c  the options that these commands have
 *   cells_check.c whether there is what they name
 *   cells_run.c   one run: what is asked for, and what came of it
 *   cells_peer.c  the connection to the other host, if there is one
 *   cells.c       which runs, in which order; the rows
 *   cells_cpu.c   what the machine did in a run
 *   cells_judge.c the verdict on each row, by verdict.h, and the report
 *
 * Rows that have no pace run first, all of them in turns; the paces of the
 * others are parts of what those have reached. Runs that are to be made again
 * (--stalled) are, when all of their kind have been made.
 *
 * One thread. Running out of memory ends the program (report.h).
 */

#ifndef DAQIRI_CELLS_H
#define DAQIRI_CELLS_H

#include "tools/base/args.h"
#include "tools/base/failure.h"
#include "tools/base/progress.h"
#include "tools/base/report.h"
#include "tools/cells/flow_run.h"
#include "tools/peer/peer.h"

#include <stddef.h>
#include <stdint.h>

#define DAQIRI_CELLS_LIST_MAX    32
#define DAQIRI_CELLS_NAME_MAX    32  /* of a transport */
#define DAQIRI_CELLS_REPEATS_MAX 100
#define DAQIRI_CELLS_ENDLESS     604800.0 /* s of a run that another bound ends */
#define DAQIRI_CELLS_SIZE_MIN    8          /* a serial */
#define DAQIRI_CELLS_SIZE_MAX    (1u << 30)
#define DAQIRI_CELLS_AGAIN_MAX   8   /* times that one run is made again */

/* Paces up to this part of the maximum are judged: above, the machine's own
 * ups and downs decide. */
#define DAQIRI_CELLS_JUDGED_PERCENT 75.0

typedef struct daqiri_cells_opts {
    daqiri_format_t format;
    const char *speaker;      /* "daqiri sweep" */
    const char *connect_to;   /* the other host; NULL: both ends are here */
    const char *device;
    char       transports[DAQIRI_CELLS_LIST_MAX][DAQIRI_CELLS_NAME_MAX];
    size_t     transport_count;
    int        has_transports; /* they were asked for */
    const char *patterns[DAQIRI_CELLS_LIST_MAX];
    size_t     pattern_count;
    size_t     sizes[DAQIRI_CELLS_LIST_MAX]; /* ascending */
    size_t     size_count;
    uint64_t   windows[DAQIRI_CELLS_LIST_MAX];
    size_t     window_count;
    int        has_windows;   /* they were asked for */
    double     percents[DAQIRI_CELLS_LIST_MAX]; /* of the maximum */
    size_t     percent_count;
    int        has_targets;   /* they were asked for */
    double     gbps[DAQIRI_CELLS_LIST_MAX];
    size_t     gbps_count;
    double     duration;      /* s, of a run */
    unsigned   repeats;
    double     patience;      /* s, to connect, and without anything from the other
                                 host */
    double     interval;      /* s; 0: none are shown */
    int        is_single;     /* of one run: it alone says how the command ends */
    uint64_t   iters;         /* round trips of a run; 0: no bound */
    double     setup;         /* s, for each stage of a run before the messages; 0:
                                 none is watched */
    int        is_settled;    /* this process has the device (flow_run.h) */
    const char *by_hand;      /* as in flow_run.h */
    daqiri_flow_verbs_t verbs;
    double     collapse;      /* percent of the row's median */
    double     rate;          /* percent that a rate may fall by */
    double     pace;          /* percent that a pace may be missed by */
    double     stalled;       /* percent of a run without a CPU, or with far
                                 ones; 0: any */
    int        is_strict;     /* any verdict is a failure */
    int        is_verbose;    /* a table of all runs, too */
    const char *plot;         /* NULL: none */
} daqiri_cells_opts_t;

/* Bits of a verdict. */
enum {
    DAQIRI_CELLS_MISSING  = 1, /* a run failed, or could not be made */
    DAQIRI_CELLS_COLLAPSE = 2, /* a run far below its row's median */
    DAQIRI_CELLS_DROPS    = 4, /* messages that were sent have not come */
    DAQIRI_CELLS_RATE     = 8, /* slower, in messages, than longer ones */
    DAQIRI_CELLS_PACE     = 16,
    DAQIRI_CELLS_NOISY    = 32 /* such a run that the machine explains */
};

typedef struct daqiri_cells_run {
    int    is_ok;
    double gbps, rate, deviation;
    double messages;          /* that have come */
    json_t *report;           /* of daqiri-flow; {"error": ...} if it failed;
                                 "instead_of": those that it is made instead
                                 of */
} daqiri_cells_run_t;

typedef struct daqiri_cells_row {
    const char *transport;
    const char *pattern;
    size_t     size;
    uint64_t   window;
    double     percent;       /* of the maximum; 0: not asked for so */
    double     gbps;          /* pace; 0: none, or not known yet */
    int        is_paced;
    daqiri_cells_run_t runs[DAQIRI_CELLS_REPEATS_MAX];
    size_t     run_count;
    unsigned   verdict;
    char       why[512];
} daqiri_cells_row_t;

typedef struct daqiri_cells_peer {
    const char *connect_to;
    double     patience;      /* s, for a connection */
    int        fd;            /* -1: there is no connection */
    int        is_lost;       /* it could not be reached */
    int        is_apart;      /* it is beyond the software device */
    char       apart[512];    /* in a sentence */
    char       version[DAQIRI_PEER_WORD_MAX]; /* its own; "" */
    daqiri_failure_t failure; /* of the last attempt */
} daqiri_cells_peer_t;

typedef struct daqiri_cells {
    const daqiri_cells_opts_t *opts;
    daqiri_cells_peer_t peer;
    daqiri_cells_row_t *rows;
    size_t   row_count;
    size_t   done, all;       /* runs; one that is made again is one */
    double   line_ns;         /* as it usually is; 0: not known */
    char     date[32];        /* of the first run, as in ISO 8601 */
    json_t   *machine;        /* before it; machine.h */
    int      is_interrupted;
    daqiri_progress_t progress;
} daqiri_cells_t;

/* Whether there is such a device, and such transports. Returns an exit status,
 * after a sentence if it is not 0. */
int daqiri_cells_check(const daqiri_cells_opts_t *opts);

/* ---- options: for the children of a command's argp ---- */

/* Keys. A preset lists some of them itself, with words of its own, and hands them to
 * daqiri_cells_parse(). */
enum {
    DAQIRI_CELLS_OPT_ADDR = DAQIRI_ARGS_OWN + 0x20,
    DAQIRI_CELLS_OPT_TRANSPORTS,
    DAQIRI_CELLS_OPT_SIZES,
    DAQIRI_CELLS_OPT_WINDOWS,
    DAQIRI_CELLS_OPT_DURATION,
    DAQIRI_CELLS_OPT_REPEATS,
    DAQIRI_CELLS_OPT_DEVICE,
    DAQIRI_CELLS_OPT_COLLAPSE,
    DAQIRI_CELLS_OPT_RATE,
    DAQIRI_CELLS_OPT_STALLED,
    DAQIRI_CELLS_OPT_STRICT,
    DAQIRI_CELLS_OPT_VERBOSE,
    DAQIRI_CELLS_OPT_PLOT,
    DAQIRI_CELLS_OPT_INTERVAL,
    DAQIRI_CELLS_OPT_TIMEOUT
};

/* Its state->input is the daqiri_cells_opts_t. */
error_t daqiri_cells_parse(int key, char *arg, struct argp_state *state);

/* The end of both commands' --help. */
#define DAQIRI_CELLS_STATUS                                             \
    "Exit status: 0; 1 runs missing, collapsed or lossy; 2 usage; 3 " \
    "unreachable."

/* Its input is the daqiri_cells_opts_t, as that of the command's own parser,
 * which calls daqiri_cells_parse_init() at ARGP_KEY_INIT. */
extern const struct argp_child daqiri_cells_children[];
void daqiri_cells_parse_init(struct argp_state *state);

/* Defaults of all that is common. */
void daqiri_cells_opts_init(daqiri_cells_opts_t *opts, const char *speaker);

/* Words with commas between; each is handed to `take`, which refuses what it
 * does not like. Returns how many there are. */
size_t daqiri_cells_list(struct argp_state *state, const char *name,
                         const char *text,
                         void (*take)(struct argp_state *state,
                                      const char *name, const char *word,
                                      size_t i));

/* Ends with a sentence if value i, which is `word`, is one of those before it.
 * All have that size, and are the same if their bytes are. */
void daqiri_cells_need_new(struct argp_state *state, const char *name,
                           const char *word, const void *values, size_t size,
                           size_t i);

/* ---- runs ---- */

/* Measures all there is to measure, or until asked to stop. */
void daqiri_cells_measure(daqiri_cells_t *cells,
                          const daqiri_cells_opts_t *opts);
void daqiri_cells_cleanup(daqiri_cells_t *cells);

/* One run of a row, appended to it. Returns 0, or -1 if it was asked to stop
 * and there is nothing to be kept. */
int daqiri_cells_run(const daqiri_cells_opts_t *opts, daqiri_cells_row_t *row,
                     daqiri_cells_peer_t *peer, void (*tick)(void *arg),
                     void *arg);

/* Once more the one that is to be made again, for it had these parts (percent;
 * -1: not known) without a CPU and with far ones. Returns 0, or -1 if it was
 * asked to stop: that one stays. */
int daqiri_cells_run_again(const daqiri_cells_opts_t *opts,
                           const daqiri_cells_row_t *row,
                           daqiri_cells_run_t *run, double no_cpu, double far,
                           daqiri_cells_peer_t *peer,
                           void (*tick)(void *arg), void *arg);

/* ---- the other host ---- */

void daqiri_cells_peer_init(daqiri_cells_peer_t *peer, const char *connect_to,
                            double patience);

/* Unless there is a connection. Returns 0, or -1 and peer->failure. */
int daqiri_cells_peer_connect(daqiri_cells_peer_t *peer);

/* Waits until it is ready for another run. */
int daqiri_cells_peer_ready(daqiri_cells_peer_t *peer);

/* Tells it that no more will come, if nothing has failed. */
void daqiri_cells_peer_close(daqiri_cells_peer_t *peer);

/* ---- verdicts ---- */

/* Of all rows; pure but for the memory of the reports. */
void daqiri_cells_judge(daqiri_cells_t *cells);

/* The median of what the good runs have under this path ("round_trip.p50_us");
 * -1 when none has it. */
double daqiri_cells_median(const daqiri_cells_row_t *row, const char *path);

/* Of the time that a run took, the part in which the processor of one of the ends,
 * the one for which it is more, did not run, in percent; -1 if nobody has looked. */
double daqiri_cells_no_cpu(const daqiri_cells_run_t *run);

/* The same, of the part in which it waited for its processor, which ran something
 * else. */
double daqiri_cells_waited(const daqiri_cells_run_t *run);

/* ns that a line of memory takes from the processor of one end to that of the
 * other and back, the median of a run; 0 if nobody has looked. */
double daqiri_cells_line(const daqiri_cells_run_t *run);

/* Of that time the part in which the two processors were not as far from each
 * other as usual, in percent: all of it if the run's line is not like that of
 * most runs, else what took twice the run's own. -1 if nobody has looked. */
double daqiri_cells_far(const daqiri_cells_t *cells,
                        const daqiri_cells_run_t *run);

/* The most that a run could have of what it has on processors of its own, at the
 * usual distance: 0 to 1; what nobody has looked at takes nothing. And the median of
 * a row. */
double daqiri_cells_speed(const daqiri_cells_t *cells,
                          const daqiri_cells_run_t *run);
double daqiri_cells_row_speed(const daqiri_cells_t *cells,
                              const daqiri_cells_row_t *row);

/* " (no CPU: tx 67.8 ms, rx 54.3 ms; waited for a CPU: tx 0.1 ms, rx 0.2 ms; line
 * 92 ns instead of 60 ns)". There is room for any numbers, since another host may
 * have told them. Returns text. */
#define DAQIRI_CELLS_CPU_TEXT_MAX 256
const char *daqiri_cells_cpu_text(const daqiri_cells_t *cells,
                                  const daqiri_cells_run_t *run, char *text);

const json_t *daqiri_cells_counters(const daqiri_cells_run_t *run);

/* Whether a run is to be made again. */
int daqiri_cells_is_stalled(const daqiri_cells_t *cells,
                            const daqiri_cells_run_t *run);

/* How often a run was. */
size_t daqiri_cells_again(const daqiri_cells_run_t *run);

/* "collapse, rate", or "ok", or "not measured". */
const char *daqiri_cells_verdict_text(const daqiri_cells_row_t *row,
                                      char *text, size_t length);

/* The exit status that goes with them. */
int daqiri_cells_status(const daqiri_cells_t *cells);

/* The rows as JSON, and the sum of their verdicts. Returns the report. */
json_t *daqiri_cells_report(const daqiri_cells_t *cells, const char *command);

/* ---- a command ---- */

/* All of it: measures, judges, prints, plots by COMMAND.gp. Returns an exit status. */
int daqiri_cells_main(const daqiri_cells_opts_t *opts, const char *command,
                      const daqiri_section_t *table, size_t table_count,
                      const daqiri_section_t *csv);

#endif
