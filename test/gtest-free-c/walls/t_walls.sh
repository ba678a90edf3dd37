#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Every wall twice: the tree does not break it, and a breach planted in a copy
# of the tree is found. Prints TAP.

set -u

here=$(cd "$(dirname "$0")" && pwd)
walls=$here/check-walls
number=0
failures=0

result()
{
    local verdict=$1
    local name=$2

    number=$((number + 1))
    [ "$verdict" = ok ] || failures=$((failures + 1))
    echo "$verdict $number - $name"
}

# The folders and the few lines below stand for the whole tree: a wall looks
# at what is in a file, not at how much there is.
plant_tree()
{
    local folder

    for folder in src/dq src/uct/daqiri/{base,iface,ep,conn,cm,compat} \
                  src/softverbs/{base,fabric,objects,engine,verbs,fault} \
                  src/tools/{base,peer,rdma,job,flow,cells,cmd,mpi_sweep} test; do
        mkdir -p "$1/$folder"
    done
    echo '/* SPDX-License-Identifier: BSD-3-Clause */' |
        tee "$1"/src/{dq/dq_a,uct/daqiri/compat/compat_a}.c \
            "$1"/src/uct/daqiri/{base,iface,ep,conn,cm}/daqiri_a.c \
            "$1"/src/softverbs/{base,fabric,objects,engine,verbs,fault}/sv_a.c \
            "$1"/src/tools/{base,peer,rdma,job,flow,cells,cmd,mpi_sweep}/a.c >/dev/null
    plant_event "$1"
}

# One event, in the transport's table, its page and its test.
plant_event()
{
    mkdir -p "$1/docs" "$1/test/gtest-free-c/transport"
    cat >"$1/src/uct/daqiri/cm/daqiri_async.c" <<'END'
/* SPDX-License-Identifier: BSD-3-Clause */
    [IBV_EVENT_SRQ_ERR] = {"SRQ_ERR", UCT_DAQIRI_OF_SRQ, UCT_DAQIRI_BREAK,
                           DQ_CAUSE_NONE},
END
    cat >"$1/docs/events.md" <<'END'
<!-- SPDX-License-Identifier: BSD-3-Clause -->
| SRQ_ERR | all connections of the interface | fail: "..." | |
END
    cat >"$1/test/gtest-free-c/transport/t_event.c" <<'END'
/* SPDX-License-Identifier: BSD-3-Clause */
    {"SRQ_ERR", FAILS, NULL},
END
}

append()
{
    printf '%s\n' "$2" >> "$tree/$1"
}

build_object()
{
    mkdir -p "$(dirname "$2")"
    printf '%s\n' "$1" | ${CC:-gcc} -x c -fPIC -shared -o "$2" -
}

# plant_unit ROOM/UNIT CALLS [TREE]: a unit of softverbs, or of that tree, with one
# function, which calls that of another, and its object.
plant_unit()
{
    local of=${3:-src/softverbs}
    local folder=$tree/b/$of/${1%/*}/.libs

    touch "$tree/$of/$1.c"
    mkdir -p "$folder"
    echo "int $2(void); int ${1//\//_}(void) { return $2(); }" |
        ${CC:-gcc} -x c -fno-builtin -c -o "$folder/${1#*/}.o" -
}

# Calls that go downhill and in a circle of four are no breach; a fifth is.
plant_call()
{
    local room

    export T_TOP_BUILDDIR=$tree/b
    for room in base fabric objects engine verbs fault; do
        plant_unit $room/sv_a base_sv_b
    done
    plant_unit base/sv_b base_sv_c
    plant_unit base/sv_c base_sv_d
    plant_unit base/sv_d base_sv_a
    for room in base iface ep conn cm; do
        plant_unit $room/daqiri_a compat_compat_a src/uct/daqiri
    done
    plant_unit compat/compat_a compat_compat_a src/uct/daqiri
    plant_unit cm/daqiri_async base_daqiri_a src/uct/daqiri
    for room in base peer rdma job flow cells cmd mpi_sweep; do
        plant_unit $room/a base_a src/tools
    done
    "$walls" "$tree" "$1" || return 1
    case $1 in
        room_calls)
            plant_unit base/daqiri_a cm_daqiri_a src/uct/daqiri
            "$walls" "$tree" "$1" && return 1
            plant_unit base/daqiri_a compat_compat_a src/uct/daqiri
            plant_unit job/a cells_a src/tools
            "$walls" "$tree" "$1" && return 1
            plant_unit job/a rdma_a src/tools
            plant_unit base/sv_d engine_sv_a ;;
        room_cycles)
            plant_unit base/sv_d base_sv_e
            plant_unit base/sv_e base_sv_a ;;
    esac
}

# plant WALL: break it in $tree, in the way somebody would by mistake.
plant()
{
    case $1 in
        folders) rm "$tree/src/tools/base/a.c" ;;
        pure_includes) append src/dq/dq_a.c '#include <time.h>' ;;
        pure_poison) append src/dq/dq_a.c '#include <infiniband/verbs.h>' ;;
        pure_symbols)
            mkdir -p "$tree/b/src/dq/.libs"
            echo 'void *malloc(unsigned long); void *dq_a(void) { return malloc(8); }' |
                ${CC:-gcc} -x c -fno-builtin -c -o "$tree/b/a.o" - &&
                ar cr "$tree/b/src/dq/.libs/libdq.a" "$tree/b/a.o"
            export T_TOP_BUILDDIR=$tree/b
            ;;
        transport_names_no_device)
            append src/uct/daqiri/conn/daqiri_a.c 'int a(void) { return sv_open(); }' ;;
        device_names_no_ucx)
            append src/softverbs/base/sv_a.c '#include <ucs/sys/math.h>' ;;
        ucx_version_in_compat)
            append src/uct/daqiri/conn/daqiri_a.c '#if UCT_API >= UCT_VERSION(1, 14)' ;;
        tools_public) append src/tools/base/a.c '#include <uct/base/uct_iface.h>' ;;
        words)
            append src/uct/daqiri/conn/daqiri_a.c 'char *a = "check that the peer runs";' ;;
        verbs)
            append src/uct/daqiri/conn/daqiri_a.c 'int a(void) { return ibv_reg_mr(pd); }' ;;
        plugin_exports)
            export T_PLUGIN=$tree/b/a.so
            build_object 'int uct_daqiri_a;' "$T_PLUGIN" ;;
        device_exports)
            export T_SOFTVERBS=$tree/b/a.so
            build_object 'int sv_a;' "$T_SOFTVERBS" ;;
        rooms) append src/softverbs/sv_a.c 'int b;' ;;
        room_includes)
            append src/uct/daqiri/conn/daqiri_a.c '#include "iface/daqiri_iface.h"'
            append src/uct/daqiri/conn/daqiri_a.c '#include "base/daqiri_md.h"'
            "$walls" "$tree" "$1" || return 1
            append src/uct/daqiri/conn/daqiri_a.c '#include "cm/daqiri_hs.h"'
            "$walls" "$tree" "$1" && return 1
            sed -i '$d' "$tree/src/uct/daqiri/conn/daqiri_a.c"
            append src/tools/flow/a.c '#include "tools/cells/cells.h"'
            "$walls" "$tree" "$1" && return 1
            sed -i '$d' "$tree/src/tools/flow/a.c"
            append src/softverbs/base/sv_a.c '#include "softverbs/engine/sv_tx.h"' ;;
        room_calls | room_cycles) plant_call "$1" ;;
        headers_alone)
            append src/tools/base/a.h '/* SPDX-License-Identifier: BSD-3-Clause */'
            append src/tools/base/a.h 'uint32_t a(void);' ;;
        licence) append src/tools/base/b.c 'int b;' ;;
        layout) append src/tools/base/a.c $'\tint b;' ;;
        unfinished) append src/tools/base/a.c "/* TO""DO: finish */" ;;
        function_length)
            append src/tools/base/a.c "int a(void)
{
$(yes '    a();' | head -n 101)
}" ;;
        events)
            sed -i 's/fail: "..."/nothing/' "$tree/docs/events.md" ;;
        page_names) append src/tools/a.md 'It is `dq_nowhere()`.' ;;
        links) append src/tools/a.md 'See [b](b.md).' ;;
        macros)
            append src/tools/base/a.c '#define CHECK(_a) \
    if (!(_a)) { \
        return -1; \
    }' ;;
        bats_not)
            append src/tools/a.bats '@test "a" {'
            append src/tools/a.bats '    ! false'
            append src/tools/a.bats '    true'
            append src/tools/a.bats '}' ;;
        shell_syntax)
            append src/tools/a.sh '#!/bin/bash'
            append src/tools/a.sh 'if true; then' ;;
        *) echo "# no breach is known for the wall $1"; return 1 ;;
    esac
}

# A planted copy without its breach must pass, or the breach proves nothing.
trips()
(
    tree=$(mktemp -d) || exit 1
    trap 'rm -rf "$tree"' EXIT
    plant_tree "$tree"
    case $1 in
        *_exports | *_symbols | room_calls | room_cycles) ;;
        *) "$walls" "$tree" "$1" || exit 1 ;;
    esac
    plant "$1" || exit 1
    "$walls" "$tree" "$1" && exit 1
    exit 0
)

# CK_RUN_CASE (contrib/check --case): this one alone.
wanted()
{
    [ -z "${CK_RUN_CASE:-}" ] || [ "$CK_RUN_CASE" = "$1" ]
}

names=$("$walls" --list)

for name in $names; do
    wanted "wall $name" || continue
    case $name in
        *_exports | *_symbols)
            # A sanitizer brings symbols of its own.
            if [ -n "$T_SAN_PRELOAD" ]; then
                number=$((number + 1))
                echo "ok $number - wall $name # SKIP not in flavour $T_FLAVOUR"
                continue
            fi
            ;;
    esac
    if breaches=$("$walls" "$T_TOP_SRCDIR" "$name" 2>&1); then
        result ok "wall $name"
    else
        result 'not ok' "wall $name"
        printf '%s\n' "$breaches" | sed 's/^/# /'
    fi
done

for name in $names; do
    wanted "a breach of $name is found" || continue
    if said=$(trips "$name" 2>&1); then
        result ok "a breach of $name is found"
    else
        result 'not ok' "a breach of $name is found"
        printf '%s\n' "$said" | sed 's/^/# /'
    fi
done
echo "1..$number"
[ "$failures" -eq 0 ]
