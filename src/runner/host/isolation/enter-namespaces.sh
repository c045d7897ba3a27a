# Run by unshare(1) as the first process of new namespaces: builds a root of the folders that programs
# need, read-only, and of the job's own folder, enters it, gives up all rights and becomes the program. With
# the number of a user it becomes that user, in a mount namespace; without, the namespaces are those of user,
# mount, processes, IPC and network.
# Arguments: an empty folder for the new root, the job's folder, a list of further read-only files and
# folders (one a line), the user or nothing, then the program and its arguments.
set -eu
root=$1; own=$2; more=$3; user=$4
shift 4
mount -t tmpfs -o mode=755,nosuid,nodev tmpfs "$root"
show() {
  [ -e "$1" ] || return 0
  if [ -d "$1" ]; then mkdir -p "$root$1"
  else mkdir -p "$(dirname "$root$1")"; [ -e "$root$1" ] || : > "$root$1"; fi
  mount --rbind "$1" "$root$1"
  mount --make-rslave "$root$1"
  mount -o remount,bind,ro,nosuid,nodev "$root$1"
}
for name in usr bin sbin lib lib32 lib64 libx32 etc opt nix; do
  if [ -L "/$name" ]; then ln -s "$(readlink "/$name")" "$root/$name"
  elif [ -d "/$name" ]; then show "/$name"; fi
done
printf '%s\n' "$more" | while IFS= read -r folder; do
  case $folder in '') ;; *) show "$folder" ;; esac
done
# Where the names of hosts are looked up, on many systems; of no use without a network.
[ -z "$user" ] || show /run/systemd/resolve
mkdir -p "$root/dev" "$root/proc" "$root/tmp" "$root/run" "$root/var/tmp" "$root/dev/shm"
chmod 1777 "$root/tmp" "$root/var/tmp" "$root/dev/shm"
for name in null zero full random urandom tty; do
  : > "$root/dev/$name"
  mount --bind "/dev/$name" "$root/dev/$name"
done
ln -s /proc/self/fd "$root/dev/fd"
ln -s /proc/self/fd/0 "$root/dev/stdin"
ln -s /proc/self/fd/1 "$root/dev/stdout"
ln -s /proc/self/fd/2 "$root/dev/stderr"
mkdir -p "$root$own"
mount --bind "$own" "$root$own"
if [ -n "$user" ]; then mount --rbind /proc "$root/proc"
else
  mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
  ip link set lo up 2>/dev/null || true
fi
cd "$root"
mkdir .old
pivot_root . .old
umount -l /.old
rmdir /.old
cd /
if [ -n "$user" ]; then
  exec setpriv --reuid="$user" --regid="$user" --clear-groups \
    --bounding-set=-all --inh-caps=-all --no-new-privs -- "$@"
fi
# The first process of a namespace gets no signal that it does not handle, and must outlive its children:
# the program is its child.
exec setpriv --bounding-set=-all --inh-caps=-all --ambient-caps=-all --no-new-privs -- \
  sh -c '"$@"; exit "$?"' sh "$@"
