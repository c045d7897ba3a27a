import { randomInt } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { chown, lchown, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import type { ForkIsolation, JobIsolation, ProgramStart } from '../../model/isolation.ts';
import type { ProblemReporter } from '../../model/ports.ts';
import { createGit, type Git } from '../git/run-git.ts';
import { startProcess } from '../process/run-process.ts';
import { removeTree } from '../sandbox/copy-tree.ts';
import { withoutUser } from '../sandbox/git-settings.ts';
import { lookAt } from '../sandbox/small-file.ts';
import { endProcessesOf } from './user-processes.ts';
import { systemProgram } from './wrappers.ts';
import { otherUser, otherUserApart, ownNamespaces, type Wrapper } from './wrappers.ts';

/** Outside of the project, whose folders others may not enter. */
const PARENTS: readonly string[] = ['/var/tmp', '/tmp'];
const PREFIX = 'gatehouse-fork-';
/** Ids that no distribution gives away (systemd, "Users, Groups, UIDs and GIDs"). */
const UID_MIN = 1_900_000_000;
const UID_MAX = 2_000_000_000;
const PROBE_MS = 20_000;
const CHECKOUT_TIMEOUT_MS = 10 * 60_000;
const NO_USER: Readonly<Record<string, string>> = {
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
};

export type ForkIsolationOptions = {
  /** Absolute: what a job must not see. */
  readonly projectDir: string;
  /** A file for each folder that exists elsewhere; made when needed. */
  readonly marksDir: string;
  readonly report: ProblemReporter;
};

/**
 * Jobs of forks as another user where the runner is root, else in namespaces of their own where the kernel
 * lets everybody make those (Linux). What killed runners left is removed first. Never rejects.
 */
export async function createForkIsolation(options: ForkIsolationOptions): Promise<ForkIsolation> {
  const isolation = new MachineIsolation(options);
  await isolation.tidy();
  return isolation;
}

class MachineIsolation implements ForkIsolation {
  readonly #options: ForkIsolationOptions;
  readonly #isRoot = process.geteuid?.() === 0;
  /** The first that works, once that was tried. */
  #wrapper: Wrapper;
  #probe: Promise<string | undefined> | undefined;
  #count = 0;

  constructor(options: ForkIsolationOptions) {
    this.#options = options;
    this.#wrapper = this.#isRoot ? otherUserApart : ownNamespaces;
  }

  get isInUse(): boolean {
    return this.#count > 0;
  }

  whyNot(): Promise<string | undefined> {
    this.#probe ??= this.#tryAll();
    return this.#probe;
  }

  async begin(source: string): Promise<JobIsolation> {
    const why = await this.whyNot();
    if (why !== undefined) {
      throw new AppError('FORKS_REFUSED', `jobs of forks cannot be kept apart here: ${why}`);
    }
    // From here on every call that changes something needs the token.
    this.#count += 1;
    let job: ApartJob | undefined;
    try {
      const { root, prefix } = await placeOf(source);
      const name = basename(this.#options.projectDir);
      job = await this.#makeJob(name, prefix, () => (this.#count -= 1));
      await checkOutApart(root, job.root);
      await job.give(job.root);
      return job;
    } catch (error) {
      if (job === undefined) this.#count -= 1;
      else await job.end();
      throw error;
    }
  }

  /** Removes what a killed runner left. */
  async tidy(): Promise<void> {
    const { marksDir, report } = this.#options;
    for (const name of await readdir(marksDir).catch(() => [])) {
      try {
        const mark = join(marksDir, name);
        const [dir = '', uid = ''] = (await readFile(mark, 'utf8')).split('\n');
        const isOurs = PARENTS.includes(dirname(dir)) && basename(dir).startsWith(PREFIX);
        if (isOurs && this.#isRoot && isJobUser(Number(uid))) await endProcessesOf(Number(uid));
        if (isOurs) await removeTree(dir);
        await rm(mark, { force: true });
      } catch (error) {
        report('isolation.leftover', error instanceof Error ? error : new Error(String(error)));
      }
    }
  }

  async #makeJob(name: string, prefix: string, onEnd: () => void): Promise<ApartJob> {
    const parent = PARENTS.find((folder) => lookAt(folder)?.isDirectory()) ?? '/tmp';
    const dir = await mkdtemp(join(parent, PREFIX));
    const uid = this.#isRoot ? randomInt(UID_MIN, UID_MAX) : (process.geteuid?.() ?? 0);
    const { marksDir, report } = this.#options;
    mkdirSync(marksDir, { recursive: true, mode: 0o700 });
    const mark = join(marksDir, basename(dir));
    writeFileSync(mark, `${dir}\n${uid}\n`, { mode: 0o600 });
    const job = new ApartJob({
      dir,
      uid,
      isOtherUser: this.#isRoot,
      name,
      prefix,
      wrapper: this.#wrapper,
      onEnd: async () => {
        await rm(mark, { force: true });
        onEnd();
      },
      report,
    });
    await job.open();
    return job;
  }

  async #tryAll(): Promise<string | undefined> {
    let why: string | undefined;
    for (const wrapper of this.#isRoot ? [otherUserApart, otherUser] : [ownNamespaces]) {
      this.#wrapper = wrapper;
      why = await this.#try();
      if (why === undefined) return undefined;
    }
    return why;
  }

  /** Does it, and looks whether what must not be seen cannot be. */
  async #try(): Promise<string | undefined> {
    if (process.platform !== 'linux') return 'it needs Linux';
    const missing = this.#wrapper.needs.find((name) => systemProgram(name) === undefined);
    if (missing !== undefined) return `there is no program ${missing}`;
    const secret = join(this.#options.projectDir, '.runner');
    let job: ApartJob | undefined;
    try {
      // What runs there is the runner's own: nobody needs the token for that.
      job = await this.#makeJob('probe', '', () => undefined);
      const script = [
        '! ls "$1" 2>/dev/null || { echo "the state of the runner can be read"; exit 1; }',
        '! kill -0 "$2" 2>/dev/null || { echo "processes of the runner can be ended"; exit 1; }',
        '! cat "/proc/$2/environ" 2>/dev/null || { echo "the environment of the runner can be read"; exit 1; }',
        'touch "$3/probe" || { echo "its own folder cannot be written to"; exit 1; }',
      ].join('\n');
      return await this.#runProbe(job, script, [secret, String(process.pid), job.home]);
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    } finally {
      await job?.end();
    }
  }

  async #runProbe(
    job: ApartJob,
    script: string,
    args: readonly string[],
  ): Promise<string | undefined> {
    let output = '';
    const running = startProcess({
      ...job.wrap({
        file: systemProgram('sh') ?? '/bin/sh',
        args: ['-c', script, 'sh', ...args],
        cwd: job.home,
        env: { PATH: '/usr/bin:/bin' },
      }),
      trackingId: `gatehouse_probe_${job.uid}`,
      onChunk: (chunk) => {
        output = (output + chunk.toString('utf8')).slice(0, 1_000);
        return undefined;
      },
    });
    const timer = setTimeout(() => running.kill(), PROBE_MS);
    const { code, error } = await running.exit;
    clearTimeout(timer);
    if (code === 0) return undefined;
    return error?.message ?? (output.trim().split('\n')[0] || `it ended with code ${code ?? '-'}`);
  }
}

type ApartJobOptions = {
  readonly dir: string;
  readonly uid: number;
  readonly isOtherUser: boolean;
  readonly name: string;
  /** Of the project below the root of its repository. */
  readonly prefix: string;
  readonly wrapper: Wrapper;
  readonly onEnd: () => Promise<void>;
  readonly report: ProblemReporter;
};

class ApartJob implements JobIsolation {
  readonly uid: number;
  readonly dir: string;
  /** Of its repository. */
  readonly root: string;
  readonly workspace: string;
  readonly home: string;
  readonly temp: string;
  readonly commands: string;
  readonly shared: string;
  readonly #options: ApartJobOptions;
  #ended: Promise<void> | undefined;

  constructor(options: ApartJobOptions) {
    this.#options = options;
    this.uid = options.uid;
    this.dir = options.dir;
    const own = join(options.dir, 'own');
    this.root = join(own, 'work', options.name);
    this.workspace = join(this.root, options.prefix);
    this.home = join(own, 'home');
    this.temp = join(own, 'temp');
    this.commands = join(own, 'commands');
    this.shared = join(options.dir, 'shared');
  }

  async open(): Promise<void> {
    // The folder itself stays the runner's: a job can replace nothing in it.
    chmodSync(this.dir, 0o711);
    for (const folder of ['root', 'shared', 'own', 'own/work', 'own/commands']) {
      mkdirSync(join(this.dir, folder), { mode: 0o755 });
    }
    for (const folder of [this.home, this.temp]) {
      mkdirSync(folder, { mode: 0o700 });
      await this.give(folder);
    }
  }

  wrap(program: ProgramStart): ProgramStart {
    const { dir, uid, wrapper } = this.#options;
    return wrapper.wrap({ dir, uid }, program);
  }

  async give(path: string): Promise<void> {
    if (!this.#options.isOtherUser) return;
    const walk = async (folder: string): Promise<void> => {
      for (const entry of readdirSync(folder, { withFileTypes: true })) {
        const inside = join(folder, entry.name);
        await lchown(inside, this.uid, this.uid);
        if (entry.isDirectory()) await walk(inside);
      }
    };
    if (lookAt(path)?.isDirectory()) await walk(path);
    await chown(path, this.uid, this.uid);
  }

  end(): Promise<void> {
    this.#ended ??= this.#end();
    return this.#ended;
  }

  async #end(): Promise<void> {
    const { dir, uid, isOtherUser, onEnd, report } = this.#options;
    try {
      if (isOtherUser) await endProcessesOf(uid);
      await removeTree(dir);
    } catch (error) {
      report('isolation.end', error instanceof Error ? error : new Error(String(error)));
      // It stays counted as going on: a process of the job may be left.
      return;
    }
    await onEnd();
  }
}

/** The root of a work tree, and where in it the project lies. */
async function placeOf(
  source: string,
): Promise<{ readonly root: string; readonly prefix: string }> {
  const text = await createGit(source).run(['rev-parse', '--show-toplevel', '--show-prefix']);
  const [root = source, prefix = ''] = text.split('\n');
  return { root, prefix };
}

function isJobUser(uid: number): boolean {
  return Number.isSafeInteger(uid) && uid >= UID_MIN && uid < UID_MAX;
}

/**
 * A repository of its own with nothing but the commit that `source` is at, as actions/checkout gives it: not
 * the objects of the project, which may hold what was never published.
 */
async function checkOutApart(source: string, workspace: string): Promise<void> {
  mkdirSync(workspace, { recursive: true, mode: 0o755 });
  const git = createGit(workspace);
  const run = (...args: readonly string[]): Promise<string> =>
    git.run(args, { env: NO_USER, timeoutMs: CHECKOUT_TIMEOUT_MS });
  const from = createGit(source);
  const format = (await from.run(['rev-parse', '--show-object-format'])).trim();
  await run('init', '--quiet', '--template=', `--object-format=${format}`);
  const options = [
    '--quiet',
    '--no-tags',
    '--no-write-fetch-head',
    '--depth=1',
    '--update-shallow',
  ];
  await run('fetch', ...options, `file://${source}`, '+HEAD:refs/remotes/pull/merge');
  await takeOrigin(from, git);
  await run('checkout', '--quiet', '--detach', 'refs/remotes/pull/merge', '--');
}

async function takeOrigin(from: Git, to: Git): Promise<void> {
  const { exitCode, stdout } = await from.tryRun(['config', '--get', 'remote.origin.url']);
  const url = withoutUser(stdout.toString('utf8').trim());
  // A path on this machine leads nowhere for another user.
  if (exitCode !== 0 || !/^(?:https?|ssh|git):\/\/|^[^/\s]+@[^/:\s]+:/.test(url)) return;
  await to.run(['config', 'remote.origin.url', url], { env: NO_USER });
  const refs = '+refs/heads/*:refs/remotes/origin/*';
  await to.run(['config', 'remote.origin.fetch', refs], { env: NO_USER });
}
