import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A control group of the kernel, whose processes are killed when they take more memory than it may. */
export type MemoryGroup = {
  /** Words before a command that put it into the group. */
  readonly enter: readonly [string, ...string[]];
  /** From now on; the processes of the group may not have more already. */
  limit(bytes: number): void;
  /** Once its processes have ended. */
  remove(): void;
};

/** Where groups are made, and the file of their limit: version 1 and version 2 of control groups. */
const VERSIONS = [
  { root: '/sys/fs/cgroup/memory', file: 'memory.limit_in_bytes' },
  { root: '/sys/fs/cgroup', file: 'memory.max' },
] as const;

/** Makes a group; null where this process may not, as without rights or on a file system that is not writable. */
export function createMemoryGroup(name: string): MemoryGroup | null {
  for (const { root, file } of VERSIONS) {
    const group = join(root, `gatehouse-test-${name}-${process.pid}`);
    try {
      mkdirSync(group);
    } catch {
      // Not here: the other version, or none.
      continue;
    }
    const remove = (): void => rmdirSync(group);
    if (!existsSync(join(group, file))) {
      // A group of another controller.
      remove();
      continue;
    }
    return {
      enter: ['sh', '-c', 'echo $$ > "$0" && exec "$@"', join(group, 'cgroup.procs')],
      limit: (bytes) => {
        writeFileSync(join(group, file), String(bytes));
        if (Number(readFileSync(join(group, file), 'utf8')) > bytes) {
          throw new Error('the limit of a control group was not taken');
        }
      },
      remove,
    };
  }
  return null;
}
