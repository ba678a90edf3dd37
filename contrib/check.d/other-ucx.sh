# SPDX-License-Identifier: BSD-3-Clause
#
# Read by the scripts that run the tests with another UCX than the one that is
# installed here. The tests are built with it; what is tested is what was built here.
# shellcheck shell=bash disable=SC2034

# What meets a UCX.
ucx_parts=(
    --only release/transport --only release/mpi --only release/storm
    --only release/system/t_perftest
    --only release/system/t_plugin --only release/system/t_probe
    --only release/system/t_run --only release/system/t_run_mpi
)

objects=(src/uct/daqiri/.libs/libuct_daqiri.so.0.0.0 src/softverbs/.libs/libsoftverbs.so)

# copy_objects THERE: into the build in the folder THERE
copy_objects()
{
    local object

    for object in "${objects[@]}"; do
        cmp -s "$build_root/release/$object" "$1/release/$object" ||
            cp "$build_root/release/$object" "$1/release/$object" ||
            die 1 "$build_root/release/$object is not there"
    done
}

# check_objects THERE: what was tested must still be what was built here
check_objects()
{
    local object

    for object in "${objects[@]}"; do
        cmp -s "$build_root/release/$object" "$1/release/$object" ||
            die 1 'the objects that were tested are not those that were built here'
    done
}
