#!/bin/sh
# The serial svd against LAPACK's dgesvj: same matrix, same machine, one thread; best of RUNS, one after the other.
# Two LAPACKs where they are installed: Debian's reference (liblapack3) and OpenBLAS (libopenblas0-pthread). usage: bench/svd_vs_dgesvj.sh [N] [RUNS]
set -eu
n=${1:-512}
runs=${2:-3}
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
libraries=/usr/lib/$(cc -dumpmachine | sed s/-pc//)
export OPENBLAS_NUM_THREADS=1

make -s -C "$here/../workflow/native/apps" OUT="$scratch" "$scratch/apps/svd_serial"
peers=""
build_peer() { # name, libraries...
    name=$1
    shift
    if [ ! -e "$1" ]; then
        echo "dgesvj-$name: no $1"
        return
    fi
    cc -std=c11 -O2 -Wall -Wextra -Werror "$here/svd_vs_dgesvj.c" -o "$scratch/$name" "$@" -lm
    peers="$peers $name"
}
build_peer reference "$libraries/lapack/liblapack.so.3" "$libraries/blas/libblas.so.3" \
    -Wl,-rpath,"$libraries/lapack:$libraries/blas"
build_peer openblas "$libraries/openblas-pthread/libopenblas.so.0" -Wl,-rpath,"$libraries/openblas-pthread"

"$scratch/apps/svd_serial" --random "$n" "$n" --output "$scratch" >/dev/null
seconds_of() { sed -n 's/.*\bseconds=\([0-9.e+-]*\).*/\1/p' | sort -g | head -1; }
ours=$(for _ in $(seq "$runs"); do "$scratch/apps/svd_serial" --random "$n" "$n"; done | sed 's/ comm_mean.*//' | seconds_of)
echo "svd_serial n=$n seconds=$ours"
for peer in $peers; do
    line=$("$scratch/$peer" "$scratch/A.csv" "$n" "$n" "$runs")
    theirs=$(echo "$line" | seconds_of)
    echo "dgesvj-$peer $line ratio=$(awk "BEGIN { printf \"%.2f\", $ours / $theirs }")"
done
