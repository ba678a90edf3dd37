# SPDX-License-Identifier: BSD-3-Clause
#
# What the plugin says when it cannot work, and that it then stays out of the
# way: one sentence, a status, no crash, no hang. ucx_perftest talks to itself
# in one process, so nothing but the plugin and the device takes part.

bats_require_minimum_version 1.5.0
load ucx.bash

setup()
{
    cd "$BATS_TEST_TMPDIR"
    refuse=$T_TOP_BUILDDIR/test/gtest-free-c/system/.libs/refuse.so
    other_ucx=$T_TOP_BUILDDIR/test/gtest-free-c/system/.libs/other_ucx.so
    perftest=(ucx_perftest -x daqiri -d softverbs0:1 -t am_lat
              -l -n 200)
    # its device has lost a 0 on the way from 1.13 to 1.18
    perftest_self=(ucx_perftest -x self -d "$(self_device)" -t am_lat -l -n 200)
    export UCX_TLS=daqiri
}

self_device()
{
    ucx_info -d | awk '/Transport:/ { is_self = $3 == "self" }
                       /Device:/ && is_self { print $3; exit }'
}

# with_objects OBJECT... -- COMMAND...
with_objects()
{
    local preload=

    while [ "$1" != -- ]; do
        preload="$preload $1"
        shift
    done
    shift
    # the time limit outside: what is preloaded speaks in every program
    run timeout 60 env LD_PRELOAD="$preload" "$@"
    echo "$output"
    # neither killed by a signal nor by the time limit
    [ "$status" -lt 124 ] || [ "$status" -eq 255 ]
}

# says SENTENCE: exactly one line has it
says()
{
    [ "$(echo "$output" | grep -c -F -- "$1")" -eq 1 ]
}

# refused WHAT SENTENCE
refused()
{
    export T_REFUSE=$1
    with_objects "$refuse" "$T_SOFTVERBS" "$T_PLUGIN" -- "${perftest[@]}"
    [ "$status" -ne 0 ]
    says "$2"
}

@test "the shim itself refuses nothing unasked" {
    with_objects "$refuse" "$T_SOFTVERBS" "$T_PLUGIN" -- "${perftest[@]}"
    [ "$status" -eq 0 ]
    [[ $output != *daqiri_* ]]
}

@test "no device" {
    refused no_device 'daqiri: this machine has no RDMA device'
    [[ $output == *'daqiri run COMMAND'* ]]
}

@test "no device, and nobody asked for daqiri: silence" {
    export T_REFUSE=no_device UCX_TLS=tcp,self
    with_objects "$refuse" "$T_SOFTVERBS" "$T_PLUGIN" -- \
        "${perftest_self[@]}"
    [ "$status" -eq 0 ]
    [[ $output != *daqiri* ]]
}

@test "no device, and the user excludes daqiri: silence" {
    export T_REFUSE=no_device UCX_TLS=^daqiri
    with_objects "$refuse" "$T_SOFTVERBS" "$T_PLUGIN" -- "${perftest_self[@]}"
    [ "$status" -eq 0 ]
    [[ $output != *daqiri* ]]
}

@test "no permission on the device" {
    refused open_eacces 'softverbs0: the RDMA device cannot be opened: Permission denied'
    says 'check the permissions of /dev/infiniband'
}

@test "port down" {
    refused port_down 'softverbs0: the port is not active'
}

@test "the port cannot be looked up" {
    export SOFTVERBS_FAULTS='verb name=query_port n=1'
    refused nothing 'softverbs0: a verb failed: ibv_query_port(): Cannot allocate memory'
}

@test "no shared receive queue" {
    refused no_srq 'softverbs0: the device has no shared receive queue'
}

@test "no GID at the index" {
    refused no_gid 'softverbs0:1: there is no GID at the index asked for'
}

@test "queue pairs cannot be made" {
    refused create_qp 'ibv_create_qp(): Cannot allocate memory'
}

@test "memory cannot be registered: the limit is named" {
    ulimit -l 64
    refused reg_enomem 'ibv_reg_mr(): Cannot allocate memory'
    says 'locked memory is limited to 64 KiB (ulimit -l)'
}

@test "active messages of UCP with the longest header that it allows" {
    UCX_TLS=daqiri with_objects "$T_SOFTVERBS" "$T_PLUGIN" -- \
        "$T_TOP_BUILDDIR/test/gtest-free-c/system/ucp_header"
    [ "$status" -eq 0 ]
    [[ $output == *'32 messages have come'* ]]
}

@test "a peer that this process has no room for: the device says why, and the endpoint fails at once" {
    case $T_FLAVOUR in
        asan|tsan) skip "flavour $T_FLAVOUR: its programs cannot run with such a limit" ;;
    esac
    # room for one segment of softverbs' and not for two; the ends meet over TCP
    ulimit -v 1450000
    UCX_VFS_ENABLE=n UCX_TLS=daqiri,tcp with_objects "$T_SOFTVERBS" "$T_PLUGIN" -- \
        "$T_TOP_BUILDDIR/test/gtest-free-c/system/ucp_pair" 127.0.0.1
    [ "$status" -ne 0 ]
    [[ $output == *'softverbs: another process cannot be reached: its segment cannot be mapped: Cannot allocate memory'*'(ulimit -v)'* ]]
    # that the verb fails, not that time runs out; of newer UCX an end may first see that
    # the other one, to which it happened, too, has closed
    [[ $output == *'the endpoint failed: Input/output error'* ||
       $output == *'the endpoint failed: Connection reset by remote peer'* ]]
}

@test "a device that is not there" {
    with_objects "$T_SOFTVERBS" "$T_PLUGIN" -- \
        ucx_perftest -x daqiri -d nosuch0:1 -t am_lat -l -n 200
    [ "$status" -ne 0 ]
    # UCX's words change
    [[ $output == *'No such device'* || $output == *'Unsupported operation'* ]]
}

# stays_out SENTENCE: that sentence, once, and the program goes on without daqiri
stays_out()
{
    with_objects "$other_ucx" "$T_PLUGIN" -- \
        "${perftest_self[@]}"
    [ "$status" -eq 0 ]
    says "daqiri: the plugin does not know this UCX and stays out of the job ($1)"
    [ "$(grep -c daqiri: <<< "$output")" -eq 1 ]
}

@test "a UCX that is newer, older, or another altogether" {
    for version in 1.24.0 1.99.7 1.12.1 2.0.0 2.18.0; do
        T_UCX_VERSION_IS=$version stays_out "this is UCX $version"
    done
}

@test "a UCX that is not what it says it is" {
    [[ $T_UCX_VERSION == 1.13.* ]] || skip 'needs UCX 1.13'
    T_UCX_VERSION_IS=1.14.1 stays_out 'this is UCX 1.14.1, but it has no uct_md_query_v2, which came with 1.14'
    T_UCX_HAS=uct_base_rkey_compare stays_out 'this is UCX 1.13.1, but it has uct_base_rkey_compare, which came with 1.16'
}

@test "a UCX that is not whole" {
    T_UCX_LACKS=ucs_rcache_create stays_out "this is UCX $T_UCX_VERSION, but it has no ucs_rcache_create"
    T_UCX_LACKS=uct_base_ep_t_class stays_out "this is UCX $T_UCX_VERSION, but its interfaces and endpoints have other sizes"
}

@test "a UCX whose structures have other sizes than its version has" {
    # none has this many bytes, in no version
    for name in uct_tcp_component uct_tcp_tl uct_md_config_table; do
        T_UCX_SIZE_IS="$name 1000" with_objects "$other_ucx" "$T_PLUGIN" -- "${perftest_self[@]}"
        [ "$status" -eq 0 ]
        [[ $output =~ 'stays out of the job (this is UCX '"$T_UCX_VERSION"', but its '"$name"' has 1000 bytes instead of '[0-9]+')' ]]
        [ "$(grep -c daqiri: <<< "$output")" -eq 1 ]
    done
    for name in uct_base_iface_t_class uct_base_ep_t_class; do
        T_UCX_SIZE_IS="$name 1000" stays_out "this is UCX $T_UCX_VERSION, but its interfaces and endpoints have other sizes"
        # nor may the user overrule that
        T_UCX_SIZE_IS="$name 1000" DAQIRI_UCX_ANY=1 stays_out "this is UCX $T_UCX_VERSION, but its interfaces and endpoints have other sizes"
    done
    # what the shim does, it does to these alone
    T_UCX_SIZE_IS="uct_tcp_iface_t_class 1000" with_objects "$other_ucx" "$T_SOFTVERBS" "$T_PLUGIN" -- "${perftest[@]}"
    [ "$status" -eq 0 ]
    [[ $output != *daqiri:* ]]
}

@test "a UCX that nothing tells the version of" {
    T_UCX_LACKS=ucp_get_version with_objects "$other_ucx" "$T_PLUGIN" -- \
        "${perftest_self[@]}"
    [ "$status" -eq 0 ]
    [[ $output == *'stays out of the job (nothing tells the version of '*'libuct.so.0: there is no libucp that belongs to it)'* ]]
}

@test "a UCX that is newer, and the user wants it all the same" {
    T_UCX_VERSION_IS=1.99.7 DAQIRI_UCX_ANY=no stays_out 'this is UCX 1.99.7'
    T_UCX_VERSION_IS=1.12.0 DAQIRI_UCX_ANY=1 stays_out 'this is UCX 1.12.0'
    # the version that we know, under a number that its functions do not bear out
    case $T_UCX_VERSION in
        1.23.*) differs=T_UCX_LACKS but='has no' ;;
        *) differs=T_UCX_HAS but=has ;;
    esac
    export "$differs=uct_ep_outstanding_purge"
    stays_out "this is UCX $T_UCX_VERSION, but it $but uct_ep_outstanding_purge, which came with 1.23"
    DAQIRI_UCX_ANY=1 with_objects "$other_ucx" "$T_SOFTVERBS" "$T_PLUGIN" -- "${perftest[@]}"
    [ "$status" -eq 0 ]
    [[ $output != *'stays out'* ]]
}

# another_ucx: a UCX in a folder that the loader does not search
another_ucx()
{
    local from

    from=$(dirname "$(ldd "$(command -v ucx_info)" | sed -n 's|.*libucp\.so\.0 => \(.*\) (.*|\1|p')")
    mkdir -p opt/ucx
    cp -L "$from"/libuc{m,s,t,p}.so.0 opt/
    cp -L "$from"/ucx/*.so* opt/ucx/
}

@test "a UCX outside the loader's path, opened by a part of the program: that one, and no other" {
    another_ucx
    for tls in daqiri daqiri,self,tcp all; do
        UCX_TLS=$tls with_objects "$T_SOFTVERBS" "$T_PLUGIN" -- \
            "$T_TOP_BUILDDIR/test/gtest-free-c/system/ucp_apart" "$PWD/opt"
        [ "$status" -eq 0 ]
        [[ $output == *daqiri* ]]
        [ "$(grep -c '^library .*/libucs\.so' <<< "$output")" -eq 1 ]
        [ "$(grep '^library ' <<< "$output" | grep -cv "^library $PWD/opt/")" -eq 0 ]
    done
}

@test "the same without daqiri, as a UCX that is not known" {
    another_ucx
    UCX_TLS=self,tcp T_UCX_VERSION_IS=1.99.7 with_objects "$other_ucx" "$T_PLUGIN" -- \
        "$T_TOP_BUILDDIR/test/gtest-free-c/system/ucp_apart" "$PWD/opt"
    [ "$status" -eq 0 ]
    says 'daqiri: the plugin does not know this UCX and stays out of the job (this is UCX 1.99.7)'
}

@test "a program without UCX is given none" {
    run -1 env LD_PRELOAD="$T_PLUGIN" grep -E '/libuc[mstp]\.so' /proc/self/maps
    [ -z "$output" ]
}

@test "two UCX in one process: the first is given daqiri, the second works without" {
    local library

    # of other names, or the second would be given libraries of the first
    another_ucx
    mkdir opt9
    for library in m s t p; do
        sed 's/libuc\([mstp]\)\.so\.0/libuc\1.so.9/g' "opt/libuc$library.so.0" > "opt9/libuc$library.so.9"
    done
    UCX_TLS=self run timeout 60 "$T_TOP_BUILDDIR/test/gtest-free-c/system/ucp_apart" "$PWD/opt" "$PWD/opt9"
    [ "$status" -eq 0 ] ||
        skip "two of UCX $T_UCX_VERSION in one process end with status $status, without daqiri"
    UCX_TLS=daqiri,self,tcp with_objects "$T_SOFTVERBS" "$T_PLUGIN" -- \
        "$T_TOP_BUILDDIR/test/gtest-free-c/system/ucp_apart" "$PWD/opt" "$PWD/opt9"
    [ "$status" -eq 0 ]
    [ "$(grep -c '^library .*/libuct\.so' <<< "$output")" -eq 2 ]
    [ "$(grep -c 'resource .*daqiri/softverbs0' <<< "$output")" -eq 1 ]
    [ "$(grep -c 'resource .*self/memory' <<< "$output")" -eq 2 ]
}

# for_aarch64 FILE: as if it had been built for that
for_aarch64()
{
    cp -L "$T_PLUGIN" "$1"
    case $(uname -m) in
        aarch64) skip 'this is an aarch64' ;;
    esac
    printf '\267\0' | dd of="$1" bs=1 seek=18 conv=notrunc status=none
}

@test "a plugin for another processor: the loader says so, and the program goes on" {
    for_aarch64 libuct_daqiri.so.0
    run timeout 60 env LD_PRELOAD="$PWD/libuct_daqiri.so.0" "${perftest_self[@]}"
    echo "$output"
    [ "$status" -eq 0 ]
    # once, or by each program between
    [[ $output == *"ERROR: ld.so: object '$PWD/libuct_daqiri.so.0' from LD_PRELOAD cannot be preloaded"* ]]
    run timeout 60 env LD_PRELOAD="$PWD/libuct_daqiri.so.0" "${perftest[@]}"
    echo "$output"
    [ "$status" -ne 0 ]
    [ "$status" -lt 124 ] || [ "$status" -eq 255 ]
}

@test "a plugin for another processor among UCX's modules: UCX goes on without it" {
    need_module_path
    mkdir modules
    for_aarch64 modules/libuct_daqiri.so.0
    UCX_TLS=self UCX_PLUGIN_PATH=$PWD/modules with_objects -- "${perftest_self[@]}"
    [ "$status" -eq 0 ]
    [[ $output != *daqiri* ]]
    UCX_PLUGIN_PATH=$PWD/modules is_missed
}

@test "a libibverbs that lacks something: the loader says what, before the program begins" {
    other_verbs _ibv_query_gid_ex
    run timeout 60 env LD_LIBRARY_PATH="$PWD/verbs" LD_PRELOAD="$T_PLUGIN" true
    echo "$output"
    [ "$status" -eq 127 ]
    [[ $output == *"symbol lookup error: $T_PLUGIN: undefined symbol: _ibv_query_gid_ex"* ]]
    other_verbs IBVERBS_1.8
    run timeout 60 env LD_LIBRARY_PATH="$PWD/verbs" LD_PRELOAD="$T_PLUGIN" true
    echo "$output"
    [ "$status" -eq 1 ]
    [[ $output == *"version \`IBVERBS_1.8' not found (required by $T_PLUGIN)"* ]]
}

@test "a UCX with statistics: the interface opens, and is in the file" {
    [[ $(ucx_info -v) == *--enable-stats* ]] || skip "UCX $T_UCX_VERSION is built without statistics"
    UCX_STATS_DEST=file:$PWD/stats UCX_STATS_TRIGGER=exit \
        with_objects "$T_SOFTVERBS" "$T_PLUGIN" -- "${perftest[@]}"
    [ "$status" -eq 0 ]
    grep -E '^ +uct_iface-daqiri' stats
}

@test "UCX_MODULES is about UCX's modules: it does not keep out a plugin that is preloaded" {
    for modules in ib ^daqiri; do
        UCX_MODULES=$modules with_objects "$T_SOFTVERBS" "$T_PLUGIN" -- "${perftest[@]}"
        [ "$status" -eq 0 ]
    done
}

need_module_path()
{
    has_module_path ||
        skip "UCX $T_UCX_VERSION loads the modules that it was compiled with"
}

# is_missed: who asks for daqiri hears from UCX that it is not there. What ucx_info's
# status is then is its own affair.
is_missed()
{
    run timeout 60 env UCX_TLS=daqiri LD_PRELOAD="$T_SOFTVERBS" ucx_info -e -u t
    echo "$output"
    [ "$status" -ne 124 ]
    [[ $output == *"transport 'daqiri' is not available"* ]]
}

@test "UCX's own way for modules: no LD_PRELOAD of the plugin" {
    need_module_path
    mkdir modules
    cp "$T_PLUGIN" modules/
    export UCX_PLUGIN_PATH=$PWD/modules
    with_objects "$T_SOFTVERBS" -- "${perftest[@]}"
    [ "$status" -eq 0 ]
    another_ucx
    with_objects "$T_SOFTVERBS" -- \
        "$T_TOP_BUILDDIR/test/gtest-free-c/system/ucp_apart" "$PWD/opt"
    [ "$status" -eq 0 ]
    [[ $output == *daqiri* ]]
}

@test "UCX_MODULES without daqiri: UCX leaves the plugin out of its modules, and misses it if it was asked for" {
    need_module_path
    mkdir modules
    cp "$T_PLUGIN" modules/
    export UCX_PLUGIN_PATH=$PWD/modules
    for modules in ib ^daqiri; do
        UCX_MODULES=$modules is_missed
        UCX_TLS=self UCX_MODULES=$modules with_objects "$T_SOFTVERBS" -- "${perftest_self[@]}"
        [ "$status" -eq 0 ]
        [[ $output != *daqiri* ]]
    done
    UCX_MODULES=daqiri with_objects "$T_SOFTVERBS" -- "${perftest[@]}"
    [ "$status" -eq 0 ]
}

@test "among UCX's modules in a UCX that it does not know: silence, unless it was asked for" {
    need_module_path
    mkdir modules
    cp "$T_PLUGIN" modules/
    export UCX_PLUGIN_PATH=$PWD/modules T_UCX_VERSION_IS=1.99.7
    for tls in self all ^daqiri; do
        UCX_TLS=$tls with_objects "$other_ucx" -- "${perftest_self[@]}"
        [ "$status" -eq 0 ]
        [[ $output != *daqiri* ]]
    done
    UCX_TLS=self,daqiri with_objects "$other_ucx" -- "${perftest_self[@]}"
    [ "$status" -eq 0 ]
    says 'daqiri: the plugin does not know this UCX and stays out of the job (this is UCX 1.99.7)'
}

@test "both ways at once" {
    need_module_path
    mkdir modules
    ln -s "$T_PLUGIN" modules/
    UCX_PLUGIN_PATH=$PWD/modules with_objects "$T_SOFTVERBS" "$T_PLUGIN" -- "${perftest[@]}"
    [ "$status" -eq 0 ]
    [[ $output != *daqiri:* ]]
}

@test "two copies: the second stays out, the first works" {
    cp "$T_PLUGIN" copy.so.0
    with_objects "$T_SOFTVERBS" "$T_PLUGIN" "$PWD/copy.so.0" -- "${perftest[@]}"
    [ "$status" -eq 0 ]
    says 'a daqiri plugin is loaded already and this copy stays out of its way'
}

# Each option with values below and above its range.
ranges()
{
    cat <<'OPTIONS'
SQ_DEPTH 0 3 32769 -1 99999999999
CQ_LEN 3 4194305
SIGNAL_EVERY 0 32769
RX_BUFFERS 63 1048577
RX_WINDOW 3 32769
RX_WINDOW_START 3 32769
TX_BUFFERS 63 1048577
TX_BATCH 2
TX_BATCH_TIMEOUT 0 0.1us 61s
RECOVERY 2 maybe
RECOVERY_TIMEOUT 1ms 3601s
MAX_QPS 0 16777216 -1 99999999999
IDLE_TIMEOUT 1ms 3601s -1s
SQ_STALL_TIMEOUT 1ms 3601s -1s
STUCK_TIMEOUT 1ms 3601s -1s
KEEPALIVE 1ms 3601s -1s
STATS 2 maybe
SEG_SIZE 255 2m inf
MAX_INLINE 4097 -1
MAX_SGE 1 33
POLL_BATCH 0 65
RNR_TIMEOUT 0 0.001ms 700ms -1s
TIMEOUT 0 1us 9000s
RETRY_COUNT 7 -1
CONN_TIMEOUT 1ms 120m
CONN_RETRY 0 2s
GID_INDEX 256 -1
TRAFFIC_CLASS 256
SL 16
LATENCY 2s inf
RDMA_OVERHEAD 2s inf
OPTIONS
}

@test "nonsense in every option" {
    local option values value
    local tried=0

    while read -r option values; do
        for value in nonsense 12abc $values; do
            run timeout 60 env "UCX_DAQIRI_$option=$value" \
                LD_PRELOAD="$T_SOFTVERBS $T_PLUGIN" "${perftest[@]}"
            echo "$option=$value: status $status"
            echo "$output"
            [ "$status" -ne 0 ]
            [ "$status" -lt 124 ] || [ "$status" -eq 255 ]
            [[ $output == *"$option"* ]]
            tried=$((tried + 1))
        done
    done < <(ranges)
    [ "$tried" -ge 70 ]
}

@test "idle closes need recovery" {
    local option

    for option in MAX_QPS=4 IDLE_TIMEOUT=1s; do
        run timeout 60 env "UCX_DAQIRI_$option" UCX_DAQIRI_RECOVERY=n \
            LD_PRELOAD="$T_SOFTVERBS $T_PLUGIN" "${perftest[@]}"
        [ "$status" -ne 0 ]
        [[ $output == *"UCX_DAQIRI_${option%=*}"*'it needs UCX_DAQIRI_RECOVERY=y'* ]]
    done
}

@test "every option that exists is in the test above" {
    run env LD_PRELOAD="$T_PLUGIN" ucx_info -c -f
    diff <(echo "$output" | sed -n 's/^UCX_DAQIRI_\([A-Z_]*\)=.*/\1/p' |
           grep -vxE 'ALLOC|FAILURE|MAX_NUM_EPS|MD_.*' | sort) \
         <(ranges | sed 's/ .*//' | sort)
}

# thresholds [NAME=VALUE]...: what UCP makes of what the transport says of itself
# on softverbs, where a copy is taken to run at 5800 MB/s. From 1.16
# on UCP chooses in another way, but still has this one; there it takes 50 ns for a look
# into its own cache of registrations, instead of what the transport says, unless it
# has no such cache.
thresholds()
{
    run env LD_PRELOAD="$T_SOFTVERBS:$T_PLUGIN" UCX_TLS=daqiri \
        UCX_BCOPY_BW=5800MBps UCX_PROTO_ENABLE=n UCX_RCACHE_ENABLE=n "$@" ucx_info -e -u tra -w
    echo "$output"
    [ "$status" -eq 0 ]
    short=$(sed -n 's/.*tag_send: .*short>[.]*\([0-9]*\)[.]*<egr.*/\1/p' <<<"$output")
    zcopy=$(sed -n 's/.*tag_send: .*bcopy>[.]*\([0-9]*\)[.]*<egr.zcopy.*/\1/p' <<<"$output")
    rndv=$(sed -n 's/.*tag_send: .*zcopy>[.]*\([0-9]*\)[.]*<rndv.*/\1/p' <<<"$output")
    get=$(sed -n 's/.*get\[0\]: .*bcopy>[.]*\([0-9]*\)[.]*<zcopy.*/\1/p' <<<"$output")
}

# get_is LEAST MOST: from 1.22 on ucx_info tells nothing of gets
get_is()
{
    if is_since 1.22 && [[ $output != *'get[0]'* ]]; then
        return 0
    fi
    [ "$get" -ge "$1" ]
    [ "$get" -le "$2" ]
}

@test "on softverbs UCP copies up to some 4 KiB" {
    thresholds
    [ "$zcopy" -ge 3500 ]
    [ "$zcopy" -le 4500 ]
    get_is 2500 4500
    [ "$short" -ge 2500 ]
    [ "$short" -lt "$zcopy" ]
}

@test "what UCP would rather copy is short up to a page" {
    thresholds UCX_DAQIRI_MD_RCACHE_OVERHEAD=10us
    [ "$short" -eq $((4096 + 64 - 8 + 1)) ]
    thresholds UCX_DAQIRI_MD_RCACHE_OVERHEAD=10us UCX_ZCOPY_THRESH=2000
    [ "$short" -eq 2000 ]
    thresholds UCX_DAQIRI_MD_RCACHE_OVERHEAD=10us UCX_DAQIRI_SEG_SIZE=1024
    [ "$short" -eq $((1024 - 16 - 8 + 1)) ]
    thresholds UCX_DAQIRI_MD_RCACHE_OVERHEAD=1ns
    [ "$short" -le 256 ] # what goes inline
}

@test "a device in user space has the latency that its kind has" {
    run env LD_PRELOAD="$T_SOFTVERBS $T_PLUGIN" ucx_info -d -t daqiri
    [ "$(grep -c 'latency: 400 ' <<< "$output")" -eq 1 ]
}

@test "rendezvous begins where one message ends" {
    ! is_since 1.16 || skip "UCP 1.16 and newer reckon otherwise, which ucx_info -e does not show (contrib/bench protocols does)"
    thresholds
    [ "$rndv" -eq 16432 ]
    thresholds UCX_DAQIRI_LATENCY=105ns
    [ "$rndv" -eq 16432 ]
    thresholds UCX_DAQIRI_LATENCY=445ns # the most with which it does (daqiri_port.c)
    [ "$rndv" -eq 16432 ]
}

@test "the larger the latency, the later rendezvous begins" {
    local cheap

    thresholds UCX_DAQIRI_LATENCY=800ns
    cheap=$rndv
    [ "$cheap" -gt 16432 ]
    thresholds UCX_DAQIRI_LATENCY=1us
    [ "$rndv" -gt "$((cheap + 4000))" ]
}

@test "a message holds a multiple of 16 bytes, whatever SEG_SIZE is" {
    local size

    for size in 8256 8257 8271 8272 12288 16k; do
        run env LD_PRELOAD="$T_SOFTVERBS $T_PLUGIN" UCX_DAQIRI_SEG_SIZE=$size ucx_info -d -t daqiri
        echo "$output" | grep -E 'am_[bz]copy'
        [ "$(sed -n 's/.*am_bcopy: <= \([0-9]*\).*/\1/p' <<< "$output")" != "" ]
        [ $(($(sed -n 's/.*am_bcopy: <= \([0-9]*\).*/\1/p' <<< "$output") % 16)) -eq 0 ]
        [ $(($(sed -n 's/.*am_zcopy: <= \([0-9]*\).*/\1/p' <<< "$output") % 16)) -eq 0 ]
    done
}

@test "what the user says of the registration cache goes before" {
    thresholds UCX_DAQIRI_MD_RCACHE_OVERHEAD=180ns
    [ "$short" -le 1500 ]
    [ "$zcopy" -le 2000 ]
    get_is 0 2000
}

@test "what is polled lies within a page" {
    [ "$T_FLAVOUR" = release ] ||
        skip 'the sanitizers and the debug build have longer functions'

    run nm -S "$T_PLUGIN"
    [ "$status" -eq 0 ]
    # all that is UCT_DAQIRI_POLLED
    for name in uct_daqiri_iface_progress uct_daqiri_ep_am_short; do
        read -r start size _ < <(grep " $name\$" <<< "$output")
        echo "$name: $size bytes at $start"
        [ $((0x$start % 4096 + 0x$size)) -le 4096 ]
    done
}
