/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds out which UCX this is. UCX tells it, and nothing is guessed. libuct and libucs do
 * not tell their version, so the libucp that was built with them is asked. Its answer
 * must agree with the functions that the libraries export: every version added some. It
 * must also agree with the sizes of three structures, which the loader knows. A plugin
 * that took one version for another would crash the job, hang it, or hand out wrong keys.
 */
#include "daqiri.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/time.h>

uct_daqiri_ucx_t uct_daqiri_ucx;
ucs_class_t uct_base_iface_t_class;
ucs_class_t uct_base_ep_t_class;
ucs_class_t void_class;

static unsigned uct_daqiri_ucx_minor;

/* For each version a function that it was the first to export. 1.13 exports none. */
static const struct {
    unsigned   since;
    const char *name;
} uct_daqiri_ucx_marks[] = {
    {14, "uct_md_query_v2"},
    {15, "ucs_config_sscanf_uint_enum"},
    {16, "uct_base_rkey_compare"},
    {17, "uct_md_base_md_query"},
    {18, "uct_iface_fill_info_str_buf"},
    {19, "uct_rkey_unpack_v2"},
    {20, "uct_ep_get_device_ep"},
    {21, "uct_md_mem_elem_pack"},
    {22, "uct_ep_put_sgl_zcopy"},
    {23, "uct_ep_outstanding_purge"},
};

/* Objects whose size is that of a structure which has grown. */
static const struct {
    const char           *name;
    uct_daqiri_ucx_row_t row;
} uct_daqiri_ucx_sizes[] = {
    {"uct_tcp_component", UCT_DAQIRI_UCX_COMPONENT},
    {"uct_tcp_tl", UCT_DAQIRI_UCX_TL},
    {"uct_md_config_table", UCT_DAQIRI_UCX_OPTION}, /* it has one element    */
};

/* In the order of the pointers in uct_daqiri_ucx_t. */
static const struct {
    const char *name;
    int        is_needed;
} uct_daqiri_ucx_names[] = {
#define UCT_DAQIRI_UCX_NEEDED(_name)   {#_name, 1},
#define UCT_DAQIRI_UCX_WELCOME(_name)  {#_name, 0},
    UCT_DAQIRI_UCX_CALLS(UCT_DAQIRI_UCX_NEEDED, UCT_DAQIRI_UCX_NEEDED,
                         UCT_DAQIRI_UCX_WELCOME)
};

DQ_STATIC_ASSERT(sizeof(uct_daqiri_ucx) ==
                 sizeof(void*) * ucs_static_array_size(uct_daqiri_ucx_names),
                 "a pointer for each name");


/* ---- Which object is this address in? ---- */

static const char *uct_daqiri_ucx_path(const void *address)
{
    struct link_map *map;
    Dl_info info;

    if (dladdr1(address, &info, (void**)&map, RTLD_DL_LINKMAP) == 0) {
        return NULL;
    }
    return map->l_name;
}


static int uct_daqiri_ucx_is_together(const void *one, const void *other)
{
    Dl_info info_one, info_other;

    return (dladdr(one, &info_one) != 0) &&
           (dladdr(other, &info_other) != 0) &&
           (info_one.dli_fbase == info_other.dli_fbase);
}


/* A handle for dlsym(): that object and what it is linked with. The program itself has no
 * name. The caller closes it. */
static void *uct_daqiri_ucx_open(const char *path)
{
    if (path == NULL) {
        return NULL;
    }
    return (path[0] == '\0') ? dlopen(NULL, RTLD_LAZY)
                             : dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
}


/* What code in this object finds under the name. */
static void *uct_daqiri_ucx_lookup(const char *path, const char *name)
{
    void *handle = uct_daqiri_ucx_open(path);
    void *symbol;

    if (handle == NULL) {
        return NULL;
    }
    symbol = dlsym(handle, name);
    dlclose(handle);
    return symbol;
}


void *uct_daqiri_ucx_symbol(const void *libuct, const char *name)
{
    return uct_daqiri_ucx_lookup(uct_daqiri_ucx_path(libuct), name);
}


/* A program that reads an object of a library has a copy of it (a copy relocation). The
 * whole process uses that copy, and the library's own is never written. Returns NULL if
 * the program has no copy. */
static void *uct_daqiri_ucx_copied(const char *name)
{
    void *symbol         = dlsym(RTLD_DEFAULT, name);
    struct link_map *map = NULL;
    Dl_info info;

    if ((symbol == NULL) ||
        (dladdr1(symbol, &info, (void**)&map, RTLD_DL_LINKMAP) == 0) ||
        (map == NULL) || (map->l_name[0] != '\0')) {
        return NULL;
    }
    return symbol;
}


static struct link_map *uct_daqiri_ucx_objects(void)
{
    struct link_map *map = NULL;
    void *handle         = dlopen(NULL, RTLD_LAZY);

    if (handle != NULL) {
        (void)dlinfo(handle, RTLD_DI_LINKMAP, &map);
        dlclose(handle);
    }
    return map;
}


/* libucs knows no libuct. But a libuct knows its libucs. */
static const void *uct_daqiri_ucx_above(const void *libucs)
{
    struct link_map *map;
    const void *libuct;

    for (map = uct_daqiri_ucx_objects(); map != NULL; map = map->l_next) {
        libuct = uct_daqiri_ucx_lookup(map->l_name, "uct_tl_register");
        if ((libuct != NULL) &&
            uct_daqiri_ucx_is_together(
                    libucs,
                    uct_daqiri_ucx_symbol(libuct, "ucs_log_dispatch"))) {
            return libuct;
        }
    }
    return NULL;
}


const void *uct_daqiri_ucx_of(const void *code)
{
    const void *libuct = uct_daqiri_ucx_lookup(uct_daqiri_ucx_path(code),
                                               "uct_tl_register");

    if (libuct == NULL) {
        libuct = uct_daqiri_ucx_above(code);
    }
    return (libuct != NULL) ? libuct : uct_daqiri_ucx_global();
}


const void *uct_daqiri_ucx_global(void)
{
    return dlsym(RTLD_DEFAULT, "uct_tl_register");
}


/* ---- What does its libucp say? ---- */

typedef void (*uct_daqiri_ucx_ask_t)(unsigned *major, unsigned *minor,
                                     unsigned *release);

/* The libucp at this path, if it is linked with this libuct. */
static uct_daqiri_ucx_ask_t uct_daqiri_ucx_ask_at(const char *path,
                                                  const void *libuct)
{
    if (uct_daqiri_ucx_lookup(path, "uct_tl_register") != libuct) {
        return NULL;
    }
    return (uct_daqiri_ucx_ask_t)uct_daqiri_ucx_lookup(path,
                                                       "ucp_get_version");
}


/* A libucp that is not loaded yet lies beside libuct, under the same kind of name. It
 * stays loaded: the user of this UCX will need it. */
static uct_daqiri_ucx_ask_t uct_daqiri_ucx_ask_beside(const void *libuct)
{
    const char *path = uct_daqiri_ucx_path(libuct);
    char libucp[PATH_MAX];
    char *file;

    if ((path == NULL) ||
        (snprintf(libucp, sizeof(libucp), "%s", path) >= (int)sizeof(libucp))) {
        return NULL;
    }
    file = strstr(libucp, "libuct");
    while ((file != NULL) && (strstr(file + 1, "libuct") != NULL)) {
        file = strstr(file + 1, "libuct");
    }
    if (file == NULL) {
        return NULL;
    }
    file[strlen("libuct") - 1] = 'p';
    return (dlopen(libucp, RTLD_LAZY | RTLD_LOCAL) == NULL)
                   ? NULL
                   : uct_daqiri_ucx_ask_at(libucp, libuct);
}


static uct_daqiri_ucx_ask_t uct_daqiri_ucx_ask(const void *libuct)
{
    uct_daqiri_ucx_ask_t ask = NULL;
    struct link_map *map;

    for (map = uct_daqiri_ucx_objects(); (map != NULL) && (ask == NULL);
         map = map->l_next) {
        ask = uct_daqiri_ucx_ask_at(map->l_name, libuct);
    }
    return (ask != NULL) ? ask : uct_daqiri_ucx_ask_beside(libuct);
}


/* ---- Is it true? ---- */

/* The user accepts a UCX that contradicts itself, or is newer than the plugin knows. */
static int uct_daqiri_ucx_is_any(void)
{
    const char *any = getenv("DAQIRI_UCX_ANY");

    return (any != NULL) && (strcmp(any, "1") == 0);
}


static int uct_daqiri_ucx_is_known(unsigned major, unsigned minor)
{
    return (major == UCT_DAQIRI_UCX_MAJOR) && (minor >= UCT_DAQIRI_UCX_FIRST) &&
           (minor <= UCT_DAQIRI_UCX_LAST);
}


/* The user may only overrule that a UCX is too new. Older ones and another major version
 * have other interfaces. */
static int uct_daqiri_ucx_is_wanted(unsigned major, unsigned minor)
{
    return uct_daqiri_ucx_is_known(major, minor) ||
           (uct_daqiri_ucx_is_any() && (major == UCT_DAQIRI_UCX_MAJOR) &&
            (minor > UCT_DAQIRI_UCX_LAST));
}


static int uct_daqiri_ucx_has_marks(const void *libuct, unsigned minor,
                                    char *why, size_t size)
{
    size_t used = strlen(why);
    int is_there;
    size_t i;

    for (i = 0; i < ucs_static_array_size(uct_daqiri_ucx_marks); i++) {
        is_there = uct_daqiri_ucx_symbol(libuct,
                                         uct_daqiri_ucx_marks[i].name) != NULL;
        if (is_there != (uct_daqiri_ucx_marks[i].since <= minor)) {
            snprintf(why + used, size - used,
                     ", but it has %s%s, which came with 1.%u",
                     is_there ? "" : "no ", uct_daqiri_ucx_marks[i].name,
                     uct_daqiri_ucx_marks[i].since);
            return 0;
        }
    }
    return 1;
}


/* Returns 0 if there is no such object, or its size is not known. */
static size_t uct_daqiri_ucx_object_size(const void *libuct, const char *name)
{
    const ElfW(Sym) *entry = NULL;
    void *object           = uct_daqiri_ucx_symbol(libuct, name);
    Dl_info info;

    if ((object == NULL) ||
        (dladdr1(object, &info, (void**)&entry, RTLD_DL_SYMENT) == 0) ||
        (entry == NULL) || (info.dli_saddr != object)) {
        return 0;
    }
    return entry->st_size;
}


static int uct_daqiri_ucx_has_sizes(const void *libuct, unsigned minor,
                                    char *why, size_t size)
{
    size_t used = strlen(why);
    size_t found, expected, i;

    for (i = 0; i < ucs_static_array_size(uct_daqiri_ucx_sizes); i++) {
        found    = uct_daqiri_ucx_object_size(libuct,
                                              uct_daqiri_ucx_sizes[i].name);
        expected = uct_daqiri_ucx_value(uct_daqiri_ucx_sizes[i].row, minor);
        if ((found != 0) && (found != expected)) {
            snprintf(why + used, size - used,
                     ", but its %s has %zu bytes instead of %zu",
                     uct_daqiri_ucx_sizes[i].name, found, expected);
            return 0;
        }
    }
    return 1;
}


/* Checks the sizes of an interface and an endpoint, which UCX keeps itself. A UCX with
 * statistics has larger ones. */
static int uct_daqiri_ucx_has_classes(const void *libuct, char *why,
                                      size_t size)
{
    const ucs_class_t *iface = uct_daqiri_ucx_symbol(libuct,
                                                     "uct_base_iface_t_class");
    const ucs_class_t *ep    = uct_daqiri_ucx_symbol(libuct,
                                                     "uct_base_ep_t_class");
    size_t used              = strlen(why);
    size_t extra;

    if ((iface != NULL) && (ep != NULL)) {
        extra = (ep->size == sizeof(uct_ep_t)) ? 0 : sizeof(void*);
        if ((ep->size == sizeof(uct_ep_t) + extra) &&
            (iface->size == offsetof(uct_base_iface_t, stats) + extra)) {
            return 1;
        }
    }
    snprintf(why + used, size - used,
             ", but its interfaces and endpoints have other sizes");
    return 0;
}


/* All names, for the pointers. */
static int uct_daqiri_ucx_fill(const void *libuct, char *why, size_t size)
{
    void **pointers = (void**)&uct_daqiri_ucx;
    size_t used     = strlen(why);
    size_t i;

    for (i = 0; i < ucs_static_array_size(uct_daqiri_ucx_names); i++) {
        pointers[i] = uct_daqiri_ucx_copied(uct_daqiri_ucx_names[i].name);
        if (pointers[i] == NULL) {
            pointers[i] = uct_daqiri_ucx_symbol(libuct,
                                                uct_daqiri_ucx_names[i].name);
        }
        if ((pointers[i] == NULL) && uct_daqiri_ucx_names[i].is_needed) {
            snprintf(why + used, size - used, ", but it has no %s",
                     uct_daqiri_ucx_names[i].name);
            return 0;
        }
    }
    /* the classes that ours are made from */
    memcpy(&uct_base_iface_t_class, uct_daqiri_ucx.uct_base_iface_t_class,
           sizeof(uct_base_iface_t_class));
    memcpy(&uct_base_ep_t_class, uct_daqiri_ucx.uct_base_ep_t_class,
           sizeof(uct_base_ep_t_class));
    return 1;
}


int uct_daqiri_ucx_find(const void *libuct, char *why, size_t size)
{
    uct_daqiri_ucx_ask_t ask = uct_daqiri_ucx_ask(libuct);
    unsigned major, minor, release;

    if (ask == NULL) {
        snprintf(why, size, "nothing tells the version of %s: there is no libucp "
                 "that belongs to it", uct_daqiri_ucx_path(libuct));
        return 0;
    }
    ask(&major, &minor, &release);
    snprintf(why, size, "this is UCX %u.%u.%u", major, minor, release);
    if (!uct_daqiri_ucx_is_wanted(major, minor)) {
        return 0;
    }
    if (!uct_daqiri_ucx_is_any() &&
        !(uct_daqiri_ucx_has_marks(libuct, minor, why, size) &&
          uct_daqiri_ucx_has_sizes(libuct, minor, why, size))) {
        return 0;
    }
    if (!uct_daqiri_ucx_has_classes(libuct, why, size) ||
        !uct_daqiri_ucx_fill(libuct, why, size)) {
        return 0;
    }
    uct_daqiri_ucx_minor = minor;
    uct_daqiri_ucx_choose(minor);
    return 1;
}


int uct_daqiri_ucx_is_since(unsigned minor)
{
    return uct_daqiri_ucx_minor >= minor;
}


/* ---- The clock, where it cannot be read in one step ---- */

ucs_time_t uct_daqiri_ucx_slow_time(void)
{
    struct timeval now;

#ifdef __x86_64__
    if (ucs_arch_x86_enable_rdtsc == UCS_TRY) {
        ucs_x86_init_tsc_freq();
    }
    if (ucs_arch_x86_enable_rdtsc == UCS_YES) {
        return __builtin_ia32_rdtsc();
    }
#endif
    if (gettimeofday(&now, NULL) != 0) {
        return 0;
    }
    return now.tv_sec * 1000000ul + now.tv_usec;
}
