import { arch, homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { GoTools } from './go-tools.ts';
import { type ToolEnvironment, toolCachesOf } from './installed-tools.ts';
import { NodeTools } from './node-tools.ts';
import { NpmClient } from './npm-client.ts';
import { PipClient } from './pip-client.ts';
import { PythonTools } from './python-tools.ts';
import { clientEnvironment } from './run-client.ts';
import { inScratch, ToolCache } from './tool-cache.ts';
import { untilStopped } from './tool-cache.ts';
import { findOrGet, type ToolAtHand } from './tool-source.ts';
import { wishFor } from './tool-version.ts';
import { UvTools } from './uv-tools.ts';
import { VersionProbe } from './version-probe.ts';

/** How long a Node for actions that could not be had is not asked for again. */
const RETRY_MS = 60_000;
/** Actions of these and older lines run on it, as on GitHub since June 2026. */
const ACTIONS_NODE = 24;
/** What workflows call them. */
const ARCHITECTURES: ReadonlyMap<string, readonly string[]> = new Map([
  ['x64', ['x64', 'amd64', 'x86_64']],
  ['arm64', ['arm64', 'aarch64']],
]);

export type ToolRegistryOptions = {
  /** The runner's own: where tools are, and how registries are reached. */
  readonly environment: ToolEnvironment;
  /** Where installed tools are kept; absolute. */
  readonly root: string;
  readonly mayInstall: boolean;
};

/** A Node for actions that was asked for; who waits for it hears what was said before, too. */
type ComingNode = {
  readonly at: number;
  readonly node: Promise<ToolAtHand>;
  readonly said: string[];
  readonly listeners: Set<(text: string) => void>;
};

/** The tools that jobs ask for. One for all jobs of a runner. */
export class ToolRegistry {
  readonly node: NodeTools;
  readonly python: PythonTools;
  readonly go: GoTools;
  readonly uv: UvTools;
  readonly npm: NpmClient;
  readonly cache: ToolCache;
  readonly refused: string | undefined;
  readonly #nodes = new Map<number, ComingNode>();

  constructor({ environment: given, root, mayInstall }: ToolRegistryOptions) {
    const client = clientEnvironment(given);
    // Without what npm put in front of the PATH: tools of the runner's own are nobody's.
    const environment = { ...given, PATH: client['PATH'] };
    const cache = new ToolCache(root);
    this.cache = cache;
    this.refused = mayInstall ? undefined : 'RUNNER_INSTALL_TOOLS is false';
    const { refused } = this;
    const toolCaches = toolCachesOf(environment);
    const probe = new VersionProbe(client);
    const common = { cache, probe, environment, toolCaches, refused };
    this.npm = new NpmClient(client);
    this.node = new NodeTools({ ...common, npm: this.npm });
    this.uv = new UvTools({ ...common, pip: new PipClient(client) });
    this.python = new PythonTools({ ...common, uv: this.uv, client });
    this.go = new GoTools({ ...common, client });
  }

  /** A folder for the time of `use`. Errors: its, and those of the file system. */
  async withScratch<T>(use: (dir: string) => Promise<T>): Promise<T> {
    return await inScratch(this.cache.root, use);
  }

  /**
   * The Node for `using: node<major>`: those up to 24 run on 24, as on GitHub. One that is being installed
   * is for all jobs, so that `signal` ends the waiting alone; each job that waits hears what takes its time.
   * Errors: NOT_FOUND, CANCELLED.
   */
  async nodeForActions(
    major: number,
    signal: AbortSignal,
    say: (text: string) => void = () => {},
  ): Promise<ToolAtHand> {
    const line = Math.max(major, ACTIONS_NODE);
    const known = this.#nodes.get(line);
    const isFresh = known !== undefined && performance.now() - known.at < RETRY_MS;
    const coming = isFresh ? known : this.#getNode(major, line);
    for (const text of coming.said) say(text);
    coming.listeners.add(say);
    try {
      return await untilStopped(coming.node, signal);
    } finally {
      coming.listeners.delete(say);
    }
  }

  #getNode(major: number, line: number): ComingNode {
    const wish = wishFor(`node${major}`, `${line}.x`, 'runs.using');
    const said: string[] = [];
    const listeners = new Set<(text: string) => void>();
    const say = (text: string): void => {
      said.push(text);
      for (const listener of listeners) listener(text);
    };
    const node = findOrGet(this.node, { wish, say });
    const coming = { at: performance.now(), node, said, listeners };
    this.#nodes.set(line, coming);
    // Once it is there, nobody waits for it any more.
    const forget = (): void => void said.splice(0);
    node.then(forget, forget);
    return coming;
  }
}

/** Where tools are kept unless somebody says: out of all projects. */
export function toolsDirOf(environment: ToolEnvironment): string {
  const cache = environment['XDG_CACHE_HOME'];
  const home = environment['HOME'];
  const base =
    cache !== undefined && isAbsolute(cache)
      ? cache
      : join(home === undefined || home === '' ? homedir() : home, '.cache');
  return join(base, 'gatehouse-runner', 'tools');
}

/** Errors: INVALID_VALUE for another architecture than that of this machine. */
export function refuseOtherArchitecture(wanted: string, field = 'architecture'): void {
  const names = ARCHITECTURES.get(arch()) ?? [arch()];
  if (wanted === '' || names.includes(wanted.toLowerCase())) return;
  const text = `this machine is ${arch()}: tools of '${wanted}' cannot be had`;
  throw new AppError('INVALID_VALUE', text, { field });
}
