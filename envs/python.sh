# Set-up of Python and its packages in .study/. Sourced by setup.sh, whose functions it uses.

# Programs that a user without root got from Debian's packages (borrow_package).
PATH=$PATH:$SETUP/debian/usr/bin

# find_python: the first Python that is new enough.
find_python() {
  local name
  for name in python3 python3.14 python3.13 python3.12 python3.11; do
    "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v "$name"; return; }
  done
  return 1
}

# pip_of PYTHON: the command of its pip: installed, or the wheel of Python or Debian.
pip_of() {
  "$1" -c 'import pip' 2>/dev/null && { echo -m; echo pip; return; }
  local wheel
  for wheel in "$("$1" -c 'import ensurepip, os; print(os.path.dirname(ensurepip.__file__))' 2>/dev/null)"/_bundled/pip-*.whl \
    /usr/share/python-wheels/pip-*.whl "$SETUP"/debian/usr/share/python-wheels/pip-*.whl; do
    [ -e "$wheel" ] && { echo "$wheel/pip"; return; }
  done
  return 1
}

# borrow_package NAME: unpack a Debian package in .study/debian, which needs no root.
borrow_package() {
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return
  local lists=$SETUP/debian/lists options
  mkdir -p "$lists/partial" "$SETUP/debian/cache/archives/partial"
  options=(-qq -o "Dir::State::lists=$lists" -o "Dir::Cache=$SETUP/debian/cache" -o APT::Sandbox::User=)
  { [ -n "$(find "$lists" -maxdepth 1 -type f -name '*Packages*' -print -quit)" ] || apt-get "${options[@]}" update; } \
    && (cd "$SETUP/debian" && apt-get "${options[@]}" download "$1" && dpkg-deb -x "$1"_*.deb . && rm -f "$1"_*.deb)
}

setup_python() {
  local python
  if ! python=$(find_python) || ! pip_of "$python" >/dev/null; then
    if can_install; then
      start python "Python" apt_install python && attend python || exit 2
    elif [ -n "$python" ]; then
      start pip "pip, which this Python lacks (Debian's python3-pip-whl, unpacked in .study/debian)" borrow_package python3-pip-whl && attend pip || true
    fi
  fi
  python=$(find_python) || die "no Python 3.11 or newer on PATH: module load python, conda (envs/environment.yml), or as root: apt-get install python3 python3-pip-whl"
  pip_of "$python" >/dev/null || die "$python has no pip: as root: apt-get install python3-pip-whl; or python3 -m ensurepip --user"
  PYTHON=$python
}

# setup_uv: uv, which installs all other packages. use_uv passes the settings of pip to it.
setup_uv() {
  local pip
  if ! done_before uv "$ROOT/envs/uv.lock"; then
    mapfile -t pip < <(pip_of "$PYTHON")
    rm -rf "$SETUP/uv"
    # Settings for installing elsewhere, or other versions, do not apply.
    PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 PIP_PREFIX="" PIP_CONSTRAINT=/dev/null \
      "$PYTHON" "${pip[@]}" install -q --disable-pip-version-check --root-user-action=ignore --no-deps --require-hashes --target "$SETUP/uv" -r "$ROOT/envs/uv.lock" || return
    remember uv "$ROOT/envs/uv.lock"
  fi
}

# use_uv ARGUMENT...: uv with the pip settings of site and user (index, certificates, proxy), without files outside .study/; stopped
# after LIMIT_S seconds, if set.
use_uv() {
  local pip settings index cert proxy
  mapfile -t pip < <(pip_of "$PYTHON")
  settings=$("$PYTHON" "${pip[@]}" config list 2>/dev/null) || true
  # Of several files the last applies.
  of_files() { sed -n "s/^global\.$1='\(.*\)'\$/\1/p" <<< "$settings" | tail -n 1; }
  index=${PIP_INDEX_URL:-$(of_files index-url)} cert=${PIP_CERT:-$(of_files cert)} proxy=${PIP_PROXY:-$(of_files proxy)}
  [ -z "$index" ] || export UV_DEFAULT_INDEX=${UV_DEFAULT_INDEX:-$index}
  [ -z "$cert" ] || export SSL_CERT_FILE=${SSL_CERT_FILE:-$cert}
  [ -z "$proxy" ] || export http_proxy=${http_proxy:-$proxy} https_proxy=${https_proxy:-$proxy}
  UV_CACHE_DIR=$SETUP/uv-cache-$BASHPID UV_SYSTEM_CERTS=true UV_PYTHON_DOWNLOADS=never UV_NO_CONFIG=1 \
    ${LIMIT_S:+timeout "$LIMIT_S"} "$SETUP/uv/bin/uv" "$@"
}

# venv NAME LOCK [PROBE]: a movable virtual environment .study/NAME with exactly the packages of LOCK.
venv() {
  local name=$1 lock=$ROOT/envs/$2
  done_before "$name" "$lock" && [ -x "$SETUP/$name/bin/python" ] && return
  use_uv venv -q --clear --relocatable --python "$PYTHON" "$SETUP/$name" \
    && use_uv pip install --python "$SETUP/$name" --no-deps --require-hashes -r "$lock" || return
  rm -rf "$SETUP/uv-cache-$BASHPID"
  remember "$name" "$lock"
}

# setup_venv: the environment of the workflow.
setup_venv() {
  setup_uv && venv venv study.lock
}

# import_once: make Python compile and store the workflow's modules, which takes seconds.
import_once() { "$SETUP/venv/bin/python" -c 'import jsonschema, numpy, snakemake.cli, yaml'; }

# setup_test_venv: requirements of the tests, in the same environment.
setup_test_venv() {
  done_before test "$ROOT/envs/study.lock" "$ROOT/envs/test.lock" && return
  use_uv pip install --python "$SETUP/venv" --no-deps --require-hashes -r "$ROOT/envs/test.lock" || return
  rm -rf "$SETUP/uv-cache-$BASHPID"
  remember test "$ROOT/envs/study.lock" "$ROOT/envs/test.lock"
}
