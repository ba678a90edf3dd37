# SPDX-License-Identifier: BSD-3-Clause
#
# What packages are made of: each file that is installed is in one of them or is
# left out on purpose, and all agree on the version. contrib/check-debian --package
# builds and installs them.

bats_require_minimum_version 1.5.0

setup()
{
    debian=$T_TOP_SRCDIR/debian
    spec=$T_TOP_SRCDIR/contrib/ucx-daqiri.spec
    cd "$BATS_TEST_TMPDIR"
}

# lines FILE...: without comments and empty lines.
lines()
{
    sed '/^#/d; /^$/d' "$@"
}

# installed: what this build installs, as below /usr of a Debian.
installed()
{
    local root=$BATS_TEST_TMPDIR/root
    local libdir prefix dir

    for dir in src/softverbs src/uct/daqiri src/tools man; do
        env -u MAKEFLAGS make -C "$T_TOP_BUILDDIR/$dir" install DESTDIR="$root" 2>&1 || return 1
    done > "$BATS_TEST_TMPDIR/make.log"
    prefix=$(setting prefix)
    libdir=$(setting libdir | sed "s|^\${exec_prefix}|$prefix|")
    (cd "$root" && find . \( -type f -o -type l \) -printf '/%P\n') |
        sed "s|^$libdir/|usr/lib/ARCH/|; s|^$prefix/|usr/|"
}

setting()
{
    sed -n "s/^$1 = //p" "$T_TOP_BUILDDIR/man/Makefile"
}

# matches PATH PATTERN...: by one of them, as dh_install would.
matches()
{
    local path=$1 pattern

    shift
    for pattern; do
        [[ $path != $pattern ]] || return 0
    done
    return 1
}

@test "each file that is installed is in a package, or is left out on purpose" {
    local path patterns pattern used=

    mapfile -t patterns < <(lines "$debian"/*.install "$debian/not-installed")
    [ ${#patterns[@]} -gt 8 ]
    installed > files
    [ "$(wc -l < files)" -gt 15 ]
    while read -r path; do
        matches "$path" "${patterns[@]}" || echo "$path is in no package"
    done < files > lost
    # the other way round; the sweeps are there where an MPI is
    for pattern in "${patterns[@]}"; do
        [[ $pattern == *mpi-sweep-* ]] && continue
        used=
        while read -r path; do
            matches "$path" "$pattern" && used=yes
        done < files
        [ -n "$used" ] || echo "$pattern of debian/ is not installed"
    done >> lost
    cat lost
    [ ! -s lost ]
}

@test "the archive has all files of debian/" {
    run -0 comm -3 <(cd "$T_TOP_SRCDIR" && find debian -type f -not -path '*/ucx-daqiri*/*' \
            -not -path '*/tmp/*' -not -path '*/.debhelper/*' -not -name '*debhelper*' \
            -not -name '*.substvars' -not -name files -not -name 'autoreconf.*' | sort) \
        <(sed -n 's/^\t\(debian\/[^ ]*\).*/\1/p' "$T_TOP_SRCDIR/Makefile.am" | sort)
    [ -z "$output" ]
}

@test "configure, debian/changelog, the spec and NEWS agree on the version" {
    local version head distribution

    version=$(sed -n 's/^AC_INIT(\[ucx-daqiri\], \[\(.*\)\])/\1/p' "$T_TOP_SRCDIR/configure.ac")
    [ -n "$version" ]
    head=$(head -n 1 "$debian/changelog")
    [[ $head == "ucx-daqiri ($version) "* ]]
    grep -qx "Version: *$version" "$spec"
    grep -q "^\* .* - $version-1\$" "$spec"
    # what NEWS begins with is not released, or is this version
    distribution=${head#*) }
    case $(sed -n 3p "$T_TOP_SRCDIR/NEWS") in
        "$version - not released yet") [ "${distribution%;*}" = UNRELEASED ] ;;
        "$version - "20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]) [ "${distribution%;*}" != UNRELEASED ] ;;
        *) false ;;
    esac
}

@test "a package has one maintainer everywhere" {
    local maintainer

    maintainer=$(sed -n 's/^Maintainer: //p' "$debian/control")
    [ -n "$maintainer" ]
    grep -qF -- " -- $maintainer  " "$debian/changelog"
    grep -qF -- " $maintainer - " "$spec"
}

@test "deb: an unknown option, --help, and another system than Debian" {
    local deb=$T_TOP_SRCDIR/contrib/deb tool

    run -2 --separate-stderr "$deb" --nonsense
    [ "$stderr" = 'deb: unknown option "--nonsense" (try deb --help)' ]
    run -0 "$deb" --help
    [[ ${lines[0]} == 'contrib/deb '* ]]
    mkdir bin
    for tool in bash dirname basename; do
        ln -s "$(command -v "$tool")" bin/
    done
    run -1 env PATH="$PWD/bin" bash "$deb"
    [[ $output == 'deb: this is no Debian: README.md says how'* ]]
}

@test "deb: not root, and what the build needs is missing" {
    local bin=$BATS_TEST_TMPDIR/bin

    mkdir "$bin"
    printf '#!/bin/sh\necho 1000\n' > "$bin/id"
    printf '#!/bin/sh\necho "error: Unmet build dependencies: nonsense-dev" >&2; exit 1\n' \
        > "$bin/dpkg-checkbuilddeps"
    chmod +x "$bin"/*
    run -1 env PATH="$bin:$PATH" DAQIRI_BUILD_ROOT="$BATS_TEST_TMPDIR/build" \
        "$T_TOP_SRCDIR/contrib/deb"
    [ "$output" = 'deb: not root, and what the build needs is missing: nonsense-dev' ]
    # the copy is all that a build takes, and nothing that a build has written
    [ -x "$BATS_TEST_TMPDIR/build/deb/ucx-daqiri/debian/rules" ]
    [ -f "$BATS_TEST_TMPDIR/build/deb/ucx-daqiri/src/tools/cmd/main.c" ]
    [ ! -e "$BATS_TEST_TMPDIR/build/deb/ucx-daqiri/build" ]
    if git -C "$T_TOP_SRCDIR" rev-parse 2>/dev/null; then
        [ ! -e "$BATS_TEST_TMPDIR/build/deb/ucx-daqiri/configure" ]
    fi
}

@test "no package says that it has libibverbs" {
    grep -q '^%global __provides_exclude_from ^%{_libdir}/softverbs/' "$spec"
    grep -q 'dh_makeshlibs $(stand_in)' "$debian/rules"
}
