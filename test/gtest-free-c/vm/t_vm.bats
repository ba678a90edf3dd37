# SPDX-License-Identifier: BSD-3-Clause
#
# contrib/vm/run: a command there is as it were here, and what it can reach.

bats_require_minimum_version 1.5.0

load vm.bash

# Where a process has its C library.
libc_place='sed -n "s/ .*libc.so.6$//p" /proc/self/maps | head -n 1'

@test "what cannot be is refused with a sentence" {
    refused 'unknown option "--fast" (try run --help)' --fast true
    refused 'option --mtu needs a value (try run --help)' --mtu
    refused 'there is no command (try run --help)'
    refused 'the command is one argument, and here are 2: quote it' echo hi
    refused '--network is one of none one pair hosts, not "two"' --network two :
    refused '--ip is one of 4 6 both, not "5"' --ip 5 :
    refused '--mtu wants a number from 1280 to 9000, not "100"' --mtu 100 :
    refused '--mtu wants a number from 1280 to 9000, not "1e3"' --mtu 1e3 :
    refused '--memory wants a number from 256 to 65536, not "-1"' --memory -1 :
    refused '--memory wants a number from 256 to 65536, not "99999999999999999999"' \
        --memory 99999999999999999999 :
    refused '--cpus wants a number from 1 to 64, not "0"' --cpus 0 :
    refused '--cpus with --count wants a number from 1 to 1, not "2"' --count --cpus 2 :
    refused '--time-limit wants a number from 1 to 86400, not ""' --time-limit '' :
    refused '--env wants NAME=VALUE or NAME, not "1A=x"' --env 1A=x :
    refused 'there is no folder /none' --results /none :
    refused '--network hosts needs --peer, the command of host2' --network hosts :
    refused '--peer needs --network hosts' --peer : :
    VM_LIFE=0 refused 'VM_LIFE wants a number from 1 to 86400, not "0"' :
    VM_SPARE=soon refused 'VM_SPARE wants a number from 0 to 86400, not "soon"' :
}

@test "--help tells the options" {
    run -0 "$vm/run" --help
    [ "${lines[0]}" = 'contrib/vm/run [options] COMMAND' ]
    [[ $output == *'--time-limit SECONDS'* ]]
    run -0 "$vm/image" --help
    [[ ${lines[0]} == 'contrib/vm/image '* ]]
}

@test "what is missing is told" {
    programs bash cat dirname basename sha256sum cut find sed sort tail gcc
    run -125 --separate-stderr env PATH="$dir/bin" bash "$vm/run" :
    [ "$stderr" = 'run: qemu-system-x86_64 is not installed: run contrib/setup' ]

    run -125 --separate-stderr \
        env XDG_CACHE_HOME="$dir/cache" PATH="$dir/fake:$PATH" bash "$vm/run" :
    if command -v qemu-system-x86_64; then
        [ "$stderr" = "image: there is no kernel in $dir/cache/ucx-daqiri/vm: run contrib/setup" ]
    fi

    need_machine
    programs qemu-system-x86_64
    run -125 --separate-stderr env PATH="$dir/bin" bash "$vm/run" :
    [ "$stderr" = 'image: busybox is not installed: run contrib/setup' ]
}

@test "the package of a kernel that is none" {
    export XDG_CACHE_HOME=$dir/cache
    echo nonsense > "$dir/kernel.deb"
    run -1 "$vm/image" --keep trixie "$dir/kernel.deb"
    [[ ${lines[-1]} == "image: $dir/kernel.deb is not a Debian package" ]]
    run -1 "$vm/image" --find
    [ -z "$output" ]
    run -2 "$vm/image" --keep trixie
    [ "$output" = 'image: --keep wants the packages of the kernel (try image --help)' ]
    run -2 "$vm/image" --keep sid "$dir/kernel.deb"
    [ "$output" = 'image: --keep knows bookworm, trixie and forky, not "sid"' ]
}

# number_into FILE OFFSET NUMBER: 32 bits of a kernel's header
number_into()
{
    printf "$(printf '\\x%02x' $(($3 & 255)) $(($3 >> 8 & 255)) $(($3 >> 16 & 255)) 0)" |
        dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# pack_kernel FILE PROGRAM...: as the kernel's build does it, 512 bytes that set up,
# then 100 of another sort, then what PROGRAM packs, and its size
pack_kernel()
{
    "${@:2}" < "$dir/vmlinux" > "$dir/packed"
    printf 'size' >> "$dir/packed"
    head -c 1536 /dev/zero > "$1"
    printf '\001' | dd of="$1" bs=1 seek=$((0x1f1)) conv=notrunc status=none
    printf HdrS | dd of="$1" bs=1 seek=$((0x202)) conv=notrunc status=none
    number_into "$1" $((0x248)) 512
    number_into "$1" $((0x24c)) "$(stat -c %s "$dir/packed")"
    cat "$dir/packed" "$vm/run" >> "$1"
}

# package NAME VERSION: of what is in the folder NAME
package()
{
    mkdir "$1/DEBIAN"
    printf 'Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: nobody\nDescription: none\n' \
        "$1" "$2" > "$1/DEBIAN/control"
    dpkg-deb -Znone -b "$1" "$1.deb" > /dev/null
}

# Up to 6.12 one package has /boot and /lib; later there are several, with all of it
# below /usr/lib/modules, and packed in another way.
@test "the packages of kernels are kept, and found by their Debian and their version" {
    local of=linux-binary/usr/lib/modules/9.2-amd64

    command -v zstd dpkg-deb depmod || skip 'zstd, dpkg-deb or depmod is not installed'
    command -v busybox || skip 'busybox is not installed'
    export XDG_CACHE_HOME=$dir/cache DAQIRI_OS_RELEASE=$dir/os-release
    cd "$dir"
    echo 'VERSION_CODENAME=bookworm' > os-release
    seq 100000 > vmlinux

    mkdir -p linux-old/boot linux-old/lib/modules/8.1-1
    sed -n '/^modules=(/,/^)/p' "$vm/image" | grep -v '[=#)]' | tr ' ' '\n' | grep . |
        sed 's|?||; s|.*|kernel/&.ko|' > linux-old/lib/modules/8.1-1/modules.builtin
    touch linux-old/lib/modules/8.1-1/modules.{order,builtin.modinfo}
    pack_kernel linux-old/boot/vmlinuz-8.1-1 xz -c
    package linux-old 8.1.7-1

    mkdir -p "$of" linux-image/usr/share
    cp linux-old/lib/modules/8.1-1/modules.* "$of"
    pack_kernel "$of/vmlinuz" zstd -qc
    package linux-binary 9.2.3-1
    package linux-image 9.2.3-1

    run -125 "$vm/run" --kernel forky :
    [[ $output == *"there is no kernel of Debian forky in $dir/cache/ucx-daqiri/vm: run contrib/setup --kernel forky" ]] ||
        [[ $output == *'is not installed'* ]]
    run -0 "$vm/image" --keep forky linux-image.deb linux-binary.deb
    [ -z "$output" ]
    run -1 "$vm/image"
    [[ $output == "image: there is no kernel in "*': run contrib/setup' ]]
    run -1 "$vm/image" --kernel 9.20
    [[ $output == 'image: there is no kernel 9.20 in '*': run contrib/setup --kernel DEBIAN' ]]
    run -0 "$vm/image" --keep bookworm linux-old.deb

    run -0 "$vm/image" --find
    cmp "$output/vmlinux" vmlinux
    [[ $output == */kernel-bookworm-8.1.7-1-* ]]
    for name in forky 9 9.2 9.2.3-1; do
        run -0 "$vm/image" --find --kernel "$name"
        cmp "$output/vmlinux" vmlinux
        [[ $output == */kernel-forky-9.2.3-1-* ]]
        [ "$(VM_KERNEL=$name "$vm/image" --find)" = "$output" ]
    done
    run -2 "$vm/image" --kernel sid
    [ "$output" = 'image: the kernel is that of bookworm, trixie or forky, or a version as 6.12, not "sid"' ]

    # what is there is left alone, and a module that is missing is named
    grep -v rxe linux-old/lib/modules/8.1-1/modules.builtin > modules
    mv modules "$of/modules.builtin"
    rm -r linux-binary/DEBIAN
    package linux-binary 9.2.3-1
    run -0 "$vm/image" --keep forky linux-image.deb linux-binary.deb
    run -1 "$vm/image" --keep trixie linux-image.deb linux-binary.deb
    [[ $output == *'this kernel has no module rdma_rxe'* ]]
    run -1 "$vm/image" --keep trixie linux-image.deb
    [ "${lines[-1]}" = 'image: there is no kernel in linux-image.deb' ]
}

# Two at the same time. One looks at all that should be as it is here, and what
# it prints must arrive byte by byte; the other is killed by a signal, which is
# its status, and nobody must comment.
@test "a command is as if it were here, and two are at the same time" {
    local other

    need_machine
    mkdir "$dir/work folder" "$dir/results" "$dir/more"
    cd "$dir/work folder"
    seq 100000 | sha512sum --tag > file
    head -c 300000 /dev/urandom > "$dir/random"
    export VM_TEST_HERE='from here'
    (
        vm b --network none \
            "cat '$dir/random' >&2; cat '$dir/random'; kill -KILL \$\$"
        exit "$status"
    ) > /dev/null 3>&- &
    other=$!
    vm a --env A='two  words' --env VM_TEST_HERE --env VM_TEST_NOT \
        --memory 512 --cpus 1 --mtu 1500 --results "$dir/results" \
        --results "$dir/more" "
        pwd
        cat file
        echo \"\$A, \$VM_TEST_HERE, \${VM_TEST_NOT-none}, \${T_TOP_SRCDIR-none}\"
        id -u; nproc; uname -n
        awk '/MemTotal/ { print (\$2 < 512 * 1024) }' /proc/meminfo
        cat; echo > /dev/stderr; echo to stdout > /dev/stdout
        echo of the guest > '$dir/results/kept'
        cat '$dir/results/kept' > '$dir/more/kept'
        echo x > new-file; rm file; echo gone > '$dir/vanishes'
        ibv_devinfo | grep -c active_mtu:.*1024
        for i in 1 2 3; do $libc_place; done | sort -u | grep -c -
        sleep 1000 & setsid sleep 1000 &
        exit 7"
    [ "$status" -eq 7 ]
    {
        pwd
        cat file
        echo 'two  words, from here, none, none'
        printf '%s\n' 0 1 host1 1 'to stdout' 1 1
    } > "$dir/wanted"
    diff "$dir/wanted" "$dir/a.out"
    [ "$(cat "$dir/a.err")" = '' ]
    [ "$(cat "$dir/results/kept")" = 'of the guest' ]
    [ "$(cat "$dir/more/kept")" = 'of the guest' ]
    [ "$(ls)" = file ]
    [ ! -e "$dir/vanishes" ]

    status=0
    wait "$other" || status=$?
    [ "$status" -eq 137 ]
    cmp "$dir/random" "$dir/b.out"
    cmp "$dir/random" "$dir/b.err"
}

@test "addresses of processes are random if asked for" {
    need_machine
    vm a --network none --random-addresses \
        "for i in 1 2 3; do $libc_place; done"
    [ "$(sort -u "$dir/a.out" | grep -c -)" -eq 3 ]
}

# The guest must not find out by itself how fast its counter is: on a busy
# machine its clock would then be much too fast.
@test "the clock of the guest runs as fast as ours" {
    local started=$SECONDS

    need_machine
    vm a --network none 'cut -d . -f 1 /proc/uptime
        dmesg | sed -n "s/.*tsc: Detected \([0-9]*\)\..*/\1/p"
        sed "s/.* tsc_early_khz=\([0-9]*\)[0-9]\{3\} .*/\1/" /proc/cmdline'
    cat "$dir/a.out"
    {
        read -r uptime
        read -r mhz
        read -r told_mhz
    } < "$dir/a.out"
    # the kernel rounds what it was told
    [ $((told_mhz - mhz)) -ge -1 ] && [ $((told_mhz - mhz)) -le 1 ]
    [ "$uptime" -le $((SECONDS - started + 2)) ]
    khz=$("$("$vm/image" | tail -n 1)")
    [ $((khz / 1000 - mhz)) -ge -5 ] && [ $((khz / 1000 - mhz)) -le 5 ]
}

# As if the kernel hung at boot, the first time.
@test "a guest that gives no sign of life is started again, and that is told" {
    need_machine
    mkdir -p "$dir/slow"
    cat > "$dir/slow/qemu-system-x86_64" <<- END
	#!/bin/bash
	[ -e "$dir/hung" ] || { : > "$dir/hung"; exec sleep 1000; }
	exec $(command -v qemu-system-x86_64) "\$@"
	END
    chmod +x "$dir/slow/qemu-system-x86_64"
    VM_LIFE=20 PATH=$dir/slow:$PATH vm a --network none 'echo up'
    [ "$(cat "$dir/a.out")" = up ]
    [[ $(head -n 1 "$dir/a.err") == *'host1 gave no sign of life in 20 s: started again' ]]
}

@test "so is one whose kernel dies when it comes up, and no other" {
    need_machine
    mkdir -p "$dir/slow"
    cat > "$dir/slow/qemu-system-x86_64" <<- END
	#!/bin/bash
	for word; do
	    case \$word in file:*/console) console=\${word#file:} ;; esac
	done
	[ ! -e "$dir/died" ] || exec $(command -v qemu-system-x86_64) "\$@"
	: > "$dir/died"
	printf '%s\n' '[ 1.7] RIP: 0010:somewhere+0x5/0x50' '[ 1.8] Kernel panic - not syncing: so' > "\$console"
	END
    chmod +x "$dir/slow/qemu-system-x86_64"
    PATH=$dir/slow:$PATH vm a --network none 'echo up; nproc'
    [ "$(paste -s -d' ' "$dir/a.out")" = 'up 2' ]
    [ "$(cat "$dir/a.err")" = 'run: host1 died when it came up (RIP: 0010:somewhere+0x5/0x50): started again' ]
}

# With our clock the same loop takes 2.2 s there, or 3.6, on a machine that does
# something else as well.
@test "where instructions are counted, the same takes the same time" {
    need_machine
    vm a --network none --count 'nproc
        for ((n = 0; n < 5; n++)); do
            from=${EPOCHREALTIME/./}
            for ((i = 0; i < 50000; i++)); do :; done
            echo $((${EPOCHREALTIME/./} - from))
        done'
    cat "$dir/a.out"
    [ "$(sed -n 1p "$dir/a.out")" -eq 1 ]
    # 0.1 % from the least to the most
    sed -n 2,6p "$dir/a.out" | sort -n |
        awk 'NR == 1 { least = $1 } END { exit !(NR == 5 && $1 <= 1.005 * least) }'
}

# On each kind of address every message takes at least one packet each way.
@test "packets between the ends of a wire are on the wire" {
    local gid

    need_machine
    cat > "$dir/command" <<'END'
packets()
{
    cat "/sys/class/net/$1/statistics/tx_packets"
}
for gid in 0 1 2; do
    va=$(packets va)
    vb=$(packets vb)
    stdbuf -oL ibv_rc_pingpong -d rxe1 -g $gid -n 100 > server &
    until grep -q 'local address' server; do sleep 0.1; done
    ibv_rc_pingpong -d rxe0 -g $gid -n 100 localhost > client &&
        wait $! || exit 1
    echo "$gid $(($(packets va) - va >= 100)) $(($(packets vb) - vb >= 100))"
    cat /sys/class/infiniband/rxe?/ports/1/gids/$gid
done
END
    cd "$dir"
    vm a --network pair --ip both 'bash command'
    [ "$status" -eq 0 ]
    sed 's/^fe80:.*/link-local/' "$dir/a.out" > "$dir/seen"
    printf '%s\n' '0 1 1' link-local link-local \
        '1 1 1' 0000:0000:0000:0000:0000:ffff:0a02:000{1,2} \
        '2 1 1' fd02:0000:0000:0000:0000:0000:0000:000{1,2} > "$dir/wanted"
    diff "$dir/wanted" "$dir/seen"
}

# host2 dies at the end: that is the status then, and host1 says all it has.
@test "two hosts meet, and one sees the other die" {
    need_machine
    vm a --network hosts --ip both \
        --peer 'busybox ping -c 1 host1 > /dev/null && uname -n
            ibv_rc_pingpong -d rxe0 -g 1 -n 50 > /dev/null && echo served >&2
            echo c > /proc/sysrq-trigger' \
        'uname -n; busybox ping -c 1 10.2.0.2 > /dev/null && echo heard 4
        busybox ping -c 1 fd02::2 > /dev/null && echo heard 6
        until ibv_rc_pingpong -d rxe0 -g 1 -n 50 host2 > client 2> /dev/null; do
            sleep 0.1
        done
        grep -c "^50 iters" client
        while busybox ping -c 1 -W 1 host2 > /dev/null; do sleep 0.1; done
        echo not heard any more'
    [ "$status" -eq 125 ]
    [ "$(grep -v '^host2: ' "$dir/a.out" | tr '\n' ,)" = \
        'host1,heard 4,heard 6,1,not heard any more,' ]
    [ "$(grep '^host2: ' "$dir/a.out")" = 'host2: host2' ]
    grep -q '^host2: served$' "$dir/a.err"
    grep -q '^run: host2 died without an answer' "$dir/a.err"
}
