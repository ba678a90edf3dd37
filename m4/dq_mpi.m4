# SPDX-License-Identifier: BSD-3-Clause
#
# DQ_CHECK_MPI
#
# Debian installs Open MPI and MPICH side by side and tells them apart by the
# end of the compiler's name. Each is optional, and --without-mpi leaves out both.
# For X in OMPI, MPICH:
#   MPICC_X     the compiler wrapper, empty when there is none
#   X_CPPFLAGS  include flags asked from the wrapper, so that automake's own
#   X_LIBS      rules (dependencies, sanitizers) can build MPI programs
#   MPIRUN_X    what starts a job
#   HAVE_X      automake conditional
# OpenSHMEM comes with Open MPI: OSHCC, SHMEM_CPPFLAGS, SHMEM_LIBS, HAVE_SHMEM.
#
# DQ_MPI_WORDS(PATTERN, COMMAND): those words of COMMAND's output that match
# the shell pattern; wrappers also print the packager's own CFLAGS, which are
# not ours to use.

AC_DEFUN([DQ_MPI_WORDS],
[`for w in \`$2 2>/dev/null\`; do case $w in $1) printf '%s ' "$w";; esac; done`])

AC_DEFUN([DQ_FIND_MPI], [
AC_PATH_PROG([MPICC_OMPI], [mpicc.openmpi])
AC_PATH_PROG([MPIRUN_OMPI], [mpirun.openmpi])
AS_IF([test -n "$MPICC_OMPI"],
    [OMPI_CPPFLAGS=DQ_MPI_WORDS([-I*|-D*], [$MPICC_OMPI --showme:compile])
     OMPI_LIBS=DQ_MPI_WORDS([-L*|-l*], [$MPICC_OMPI --showme:link])])

AC_PATH_PROG([OSHCC], [oshcc])
AS_IF([test -n "$OSHCC"],
    [SHMEM_CPPFLAGS=DQ_MPI_WORDS([-I*|-D*], [$OSHCC --showme:compile])
     SHMEM_LIBS=DQ_MPI_WORDS([-L*|-l*], [$OSHCC --showme:link])])

AC_PATH_PROG([MPICC_MPICH], [mpicc.mpich])
AC_PATH_PROG([MPIRUN_MPICH], [mpiexec.mpich])
AS_IF([test -n "$MPICC_MPICH"],
    [MPICH_CPPFLAGS=DQ_MPI_WORDS([-I*|-D*], [$MPICC_MPICH -compile_info])
     MPICH_LIBS=DQ_MPI_WORDS([-L*|-l*], [$MPICC_MPICH -link_info])])
])

AC_DEFUN([DQ_CHECK_MPI], [
AC_ARG_WITH([mpi],
    [AS_HELP_STRING([--without-mpi],
                    [build nothing for an MPI, though there may be one])],
    [], [with_mpi=yes])
AS_IF([test "$with_mpi" != no], [DQ_FIND_MPI],
      [MPICC_OMPI= MPIRUN_OMPI= OSHCC= MPICC_MPICH= MPIRUN_MPICH=])
AC_SUBST([OMPI_CPPFLAGS])
AC_SUBST([OMPI_LIBS])
AC_SUBST([SHMEM_CPPFLAGS])
AC_SUBST([SHMEM_LIBS])
AC_SUBST([MPICH_CPPFLAGS])
AC_SUBST([MPICH_LIBS])
AM_CONDITIONAL([HAVE_OMPI], [test -n "$MPICC_OMPI" && test -n "$MPIRUN_OMPI"])
AM_CONDITIONAL([HAVE_SHMEM], [test -n "$OSHCC" && test -n "$MPIRUN_OMPI"])
AM_CONDITIONAL([HAVE_MPICH], [test -n "$MPICC_MPICH" && test -n "$MPIRUN_MPICH"])
])
