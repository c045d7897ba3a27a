import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Random } from '../workload/random.ts';
import { InstanceProcess } from './instance-process.ts';
import { PostgresProxy } from './postgres-proxy.ts';
import { PostgresServer } from './postgres-server.ts';

export const TOKEN = 'verify-token';
export const ADMIN_SECRET = 'verify-admin-secret';
/** Loaded into an instance so that its wall clock can be set. */
const SKEWED_CLOCK = pathToFileURL(
  join(import.meta.dirname, '../../test/support/run-skewed-clock.ts'),
).href;
/** How long other instances may believe settings; short, so that a run sees the end of it. */
const PROJECT_TTL_SECONDS = 3;

/** Settings of every instance: small, so that several fit on one machine, and impatient. */
const ENV: Readonly<Record<string, string>> = {
  GATEWAY_WORKERS: '1',
  GATEWAY_PG_POOL_SIZE: '6',
  GATEWAY_INDEX_BYTES: String(64 * 1024 * 1024),
  // As few as there may be, so that the gateway's thread answers Checks as well.
  GATEWAY_THREAD_CHECKS_PER_SECOND: '10',
  GATEWAY_PROJECT_TTL_SECONDS: String(PROJECT_TTL_SECONDS),
  GATEWAY_DRAIN_MS: '200',
  GATEWAY_SHUTDOWN_TIMEOUT_MS: '5000',
  GATEWAY_LOG_LEVEL: 'info',
};

/** A place for an instance: one process after another, each reaching PostgreSQL through the same proxy. */
export type Place = {
  readonly index: number;
  readonly proxy: PostgresProxy;
  /** Undefined: none is meant to run here. */
  process: InstanceProcess | undefined;
  /** Changes with each process that became ready; undefined while none is. */
  baseUrl: string | undefined;
  /** Its process was stopped by a signal: it answers nothing until it goes on. */
  isPaused: boolean;
  /** Callers do not come here, as where a balancer has taken it out. */
  isHidden: boolean;
};

export type ClusterOptions = {
  readonly tree: string;
  readonly places: number;
  readonly random: Random;
  /** Called when the process of a place becomes ready or ends. */
  readonly onChange?: ((place: Place) => void) | undefined;
  /** Called when a process ended that nobody ended. */
  readonly onDeath?: ((place: Place, lastLines: readonly string[]) => void) | undefined;
};

/** Instances on one PostgreSQL, all of the run's own. */
export class Cluster {
  readonly places: readonly Place[];
  readonly postgres: PostgresServer;
  readonly #options: ClusterOptions;
  readonly #directory: string;
  /** Processes that are meant to end. */
  readonly #ending = new WeakSet<InstanceProcess>();
  #isEnding = false;

  private constructor(
    options: ClusterOptions,
    directory: string,
    postgres: PostgresServer,
    proxies: readonly PostgresProxy[],
  ) {
    this.#options = options;
    this.#directory = directory;
    this.postgres = postgres;
    this.places = proxies.map((proxy, index) => ({
      index,
      proxy,
      process: undefined,
      baseUrl: undefined,
      isPaused: false,
      isHidden: false,
    }));
  }

  /** PostgreSQL and proxies; no instance yet. */
  static async start(options: ClusterOptions): Promise<Cluster> {
    const directory = await mkdtemp(join(tmpdir(), 'gatehouse-verify-'));
    try {
      const postgres = await PostgresServer.start();
      const proxies = await Promise.all(
        Array.from({ length: options.places }, (_, index) =>
          PostgresProxy.start(postgres.target, options.random.fork(`proxy ${index}`)),
        ),
      );
      return new Cluster(options, directory, postgres, proxies);
    } catch (error) {
      await rm(directory, { recursive: true, force: true });
      throw error;
    }
  }

  /** Places whose process answers. */
  get ready(): readonly Place[] {
    return this.places.filter(
      ({ baseUrl, isPaused, isHidden }) => baseUrl !== undefined && !isPaused && !isHidden,
    );
  }

  /** Places with a process, whether it answers or not. */
  get occupied(): readonly Place[] {
    return this.places.filter((place) => place.process !== undefined);
  }

  /** `end` was called: nothing can join any more. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** Starts a process at a place that has none; resolves when it is ready. Errors: it ended instead, or all is to end. */
  async join(place: Place, env: Readonly<Record<string, string>> = {}): Promise<void> {
    if (this.#isEnding) throw new Error('the cluster ends');
    if (place.process !== undefined) throw new Error('the place is taken');
    this.skew(place, 0);
    const instance = new InstanceProcess({
      tree: this.#options.tree,
      dataDirectory: join(this.#directory, `instance-${place.index}`),
      databaseUrl: place.proxy.databaseUrl,
      token: TOKEN,
      adminSecret: ADMIN_SECRET,
      env: {
        ...ENV,
        NODE_OPTIONS: `--import=${SKEWED_CLOCK}`,
        TEST_CLOCK_SKEW_FILE: this.#skewFile(place),
        ...env,
      },
    });
    place.process = instance;
    void instance.exited.then(() => {
      if (place.process !== instance) return;
      const wasReady = place.baseUrl !== undefined;
      this.#emptied(place);
      // One that never was ready is told of by `ready`.
      if (wasReady && !this.#ending.has(instance)) {
        this.#options.onDeath?.(place, instance.lastLines);
      }
    });
    const { baseUrl } = await instance.ready;
    if (place.process !== instance) return;
    place.baseUrl = baseUrl;
    this.#options.onChange?.(place);
  }

  /** Ends the process of a place: SIGTERM lets it drain, SIGKILL does not. */
  async leave(place: Place, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const { process: instance } = place;
    if (instance === undefined) return;
    this.#ending.add(instance);
    await instance.end(signal);
  }

  /** Sets the wall clock of a place's process this much ahead. */
  skew(place: Place, skewMs: number): void {
    writeFileSync(this.#skewFile(place), String(skewMs));
  }

  #skewFile({ index }: Place): string {
    return join(this.#directory, `skew-${index}`);
  }

  pause(place: Place): void {
    place.isPaused = true;
    place.process?.signal('SIGSTOP');
  }

  goOn(place: Place): void {
    place.isPaused = false;
    place.process?.signal('SIGCONT');
  }

  /** Everything that was disturbed is as it should be, but for processes that are not there. */
  heal(): void {
    this.postgres.thaw();
    for (const place of this.places) {
      place.proxy.heal();
      this.skew(place, 0);
      place.isHidden = false;
      this.goOn(place);
    }
  }

  /** Ends all processes, also those that are starting, and lets no other one start. */
  async end(): Promise<void> {
    this.#isEnding = true;
    this.heal();
    await Promise.all(this.places.map((place) => this.leave(place, 'SIGKILL')));
  }

  /** Ends everything and removes its data. */
  async stop(): Promise<void> {
    await this.end();
    await Promise.all(this.places.map(({ proxy }) => proxy.close()));
    await this.postgres.remove();
    await rm(this.#directory, { recursive: true, force: true });
  }

  #emptied(place: Place): void {
    place.process = undefined;
    place.baseUrl = undefined;
    place.isPaused = false;
    place.isHidden = false;
    this.#options.onChange?.(place);
  }
}
