import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startEmbeddedPostgres } from '../../src/store/embedded/embedded-postgres.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import type { Service } from '../support/service.ts';
import { byLength, inLong } from '../support/test-length.ts';
import { type Member, startMember, startProcess } from './members.ts';
import { attempt, ok, until } from './support.ts';

/* Instances on one database: each answers what any of them was told. Those that are stopped and killed are processes. */

let database: TestDatabase;
const members: Member[] = [];
const processes: Service[] = [];
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  for (const { pid } of processes.splice(0)) tryKill(pid, 'SIGCONT');
  await Promise.all(members.splice(0).map((member) => member.stop()));
  await database.drop();
});

function tryKill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

const ENV = { GATEWAY_WORKERS: '1', GATEWAY_REQUEST_TIMEOUT_MS: '15000' };

async function start(): Promise<Member> {
  const member = await startMember(database, ENV);
  members.push(member);
  return member;
}

async function startKillable(on: Pick<TestDatabase, 'target'> = database): Promise<Service> {
  const service = await startProcess(on, ENV);
  members.push(service);
  processes.push(service);
  return service;
}

/** Rounds of a load in which it sees what it should. */
const FEW = byLength(8, 20);
const OBJECT = { namespace: 'resource', object_id: 'plan', relation: 'viewer' };

async function write(service: Member, userId: string, op = 'OP_INSERT', tenantId = 't') {
  const updates = [{ op, tuple: { ...OBJECT, subject: { user_id: userId } } }];
  return await attempt(service, 'AuthzService/WriteRelationTuples', {
    tenant_id: tenantId,
    updates,
  });
}

async function isAllowed(service: Member, userId: string, tenantId = 't'): Promise<boolean> {
  const body = { ...OBJECT, tenant_id: tenantId, subject_user_id: userId };
  return ok(await attempt(service, 'AuthzService/Check', body))['allowed'] === true;
}

/** The modes that the log of a service tells of, in order. */
function modes(service: Member): unknown[] {
  return service.log.filter(({ msg }) => msg === 'instance_mode').map((line) => line['mode']);
}

function logged(service: Member, event: string): number {
  return service.log.filter(({ msg }) => msg === event).length;
}

/** Writes and revokes by turns on all, and asks all after each answer, until told to end. */
class Load {
  readonly wrong: string[] = [];
  rounds = 0;
  #members: Member[];
  #isOver = false;
  readonly #running: Promise<void>[];

  constructor(initial: readonly Member[], callers = byLength(2, 3)) {
    this.#members = [...initial];
    this.#running = Array.from({ length: callers }, (_, index) => this.#run(`caller${index}`));
  }

  set members(next: readonly Member[]) {
    this.#members = [...next];
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#running);
  }

  /** Resolves after so many more rounds of all callers together. */
  async more(rounds: number): Promise<void> {
    const goal = this.rounds + rounds;
    await until(() => this.rounds >= goal || this.wrong.length > 0);
  }

  async #run(name: string): Promise<void> {
    for (let turn = 0; !this.#isOver; turn++) {
      const userId = `${name}-${turn >> 1}`;
      const isGrant = turn % 2 === 0;
      const current = this.#members;
      const writer = current[turn % current.length] as Member;
      const answer = await write(writer, userId, isGrant ? 'OP_INSERT' : 'OP_DELETE');
      if (answer?.status !== 200) {
        this.wrong.push(`write: ${JSON.stringify(answer ?? 'lost')}`);
        return;
      }
      for (const reader of this.#members.toReversed()) {
        try {
          if ((await isAllowed(reader, userId)) !== isGrant) this.wrong.push(`stale: ${userId}`);
        } catch (error) {
          this.wrong.push(String(error));
          return;
        }
      }
      this.rounds++;
      // For a lease to end takes seconds.
      await sleep(byLength(50, 0));
    }
  }
}

describe('several instances on one database', { timeout: 120_000 }, () => {
  test('others join and leave under load: no call fails, and each reads what the others wrote', async () => {
    const first = await start();
    expect(modes(first)).toEqual(['alone']);
    const load = new Load([first]);
    await load.more(FEW);
    // In long many that join at once have a test of their own.
    const others = await Promise.all(Array.from({ length: byLength(2, 1) }, () => start()));
    load.members = [first, ...others];
    await load.more(byLength(FEW, 60));
    expect(modes(first)).toEqual(['alone', 'shared']);
    expect(others.map((other) => modes(other).at(-1))).toEqual(others.map(() => 'shared'));
    const { rows } = await database.pool.query('select id from instance where may_write');
    expect(rows).toHaveLength(1 + others.length);
    // As a balancer does before it lets one end.
    load.members = [first];
    await load.more(FEW);
    for (const other of others) {
      members.splice(members.indexOf(other), 1);
      expect(await other.stop()).toBe(0);
    }
    await until(() => modes(first).length === 3);
    await load.more(FEW);
    await load.end();
    expect(load.wrong).toEqual([]);
    expect(modes(first)).toEqual(['alone', 'shared', 'alone']);
  });

  /** Kills one of two under load: the other goes on without a failure, and is alone again. */
  async function killOneOf(victim: Service, other: Member): Promise<void> {
    await until(() => modes(other).at(-1) === 'shared');
    const fences = logged(other, 'instances_fenced');
    const load = new Load([other]);
    expect((await write(victim, 'zoe'))?.status).toBe(200);
    await victim.kill();
    expect(await isAllowed(other, 'zoe')).toBe(true);
    await until(() => modes(other).at(-1) === 'alone');
    await load.more(FEW);
    await load.end();
    expect(load.wrong).toEqual([]);
    expect(logged(other, 'instances_fenced')).toBe(fences + 1);
  }

  // In short it follows below, with a process that is there already.
  inLong(test)(
    'kill -9 of one of two: the other goes on without a failure, and is alone again',
    async () => {
      const first = await start();
      await killOneOf(await startKillable(), first);
    },
  );

  /** An instance on its own that ends as by kill -9: its registration stays. */
  async function leaveRegistration(): Promise<void> {
    if (byLength(false, true)) {
      const first = await startKillable();
      expect((await write(first, 'anne'))?.status).toBe(200);
      await first.kill();
      return;
    }
    const first = await start();
    expect((await write(first, 'anne'))?.status).toBe(200);
    const { rows } = await database.pool.query('select to_jsonb(i) as row from instance i');
    expect(rows).toHaveLength(1);
    await members.pop()?.stop();
    const again = 'insert into instance select * from jsonb_populate_record(null::instance, $1)';
    await database.pool.query(again, [(rows[0] as { row: object }).row]);
  }

  test('kill -9 of the only one: the next reads while the lease lasts, and writes after it', async () => {
    await leaveRegistration();
    const killedMs = performance.now();
    // Longer than a start takes here: the lease that the next one finds has not ended.
    await database.pool.query(
      `update instance set lease_until = clock_timestamp() + interval '20 s'`,
    );
    const next = await start();
    expect(modes(next)).toEqual(['joining']);
    expect(await isAllowed(next, 'anne')).toBe(true);
    const writing = write(next, 'bob');
    expect(await isAllowed(next, 'bob')).toBe(false);
    expect(modes(next)).toEqual(['joining']);
    await database.pool.query(
      `update instance set lease_until = clock_timestamp() where not shared_mode`,
    );
    // A third that comes wakes nobody up wrongly, and may write as soon as the second.
    expect((await writing)?.status).toBe(200);
    expect(await isAllowed(next, 'bob')).toBe(true);
    process.stdout.write(
      `next wrote ${Math.round(performance.now() - killedMs)} ms after the kill\n`,
    );
  });

  test('one is stopped for longer than its lease: what it answers then is not stale, its writes are sent again', async () => {
    const first = await startKillable();
    expect((await write(first, 'anne'))?.status).toBe(200);
    expect(await isAllowed(first, 'anne')).toBe(true);
    expect(modes(first)).toEqual(['alone']);
    process.kill(first.pid, 'SIGSTOP');
    const second = await start();
    const late = Array.from({ length: 20 }, (_, index) => write(first, `late${index}`));
    expect((await write(second, 'anne', 'OP_DELETE'))?.status).toBe(200);
    expect((await write(second, 'bob'))?.status).toBe(200);
    expect(logged(second, 'instances_fenced')).toBe(1);
    const asked = Array.from({ length: 40 }, (_, index) =>
      isAllowed(first, index % 2 === 0 ? 'anne' : 'bob'),
    );
    await sleep(100);
    process.kill(first.pid, 'SIGCONT');
    expect(await Promise.all(asked)).toEqual(asked.map((_, index) => index % 2 === 1));
    expect((await Promise.all(late)).map((answer) => answer?.status)).toEqual(late.map(() => 200));
    expect(logged(first, 'instance_fenced')).toBe(1);
    for (let index = 0; index < late.length; index++) {
      expect(await isAllowed(second, `late${index}`)).toBe(true);
    }
    await killOneOf(first, second);
  });

  inLong(test)('many join at once', async () => {
    const first = await start();
    const load = new Load([first]);
    const others = Array.from({ length: 3 }, () => start());
    const all = [first, ...(await Promise.all(others))];
    load.members = all;
    await load.more(20);
    await load.end();
    expect(load.wrong).toEqual([]);
    expect(all.map((service) => modes(service).at(-1))).toEqual(all.map(() => 'shared'));
    const { rows } = await database.pool.query('select id from instance where may_write');
    expect(rows).toHaveLength(all.length);
  });
});

inLong(test)(
  'PostgreSQL is restarted below two instances: nothing acknowledged is missed, both come back',
  async () => {
    const dataDirectory = mkdtempSync(join(tmpdir(), 'gatehouse-instances-'));
    let server = await startEmbeddedPostgres({ dataDirectory });
    try {
      const [first, second] = [await startKillable(server), await startKillable(server)];
      const both = [first, second];
      await until(() => modes(first).at(-1) === 'shared');
      const told: string[] = [];
      for (let round = 0; round < 2; round++) {
        for (const member of both) {
          const userId = `u${told.length}`;
          expect((await write(member, userId))?.status).toBe(200);
          told.push(userId);
        }
        await server.stop();
        // Nothing but refusals meanwhile: what others wrote cannot be known.
        const body = { ...OBJECT, tenant_id: 't', subject_user_id: 'u0' };
        const answer = await attempt(first, 'AuthzService/Check', body);
        expect(answer?.body['code']).toBe('unavailable');
        server = await startEmbeddedPostgres({ dataDirectory });
        for (const member of both) {
          await until(async () => (await fetch(`${member.metricsUrl}/readyz`)).status === 200);
          // A connection of before is found dead when it is used next, and costs that call a refusal.
          await until(
            async () => (await attempt(member, 'AuthzService/Check', body))?.status === 200,
          );
          for (const userId of told) expect(await isAllowed(member, userId)).toBe(true);
        }
        await until(async () => (await write(second, `again${round}`))?.status === 200);
        expect(await isAllowed(first, `again${round}`)).toBe(true);
      }
    } finally {
      await Promise.all(members.splice(0).map((member) => member.stop()));
      await server.stop();
      rmSync(dataDirectory, { recursive: true, force: true });
    }
  },
  120_000,
);
