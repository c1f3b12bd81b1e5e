"""slurmdbd and MariaDB of a test cluster, so that sacct works."""

from __future__ import annotations

import getpass
import subprocess
from typing import TYPE_CHECKING, Any

from hosts import SYSTEM_PATH, ClusterError
from processes import wait_until

if TYPE_CHECKING:
    from cluster import Cluster


def start(cluster: Cluster) -> None:
    """Start MariaDB and slurmdbd, and add the cluster, an account and this user."""
    data, user = cluster.state / "mariadb", getpass.getuser()
    common = ["--no-defaults", f"--datadir={data}", f"--user={user}"]
    install = ["mariadb-install-db", *common, "--auth-root-authentication-method=normal", "--skip-test-db"]
    cluster.system(install, timeout=60)
    small = ["--innodb-buffer-pool-size=64M", "--innodb-log-file-size=16M", "--innodb-flush-log-at-trx-commit=0"]
    unix_socket = f"--socket={cluster.state / 'mariadb.socket'}"
    address = ["--bind-address=127.0.0.1", f"--port={cluster.ports['mariadb']}", unix_socket]
    options: dict[str, Any] = {"cwd": "/", "env": {"PATH": SYSTEM_PATH, "HOME": "/root"}}
    with open(cluster.state / "log" / "mariadb.log", "a") as log:
        command = cluster.on("login", ["mariadbd", *common, *address, *small], options)
        options |= {"stdin": subprocess.DEVNULL, "start_new_session": True}
        subprocess.Popen(command, stdout=log, stderr=log, **options)
    client = ["mariadb", "--no-defaults", unix_socket, "--user=root"]
    setup = "CREATE USER slurm@127.0.0.1 IDENTIFIED BY 'slurm'; GRANT ALL ON *.* TO slurm@127.0.0.1;"

    def create_user() -> bool:
        return subprocess.run([*client, "-e", setup], capture_output=True).returncode == 0

    if not wait_until(create_user, 30):
        raise ClusterError("mariadbd did not start")
    configuration = cluster.state / "etc" / "slurmdbd.conf"
    configuration.touch(mode=0o600)
    configuration.write_text(
        f"AuthType=auth/munge\nAuthInfo=socket={cluster.state / 'munge.socket'}\nSlurmUser={user}\n"
        f"DbdHost={cluster.login_host}\nDbdAddr={cluster.address('login')}\n"
        f"DbdPort={cluster.ports['slurmdbd']}\nLogFile={cluster.state / 'log' / 'slurmdbd.log'}\n"
        f"PidFile={cluster.state / 'slurmdbd.pid'}\nStorageType=accounting_storage/mysql\nStorageHost=127.0.0.1\n"
        f"StoragePort={cluster.ports['mariadb']}\nStorageUser=slurm\nStoragePass=slurm\nStorageLoc=slurm_acct_db\n"
    )
    cluster.system(["slurmdbd"])
    if not wait_until(lambda: _manage(cluster, "show", "cluster"), 30):
        raise ClusterError("slurmdbd does not answer")
    _manage(cluster, "add", "cluster", "thin")
    _manage(cluster, "add", "account", "study", "cluster=thin")
    _manage(cluster, "add", "user", user, "account=study", "defaultaccount=study")


def _manage(cluster: Cluster, *words: str) -> bool:
    return cluster.run(["sacctmgr", "-i", *words], check=False).returncode == 0
