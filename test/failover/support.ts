import { setTimeout as sleep } from 'node:timers/promises';
import type { ServerTarget } from '../../src/store/postgres/pool.ts';
import { attempt, ok, until } from '../faults/support.ts';
import { call, type Service, startService } from '../support/service.ts';

/** The shard whose history is lost in part. */
export const SHARD = { tenant_id: 't' } as const;

/** Starts instances on one address, each with one worker. */
export async function startInstances(
  target: ServerTarget,
  count: number,
): Promise<readonly [Service, ...Service[]]> {
  const { user, password, database, host, port } = target;
  const env = {
    DATABASE_URL: `postgres://${user}:${password}@${host}:${port}/${database}`,
    GATEWAY_WORKERS: '1',
    GATEWAY_INDEX_BYTES: String(64 * 1024 * 1024),
    GATEWAY_PG_POOL_SIZE: '4',
    GATEWAY_REQUEST_TIMEOUT_MS: '5000',
    GATEWAY_POLL_INTERVAL_MS: '1000',
  };
  const first = await startService({ env });
  const others = await Promise.all(Array.from({ length: count - 1 }, () => startService({ env })));
  return [first, ...others];
}

/** As `write`, again until it is acknowledged: a busy machine makes an instance lose its registration. */
export async function written(
  service: Service,
  object: string,
  op: 'OP_INSERT' | 'OP_DELETE' = 'OP_INSERT',
): Promise<string> {
  let token = '';
  await until(async () => {
    token = await write(service, object, op).catch(() => '');
    return token !== '';
  });
  return token;
}

/** Whether u may view the object, asked again until there is an answer. */
export async function decided(service: Service, object: string, token = ''): Promise<boolean> {
  let answer: boolean | string = '';
  await until(async () => {
    answer = await check(service, object, token);
    return typeof answer === 'boolean';
  });
  return answer as unknown as boolean;
}

/** Grants or takes back `doc:<object>#viewer@u`; the token. Errors: throws unless it was acknowledged. */
async function write(
  service: Service,
  object: string,
  op: 'OP_INSERT' | 'OP_DELETE' = 'OP_INSERT',
): Promise<string> {
  const tuple = {
    namespace: 'doc',
    object_id: object,
    relation: 'viewer',
    subject: { user_id: 'u' },
  };
  const body = { ...SHARD, updates: [{ op, tuple }] };
  const answer = ok(await attempt(service, 'AuthzService/WriteRelationTuples', body));
  return String(answer['consistency_token']);
}

/** Whether u may view the object: an answer, or the Connect code of a refusal ('' when nobody answered). */
export async function check(
  service: Service,
  object: string,
  token = '',
): Promise<boolean | string> {
  const body = {
    ...SHARD,
    namespace: 'doc',
    object_id: object,
    relation: 'viewer',
    subject_user_id: 'u',
    ...(token === '' ? {} : { at_least_consistency_token: token }),
  };
  const answer = await attempt(service, 'AuthzService/Check', body);
  if (answer === undefined) return '';
  return answer.status === 200 ? answer.body['allowed'] === true : String(answer.body['code']);
}

/** Asks every instance all the time, with and without a token, and judges each answer by what was known when it was asked. */
export class Watcher {
  readonly wrong: string[] = [];
  answers = 0;
  readonly #granted = new Set<string>();
  readonly #denied = new Set<string>();
  readonly #running: Promise<void>[];
  #isOver = false;

  constructor(services: readonly Service[], tokens: () => readonly string[]) {
    this.#running = services.map((service, n) => this.#watch(service, n, tokens));
  }

  /** From now on an answer that is asked for must be this, if there is one. */
  expect(object: string, isAllowed: boolean): void {
    (isAllowed ? this.#denied : this.#granted).delete(object);
    (isAllowed ? this.#granted : this.#denied).add(object);
  }

  /** From now on either answer is right. */
  expectNothing(object: string): void {
    this.#granted.delete(object);
    this.#denied.delete(object);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#running);
  }

  async #watch(service: Service, n: number, tokens: () => readonly string[]): Promise<void> {
    for (let turn = 0; !this.#isOver; turn++) {
      const known = [...this.#granted, ...this.#denied];
      const object = known[turn % Math.max(1, known.length)];
      if (object === undefined) {
        await sleep(1);
        continue;
      }
      const given = turn % 3 === 0 ? tokens() : [];
      const token = given[turn % Math.max(1, given.length)] ?? '';
      const wanted = this.#granted.has(object);
      const answer = await check(service, object, token);
      // What was said to be otherwise meanwhile cannot be judged.
      const isKnown = wanted ? this.#granted.has(object) : this.#denied.has(object);
      if (typeof answer !== 'boolean' || !isKnown) {
        await sleep(1);
        continue;
      }
      this.answers += 1;
      await sleep(2);
      if (answer !== wanted) {
        this.wrong.push(`${n}: ${object} ${answer} ${token === '' ? 'without' : 'with'} token`);
      }
    }
  }
}

/** Seconds until every instance decides again without a token, and until a write is acknowledged by the last of them. */
export async function secondsToServe(
  services: readonly Service[],
  sinceMs: number,
  known: string,
): Promise<{ readonly reads: number; readonly writes: number }> {
  const since = (): number => Math.round((performance.now() - sinceMs) / 10) / 100;
  const all = await Promise.all(
    services.map(async (service, n) => {
      await until(async () => (await check(service, known)) === true);
      const reads = since();
      await until(async () => (await write(service, `probe-${n}`).catch(() => '')) !== '');
      return { reads, writes: since() };
    }),
  );
  return {
    reads: Math.max(...all.map((each) => each.reads)),
    writes: Math.max(...all.map((each) => each.writes)),
  };
}

/** How many new histories the instances opened, by their logs. */
export function openedEpochs(services: readonly Service[]): number {
  return services.flatMap(({ log }) => log).filter(({ msg }) => msg === 'deployment_epoch_started')
    .length;
}

/** What the instances failed at without telling their callers why. */
export function failures(services: readonly Service[]): unknown[] {
  return services.flatMap(({ log }) => log).filter(({ msg }) => msg === 'call_failed');
}

/** Status and code of what a token is answered with, asked again while the database is not available. */
export async function refusal(service: Service, object: string, token: string): Promise<string> {
  const body = { ...SHARD, namespace: 'doc', object_id: object, relation: 'viewer' };
  const asked = { ...body, subject_user_id: 'u', at_least_consistency_token: token };
  for (;;) {
    const answer = await call(service, 'AuthzService/Check', asked);
    if (answer.status !== 503) return `${answer.status} ${String(answer.body['code'])}`;
    await sleep(10);
  }
}
