# SPDX-License-Identifier: BSD-3-Clause
#
# Completion of the command daqiri for bash. Subcommands and options are what
# --help lists, so nothing here has to follow them.
# shellcheck shell=bash

_daqiri()
{
    local word=${COMP_WORDS[COMP_CWORD]}
    local previous=${COMP_WORDS[COMP_CWORD - 1]}
    local words=

    if [ "$COMP_CWORD" -eq 1 ]; then
        words=$("${COMP_WORDS[0]}" --help 2>/dev/null |
            sed -n '/^Subcommands/,/^$/s/^  \([a-z-]*\) .*/\1/p')
        words+=' help'
        [[ $word != -* ]] || words='--help --version'
    elif [ "${COMP_WORDS[1]}" = help ]; then
        words=$("${COMP_WORDS[0]}" --help 2>/dev/null |
            sed -n '/^Subcommands/,/^$/s/^  \([a-z-]*\) .*/\1/p')
    elif [[ $previous =~ ^(-d|--device)$ ]]; then
        words="auto soft $(ls /sys/class/infiniband 2>/dev/null || true)"
    elif [[ ${COMP_WORDS[COMP_CWORD - 2]} = --print-env && $previous = = ||
            $previous = --print-env && $word = = ]]; then
        words='sh csh lua tcl'
        word=${word#=}
    elif [[ $previous =~ ^--plot$ ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
    elif [[ $word == -* ]]; then
        words=$("${COMP_WORDS[0]}" "${COMP_WORDS[1]}" --help 2>/dev/null |
            grep -o -E -- '--[a-z][a-z-]*' | sort -u)
    elif [ "${COMP_WORDS[1]}" = run ]; then
        mapfile -t COMPREPLY < <(compgen -c -- "$word")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _daqiri -o default daqiri
