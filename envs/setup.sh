# Set-up of .study/. Sourced by `study`, which sets ROOT and SETUP. No step needs root; as root on Debian or Ubuntu, packages of
# envs/debian.txt are installed as well. A step is repeated only when the content of its inputs has changed.
QUARTO_VERSION=1.9.38
# Seconds after which a running step is named again.
SILENCE_S=5

say() { printf 'setup: %s\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 2; }

# shellcheck source=envs/python.sh
. "${BASH_SOURCE[0]%/*}/python.sh"

# check_place: refuse a checkout whose path make, PATH, env or the compilers' wrappers would split or quote.
check_place() {
  local odd
  # Each unsupported character once, separated by blanks; a newline is shown as its escape.
  odd=$(printf %s "${ROOT//$'\n'/\\}" | LC_ALL=C tr -d '\200-\377A-Za-z0-9 /._+@~-' | fold -w 1 | sort -u | paste -sd' ')
  [ -z "$odd" ] || die "the path of this checkout has characters that required programs do not support: $odd (allowed in ASCII: \
letters, digits, blanks and . _ - + @ ~): ${ROOT//$'\n'/\\n}"
  ! command -v iconv >/dev/null || printf %s "$ROOT" | iconv -f UTF-8 -t UTF-8 >/dev/null 2>&1 \
    || die "the path of this checkout is not in UTF-8, which required programs expect: $ROOT"
}

# done_before NAME INPUT... : true if NAME was set up from these inputs. remember NAME INPUT... records it.
digest() { cat -- "$@" 2>/dev/null | sha256sum | cut -d' ' -f1; }
done_before() { local name=$1; shift; [ "$(cat "$SETUP/stamps/$name" 2>/dev/null)" = "$(digest "$@")" ]; }
# A new file: the old one may be linked into the set-up of another checkout.
remember() {
  local name=$1
  shift
  mkdir -p "$SETUP/stamps"
  digest "$@" > "$SETUP/stamps/.$name"
  mv -f "$SETUP/stamps/.$name" "$SETUP/stamps/$name"
}

# Steps side by side ---------------------------------------------------------------------------------------------------

declare -A process_of=() text_of=()

# start NAME TEXT COMMAND...: run a step in parallel; its output goes to .study/NAME.log.
start() {
  local name=$1
  text_of[$name]=$2
  shift 2
  say "${text_of[$name]}"
  # A process group of its own, so that end_steps ends all its processes.
  set -m
  ("$@") > "$SETUP/$name.log" 2>&1 < /dev/null 9>&- &
  set +m
  process_of[$name]=$!
}

# end_steps: end the running steps when set-up ends early (an error, Ctrl-C): they would write to .study/ beside the next set-up.
# Those of apt-get go on, because an interrupted dpkg has to be repaired by hand; the next set-up waits for them.
end_steps() {
  local name
  for name in "${!process_of[@]}"; do
    case $name in python | compiler | system) ;; *) kill -- "-${process_of[$name]}" 2>/dev/null || true ;; esac
  done
}
trap end_steps EXIT

# attend NAME: wait for a step, if started, and return its status. Running steps are named every few seconds.
attend() {
  local name=$1 begun=$SECONDS since=$SECONDS last status
  [ -n "${process_of[$name]:-}" ] || return 0
  while kill -0 "${process_of[$name]}" 2>/dev/null; do
    if [ $((SECONDS - since)) -ge $SILENCE_S ]; then
      since=$SECONDS
      last=$(tail -n 1 "$SETUP/$name.log" | cut -c 1-80)
      say "${text_of[$name]}: $((since - begun)) s${last:+; $last}"
    fi
    sleep 0.2
  done
  wait "${process_of[$name]}" && status=0 || status=$?
  unset "process_of[$name]"
  [ "$status" = 0 ] || { tail -n 20 "$SETUP/$name.log" >&2; say "${text_of[$name]}: failed; its output is in .study/$name.log"; }
  return "$status"
}

# Packages of the system -------------------------------------------------------------------------------------------------

# packages_of PART...: their Debian packages.
packages_of() { awk -v parts=" $* " '$1 !~ /^#/ && NF && index(parts, " " $1 " ") { print $2 }' "$ROOT/envs/debian.txt"; }

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

# patiently COMMAND...: apt-get, again when another program (a new machine's own updates) holds one of apt's locks, for ten minutes.
patiently() {
  local until=$((SECONDS + 600)) log
  log=$(mktemp)
  while ! "$@" 2>&1 | tee "$log"; do
    { [ $SECONDS -lt $until ] && grep -qE 'Could not get lock|Unable to lock' "$log"; } || { rm -f "$log"; return 1; }
    echo "another program holds apt's lock; waiting for it"
    sleep 2
  done
  rm -f "$log"
}

# apt_install PART...: install the packages of these parts, which only root can.
apt_install() {
  # patiently reads the messages.
  local -x DEBIAN_FRONTEND=noninteractive LC_ALL=C
  patiently apt-get update -q || return
  # shellcheck disable=SC2046
  patiently apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 $(packages_of "$@")
}

# Parts: requirements of studies, availability and purpose ------------------------------------------------------------

# have PART: whether it is available. A module, Spack or conda may provide it: programs and R packages are tested, not Debian packages.
have() {
  # shellcheck disable=SC2046
  case $1 in
    compiler) command -v gcc && command -v make && echo '#include <stdio.h>' | gcc -E -o /dev/null - ;;
    simulator) command -v smpicc && command -v smpirun && command -v g++ ;;
    r) have_r ;;
    applications) command -v lmp ;;
    *) dpkg-query -W $(packages_of "$1") ;;
  esac > /dev/null 2>&1
}

# have_r: R with the imports of the analysis; the result is cached per R, because the test takes half a second.
have_r() {
  local description=$ROOT/workflow/analysis/DESCRIPTION looked
  looked="$(command -v Rscript) $(digest "$description")" || return
  [ "$(cat "$SETUP/stamps/r-packages" 2>/dev/null)" = "$looked" ] && return
  Rscript "$ROOT/envs/missing.R" "$description" && mkdir -p "$SETUP/stamps" && echo "$looked" > "$SETUP/stamps/r-packages"
}

explain_part() {
  case $1 in
    compiler) echo "a C compiler (gcc, make, the C library's headers): needed to build benchmarks and simulations" ;;
    simulator) echo "SimGrid (smpicc, smpirun, g++): needed to simulate and to calibrate" ;;
    r) echo "R ($(Rscript "$ROOT/envs/missing.R" "$ROOT/workflow/analysis/DESCRIPTION" 2>/dev/null || echo Rscript)): needed for tables, figures and the report" ;;
    applications) echo "applications (lammps): they are left out of their study" ;;
    tests) echo "software for tests only (Slurm, lintr, ...): the tests that need it fail" ;;
    *) echo "$1" ;;
  esac
}

# name_missing PART...: print a line for each missing part, and how to get them; LACKING lists them.
name_missing() {
  local part
  local -n lacking=LACKING
  lacking=()
  for part in "$@"; do
    have "$part" && continue
    lacking+=("$part")
    say "missing: $(explain_part "$part")${WANTED[$part]:+ (${WANTED[$part]})}"
  done
  [ ${#lacking[@]} -gt 0 ] || return 0
  say "available from: a module of the cluster; conda or pixi (envs/environment.yml); Spack (spack.yaml, spack/r); a container (Containerfile); \
or as root: apt-get install $(packages_of "${lacking[@]}" | paste -sd' ')"
}

# MPI libraries ------------------------------------------------------------------------------------------------------------

# mpi_venv NAME: an MPI library from PyPI in .study/NAME.
mpi_venv() {
  case $1 in mpich | impi)
    case $ROOT in *[[:space:]]*) echo "the compilers of MPICH and Intel MPI do not work below a path with a blank: $ROOT"; return 1 ;; esac ;;
  esac
  venv "$1" "$1.lock" || return
  # Closing Open MPI's transport of one-sided calls sleeps a second in every launch (opal/mca/btl/ofi/btl_ofi_component.c).
  [ "$1" != openmpi ] || grep -qs '^btl = ' "$SETUP/openmpi/etc/openmpi-mca-params.conf" \
    || echo 'btl = ^ofi' >> "$SETUP/openmpi/etc/openmpi-mca-params.conf"
}

# setup_spack: Open MPI and OSU Micro-Benchmarks of spack.yaml, from the cluster's lock if there is one; the view is .study/spack.
setup_spack() {
  command -v spack >/dev/null || die "spack is not on PATH: . SPACK/share/spack/setup-env.sh (or module load spack)"
  local clusters problems cluster=${COLLSTUDY_CLUSTER:-}
  clusters=$(cd "$ROOT/spack" && find . -mindepth 2 -name packages.yaml | cut -d/ -f2 | LC_ALL=C sort | paste -sd' ')
  [ -n "$cluster" ] || die "COLLSTUDY_CLUSTER is not set; it names a folder of spack/ (here: $clusters)"
  [ -e "$ROOT/spack/$cluster/packages.yaml" ] || die "no spack/$cluster/packages.yaml; COLLSTUDY_CLUSTER may be one of: $clusters"
  export COLLSTUDY_CLUSTER
  # Spack uses an existing lock unchanged: remove one of another cluster or of an earlier state.
  if [ -e "$ROOT/spack/$cluster/spack.lock" ]; then cp "$ROOT/spack/$cluster/spack.lock" "$ROOT/spack.lock"; else rm -f "$ROOT/spack.lock"; fi
  problems=$(PYTHONPATH=$ROOT/workflow "$SETUP/venv/bin/python" -m collstudy spack-check "$ROOT") \
    || { printf '%s\n' "$problems" >&2; die "the Spack files disagree; see above"; }
  start spack "Spack: concretize and install (spack.yaml, spack/$cluster)" eval 'spack -e "$ROOT" concretize && spack -e "$ROOT" install'
  attend spack || exit 2
  [ -x "$SETUP/spack/bin/mpicc" ] || die "no mpicc in Spack's view .study/spack; Spack links no externals there (see $SETUP/spack.log)"
  cmp -s "$ROOT/spack.lock" "$ROOT/spack/$cluster/spack.lock" || {
    cp "$ROOT/spack.lock" "$ROOT/spack/$cluster/spack.lock"
    say "the lock is new: commit spack/$cluster/spack.lock, so that the next set-up installs the same versions"
  }
}

# R and the report -----------------------------------------------------------------------------------------------------------

# setup_quarto: Quarto from PyPI. Its build downloads from GitHub without a time limit; its dependencies are for Python chapters only.
# PyPI's quarto always ends with status 0: only its output shows whether it works.
setup_quarto() {
  local bin=$SETUP/quarto/bin said="Quarto $QUARTO_VERSION in .study/quarto" LIMIT_S=180
  mkdir -p "$SETUP/stamps"
  if use_uv venv -q --clear --relocatable --python "$PYTHON" "$SETUP/quarto" && use_uv pip install --python "$SETUP/quarto" \
    --no-deps "quarto-cli==$QUARTO_VERSION" && [ "$("$bin/quarto" --version 2>/dev/null)" = "$QUARTO_VERSION" ]; then
    ln -sf ../../quarto/bin/quarto "$SETUP/venv/bin/quarto"
  else
    rm -rf "$SETUP/quarto"
    said="Quarto $QUARTO_VERSION cannot be downloaded here (.study/quarto.log); the report is rendered with knitr, pandoc and typst"
  fi
  say "$said" 2>&1
  rm -rf "$SETUP/uv-cache-$BASHPID"
  echo "$QUARTO_VERSION" > "$SETUP/stamps/quarto"
}

setup_r() {
  local sources
  mapfile -t sources < <(find "$ROOT/workflow/analysis" -name tests -prune -o -type f -print | LC_ALL=C sort)
  [ -z "${process_of[r]:-}" ] && ! done_before r "${sources[@]}" || return 0
  mkdir -p "$SETUP/R"
  start r "R package collanalysis in .study/R" install_r "${sources[@]}"
}

# install_r SOURCE...: install the R package of these files.
install_r() {
  # R leaves its lock when it is killed.
  rm -rf "$SETUP/R"/00LOCK-*
  R CMD INSTALL --no-docs --no-test-load --library="$SETUP/R" "$ROOT/workflow/analysis" && remember r "$@"
}

# All of it ------------------------------------------------------------------------------------------------------------------

declare -A WANTED=()
# Missing parts, see name_missing.
LACKING=()
MPIS=()

# read_needs [STUDY...]: requirements of these studies (default: those of config/config.yaml), and which studies have them.
read_needs() {
  local needs part studies
  WANTED=() MPIS=()
  needs=$(cd "$ROOT" && python -m collstudy needs "$@") || exit 2
  while read -r part studies; do
    case $part in
      openmpi | mpich | impi) MPIS+=("$part") ;;
      ?*) WANTED[$part]=$studies ;;
    esac
  done <<< "$needs"
}

# lock_setup: one set-up at a time.
lock_setup() {
  check_place
  { mkdir -p "$SETUP" && exec 9> "$SETUP/lock"; } 2>/dev/null || die "$SETUP cannot be written; set-up needs this folder"
  flock -n 9 || { say "another set-up is running; waiting for it"; flock 9; }
  # Of an interrupted set-up.
  rm -rf "$SETUP"/uv-cache-*
}
unlock_setup() { flock -u 9; exec 9>&-; }

# venv_done NAME LOCK: whether .study/NAME agrees with LOCK, and was made for the Python that it links to (on another system, or after
# an upgrade, it is another one).
venv_done() {
  local python
  python=$(readlink -f "$SETUP/$1/bin/python") && [ -x "$python" ] && done_before "$1" "$ROOT/envs/$2.lock" || return
  case ${python##*/} in python3.*) [ -d "$SETUP/$1/lib/${python##*/}" ] ;; esac
}

# setup_workflow: the environment in which the workflow's own commands run: Python alone.
setup_workflow() {
  setup_python
  if ! venv_done venv study; then
    start venv "Python packages of envs/study.lock in .study/venv" setup_venv
    # All but imported studies need it, and reading the studies needs these packages.
    ! can_install || have compiler || { start compiler "a C compiler" apt_install compiler; attend compiler || true; }
    attend venv || exit 2
    start imports "first import of the workflow" import_once
  fi
  # The environment may be new.
  [ ! -x "$SETUP/quarto/bin/quarto" ] || ln -sf ../../quarto/bin/quarto "$SETUP/venv/bin/quarto"
  write_activate
  activate
}

# setup [--spack] [--tests | --analysis | --measure | --program | --calibrate MACHINE] [STUDY...]: everything available that is needed
# by these studies (--measure: only to measure them), the tests, the analysis alone, a user's program or the calibration of a machine.
setup() {
  local spack=false tests=false analysis=false reported=true measure=() studies=() name part parts=() lacking=() programs=()
  while [ $# -gt 0 ]; do
    case $1 in
      --spack) spack=true ;;
      --tests) tests=true ;;
      --analysis) analysis=true ;;
      --measure) measure=(--measure) reported=false ;;
      --program) studies+=("$1") reported=false ;;
      --calibrate) studies+=("$1" "${2:-}") reported=false; shift ;;
      -*) die "unknown option '$1'; see ./study setup --help" ;;
      *) studies+=("$1") ;;
    esac
    shift
  done
  lock_setup
  # Takes half a minute of one core: in parallel with the download of Python packages, if R is here.
  if $reported && have r; then setup_r; fi
  setup_workflow
  ! $spack || setup_spack
  if $tests; then
    WANTED=([compiler]="" [simulator]="" [r]="" [applications]="" [tests]="") MPIS=(openmpi mpich impi)
    programs=(--all)
    done_before test "$ROOT/envs/study.lock" "$ROOT/envs/test.lock" || start test "Python packages of envs/test.lock in .study/venv" setup_test_venv
  elif $analysis; then
    WANTED=([r]="") MPIS=()
  else
    read_needs "${measure[@]}" "${studies[@]}"
    programs=("${studies[@]}")
  fi
  # gcc without make, as in Debian's package gcc.
  if ! have compiler && ! can_install && command -v gcc >/dev/null && ! command -v make >/dev/null; then
    start make "make (Debian's package, unpacked in .study/debian)" borrow_package make
    attend make || true
  fi
  for part in compiler simulator r applications tests; do
    [ -n "${WANTED[$part]+x}" ] || continue
    parts+=("$part")
    have "$part" || lacking+=("$part")
  done
  if [ ${#lacking[@]} -gt 0 ] && can_install; then start system "Debian packages for: ${lacking[*]}" apt_install "${lacking[@]}"; fi
  for name in "${MPIS[@]}"; do
    venv_done "$name" "$name" || start "$name" "$name from PyPI (envs/$name.lock) in .study/$name" mpi_venv "$name"
  done
  if [ -n "${WANTED[r]+x}" ] && ! command -v quarto >/dev/null && [ "$(cat "$SETUP/stamps/quarto" 2>/dev/null)" != "$QUARTO_VERSION" ]; then
    start quarto "Quarto $QUARTO_VERSION (optional download)" setup_quarto
  fi
  for name in "${MPIS[@]}"; do attend "$name" || exit 2; done
  # Programs for MPI libraries are built while apt-get installs R and the simulator.
  [ -z "${process_of[system]:-}" ] || $analysis || ! have compiler || build_programs --real "${programs[@]}"
  attend system || true
  if [ -n "${WANTED[r]+x}" ] && have r; then setup_r; fi
  $analysis || ! have compiler || build_programs "${programs[@]}"
  attend r || exit 2
  attend test || exit 2
  attend imports || exit 2
  if [ -n "${process_of[quarto]:-}" ]; then attend quarto || true; tail -n 1 "$SETUP/quarto.log" >&2; fi
  name_missing "${parts[@]}"
  unlock_setup
}

# looked_at ARGUMENT...: digest of all inputs of set-up for these arguments: contents of configuration and sources, paths of programs,
# time stamps of the folders that set-up made.
looked_at() {
  local files reference=${STUDY_REFERENCE_DATA:-}
  mapfile -d '' -t files < <(find "$ROOT/config" "$ROOT/envs" "$ROOT/workflow" -name tests -prune -o -type f ! -name '*.pyc' -print0 | LC_ALL=C sort -z)
  {
    printf '%s\n' "$*" "$PATH" "${COLLSTUDY_CONFIG:-}" "$reference" "$UID" "${files[@]}"
    command -v gcc make g++ smpicc smpirun Rscript quarto lmp mpicc mpirun || true
    # Most of these folders do not exist, which is part of the digest.
    (cd "$SETUP" && stat -c '%n %Y' venv venv/bin {openmpi,mpich,impi,quarto,spack}/bin build build/* build/*/* R R/* 2>/dev/null) || true
    stat -c '%n %Y' "$ROOT"/data/*/ ${reference:+"$reference" "$reference"/*/} 2>/dev/null || true
    cat -- "${files[@]}"
  } | sha256sum | cut -d' ' -f1
}

# setup_once ARGUMENT...: setup, unless its inputs are the same as when it last found everything.
setup_once() {
  local stamp path=$PATH
  check_place
  if venv_done venv study; then
    stamp=$SETUP/stamps/ready-$(printf '%s ' "$@" | cksum | cut -d' ' -f1)
    if [ "$(cat "$stamp" 2>/dev/null)" = "$(looked_at "$@")" ]; then activate; return; fi
    rm -f "$stamp"
  fi
  setup "$@"
  stamp=$SETUP/stamps/ready-$(printf '%s ' "$@" | cksum | cut -d' ' -f1)
  # With the PATH that the next run begins with, not that of the activated environment.
  [ ${#LACKING[@]} -gt 0 ] || PATH=$path looked_at "$@" > "$stamp"
}

# build_programs [--real] [STUDY...]: build C programs; prints each name.
build_programs() {
  (cd "$ROOT" && python -m collstudy build "$@") || { [ $? != 130 ] || exit 130; die "the C programs could not be built; see above"; }
}

write_activate() {
  # The path is computed: a checkout may be moved, or share .study with another one.
  # A new file, as in remember.
  cat > "$SETUP/.activate" <<'ACTIVATE'
# source .study/activate: the environment in which plain snakemake works like ./study run (bash, zsh).
_checkout=$(CDPATH="" cd "$(dirname "${BASH_SOURCE[0]:-$0}")/.." && pwd)
export PATH="$_checkout/.study/venv/bin:$PATH" PYTHONPATH="$_checkout/workflow" R_LIBS="$_checkout/.study/R${R_LIBS:+:$R_LIBS}"
unset _checkout
ACTIVATE
  mv -f "$SETUP/.activate" "$SETUP/activate"
}

# activate: use the environment of .study/, which plain `snakemake` needs, too.
activate() {
  local cache=${XDG_CACHE_HOME:-${HOME:-}/.cache}/snakemake
  # Snakemake keeps files there, and a home folder may be read-only.
  { mkdir -p "$cache" && [ -w "$cache" ]; } 2>/dev/null || export XDG_CACHE_HOME=$SETUP/cache
  export PATH=$SETUP/venv/bin:$PATH PYTHONPATH=$ROOT/workflow R_LIBS=$SETUP/R${R_LIBS:+:$R_LIBS}
}
