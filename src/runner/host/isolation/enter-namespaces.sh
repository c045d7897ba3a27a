# Run by unshare(1) as the first process of new user, mount, process, IPC and network namespaces: builds
# a root of the folders that programs need, read-only, and of the job's own folder, enters it, gives up all
# rights within the namespace and becomes the program.
# Arguments: an empty folder for the new root, the job's folder, a list of further read-only folders
# (one a line), then the program and its arguments.
set -eu
root=$1; own=$2; more=$3
shift 3
mount -t tmpfs -o mode=755,nosuid,nodev tmpfs "$root"
show() {
  [ -e "$1" ] || return 0
  mkdir -p "$root$1"
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
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
ip link set lo up 2>/dev/null || true
cd "$root"
mkdir .old
pivot_root . .old
umount -l /.old
rmdir /.old
cd /
# The first process of a namespace gets no signal that it does not handle, and must outlive its children:
# the program is its child.
exec setpriv --bounding-set=-all --inh-caps=-all --ambient-caps=-all --no-new-privs -- \
  sh -c '"$@"; exit "$?"' sh "$@"
