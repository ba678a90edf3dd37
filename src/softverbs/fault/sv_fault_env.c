/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults from the environment. Every mistake is logged. */
#include "softverbs/base/sv_util.h"
#include "softverbs/fault/sv_fault.h"
#include "softverbs/fault/sv_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number that tells the processes of a job apart and is the same in the
 * next run: what the program sets, or its rank as the launcher sets it. */
int sv_fault_env_process(uint32_t *process_p)
{
    static const char *const names[] = {
        SV_FAULT_ENV_PROCESS, "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
        "SLURM_PROCID"
    };
    const char *text;
    unsigned long value;
    unsigned i;
    char *end;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        text = getenv(names[i]);
        if ((text == NULL) || (*text == '\0')) {
            continue;
        }
        value = strtoul(text, &end, 10);
        if ((*end == '\0') && (text[0] != '-') && (value <= 1000000)) {
            *process_p = value;
            return 0;
        }
        if (i == 0) {
            sv_log(SV_FAULT_ENV_PROCESS "=%.40s is not a whole number from 0 "
                   "to 1000000", text);
            return -1;
        }
    }
    return 0;
}

/* The file's text, which the caller frees. NULL after a sentence. */
static char *sv_fault_read_file(const char *path)
{
    char *text = calloc(1, SV_PLAN_BYTES + 1);
    size_t used;
    FILE *file;

    file = fopen(path, "re");
    if ((text == NULL) || (file == NULL)) {
        sv_log(SV_FAULT_ENV_PLAN ": cannot read %s: %m", path);
        free(text);
        if (file != NULL) {
            fclose(file);
        }
        return NULL;
    }

    used = fread(text, 1, SV_PLAN_BYTES, file);
    if (ferror(file) || (strlen(text) != used)) {
        sv_log(SV_FAULT_ENV_PLAN ": %s is not a file of text", path);
        free(text);
        text = NULL;
    }
    fclose(file);
    return text;
}

struct sv_faults *sv_fault_env_plan(const char *plan, uint32_t process)
{
    struct sv_faults *faults;
    char why[SV_WHY_BYTES];
    char *text = NULL;

    if (*plan == '@') {
        text = sv_fault_read_file(plan + 1);
        if (text == NULL) {
            return NULL;
        }
    }

    faults = sv_faults_new((text != NULL) ? text : plan, process, why);
    if (faults == NULL) {
        sv_log(SV_FAULT_ENV_PLAN "%s%.200s: %s",
               (text != NULL) ? ", file " : "",
               (text != NULL) ? plan + 1 : "", why);
    }
    free(text);
    return faults;
}
