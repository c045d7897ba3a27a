import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { MasterKey } from '../../../src/runner/secrets/key-source.ts';
import { createTextSealer } from '../../../src/runner/secrets/text-sealer.ts';
import { createSyncService, type SyncService } from '../../../src/runner/sync/sync-service.ts';
import {
  startFakeCodeHost,
  type FakeCodeHost,
  type FakeHostOptions,
} from '../../support/fake-code-host.ts';
import { gitIn } from '../../support/fake-host-git.ts';

/** A clock that only the test moves; it begins now, as the host's does. */
export type TestClock = { ms: number; nowMs(): number; monotonicMs(): number };

/** Pauses that were asked for; each ends at once, and the clock moves by it. */
export type Waits = number[];

export type Fixture = {
  readonly host: FakeCodeHost;
  readonly sync: SyncService;
  readonly stateDir: string;
  /** Where the key is made. */
  readonly settingsDir: string;
  readonly projectDir: string;
  readonly clock: TestClock;
  readonly waits: Waits;
  readonly problems: { readonly event: string; readonly error: Error }[];
  /** How each pull ended that nobody asked for. */
  readonly polls: readonly string[];
  /** Closes the service and opens it again on the same files. */
  restart(): Promise<SyncService>;
};

export type FixtureOptions = FakeHostOptions & {
  readonly config?: Readonly<Record<string, unknown>>;
  readonly settings?: Partial<{
    hostApiUrl: string;
    hostGitUrl: string;
    hostToken: string | undefined;
    webhookSecret: string | undefined;
  }>;
  /** Default: a key file. */
  readonly secretsKey?: string;
  /** git by paths instead of HTTP. */
  readonly isFileGit?: boolean;
  /** Pauses that do not end at once, such as the poller's. */
  readonly wait?: (ms: number, signal: AbortSignal) => Promise<void> | undefined;
};

/** A host, an empty project folder and the service between them; all is removed after the test. */
export async function createFixture(options: FixtureOptions = {}): Promise<Fixture> {
  const host = await startFakeCodeHost(options);
  const root = await mkdtemp(join(tmpdir(), 'sync-test-'));
  const stateDir = join(root, '.runner');
  const projectDir = join(root, 'project');
  const clock: TestClock = { ms: Date.now(), nowMs: () => clock.ms, monotonicMs: () => clock.ms };
  const waits: Waits = [];
  const problems: Fixture['problems'][number][] = [];
  const polls: string[] = [];
  const open = (): Promise<SyncService> =>
    createSyncService({
      stateDir,
      projectDir,
      settings: {
        hostApiUrl: host.apiUrl,
        hostGitUrl: options.isFileGit === true ? host.fileGitUrl : host.gitUrl,
        hostToken: host.token,
        webhookSecret: undefined,
        ...options.settings,
      },
      sealer: createTextSealer(new MasterKey(options.secretsKey, join(root, 'settings'))),
      clock,
      report: (event, error) => problems.push({ event, error }),
      polls: {
        succeeded: () => polls.push('done'),
        failed: (error) => polls.push(String(error)),
      },
      random: () => 0.5,
      wait: async (ms, signal) => {
        signal.throwIfAborted();
        const own = options.wait?.(ms, signal);
        if (own !== undefined) {
          await own;
          return;
        }
        waits.push(ms);
        clock.ms += ms;
        await Promise.resolve();
      },
    });
  let opened: SyncService | undefined;
  onTestFinished(async () => {
    await opened?.close();
    await host.close();
    await rm(root, { recursive: true, force: true });
  });
  opened = await open();
  let sync = opened;
  await gitIn(root, 'init', '--quiet', '--initial-branch=main', projectDir);
  await sync.putConfig(options.config ?? configOf(host));
  return {
    host,
    get sync() {
      return sync;
    },
    stateDir,
    settingsDir: join(root, 'settings'),
    projectDir,
    clock,
    waits,
    problems,
    polls,
    async restart() {
      await sync.close();
      sync = await open();
      opened = sync;
      return sync;
    },
  };
}

/** Everything on, no polling. */
export function configOf(host: FakeCodeHost): {
  enabled: boolean;
  host: Record<string, unknown>;
} {
  const { owner, repo } = host;
  return { enabled: true, host: { owner, repo, pollIntervalMs: 0 } };
}

/** Commits a file named after the subject; the commit's name. `at` is the time of authorship. */
export async function commit(
  dir: string,
  subject: string,
  body = '',
  at = '2026-04-01T10:00:00Z',
): Promise<string> {
  await writeFile(join(dir, `${subject.replaceAll(/\W+/g, '-')}.txt`), `${subject}\n`);
  await gitIn(dir, 'add', '.');
  const message = body === '' ? subject : `${subject}\n\n${body}`;
  await gitIn(dir, 'commit', '--quiet', '-m', message, { date: at });
  return await gitIn(dir, 'rev-parse', 'HEAD');
}

/** One commit on `main`, in the project and on the host. */
export async function seedProject({ host, projectDir }: Fixture): Promise<void> {
  await commit(projectDir, 'Begin');
  await gitIn(projectDir, 'push', '--quiet', host.repositoryDir, 'main');
}
