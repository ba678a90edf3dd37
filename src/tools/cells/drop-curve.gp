# SPDX-License-Identifier: BSD-3-Clause
#
# gnuplot -c drop-curve.gp ROWS.csv PICTURE
#
# Draws what `daqiri drop-curve --csv` has printed into PICTURE, which ends with .svg or .png.
# `daqiri drop-curve --plot` runs this script; a changed copy can be run by hand. It finds the
# columns by their names. It needs gnuplot 5.4.

if (ARGC != 2) { exit error "usage: gnuplot -c drop-curve.gp ROWS.csv PICTURE.svg (or .png)" }
rows    = ARG1
picture = ARG2
is_png  = strlen(picture) > 4 && picture[strlen(picture) - 3:] eq ".png"

columns = "transport device size window target_gbps gbps least_gbps most_gbps drops " . \
          "cpu_tx_percent cpu_rx_percent host date duration_s repeats"

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

lines   = ""    # TRANSPORT/SIZE
windows = ""
series  = ""    # TRANSPORT/SIZE/WINDOW
devices = ""
least   = 1e9   # Gb/s, of targets and of what was reached without one
most    = 0.0
lowest  = 98.0  # percent
highest = 102.0
lost    = 0
is_paced(row) = strcol("target_gbps") ne ""
line_of(row)  = strcol("transport") . "/" . strcol("size")
series_of(row) = line_of(row) . "/" . strcol("window")
pace(row)     = is_paced(row) ? column("target_gbps") : column("most_gbps")
reached(name) = is_paced(0) ? column(name) / column("target_gbps") * 100 : 100
has_paces     = 0
take(row)     = strcol("gbps") eq "" ? 0 : ( \
    lines     = more(lines, line_of(row)), \
    windows   = more(windows, strcol("window")), \
    series    = more(series, series_of(row)), \
    devices   = more(devices, strcol("device")), \
    least     = (pace(row) < least) ? pace(row) : least, \
    most      = (pace(row) > most) ? pace(row) : most, \
    lowest    = (reached("least_gbps") < lowest) ? reached("least_gbps") : lowest, \
    highest   = (reached("most_gbps") > highest) ? reached("most_gbps") : highest, \
    lost      = lost + column("drops"), \
    has_paces = has_paces || is_paced(row), \
    host      = strcol("host"), date = strcol("date"), \
    duration  = strcol("duration_s"), repeats = strcol("repeats"), 1)

stats rows using (take(0)) nooutput
if (lines eq "") { exit error "no row has a figure" }
count = words(lines)

# ---- the picture ----

# Black on white also where the page around it is dark: the same file is printed and mailed,
# and few programs that show a picture tell it the colours of their page.
has_windows = words(windows) > 1
rows_key = has_paces ? (count + words(windows) * has_windows + 1 + 3) / 4 : 0
panels   = 3 + (lost != 0)
height   = 468 + 210 * (panels - 1) + 20 * rows_key
title    = sprintf("daqiri drop-curve%s on host %s: %s", (devices eq "") ? "" : " of " . devices, host, \
                   (lost == 0) ? "no message was lost" : sprintf("%d messages were lost", lost))
runs     = sprintf("%s %s UTC, ", date[:10], date[12:16]) . ((repeats eq "1") ? \
           sprintf("one run of %s s", duration) : \
           sprintf("%s runs of %s s: the median, and a bar from the least to the most", repeats, duration))

if (is_png) {
    set terminal pngcairo noenhanced size 1000,height font "sans-serif,10" background rgb "white"
} else {
    set terminal svg noenhanced size 1000,height font "sans-serif,13" background rgb "white" \
        name "daqiri_drop_curve"
}
set output picture

# A transport and a size have a colour and a mark of their own, a window has dashes: without
# colours they keep apart, too. The colours do so for eyes that see no red or no green.
color(i) = word("#0072b2 #d55e00 #009e73 #cc79a7 #000000 #56b4e9 #777777", (i - 1) % 7 + 1)
mark(i)  = 0 + word("7 5 9 13 11 6 4 8 12 10 1 2 3", (i - 1) % 13 + 1)
do for [i = 1:count] { set linetype i lc rgb color(i) lw 1.6 pt mark(i) ps 0.7 }
grey = count + 1
set linetype grey lc rgb "#777777" lw 1.6 pt 6 ps 1.6
set linetype cycle grey

size_text(s) = (s >= 2**30 && s % 2**30 == 0) ? sprintf("%d G", s / 2**30) : \
               (s >= 2**20 && s % 2**20 == 0) ? sprintf("%d M", s / 2**20) : \
               (s >= 2**10 && s % 2**10 == 0) ? sprintf("%d K", s / 2**10) : sprintf("%d", s)
line_text(s) = before(s, "/") . ", " . size_text(int(before(behind(s, "/") . "/", "/")))
series_text(s) = line_text(s) . (has_windows ? ", " . behind(behind(s, "/"), "/") : "")

# Without paces nothing has a place on that axis, and each row gets one of its own.
room = (1.2 * most / least) ** 0.03
set xtics ()
if (has_paces) {
    set logscale x 10
    set xrange [least / room:most * room]
    do for [power = -6:6] {
        do for [step in (most / least < 3000) ? "1 2 5" : "1"] { set xtics add (step * 10.0**power) }
    }
} else {
    set xrange [0.5:words(series) + 0.5]
    do for [i = 1:words(series)] { set xtics add (series_text(word(series, i)) i) }
    if (words(series) > 6) { set xtics rotate by 25 right font ",8" }
}

# Beside each other, so that no bar hides another one.
beside(i)      = room ** (0.6 * (i - (count + 1) / 2.0) / count)
is_of(i, w)    = line_of(0) eq word(lines, i) && strcol("window") eq w
paced(i, w)    = is_of(i, w) && is_paced(0) ? column("target_gbps") * beside(i) : NaN
unpaced(i, w)  = is_of(i, w) && !is_paced(0) ? \
                 (has_paces ? column("gbps") : place(series, series_of(0))) : NaN

# The first panel is the highest.
top(panel)    = 1 - (58.0 + (panel > 1) * (380 + 210 * (panel - 2))) / height
bottom(panel) = 1 - (58.0 + 340 + 210 * (panel - 1)) / height
set multiplot title title . "\n" . runs
set lmargin at screen 0.09
set rmargin at screen 0.98
set tmargin at screen top(1)
set bmargin at screen bottom(1)
set grid xtics ytics lt 1 lw 0.5 lc rgb "#cccccc"
set border 3
set tics nomirror
set bars 0.5

# The legend, once, below all panels.
if (has_paces) {
    set key at screen 0.55, screen 1.0 / height center bottom vertical maxrows rows_key \
        Left reverse width 1
    set label 1 "pace to be kept, Gb/s" at screen 0.535, screen (30.0 + 20 * rows_key) / height center
    set ylabel "reached, % of the pace"
    set yrange [lowest - 0.03 * (highest - lowest):highest + 0.03 * (highest - lowest)]
    plot 100 with lines lc rgb "#000000" lw 0.8 notitle, \
         for [w in windows] for [i = 1:count] \
             rows using (paced(i, w)):(reached("gbps")):(reached("least_gbps")):(reached("most_gbps")) \
             with yerrorlines lt i dt place(windows, w) notitle, \
         for [w in windows] for [i = 1:count] \
             rows using (unpaced(i, w)):(100):(column("least_gbps")):(column("most_gbps")) \
             with xerrorbars lt i pt 6 ps 1.6 notitle, \
         for [i = 1:count] keyentry with linespoints lt i title line_text(word(lines, i)), \
         for [w in has_windows ? windows : ""] keyentry with lines lt grey dt place(windows, w) \
             title "window " . w, \
         keyentry with points lt grey title "without a pace"
    unset key
    unset label 1
    set yrange [0:105]
} else {
    set ylabel "without a pace, Gb/s"
    set logscale y 10
    plot for [w in windows] for [i = 1:count] \
             rows using (unpaced(i, w)):(column("gbps")):(column("least_gbps")):(column("most_gbps")) \
             with yerrorbars lt i notitle
    unset logscale y
    set yrange [0:105]
}
panel = 1
do for [value in "cpu_tx_percent cpu_rx_percent" . (lost == 0 ? "" : " drops")] {
    panel = panel + 1
    set tmargin at screen top(panel)
    set bmargin at screen bottom(panel)
    set ylabel (value eq "drops") ? "messages lost" : \
               (value eq "cpu_tx_percent") ? "CPU of sender, %" : "CPU of receiver, %"
    if (value eq "drops") { set yrange [0:*] }
    if (value eq "drops" && lost < 10) { set ytics 1 }
    if (has_paces) {
        plot for [w in windows] for [i = 1:count] rows using (paced(i, w)):(column(value)) \
                 with linespoints lt i dt place(windows, w) notitle, \
             for [w in windows] for [i = 1:count] rows using (unpaced(i, w)):(column(value)) \
                 with points lt i pt 6 ps 1.6 notitle
    } else {
        plot for [w in windows] for [i = 1:count] rows using (unpaced(i, w)):(column(value)) \
                 with points lt i notitle
    }
}
unset multiplot
unset output

# gnuplot gives an SVG a title without spaces.
letters = " ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.,:-"
plain(text) = text eq "" ? "" : (strstrt(letters, text[1:1]) ? text[1:1] : "_") . plain(text[2:])
if (!is_png) {
    system(sprintf("sed -i 's/^<title>.*</<title>%s</' '%s'", plain(title), quote(picture)))
}
