/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/cells/machine.h"

#include "tools/base/report.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MACHINE_NAP_NS 100000000
/* Of the CPUs that the ends want, so much must be idle. */
#define MACHINE_IDLE 0.75

/* ---- what the kernel tells ---- */

static FILE *machine_open(const char *root, const char *format, int cpu)
{
    char name[128], path[PATH_MAX];

    snprintf(name, sizeof(name), format, cpu);
    snprintf(path, sizeof(path), "%s/%s", root, name);
    return fopen(path, "r");
}

/* -1: there is none. */
static double machine_number(const char *root, const char *format, int cpu)
{
    FILE *file   = machine_open(root, format, cpu);
    double value = -1;

    if (file != NULL) {
        if (fscanf(file, "%lf", &value) != 1) {
            value = -1;
        }
        fclose(file);
    }
    return value;
}

void daqiri_machine_read_times(const char *root, const cpu_set_t *cpus,
                               daqiri_machine_times_t *times)
{
    FILE *file = machine_open(root, "proc/stat", 0);
    unsigned long long user, nice, kernel, idle, wait, irq, soft, stolen;
    char line[256];
    int cpu;

    memset(times, 0, sizeof(*times));
    while ((file != NULL) && (fgets(line, sizeof(line), file) != NULL)) {
        if ((sscanf(line, "cpu%d %llu %llu %llu %llu %llu %llu %llu %llu", &cpu,
                    &user, &nice, &kernel, &idle, &wait, &irq, &soft,
                    &stolen) == 9) &&
            (cpu >= 0) && (cpu < CPU_SETSIZE) && CPU_ISSET(cpu, cpus)) {
            times->busy   += user + nice + kernel + irq + soft;
            times->stolen += stolen;
            times->all    += user + nice + kernel + irq + soft + stolen + idle +
                             wait;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

/* GHz; the least of all CPUs, or -1. */
static double machine_ghz(const char *root, const cpu_set_t *cpus,
                          const char *format)
{
    double least = -1;
    double khz;
    int cpu;

    for (cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        khz   = CPU_ISSET(cpu, cpus) ? machine_number(root, format, cpu) : -1;
        least = ((khz > 0) && ((least < 0) || (khz / 1e6 < least))) ? khz / 1e6 :
                                                                     least;
    }
    return least;
}

static void machine_set(json_t *machine, const char *key, double value)
{
    daqiri_report_set(machine, key, (value >= 0) ? json_real(value) : json_null());
}

json_t *daqiri_machine_report(const char *root, const cpu_set_t *cpus,
                              const daqiri_machine_times_t *before,
                              const daqiri_machine_times_t *after)
{
    const double all = (double)(after->all - before->all) / 100;
    json_t *machine  = json_object();
    char host[HOST_NAME_MAX + 1] = "";

    gethostname(host, sizeof(host) - 1);
    daqiri_report_text(machine, "host", host);
    daqiri_report_int(machine, "cpus", CPU_COUNT(cpus));
    machine_set(machine, "load", machine_number(root, "proc/loadavg", 0));
    machine_set(machine, "busy_percent", (all > 0) ?
                (double)(after->busy - before->busy) / all : -1);
    machine_set(machine, "steal_percent", (all > 0) ?
                (double)(after->stolen - before->stolen) / all : -1);
    machine_set(machine, "ghz", machine_ghz(root, cpus,
        "sys/devices/system/cpu/cpu%d/cpufreq/scaling_max_freq"));
    machine_set(machine, "ghz_most", machine_ghz(root, cpus,
        "sys/devices/system/cpu/cpu%d/cpufreq/cpuinfo_max_freq"));
    return machine;
}

json_t *daqiri_machine_look(void)
{
    const struct timespec nap = {.tv_nsec = MACHINE_NAP_NS};
    daqiri_machine_times_t before, after;
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    sched_getaffinity(0, sizeof(cpus), &cpus);
    daqiri_machine_read_times("", &cpus, &before);
    nanosleep(&nap, NULL);
    daqiri_machine_read_times("", &cpus, &after);
    return daqiri_machine_report("", &cpus, &before, &after);
}

/* ---- for people ---- */

static void machine_say(char *text, size_t length, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void machine_say(char *text, size_t length, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list args;

    va_start(args, format);
    vsnprintf(text + used, length - used, format, args);
    va_end(args);
}

const char *daqiri_machine_text(const json_t *machine, unsigned wanted, char *text,
                                size_t length)
{
    const double cpus  = json_number_value(json_object_get(machine, "cpus"));
    const double steal = json_number_value(json_object_get(machine,
                                                           "steal_percent"));
    const double ghz   = json_number_value(json_object_get(machine, "ghz"));
    const double most  = json_number_value(json_object_get(machine, "ghz_most"));
    const json_t *load = json_object_get(machine, "load");
    const json_t *busy = json_object_get(machine, "busy_percent");

    snprintf(text, length, "%.0f CPU%s", cpus, (cpus == 1) ? "" : "s");
    if (json_is_real(load)) {
        machine_say(text, length, ", load %.1f", json_real_value(load));
    }
    if (json_is_real(busy)) {
        machine_say(text, length, ", others use %.0f %%", json_real_value(busy));
    }
    if (steal >= 1) {
        machine_say(text, length, ", the host of this machine takes %.0f %%", steal);
    }
    if ((ghz > 0) && (ghz < most)) {
        machine_say(text, length, ", held to %.1f of %.1f GHz", ghz, most);
    }
    if (cpus * (1 - (json_number_value(busy) + steal) / 100) <
        MACHINE_IDLE * wanted) {
        machine_say(text, length, (wanted > 1) ?
                    "; the two ends want one each, so expect noisy rows" :
                    "; this end wants one, so expect noisy rows");
    }
    return text;
}
