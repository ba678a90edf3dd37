# SPDX-License-Identifier: BSD-3-Clause
#
# gnuplot -e "work='DIR'; file='FILE'; device='NAME'; rounds=N" rounds.gnuplot
#
# Draws what contrib/demo has measured: latency and bandwidth by size, of each MPI,
# from DIR/ompi.data and DIR/mpich.data (rounds.awk writes them). Points are medians,
# bars go from the least to the most of the rounds.

if (file[strlen(file) - 3:] eq ".png") {
    set terminal pngcairo noenhanced size 1100,800 font "sans,10" background rgb "white"
} else {
    set terminal svg noenhanced size 1100,800 font "sans,10" background rgb "white" \
        name "daqiri_demo"
}
set output file

# Colours that keep apart in print, and for eyes that see no red or no green.
set style line 1 lc rgb "#0072b2" lw 2 pt 7 ps 0.6
set style line 2 lc rgb "#d55e00" lw 2 pt 5 ps 0.6
set style line 3 lc rgb "#555555" lw 2 pt 9 ps 0.7

set multiplot layout 2,2 margins 0.07,0.98,0.11,0.91 spacing 0.08,0.13 \
    title sprintf("MPI over daqiri, rc_verbs and tcp on %s; medians of %d rounds, bars from least to most", device, rounds)
set logscale x 2
set logscale y 10
set grid xtics ytics lc rgb "#dddddd"
set xlabel "bytes of a message"
set xtics ("1" 1, "16" 16, "256" 256, "4K" 4096, "64K" 65536, "1M" 1048576)
set xrange [0.7:6e6]
unset key

names = "daqiri rc_verbs tcp"
pick(mpi, test, n) = sprintf("< awk '$1 == \"%s\" && $2 == \"%s\" && $3 > 0 { print $3, $5, $4, $6 }' %s/%s.data", \
                             word(names, n), test, work, mpi)

do for [mpi in "ompi mpich"] {
    label = (mpi eq "ompi") ? "Open MPI" : "MPICH"
    set title label . ": latency, one way, us (less is better)"
    unset ylabel
    if (mpi eq "mpich") { set key at screen 0.5,0.03 center horizontal }
    plot for [n = 1:3] pick(mpi, "latency", n) using 1:2:3:4 with yerrorlines ls n title word(names, n)
    unset key
    set title label . ": bandwidth, one way, Gb/s (more is better)"
    plot for [n = 1:3] pick(mpi, "bw", n) using 1:2:3:4 with yerrorlines ls n title word(names, n)
}
unset multiplot
