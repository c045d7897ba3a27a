import { setTimeout as sleep } from 'node:timers/promises';
import type { CheckItem, Query } from '../checker/evaluate.ts';
import { type Action, type Position, SUSPENDED, type Update } from '../checker/history.ts';
import {
  DOCS,
  FOLDERS,
  GROUPS,
  LEASES,
  MARKER,
  MARKS,
  MODELS,
  USERS,
  type Universe,
} from '../checker/universe.ts';
import { answerText, positionOf, readMessage, type Scope, writeMessage } from './messages.ts';
import type { Random } from './random.ts';
import { type Reach, type Reachable, pickAwake } from './reachable.ts';
import type { Recorder } from './recorder.ts';
import type { Reply, Way } from './rpc-client.ts';

/** One shard of a round, and what its callers remember of it together. */
export type Shard = {
  readonly project: number;
  readonly tenant: number;
  readonly scope: Scope;
  /** The last tokens that anybody got, latest last. */
  readonly tokens: { readonly text: string; readonly position: Position }[];
  writes: number;
};

export type LoadOptions = {
  readonly universe: Universe;
  readonly recorder: Recorder;
  readonly reach: Reach;
  readonly isStopped: () => boolean;
};

const READ_TIMEOUT_MS = 4_000;
/** Of reads that were sent to an instance that stands still: its answers afterwards are what matters. */
const PATIENT_READ_TIMEOUT_MS = 15_000;
/** Longer than anything is disturbed, so that outcomes become known. */
export const WRITE_TIMEOUT_MS = 15_000;
const BACKOFF_MS = 30;
/** A change that takes longer may have gone to an instance that stands still. */
const ASLEEP_MS = 200;
const TOKENS_KEPT = 60;
/** Of 14 items each, within what one batch may ask. */
const LONG_BATCH_PARTS = 6;
/** Of all writes, those with an update that asks for something. */
const MODED_WRITES = 0.5;
/** By which such a write is refused. */
const MODE_REASONS: ReadonlySet<string> = new Set([
  'TUPLE_EXISTS',
  'TUPLE_DIFFERS',
  'TUPLE_MISSING',
]);
/**
 * Reads that wait for instances that stand still, and how far apart they are sent: until the end of the longest pause, also where
 * starts take long, as those that were sent before another instance wrote may be answered from before that.
 */
const PATIENT_READS_MAX = 120;
const PATIENT_READ_EVERY_MS = 80;

/** Callers of one shard: writers and readers, each doing one thing after another. */
export class ShardLoad {
  readonly #options: LoadOptions;
  readonly #shard: Shard;
  readonly #firstTuple: number;
  readonly #leaseTuples: readonly number[];
  #patientReads = 0;
  #nextPatientReadMs = 0;
  #patientWrite = false;
  readonly #patient = new Set<Promise<unknown>>();

  constructor(options: LoadOptions, shard: Shard) {
    this.#options = options;
    this.#shard = shard;
    const { tuples } = options.universe;
    this.#firstTuple = MARKS.length;
    this.#leaseTuples = tuples.flatMap(({ namespace }, i) => (namespace === 'lease' ? [i] : []));
  }

  /** Writes until stopped; often reads elsewhere what it has just written. */
  async write(client: number, random: Random): Promise<void> {
    const { reach, isStopped } = this.#options;
    let me = client;
    while (!isStopped()) {
      const asleep = reach.all.find(({ isPaused }) => isPaused);
      if (asleep !== undefined && !this.#patientWrite && random.chance(0.2)) {
        // It is sent while nobody listens, and carried out when the instance goes on.
        this.#patientWrite = true;
        this.#later(
          this.writeOnce(client + PATIENT_CLIENTS, asleep, random).finally(
            () => (this.#patientWrite = false),
          ),
        );
      }
      const target = pickAwake(reach, random);
      if (target === undefined) {
        await sleep(BACKOFF_MS);
        continue;
      }
      const change = random.chance(0.04)
        ? this.#deprovision(me, target, random.pick(USERS))
        : this.writeOnce(me, target, random);
      const isDone = await this.#unlessAsleep(change, target);
      // What was sent to an instance that stands still now may be carried out later: this one goes on, as another client.
      if (isDone === undefined) me += LEFT_BEHIND;
      if (!isDone) await sleep(BACKOFF_MS);
      else if (random.chance(0.5)) {
        const other = pickAwake(reach, random);
        if (other !== undefined) await this.#read(me, other, random);
      }
    }
  }

  /** Reads until stopped. */
  async read(client: number, random: Random): Promise<void> {
    const { reach, isStopped } = this.#options;
    while (!isStopped()) {
      const target = reach.all.length === 0 ? undefined : random.pick(reach.all);
      if (target === undefined) await sleep(BACKOFF_MS);
      else if (!target.isPaused) {
        if (!(await this.#read(client, target, random))) await sleep(BACKOFF_MS);
      } else if (this.#mayReadPatiently()) {
        // Nobody waits for it: the caller goes on elsewhere, as another one.
        this.#patientReads++;
        const read = this.#read(client + PATIENT_CLIENTS, target, random, PATIENT_READ_TIMEOUT_MS);
        this.#later(read.finally(() => (this.#patientReads -= 1)));
      } else await sleep(BACKOFF_MS);
    }
  }

  #mayReadPatiently(): boolean {
    const nowMs = performance.now();
    if (this.#patientReads >= PATIENT_READS_MAX || nowMs < this.#nextPatientReadMs) return false;
    this.#nextPatientReadMs = nowMs + PATIENT_READ_EVERY_MS;
    return true;
  }

  /** Resolves when nothing is under way that nobody waited for. */
  async settled(): Promise<void> {
    await Promise.all(this.#patient);
  }

  /** What a change returns; undefined once it is clear that its instance stands still: nobody waits for it then. */
  async #unlessAsleep(change: Promise<boolean>, target: Reachable): Promise<boolean | undefined> {
    for (;;) {
      const isDone = await Promise.race([change, sleep(ASLEEP_MS, undefined)]);
      if (isDone !== undefined) return isDone;
      if (!target.isPaused) continue;
      this.#later(change);
      return undefined;
    }
  }

  #later(call: Promise<unknown>): void {
    this.#patient.add(call);
    void call.finally(() => this.#patient.delete(call));
  }

  /** One write; whether it was acknowledged. */
  async writeOnce(client: number, target: Reachable, random: Random): Promise<boolean> {
    const { universe, recorder } = this.#options;
    const { scope, project, tenant } = this.#shard;
    const updates = this.#updates(random);
    const id = recorder.nextId();
    const trace = { object: traceObject(client), id };
    const [method, message] = writeMessage(universe, scope, updates, trace);
    const ended = recorder.begin(id, { client, instance: target.index, project, tenant });
    const reply = await target.client.call(method, message, {
      timeoutMs: WRITE_TIMEOUT_MS,
      way: random.chance(0.2) ? 'grpc' : 'json',
    });
    const action: Action = { kind: 'write', updates };
    if (reply.kind === 'error' && MODE_REASONS.has(reply.reason)) {
      // It changed nothing, and says what was stored at some moment.
      const query: Query = { kind: 'modes', updates };
      ended({ action: { kind: 'read', query, answer: reply.reason }, outcome: 'ok' });
      return true;
    }
    if (reply.kind !== 'ok') {
      ended({ action, outcome: outcomeOf(reply), error: errorText(reply) });
      return false;
    }
    const text = String(reply.body['consistency_token']);
    const reached = positionOf(text);
    ended({ action: { ...action, reached }, outcome: 'ok' });
    const { tokens } = this.#shard;
    tokens.push({ text, position: reached });
    if (tokens.length > TOKENS_KEPT) tokens.shift();
    return true;
  }

  /** Asks one instance once for everything that there is to ask. */
  async readAll(client: number, target: Reachable): Promise<void> {
    const items: CheckItem[] = MARKS.map((mark) => ['mark', mark, 'at', MARKER]);
    for (const doc of DOCS) for (const user of USERS) items.push(['doc', doc, 'viewer', user]);
    const queries: Query[] = [{ kind: 'batch', items }];
    for (const namespace of ['mark', 'doc', 'folder', 'group']) {
      queries.push({ kind: 'tuples', namespace, object: '', relation: '', user: '' });
    }
    for (const query of queries) await this.#ask(client, target, query, '', 'json');
  }

  async #deprovision(client: number, target: Reachable, user: string): Promise<boolean> {
    const { recorder } = this.#options;
    const { project, scope } = this.#shard;
    const begun = { client, instance: target.index, project, tenant: -1 };
    const ended = recorder.begin(recorder.nextId(), begun);
    const message = { project_id: scope.project_id, user_id: user };
    const options = { timeoutMs: WRITE_TIMEOUT_MS };
    const reply = await target.client.call('AuthzService/DeprovisionUser', message, options);
    const action: Action = { kind: 'deprovision', user };
    if (reply.kind !== 'ok') {
      ended({ action, outcome: outcomeOf(reply), error: errorText(reply) });
      return false;
    }
    const [deleted] = Object.values(reply.body).map(Number);
    ended({ action: { ...action, deleted }, outcome: 'ok' });
    return true;
  }

  /** One read of some kind; whether it was answered. */
  async #read(
    client: number,
    target: Reachable,
    random: Random,
    timeoutMs = READ_TIMEOUT_MS,
  ): Promise<boolean> {
    const { tokens } = this.#shard;
    const way = pickWay(random);
    let token = '';
    if (tokens.length > 0 && random.chance(0.25)) {
      const back = random.chance(0.7) ? 1 : 1 + random.integer(tokens.length);
      token = tokens[tokens.length - back]?.text ?? '';
    }
    return await this.#ask(client, target, queryOf(random), token, way, timeoutMs);
  }

  async #ask(
    client: number,
    target: Reachable,
    query: Query,
    token: string,
    way: Way,
    timeoutMs = READ_TIMEOUT_MS,
  ): Promise<boolean> {
    const { universe, recorder } = this.#options;
    const { scope, project, tenant } = this.#shard;
    const [method, message] = readMessage(scope, query, token);
    const atLeast = token === '' ? undefined : positionOf(token);
    const begun = { client, instance: target.index, project, tenant };
    const ended = recorder.begin(recorder.nextId(), begun);
    const reply = await target.client.call(method, message, { timeoutMs, way });
    const action: Action = { kind: 'read', query, ...(atLeast === undefined ? {} : { atLeast }) };
    if (reply.kind === 'ok') {
      const answer = answerText(universe, query, reply.body);
      ended({ action: { ...action, answer }, outcome: 'ok' });
      return true;
    }
    if (reply.kind === 'error' && reply.reason === 'PROJECT_SUSPENDED') {
      ended({ action: { ...action, answer: SUSPENDED }, outcome: 'ok' });
      return false;
    }
    ended({ action, outcome: 'refused', error: errorText(reply) });
    return false;
  }

  #updates(random: Random): readonly Update[] {
    const count = this.#shard.writes++;
    const updates = new Map<number, Update>();
    const add = (update: Update): void => void updates.set(update.tuple, update);
    add({ op: 'insert', tuple: count % MARKS.length });
    add({ op: 'delete', tuple: (count + MARKS.length / 2) % MARKS.length });
    const tuples = this.#options.universe.tuples.length - this.#leaseTuples.length;
    for (let left = 1 + random.integer(4); left > 0; left--) {
      const tuple = this.#firstTuple + random.integer(tuples - this.#firstTuple);
      add({ op: random.chance(0.45) ? 'insert' : 'delete', tuple });
    }
    // Of one tuple, so that several ask for the same at once.
    if (random.chance(MODED_WRITES)) {
      const tuple = this.#firstTuple;
      const isDelete = random.chance(0.4);
      const mode = isDelete ? 'present' : random.chance(0.8) ? 'absent' : 'identical';
      add({ op: isDelete ? 'delete' : 'insert', tuple, mode });
    }
    if (random.chance(0.2)) {
      const tuple = random.pick(this.#leaseTuples);
      const expiresMs = Date.now() + 100 + random.integer(2_500);
      const mode = random.chance(0.3) ? ('identical' as const) : undefined;
      add(random.chance(0.8) ? { op: 'insert', tuple, expiresMs, mode } : { op: 'delete', tuple });
    }
    return [...updates.values()];
  }
}

/** Clients from this number on are those whose calls nobody waits for. */
const PATIENT_CLIENTS = 1_000;
/** From one name of a writer to its next. */
const LEFT_BEHIND = 10_000;

/** The object on which a client's writes leave their traces. */
export function traceObject(client: number): string {
  return `c${client}`;
}

/** What is known of a change that was not acknowledged. */
export function outcomeOf(reply: Exclude<Reply, { kind: 'ok' }>): 'unknown' | 'refused' {
  if (reply.kind === 'unsent') return 'refused';
  if (reply.kind === 'lost') return 'unknown';
  // Every other error says that nothing was done.
  const isUnknown = reply.reason === 'WRITE_OUTCOME_UNKNOWN' || reply.code === 'internal';
  return isUnknown ? 'unknown' : 'refused';
}

/** An error as the history keeps it. */
export function errorText(reply: Exclude<Reply, { kind: 'ok' }>): string {
  return reply.kind === 'error' ? `${reply.code} ${reply.reason}` : `${reply.kind} ${reply.text}`;
}

function pickWay(random: Random): Way {
  const way = random.fraction();
  return way < 0.55 ? 'json' : way < 0.7 ? 'odd-json' : 'grpc';
}

function queryOf(random: Random): Query {
  const kind = random.fraction();
  if (kind < 0.08) return namedOf(random);
  if (kind < 0.28) return checkOf(random);
  if (kind < 0.35) return setCheckOf(random);
  if (kind < 0.65) {
    const marks = MARKS.map((mark): CheckItem => ['mark', mark, 'at', MARKER]);
    const items = [...marks];
    // Asked again after others: a change in between would show. Long ones are decided in several steps.
    for (let parts = random.chance(0.2) ? LONG_BATCH_PARTS : 1; parts > 0; parts--) {
      for (let left = 6; left > 0; left--) {
        items.push(['doc', random.pick(DOCS), 'viewer', random.pick(USERS)]);
      }
      items.push(...marks);
    }
    return { kind: 'batch', items };
  }
  if (kind < 0.78) {
    return random.chance(0.5)
      ? { kind: 'list', namespace: 'mark', relation: 'at', user: MARKER }
      : { kind: 'list', namespace: 'doc', relation: 'viewer', user: random.pick(USERS) };
  }
  if (kind < 0.87) {
    return { kind: 'expand', namespace: 'doc', object: random.pick(DOCS), relation: 'viewer' };
  }
  const namespace = random.pick(['mark', 'doc', 'group', 'lease']);
  const user = random.chance(0.3) ? random.pick(USERS) : '';
  return { kind: 'tuples', namespace, object: '', relation: '', user };
}

/** Of a group, a folder itself, or a folder's viewers, each of which may be above or below another. */
function setCheckOf(random: Random): Query {
  const folder = random.pick(FOLDERS);
  const group = random.pick(GROUPS);
  const set = random.pick([
    ['group', group, 'member'],
    ['group', group, 'member'],
    ['folder', folder, 'viewer'],
    ['folder', folder, ''],
  ] as const);
  const [namespace, object, relation] = random.pick([
    ['doc', random.pick(DOCS), 'viewer'],
    ['doc', random.pick(DOCS), 'viewer'],
    ['doc', random.pick(DOCS), 'parent'],
    ['folder', random.pick(FOLDERS), 'viewer'],
    ['group', 'g0', 'member'],
  ] as const);
  return { kind: 'set', namespace, object, relation, set, isExact: random.chance(0.6) };
}

/** Of documents, which every two models decide otherwise. */
function namedOf(random: Random): Query {
  return {
    kind: 'named',
    model: random.integer(MODELS.length),
    namespace: 'doc',
    object: random.pick(DOCS),
    relation: 'viewer',
    user: random.pick(USERS),
  };
}

function checkOf(random: Random): Query {
  const kind = random.fraction();
  if (kind < 0.45) {
    const relation = random.chance(0.5) ? 'at' : 'seen';
    const object = random.pick(MARKS);
    return { kind: 'check', namespace: 'mark', object, relation, user: MARKER };
  }
  const user = random.pick(USERS);
  if (kind < 0.8) {
    const relation = random.pick(['viewer', 'viewer', 'editor', 'banned']);
    return { kind: 'check', namespace: 'doc', object: random.pick(DOCS), relation, user };
  }
  if (kind < 0.9) {
    return {
      kind: 'check',
      namespace: 'group',
      object: random.pick(GROUPS),
      relation: 'member',
      user,
    };
  }
  const holder = random.pick(USERS.slice(0, 2));
  return {
    kind: 'check',
    namespace: 'lease',
    object: random.pick(LEASES),
    relation: 'held',
    user: holder,
  };
}
