import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { reasonOf, Tenant } from '../support/management.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { call, type Service } from '../support/service.ts';
import { byLength } from '../support/test-length.ts';
import { type Member, startMember, startProcess } from './members.ts';
import { expectAgreement } from './organizations.ts';
import { seededDice, until } from './support.ts';

/*
 * Workspaces, groups and seats while one of three instances is refused, paused or killed, in the middle of a
 * transaction that has locked the tenant and written a part.
 */

let database: TestDatabase;
/** Those that are stopped and killed are processes in either run. */
const services: Member[] = [];
let doomed: Service;
let tenants = 0;

/** Key of the advisory lock that holds back whoever gives a seat to the user `held`. */
const GATE = 4_711;

beforeAll(async () => {
  database = await createTestDatabase();
  await database.pool.query(
    `create function hold_back() returns trigger language plpgsql as
       $$ begin perform pg_advisory_xact_lock_shared(${GATE}); return new; end $$`,
  );
  await database.pool.query(
    `create trigger hold_back before insert on seat_assignment for each row
       when (new.user_id = 'held') execute function hold_back()`,
  );
  await startDoomed();
  for (let n = 0; n < 2; n++) services.push(await startMember(database, ENV));
}, 120_000);
afterAll(async () => {
  signal(doomed.pid, 'SIGCONT');
  await Promise.all(services.map((service) => service.stop()));
  await database.drop();
  for (const { log } of services) {
    expect(log.filter(({ msg }) => msg === 'call_failed')).toEqual([]);
  }
}, 120_000);

const ENV = {
  GATEWAY_WORKERS: '1',
  GATEWAY_INDEX_BYTES: String(64 * 1024 * 1024),
  GATEWAY_PG_POOL_SIZE: '6',
  GATEWAY_REQUEST_TIMEOUT_MS: '25000',
};

/** A process, which signals are for. */
async function startDoomed(): Promise<void> {
  doomed = await startProcess(database, ENV);
  services.push(doomed);
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function logged(service: Member, event: string): number {
  return service.log.filter(({ msg }) => msg === event).length;
}

type Answer = Awaited<ReturnType<Tenant['call']>>;
const assign = (tenant: Tenant, userId: string): Promise<Answer> =>
  tenant.call('', 'SeatService/AssignSeat', { sku: 'pro', user_id: userId });
async function capped(tenantId: string, limit: number): Promise<readonly Tenant[]> {
  const on = services.map((service) => new Tenant(service, tenantId));
  const body = { sku: 'pro', limit };
  expect((await on[0]?.call('', 'SeatService/SetSeatLimit', body))?.status).toBe(200);
  return on;
}
async function holders(tenant: Tenant): Promise<string[]> {
  const { body } = await tenant.call('', 'SeatService/ListSeats', { sku: 'pro' });
  return (body['seats'] as { user_id: string }[]).map(({ user_id: user }) => user).sort();
}
/** 'ok', or the reason; 'lost' where the connection broke. */
async function outcome(work: Promise<Answer>): Promise<string> {
  return await work.then(
    ({ status, body }) => (status === 200 ? 'ok' : reasonOf(body)),
    () => 'lost',
  );
}

/** Stops an AssignSeat of `held` in the middle of its transaction; `release` lets it go on. */
async function holdBack(
  tenant: Tenant,
): Promise<{ readonly answer: Promise<Answer>; readonly release: () => Promise<void> }> {
  const gate = await database.pool.connect();
  await gate.query(`select pg_advisory_lock(${GATE})`);
  const answer = assign(tenant, 'held');
  answer.catch(() => undefined);
  await until(async () => {
    const { rows } = await gate.query(
      `select from pg_locks l join pg_database d on d.oid = l.database
       where l.locktype = 'advisory' and l.objid = ${GATE} and not l.granted
         and d.datname = current_database()`,
    );
    return rows.length > 0;
  });
  const release = async (): Promise<void> => {
    await gate.query('select pg_advisory_unlock_all()');
    gate.release();
  };
  return { answer, release };
}

test('refused in the middle: the transaction is run again from its start, under another registration', async () => {
  const tenantId = `t${++tenants}`;
  const on = await capped(tenantId, 2);
  const first = doomed;
  const losses = logged(first, 'instance_fenced');
  const { answer, release } = await holdBack(on[0] as Tenant);
  const { rowCount } = await database.pool.query('delete from instance where holder like $1', [
    `% ${first.pid}`,
  ]);
  expect(rowCount).toBe(1);
  await release();
  expect((await answer).body).toEqual({ already_held: false });
  expect(logged(first, 'instance_fenced')).toBe(losses + 1);
  expect(await outcome(assign(on[1] as Tenant, 'b'))).toBe('ok');
  expect(await outcome(assign(on[2] as Tenant, 'c'))).toBe('SEATS_EXHAUSTED');
  for (const tenant of on) expect(await holders(tenant)).toEqual(['b', 'held']);
  await expectAgreement(database, services, tenantId, ['held', 'b', 'c']);
}, 120_000);

test('stopped in the middle for longer than its lease: the others go on, it does its work once it can', async () => {
  const tenantId = `t${++tenants}`;
  const on = await capped(tenantId, 3);
  const [, second, third] = services as [Member, Member, Member];
  const [here, there, elsewhere] = on as [Tenant, Tenant, Tenant];
  const team = await here.team('olga');
  const invitation = { workspace_id: team, email: 'a@b', role: 'ROLE_MEMBER' };
  const made = await there.do('olga', 'CreateInvitation', invitation);
  const { token } = made['invitation'] as { token: string };
  const fences = logged(second, 'instances_fenced') + logged(third, 'instances_fenced');
  const { answer, release } = await holdBack(here);
  signal(doomed.pid, 'SIGSTOP');
  await release();
  const accept = (tenant: Tenant, user: string): Promise<string> =>
    outcome(tenant.call(user, 'WorkspaceService/AcceptInvitation', { token }));
  // These wait until it goes on.
  const late = [
    outcome(assign(here, 'a')),
    outcome(assign(here, 'b')),
    accept(here, 'zoe'),
    accept(here, 'yan'),
  ];
  const lateLists = Promise.all([here.do('anne', 'ListWorkspaces'), holders(here)]);
  await sleep(50);
  const others = await Promise.all([
    // Of a caller who does not wait for as long as an idle transaction may usually take.
    outcome(
      call(
        second,
        'SeatService/AssignSeat',
        { tenant_id: tenantId, sku: 'pro', user_id: 'b' },
        { 'connect-timeout-ms': '8000' },
      ),
    ),
    outcome(assign(elsewhere, 'b')),
    outcome(assign(elsewhere, 'c')),
    accept(there, 'xi'),
    elsewhere.do('anne', 'ListWorkspaces'),
  ]);
  expect(others.slice(0, 4)).toEqual(['ok', 'ok', 'ok', 'ok']);
  await until(
    () => logged(second, 'instances_fenced') + logged(third, 'instances_fenced') > fences,
  );
  signal(doomed.pid, 'SIGCONT');
  const [lateList, lateHolders] = await lateLists;
  expect(lateList).toEqual(others[4]);
  expect(lateHolders).toEqual(expect.arrayContaining(['b', 'c']));
  // One seat was left, for whichever of the two comes first.
  const held = await outcome(answer);
  const [a, b, ...accepted] = await Promise.all(late);
  expect(new Set([held, a])).toEqual(new Set(['SEATS_EXHAUSTED', 'ok']));
  expect(b).toBe('ok');
  expect(accepted).toEqual(['INVITATION_STATE', 'INVITATION_STATE']);
  for (const tenant of on) {
    expect(await holders(tenant)).toEqual(['b', 'c', held === 'ok' ? 'held' : 'a'].sort());
  }
  const users = ['held', 'a', 'b', 'c', 'olga', 'zoe', 'yan', 'xi', 'anne'];
  await expectAgreement(database, services, tenantId, users);
}, 120_000);

test('killed in the middle, and at any moment of a race: what was acknowledged is there, once', async () => {
  const dice = seededDice('organizations and kill -9');
  const tenantId = `t${++tenants}`;
  const on = await capped(tenantId, byLength(25, 40));
  const users = Array.from({ length: byLength(30, 60) }, (_, i) => `u${i}`);
  const team = await (on[0] as Tenant).team('olga');
  const acknowledged = new Set<string>();
  const { answer, release } = await holdBack(on[0] as Tenant);
  await doomed.kill();
  await release();
  expect(await outcome(answer)).toBe('lost');
  services.shift();
  await startDoomed();
  const alive = services.map((service) => new Tenant(service, tenantId));
  const victim = services.indexOf(doomed);
  const killAfter = 5 + dice.below(20);
  let answered = 0;
  const outcomes = await Promise.all(
    users.map(async (user, i) => {
      const tenant = alive[i % 3] as Tenant;
      const member = { workspace_id: team, user_id: user, role: 'ROLE_MEMBER' };
      const [seat, joined] = await Promise.all([
        outcome(assign(tenant, user)),
        outcome(tenant.call('olga', 'WorkspaceService/AddMember', member)),
        outcome(tenant.call(user, 'WorkspaceService/ListWorkspaces')),
      ]);
      if (seat === 'ok') acknowledged.add(`seat ${user}`);
      if (joined === 'ok') acknowledged.add(`member ${user}`);
      if (++answered === killAfter) await doomed.kill();
      return { isOfVictim: i % 3 === victim, seat, joined };
    }),
  );
  for (const { isOfVictim, seat, joined } of outcomes) {
    const may = isOfVictim ? ['ok', 'lost', 'SEATS_EXHAUSTED'] : ['ok', 'SEATS_EXHAUSTED'];
    expect(may).toContain(seat);
    expect(may.slice(0, 2)).toContain(joined);
  }
  services.splice(victim, 1);
  // What it had sent may still commit.
  await until(async () => {
    const { rows } = await database.pool.query('select count(*)::int as n from instance');
    return (rows[0] as { n: number }).n === services.length;
  });
  const [reader] = services.map((service) => new Tenant(service, tenantId)) as [Tenant];
  const held = await holders(reader);
  expect(held).not.toContain('held');
  const { members } = await reader.do('olga', 'ListMembers', { workspace_id: team });
  const found = new Set([
    ...held.map((user) => `seat ${user}`),
    ...(members as { user_id: string }[]).map(({ user_id: user }) => `member ${user}`),
  ]);
  expect([...acknowledged].filter((one) => !found.has(one))).toEqual([]);
  await expectAgreement(database, services, tenantId, [...users.slice(0, 9), 'olga', 'held']);
}, 120_000);
