# SPDX-License-Identifier: BSD-3-Clause
#
# gnuplot -c sweep.gp ROWS.csv PICTURE
#
# Draws what `daqiri sweep --csv` has printed into PICTURE, which ends with .svg or .png.
# `daqiri sweep --plot` runs this script; a changed copy can be run by hand. It finds the
# columns by their names. It needs gnuplot 5.4.

if (ARGC != 2) { exit error "usage: gnuplot -c sweep.gp ROWS.csv PICTURE.svg (or .png)" }
rows    = ARG1
picture = ARG2
is_png  = strlen(picture) > 4 && picture[strlen(picture) - 3:] eq ".png"

columns = "transport device pattern size window messages_per_s gbps least_gbps most_gbps " . \
          "round_trip.p50_us round_trip.least_p50_us round_trip.most_p50_us round_trip.p99_us " . \
          "host date duration_s repeats"

before(text, what) = text[:strstrt(text, what) - 1]
behind(text, what) = text[strstrt(text, what) + 1:]
quote(text) = strstrt(text, "'") == 0 ? text : \
              before(text, "'") . "'\\''" . quote(behind(text, "'"))

header = "," . system(sprintf("head -n 1 '%s' | tr -d '\\r'", quote(rows))) . ","
do for [c in columns] {
    if (strstrt(header, "," . c . ",") == 0) { exit error rows . " has no column " . c }
}

set encoding utf8
set datafile separator comma
set datafile columnheaders
set datafile missing NaN

# ---- what there is: lists of words ----

is_in(list, new)  = strstrt(" " . list . " ", " " . new . " ") > 0
more(list, new)   = (new eq "" || is_in(list, new)) ? list : list . (list eq "" ? "" : " ") . new
place(list, what) = sum [i = 1:words(list)] (word(list, i) eq what ? i : 0)

transports = ""
kinds      = ""    # PATTERN/WINDOW
series     = ""    # TRANSPORT/PATTERN/WINDOW
sizes      = ""
devices    = ""

kind_of(row)   = strcol("pattern") . "/" . strcol("window")
series_of(row) = strcol("transport") . "/" . kind_of(row)
take(row)      = strcol("gbps") eq "" ? 0 : ( \
    transports = more(transports, strcol("transport")), \
    kinds      = more(kinds, kind_of(row)), \
    series     = more(series, series_of(row)), \
    sizes      = more(sizes, strcol("size")), \
    devices    = more(devices, strcol("device")), \
    host       = strcol("host"), date = strcol("date"), \
    duration   = strcol("duration_s"), repeats = strcol("repeats"), 1)

stats rows using (take(0)) nooutput
if (series eq "") { exit error "no row has a figure" }

# What is timed by round trips has a panel of its own, and is in no other one.
is_trip(name)       = strstrt(name, "pingpong/") > 0
rates = ""
trips = ""
do for [s in series] { if (is_trip(s)) { trips = more(trips, s) } else { rates = more(rates, s) } }
rate_kinds = ""
windows    = ""
do for [k in kinds] {
    if (!is_trip(k)) { rate_kinds = more(rate_kinds, k); windows = more(windows, behind(k, "/")) }
}
kind_text(k) = before(k, "/") . (words(windows) > 1 ? ", window " . behind(k, "/") : "")
look(s)      = place(transports, before(s, "/"))
dashes(s)    = place(rate_kinds, behind(s, "/"))
has_rates    = rates ne ""
has_trips    = trips ne ""

# ---- the picture ----

# Black on white also where the page around it is dark: the same file is printed and mailed,
# and few programs that show a picture tell it the colours of their page.
entries  = words(transports) + words(rate_kinds) + 2 * has_trips
rows_key = (entries + 3) / 4
panels   = 2 * has_rates + has_trips
height   = 130 + 300 * panels + 20 * rows_key
title    = sprintf("daqiri sweep%s on host %s", (devices eq "") ? "" : " of " . devices, host)
runs     = sprintf("%s %s UTC, ", date[:10], date[12:16]) . ((repeats eq "1") ? \
           sprintf("one run of %s s", duration) : \
           sprintf("%s runs of %s s: the median, and a bar from the least to the most", repeats, duration))

if (is_png) {
    set terminal pngcairo noenhanced size 1000,height font "sans-serif,10" background rgb "white"
} else {
    set terminal svg noenhanced size 1000,height font "sans-serif,13" background rgb "white" \
        name "daqiri_sweep"
}
set output picture

# A transport has a colour and a mark of its own, a pattern has dashes: without colours
# they keep apart, too. The colours do so for eyes that see no red or no green.
set linetype 1 lc rgb "#0072b2" lw 1.6 pt 7  ps 0.6
set linetype 2 lc rgb "#d55e00" lw 1.6 pt 5  ps 0.6
set linetype 3 lc rgb "#009e73" lw 1.6 pt 9  ps 0.7
set linetype 4 lc rgb "#cc79a7" lw 1.6 pt 13 ps 0.8
set linetype 5 lc rgb "#000000" lw 1.6 pt 11 ps 0.7
set linetype 6 lc rgb "#56b4e9" lw 1.6 pt 6  ps 0.7
set linetype 7 lc rgb "#777777" lw 1.6 pt 4  ps 0.7
set linetype cycle 7

# A tick at each size, unless it is too near to another one.
size_text(s) = (s >= 2**30 && s % 2**30 == 0) ? sprintf("%d G", s / 2**30) : \
               (s >= 2**20 && s % 2**20 == 0) ? sprintf("%d M", s / 2**20) : \
               (s >= 2**10 && s % 2**10 == 0) ? sprintf("%d K", s / 2**10) : sprintf("%d", s)
least = 0 + word(sizes, 1)
most  = least
do for [s in sizes] { least = (s < least) ? 0 + s : least; most = (s > most) ? 0 + s : most }
room   = (2.0 * most / least) ** 0.03
ticked = ""
gap(s, other) = abs(log(s / (0.0 + other))) / log(room)
is_near(s)    = sum [i = 1:words(ticked)] (gap(s, word(ticked, i)) < 2)
set xtics ()
do for [s in "64 1024 65536 1048576 " . sizes] {
    if (is_in(sizes, s) && !is_near(0.0 + s)) {
        ticked = more(ticked, s)
        set xtics add (size_text(int(s)) int(s))
    }
}

# Beside each other, so that no bar hides another one.
beside(s) = room ** (0.1 * (look(s) - (words(transports) + 1) / 2.0))
at(s)     = series_of(0) eq s ? column("size") * beside(s) : NaN
scaled(x) = column(x) * column("messages_per_s") / column("gbps")

set multiplot layout panels,1 title title . "\n" . runs \
    margins 0.09, 0.98, (70.0 + 20 * rows_key) / height, 1 - 58.0 / height spacing 0, 40.0 / height
set logscale x 2
set logscale y 10
set xrange [least / room:most * room]
set grid xtics ytics lt 1 lw 0.5 lc rgb "#cccccc"
set border 3
set tics nomirror
set bars 0.5

# The legend, once, below all panels.
set key at screen 0.55, screen 1.0 / height center bottom vertical maxrows rows_key Left reverse width 1
set label 1 "bytes of a message" at screen 0.535, screen (30.0 + 20 * rows_key) / height center
if (has_rates) {
    set format y "%.0s%c"
    set ylabel "messages/s"
    plot for [s in rates] rows using (at(s)):(column("messages_per_s")):(scaled("least_gbps")):(scaled("most_gbps")) \
             with yerrorlines lt look(s) dt dashes(s) notitle, \
         for [t in transports] keyentry with linespoints lt place(transports, t) title t, \
         for [k in rate_kinds] keyentry with lines lt 7 dt place(rate_kinds, k) title kind_text(k), \
         for [i = 1:has_trips] keyentry with lines lt 7 title "round trip, 50 %", \
         for [i = 1:has_trips] keyentry with lines lt 7 dt 3 title "round trip, 99 %"
    unset key
    unset label 1
    set format y "%g"
    set ylabel "Gb/s"
    plot for [s in rates] rows using (at(s)):(column("gbps")):(column("least_gbps")):(column("most_gbps")) \
             with yerrorlines lt look(s) dt dashes(s) notitle
}
if (has_trips) {
    set format y "%g"
    set ylabel "round trip, us"
    plot for [s in trips] rows using (at(s)):(column("round_trip.p50_us")) \
             :(column("round_trip.least_p50_us")):(column("round_trip.most_p50_us")) \
             with yerrorlines lt look(s) notitle, \
         for [s in trips] rows using (at(s)):(column("round_trip.p99_us")) \
             with linespoints lt look(s) dt 3 ps 0.4 notitle, \
         for [t in transports] keyentry with linespoints lt place(transports, t) title t, \
         keyentry with lines lt 7 title "round trip, 50 %", \
         keyentry with lines lt 7 dt 3 title "round trip, 99 %"
}
unset multiplot
unset output

# gnuplot gives an SVG a title without spaces.
letters = " ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.,:-"
plain(text) = text eq "" ? "" : (strstrt(letters, text[1:1]) ? text[1:1] : "_") . plain(text[2:])
if (!is_png) {
    system(sprintf("sed -i 's/^<title>.*</<title>%s</' '%s'", plain(title), quote(picture)))
}
