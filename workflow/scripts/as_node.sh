#!/bin/sh
# as_node.sh HOST COMMAND...: replaces ssh as the launch agent of an MPI library. It runs the command on this computer under another
# host name, so that the MPI library regards it as another node. Without root it needs user namespaces.
host=$1
shift
own=
if [ "$(id -u)" != 0 ]; then
  own='--user --map-root-user'
  # Open MPI's daemon is root of this namespace only.
  export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
# The library passes names of files in this checkout without quoting blanks.
root=$(readlink -f -- "$0")
root=${root%/workflow/scripts/*}
quoted=$(printf %s "$root" | sed 's/ /\\ /g')
rest=$*
command=
while :; do
  case $rest in
    *"$root"*) command=$command${rest%%"$root"*}$quoted rest=${rest#*"$root"} ;;
    *) break ;;
  esac
done
# shellcheck disable=SC2086
exec unshare --uts $own sh -c 'hostname "$0" && exec sh -c "$1"' "$host" "$command$rest"
