import { setTimeout as sleep } from 'node:timers/promises';
import type { Action, Disturbance, History, Operation } from '../checker/history.ts';
import { type Universe, createUniverse } from '../checker/universe.ts';
import { TRACE_NAMESPACE, tracedIds, versionOfModel } from './messages.ts';
import type { Random } from './random.ts';
import { type Reach, type Reachable, pickAwake } from './reachable.ts';
import { Recorder } from './recorder.ts';
import {
  type Shard,
  ShardLoad,
  WRITE_TIMEOUT_MS,
  errorText,
  outcomeOf,
  traceObject,
} from './shard-load.ts';

export type RoundOptions = {
  /** Of this round: names its projects, too. */
  readonly seed: string;
  readonly random: Random;
  readonly seconds: number;
  readonly reach: Reach;
  readonly clockBoundMs: number;
  /** Disturbs until it is told to stop, and then puts everything right again. */
  readonly disturb: (
    isStopped: () => boolean,
    say: (text: string) => void,
    recorder: Recorder,
  ) => Promise<void>;
  /** Ends the load at once; what came until then is no history. */
  readonly signal?: AbortSignal | undefined;
};

/** Tenants of each project of a round. */
const PROJECTS = [1, 2];
const WRITERS = 2;
const READERS = 4;
const PATIENCE_MS = 60_000;
const PAUSE_MS = 50;
/** Between changes of settings that failed: each may have taken effect, and be one more of unknown outcome. */
const SETTINGS_PAUSE_MS = 3_000;

/**
 * One recorded round on projects of its own: load and disturbances side by side, then quiet, a last write and
 * everything read at each instance, and last the traces that tell which writes took effect.
 */
export async function runRound(options: RoundOptions): Promise<History> {
  return await new Round(options).run();
}

class Round {
  readonly #options: RoundOptions;
  readonly #universe: Universe = createUniverse();
  readonly #recorder = new Recorder();
  readonly #shards: readonly Shard[];
  readonly #loads: readonly ShardLoad[];
  readonly #disturbances: Disturbance[] = [];
  #clients = 0;
  #isStopped = false;

  constructor(options: RoundOptions) {
    this.#options = options;
    this.#shards = PROJECTS.flatMap((tenants, project) =>
      Array.from({ length: tenants }, (_, tenant): Shard => {
        const scope = { project_id: this.#projectId(project), tenant_id: `t${tenant}` };
        return { project, tenant, scope, tokens: [], writes: 0 };
      }),
    );
    const { reach } = options;
    const load = {
      universe: this.#universe,
      recorder: this.#recorder,
      reach,
      isStopped: () => this.#isStopped,
    };
    this.#loads = this.#shards.map((shard) => new ShardLoad(load, shard));
  }

  async run(): Promise<History> {
    const { seed, seconds, clockBoundMs, disturb, signal } = this.#options;
    await this.#createProjects();
    const startedMs = Date.now();
    const callers = this.#startCallers();
    const disturbing = disturb(
      () => this.#isStopped,
      (text) => this.#disturbances.push({ atMs: Date.now(), text }),
      this.#recorder,
    );
    // What one of them throws is thrown below, when its turn comes.
    for (const one of [...callers, disturbing]) one.catch(() => undefined);
    const loaded = sleep(seconds * 1_000, undefined, { signal });
    try {
      await Promise.race([loaded, disturbing.then(() => loaded)]);
    } finally {
      this.#isStopped = true;
    }
    await disturbing;
    await Promise.all(callers);
    for (const load of this.#loads) await load.settled();
    await this.#close();
    return {
      seed,
      startedMs,
      endedMs: Date.now(),
      projects: PROJECTS,
      clockBoundMs,
      universe: this.#universe,
      operations: this.#recorder.operations.toSorted((a, b) => a.called - b.called),
      disturbances: this.#disturbances,
    };
  }

  #projectId(project: number): string {
    return `verify-${this.#options.seed.replaceAll(/[^a-z0-9]+/g, '-')}-${project}`;
  }

  async #createProjects(): Promise<void> {
    for (const project of PROJECTS.keys()) {
      const id = this.#projectId(project);
      const message = { id, name: id, model_json: JSON.stringify(this.#universe.models[0]) };
      await this.#untilDone(async (target) => {
        const options = { timeoutMs: WRITE_TIMEOUT_MS };
        const reply = await target.client.call('AdminService/CreateProject', message, options);
        return reply.kind === 'ok' || (reply.kind === 'error' && reply.code === 'already_exists')
          ? ''
          : errorText(reply);
      });
      await this.#writeVersions(id);
    }
  }

  /** Writes every model once, so that queries can name it, and last the one that was in force at first. */
  async #writeVersions(projectId: string): Promise<void> {
    const { models } = this.#universe;
    const [first] = models;
    for (const [at, model] of [...models.slice(1), first].entries()) {
      const message = {
        project_id: projectId,
        model: { json: JSON.stringify(model) },
        expected_version: String(versionOfModel(at)),
      };
      await this.#untilDone(async (target) => {
        const options = { timeoutMs: WRITE_TIMEOUT_MS };
        const reply = await target.client.call('ModelService/WriteModel', message, options);
        // It was written, and only its answer was lost.
        const isThere = reply.kind === 'error' && reply.reason === 'MODEL_VERSION_CHANGED';
        return reply.kind === 'ok' || isThere ? '' : errorText(reply);
      });
    }
  }

  #startCallers(): readonly Promise<void>[] {
    const { random } = this.#options;
    const callers: Promise<void>[] = [];
    for (const load of this.#loads) {
      for (let i = 0; i < WRITERS + READERS; i++) {
        const client = this.#clients++;
        const own = random.fork(`client ${client}`);
        callers.push(i < WRITERS ? load.write(client, own) : load.read(client, own));
      }
    }
    for (const project of PROJECTS.keys()) {
      const client = this.#clients++;
      callers.push(this.#changeSettings(client, project, random.fork(`client ${client}`)));
    }
    return callers;
  }

  /** One change of a project's settings at a time. */
  async #changeSettings(client: number, project: number, random: Random): Promise<void> {
    while (!this.#isStopped) {
      await sleep(200 + random.integer(1_200));
      const target = pickAwake(this.#options.reach, random);
      if (target === undefined || this.#isStopped) continue;
      if (random.chance(0.8)) {
        const model = random.integer(this.#universe.models.length);
        await this.#change(client, project, target, { kind: 'settings', model });
        continue;
      }
      await this.#change(client, project, target, { kind: 'settings', isSuspended: true });
      await sleep(random.integer(150));
      await this.#activate(client, project);
    }
  }

  async #activate(client: number, project: number): Promise<void> {
    await this.#untilDone(async (target) => {
      return await this.#change(client, project, target, { kind: 'settings', isSuspended: false });
    }, SETTINGS_PAUSE_MS);
  }

  /** Returns what went wrong, or ''. */
  async #change(
    client: number,
    project: number,
    target: Reachable,
    action: Extract<Action, { kind: 'settings' }>,
  ): Promise<string> {
    const { model, isSuspended } = action;
    const status = isSuspended === true ? 'PROJECT_STATUS_SUSPENDED' : 'PROJECT_STATUS_ACTIVE';
    const message = {
      id: this.#projectId(project),
      ...(model === undefined ? {} : { model_json: JSON.stringify(this.#universe.models[model]) }),
      ...(isSuspended === undefined ? {} : { status }),
    };
    const id = this.#recorder.nextId();
    const ended = this.#recorder.begin(id, { client, instance: target.index, project, tenant: -1 });
    const options = { timeoutMs: WRITE_TIMEOUT_MS };
    const reply = await target.client.call('AdminService/UpdateProject', message, options);
    if (reply.kind === 'ok') {
      ended({ action, outcome: 'ok' });
      return '';
    }
    // It is not sent again, so an answer that was lost is an outcome that nobody knows.
    const isUnavailable = reply.kind === 'error' && reply.code === 'unavailable';
    const outcome = isUnavailable ? 'unknown' : outcomeOf(reply);
    ended({ action, outcome, error: errorText(reply) });
    return errorText(reply);
  }

  async #close(): Promise<void> {
    const client = this.#clients++;
    const { random, reach } = this.#options;
    for (const project of PROJECTS.keys()) await this.#activate(client, project);
    for (const load of this.#loads) {
      await this.#untilDone(async (target) => {
        return (await load.writeOnce(client, target, random)) ? '' : 'a write was not acknowledged';
      });
      for (const target of reach.all) await load.readAll(client, target);
    }
    for (const shard of this.#shards) await this.#lookForTraces(shard);
  }

  async #lookForTraces({ project, tenant, scope }: Shard): Promise<void> {
    const isLost = (operation: Operation): boolean =>
      operation.project === project &&
      operation.tenant === tenant &&
      operation.action.kind === 'write' &&
      operation.outcome === 'unknown';
    const lost = this.#recorder.operations.filter(isLost);
    const found = new Set<number>();
    for (const client of new Set(lost.map((one) => one.client))) {
      const filter = { namespace: TRACE_NAMESPACE, object_id: traceObject(client) };
      await this.#untilDone(async (target) => {
        const method = 'AuthzService/ReadRelationTuples';
        const options = { timeoutMs: WRITE_TIMEOUT_MS };
        const reply = await target.client.call(method, { ...scope, ...filter }, options);
        if (reply.kind !== 'ok') return errorText(reply);
        for (const id of tracedIds(reply.body)) found.add(id);
        return '';
      });
    }
    this.#recorder.resolve(isLost, found);
  }

  /** Tries some instance until `attempt` returns ''. Errors: throws with its last words, or that the round is ended. */
  async #untilDone(
    attempt: (target: Reachable) => Promise<string>,
    pauseMs = PAUSE_MS,
  ): Promise<void> {
    const { random, reach, signal } = this.#options;
    const untilMs = performance.now() + PATIENCE_MS;
    for (;;) {
      signal?.throwIfAborted();
      const target = pickAwake(reach, random);
      const failure = target === undefined ? 'no instance answers' : await attempt(target);
      if (failure === '') return;
      if (performance.now() > untilMs) throw new Error(failure);
      await sleep(pauseMs);
    }
  }
}
