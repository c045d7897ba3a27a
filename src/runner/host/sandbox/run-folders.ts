import { mkdirSync, writeFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { removeIfEmpty } from './run-folder.ts';
import { formerRoot, makeSandboxRoot, type SandboxRoot } from './sandbox-root.ts';
import { lookAt, readSmall } from './small-file.ts';

const MIB = 1024 * 1024;
/** In the state of the runner: where runs have their folders, and where they had them before. */
const ROOT_FILE = 'sandbox-root';

/** Where the runs of a project have their folders, and where the state of the runner keeps commits and events for them. */
export class RunFolders {
  readonly root: SandboxRoot;
  /** Objects of runs that the project may not have. */
  readonly commitsDir: string;
  /** Git directories of events. */
  readonly eventsDir: string;
  /** The state's own folder in the project; it is never part of a sandbox. */
  readonly stateName: string;
  readonly #stateDir: string;
  #isRootKnown = false;

  constructor(root: SandboxRoot, stateDir: string) {
    this.root = root;
    this.commitsDir = join(stateDir, 'run-commits');
    this.eventsDir = join(stateDir, 'sandboxes');
    this.stateName = basename(stateDir);
    this.#stateDir = stateDir;
  }

  adoptedDir(runId: string): string {
    return join(this.commitsDir, runId);
  }

  /** Where runs have, and where they had, their folders: the setting may have changed since. */
  all(): readonly SandboxRoot[] {
    const { root } = this;
    const text = readSmall(join(this.#stateDir, ROOT_FILE))?.toString('utf8') ?? '';
    const before = text
      .split('\n')
      .map((line) => line.trim())
      .filter((dir) => isAbsolute(dir) && basename(dir) === basename(root.dir));
    const others = new Set([...before, ...(root.former ?? [])]);
    others.delete(root.dir);
    return [root, ...[...others].map(formerRoot)];
  }

  /** The next start looks where this one made folders, and where there still are some of others. */
  make(): void {
    makeSandboxRoot(this.root);
    if (this.#isRootKnown) return;
    const dirs = this.all().map(({ dir }) => dir);
    const there = dirs.filter((dir) => lookAt(dir) !== undefined);
    mkdirSync(this.#stateDir, { recursive: true, mode: 0o700 });
    writeFileSync(join(this.#stateDir, ROOT_FILE), `${there.join('\n')}\n`, { mode: 0o600 });
    this.#isRootKnown = true;
  }

  /** Errors: DISK_FULL when less than `minBytes` are free on the disk of the folders. */
  async assertFree(minBytes: number): Promise<void> {
    if (minBytes === 0) return;
    // It is made with the first run; the folder above is on the same disk.
    for (let at = this.root.dir; ; at = dirname(at)) {
      const found = await statfs(at).catch(() => undefined);
      if (found === undefined && dirname(at) !== at) continue;
      if (found === undefined || found.bavail * found.bsize >= minBytes) return;
      const text = `less than ${Math.ceil(minBytes / MIB)} MiB are free on the disk of the workspaces`;
      throw new AppError('DISK_FULL', text, { floorBytes: String(minBytes) });
    }
  }
}

/** Removes the folder of a root, and what it lies in where that is ours, once nothing is in them. */
export function removeEmptyRoot({ base, dir, isBaseRemoved = false }: SandboxRoot): void {
  removeIfEmpty(dir);
  if (isBaseRemoved) removeIfEmpty(base);
}
