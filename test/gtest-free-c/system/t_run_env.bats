#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# daqiri run --print-env: what it prints sets the same variables as daqiri run itself, in
# each shell and as a modulefile, whatever is in their values.

bats_require_minimum_version 1.5.0
load tools.bash

setup()
{
    tools_setup
    export HOME=$PWD
    # every character that means something to one of them
    odd=$(printf 'rc, \047x "y" $HOME ${HOME} \\back \\n [pwd] {b !c !! `pwd` ~ * ? & < > | ( ) %%e #f ; = :')
}

# values COMMAND...: of the variables that daqiri run sets, in an environment where
# COMMAND has set them.
values()
{
    "$@" | grep -E '^(UCX_(TLS|NET_DEVICES)|LD_PRELOAD|OMPI_MCA_[a-z_]*|PRTE_MCA_[a-z_]*)=' | sort
}

# expect: what daqiri run itself sets.
expect()
{
    values "$T_DAQIRI" run -q --device soft --tls "$odd" env >expected
    grep -q -x -F -- "UCX_TLS=$odd" expected
    grep -q "^LD_PRELOAD=.*$T_SOFTVERBS\$" expected
}

# print FORMAT FILE
print()
{
    "$T_DAQIRI" run -q --device soft --tls "$odd" "--print-env=$1" >"$2"
}

@test "sh: read by each shell that is here" {
    local shell

    expect
    "$T_DAQIRI" run -q --device soft --tls "$odd" --print-env | diff - <(print sh /dev/stdout)
    print sh file
    for shell in sh bash dash busybox ksh zsh; do
        command -v "$shell" >/dev/null || continue
        [ "$shell" != busybox ] || shell='busybox sh'
        # shellcheck disable=SC2086
        values $shell -c '. ./file; env' | diff expected -
        # shellcheck disable=SC2086
        values $shell -c 'eval "$("$@")"; env' - "$T_DAQIRI" run -q --device soft --tls "$odd" -p |
            diff expected -
    done
}

@test "sh: a value of more than one line" {
    odd=$(printf 'rc,one\ntwo')
    print sh file
    sh -c '. ./file; printf %s "$UCX_TLS"' | cmp - <(printf %s "$odd")
}

# csh is known to eat what its own grammar makes of a value; tcsh is what people have.
need_csh()
{
    csh=$(command -v tcsh || command -v csh) || skip 'neither tcsh nor csh is installed'
}

@test "csh: sourced, and evaluated" {
    need_csh
    expect
    print csh file
    values "$csh" -f -c 'source file; env' | diff expected -
    # what csh would make of the option is not the matter here
    printf '#!/bin/sh\nexec "$T_DAQIRI" run -q --device soft --tls "$odd" --print-env=csh\n' >print
    chmod +x print
    export odd
    values "$csh" -f -c 'eval "`./print`"; env' | diff expected -
    odd=$(printf 'rc,one\ntwo')
    print csh file
    "$csh" -f -c 'source file; printenv UCX_TLS' | cmp - <(printf '%s\n' "$odd")
}

# by_module COMMAND...: prints a line for sh that loads, or unloads, the module `daqiri`.
by_module()
{
    expect
    mkdir -p modules
    export MODULEPATH=$PWD/modules
    unset LOADEDMODULES _LMFILES_
    values bash -c 'eval "$("${@:2}" bash load daqiri)"; env' - - "$@" >loaded
    diff expected loaded
    # what was in a list is left there
    LD_PRELOAD=$shims/refuse.so bash -c '
        eval "$("${@:2}" bash load daqiri)"
        echo "$LD_PRELOAD" >loaded
        eval "$("${@:2}" bash unload daqiri)"
        env >unloaded' - - "$@"
    [ "$(cat loaded)" = "$shims/refuse.so:$T_SOFTVERBS" ]
    grep -x "LD_PRELOAD=$shims/refuse.so" unloaded
    run -1 grep -E '^(UCX|OMPI|PRTE)_' unloaded
}

# The program behind the function `module` of Lmod and of Environment Modules.
lmod()
{
    lmod=${LMOD_CMD:-$(compgen -G '/usr/share/lmod/*/libexec/lmod' | head -n 1)}
    [ -x "$lmod" ] || skip 'Lmod is not installed'
}

@test "lua: a modulefile for Lmod" {
    lmod
    mkdir modules
    print lua modules/daqiri.lua
    by_module "$lmod"
}

@test "tcl: a modulefile for Lmod" {
    lmod
    mkdir modules
    print tcl modules/daqiri
    by_module "$lmod"
}

@test "tcl: a modulefile for Environment Modules" {
    local command

    command=${MODULES_CMD:-$(compgen -G '/usr/lib/*/modulecmd.tcl' | head -n 1)}
    [ -e "$command" ] || skip 'Environment Modules is not installed'
    mkdir modules
    print tcl modules/daqiri
    by_module tclsh "$command"
}

@test "lua: a modulefile for an interpreter of Lua alone" {
    local lua

    lua=$(command -v lua || compgen -c lua5 | head -n 1) || true
    [ -n "$lua" ] || skip 'no interpreter of Lua is installed'
    expect
    print lua file
    cat >modules.lua <<'END'
function whatis(text) assert(text:find("softverbs0", 1, true)) end
function setenv(name, value) print(name .. "=" .. value) end
append_path = setenv
dofile("file")
END
    values "$lua" modules.lua | diff expected -
}

@test "tcl: a modulefile for an interpreter of Tcl alone" {
    command -v tclsh >/dev/null || skip 'tclsh is not installed'
    expect
    print tcl file
    [ "$(head -n 1 file)" = '#%Module1.0' ]
    cat >modules.tcl <<'END'
proc module-whatis {text} { if {![string match *softverbs0* $text]} { error $text } }
proc setenv {name value} { puts "$name=$value" }
proc append-path {name value} { puts "$name=$value" }
source file
END
    values tclsh modules.tcl | diff expected -
}

@test "a modulefile has nothing of the LD_PRELOAD and the UCX_PLUGIN_PATH that happen to be set" {
    for format in lua tcl; do
        LD_PRELOAD=$shims/refuse.so UCX_PLUGIN_PATH=/nowhere print "$format" file
        [ -s file ]
        run -1 grep -E 'refuse|nowhere' file
    done
    for format in sh csh; do
        LD_PRELOAD=$shims/refuse.so print "$format" file
        grep "LD_PRELOAD.*refuse.so:$T_SOFTVERBS" file
    done
}

@test "a format that there is not: a sentence, status 2" {
    daqiri run --print-env=fish
    refused 2 'daqiri run: --print-env fish: it is one of sh, csh, lua, tcl'
    daqiri run --print-env=
    refused 2 'daqiri run: --print-env : it is one of sh, csh, lua, tcl'
}
