import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Body, reasonOf, Tenant } from '../support/management.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { call } from '../support/service.ts';
import { byLength } from '../support/test-length.ts';
import { type Member, startMember } from './members.ts';
import { expectAgreement } from './organizations.ts';
import { until } from './support.ts';

/*
 * Workspaces, groups and seats, with the calls of each race spread over instances on one database (processes in the long run). After
 * each, all of them must say the same, and nothing that one process alone would refuse.
 */

let database: TestDatabase;
const services: Member[] = [];
let tenants = 0;

const ENV = {
  GATEWAY_WORKERS: '1',
  GATEWAY_INDEX_BYTES: String(64 * 1024 * 1024),
  GATEWAY_PG_POOL_SIZE: '6',
  GATEWAY_REQUEST_TIMEOUT_MS: '20000',
  // What one process knows of a project would count for long.
  GATEWAY_PROJECT_TTL_SECONDS: '600',
};

beforeAll(async () => {
  database = await createTestDatabase();
  await start();
}, 120_000);
afterAll(async () => {
  const codes = await Promise.all(services.map((service) => service.stop()));
  await database.drop();
  expect(codes).toEqual(services.map(() => 0));
  for (const { log } of services) {
    expect(log.filter(({ msg }) => msg === 'call_failed')).toEqual([]);
  }
}, 120_000);

async function start(): Promise<Member> {
  const service = await startMember(database, ENV);
  services.push(service);
  return service;
}

type On = (index: number) => Tenant;
/** A tenant of its own, through each process. */
function fresh(): readonly [on: On, tenantId: string] {
  const tenantId = `t${++tenants}`;
  const on = (index: number): Tenant =>
    new Tenant(services[index % services.length] as Member, tenantId);
  return [on, tenantId];
}

/** 'ok', or the reason of the refusal. */
async function outcome(work: ReturnType<Tenant['call']>): Promise<string> {
  const { status, body } = await work;
  return status === 200 ? 'ok' : reasonOf(body);
}
async function done(work: ReturnType<Tenant['call']>): Promise<Record<string, unknown>> {
  const { status, body } = await work;
  expect([status, body]).toEqual([200, body]);
  return body;
}
const times = <T>(count: number, make: (index: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => make(index)));
const names = (count: number, prefix = 'u'): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);
const tally = (outcomes: readonly string[]): Record<string, number> =>
  Object.fromEntries(
    [...new Set(outcomes)].map((each) => [each, outcomes.filter((one) => one === each).length]),
  );

const assign = (tenant: Tenant, userId: string, sku = 'pro'): ReturnType<Tenant['call']> =>
  tenant.call('', 'SeatService/AssignSeat', { sku, user_id: userId });
const seat = (tenant: Tenant, method: string, body: Body = {}): ReturnType<Tenant['call']> =>
  tenant.call('', `SeatService/${method}`, { sku: 'pro', ...body });
const group = (
  tenant: Tenant,
  user: string,
  method: string,
  body: Body = {},
): ReturnType<Tenant['call']> => tenant.call(user, `GroupService/${method}`, body);

async function seatHolders(tenant: Tenant): Promise<string[]> {
  const { seats } = await done(seat(tenant, 'ListSeats'));
  return (seats as { user_id: string }[]).map(({ user_id: user }) => user).sort();
}
async function members(tenant: Tenant, as: string, workspaceId: string): Promise<string[]> {
  const body = await tenant.do(as, 'ListMembers', { workspace_id: workspaceId });
  return (body['members'] as { user_id: string }[]).map(({ user_id: user }) => user);
}
async function invite(tenant: Tenant, owner: string, workspaceId: string): Promise<string> {
  const body = { workspace_id: workspaceId, email: 'a@b', role: 'ROLE_MEMBER' };
  const { invitation } = await tenant.do(owner, 'CreateInvitation', body);
  return (invitation as { token: string }).token;
}

test('seats: one instance alone is joined by another in the middle of a race', async () => {
  const [on, tenantId] = fresh();
  await done(seat(on(0), 'SetSeatLimit', { limit: 25 }));
  const many = byLength(40, 60);
  const users = names(many);
  let isOver = false;
  const before = (async () => {
    const outcomes: string[] = [];
    for (let i = 0; i < 30 || (!isOver && i < many); i++) {
      outcomes.push(await outcome(assign(on(0), users[i % users.length] ?? '')));
    }
    return outcomes;
  })();
  await start();
  isOver = true;
  const after = await times(many, (i) => outcome(assign(on(i), users[many - 1 - i] ?? '')));
  expect(new Set([...(await before), ...after])).toEqual(new Set(['ok', 'SEATS_EXHAUSTED']));
  expect(await seatHolders(on(1))).toHaveLength(25);
  await expectAgreement(database, services, tenantId, users);
}, 120_000);

describe.each(byLength([2], [2, 3]))('%i instances', { timeout: 120_000 }, (count) => {
  beforeAll(async () => {
    while (services.length < count) await start();
    for (const { log } of services) {
      await until(() => log.findLast(({ msg }) => msg === 'instance_mode')?.['mode'] === 'shared');
    }
  }, 120_000);

  test('many first lists make one PERSONAL workspace, which the others know at once', async () => {
    const [on, tenantId] = fresh();
    const lists = await times(byLength(12, 30), async (i) => {
      const { workspaces } = await on(i).do('anne', 'ListWorkspaces');
      const [only] = workspaces as { id: string }[];
      const known = await Promise.all([
        on(i + 1).holds('anne', only?.id ?? '', 'owner'),
        on(i + 2).do('anne', 'ListWorkspaces'),
      ]);
      expect(known).toEqual([true, { workspaces }]);
      return workspaces;
    });
    expect(lists[0]).toHaveLength(1);
    for (const list of lists) expect(list).toEqual(lists[0]);
    await expectAgreement(database, services, tenantId, ['anne', 'bob']);
  });

  test('derived slugs are numbered without a gap, an explicit one is had once, of groups as well', async () => {
    const [on, tenantId] = fresh();
    const numbered = (name: string, n: number): Set<string> =>
      new Set(Array.from({ length: n }, (_, i) => (i === 0 ? name : `${name}-${i + 1}`)));
    const [made, groups, explicit] = await Promise.all([
      times(15, (i) => on(i).do(`u${i}`, 'CreateWorkspace', { display_name: 'Same name' })),
      times(15, (i) =>
        done(group(on(i), `u${i}`, 'CreateGroup', { display_name: 'Same group', slug: '' })),
      ),
      times(9, (i) =>
        outcome(
          on(i).call('u0', 'WorkspaceService/CreateWorkspace', {
            display_name: 'n',
            slug: 'mine',
          }),
        ),
      ),
    ]);
    const slugOf = (body: Record<string, unknown>, field: string): string =>
      (body[field] as { slug: string }).slug;
    expect(new Set(made.map((one) => slugOf(one, 'workspace')))).toEqual(numbered('same-name', 15));
    expect(new Set(groups.map((one) => slugOf(one, 'group')))).toEqual(numbered('same-group', 15));
    expect(tally(explicit)).toEqual({ ok: 1, SLUG_TAKEN: 8 });
    await expectAgreement(database, services, tenantId, names(6));
  });

  test('an invitation is accepted once, by many and by one many times', async () => {
    const [on, tenantId] = fresh();
    const id = await on(0).team('olga');
    const tokens = [await invite(on(0), 'olga', id), await invite(on(1), 'olga', id)];
    const accept = (i: number, user: string, token = ''): Promise<string> =>
      outcome(on(i).call(user, 'WorkspaceService/AcceptInvitation', { token }));
    const [byMany, byOne] = await Promise.all([
      times(18, (i) => accept(i, `u${i}`, tokens[0])),
      times(9, (i) => accept(i, 'zoe', tokens[1])),
    ]);
    expect(tally(byMany)).toEqual({ ok: 1, INVITATION_STATE: 17 });
    expect(tally(byOne)).toEqual({ ok: 1, INVITATION_STATE: 8 });
    for (let i = 0; i < count; i++) {
      expect(await members(on(i), 'olga', id)).toEqual(['olga', `u${byMany.indexOf('ok')}`, 'zoe']);
    }
    await expectAgreement(database, services, tenantId, ['olga', 'zoe', ...names(18)]);
  });

  test('transfers, suspensions and removals leave exactly one owner', async () => {
    const users = ['ann', 'bob', 'cy'];
    await times(byLength(1, 3), async (round) => {
      const [on, tenantId] = fresh();
      const id = await on(round).team('olga');
      for (const user of users) {
        const member = { workspace_id: id, user_id: user, role: 'ROLE_ADMIN' };
        await on(round + 1).do('olga', 'AddMember', member);
      }
      const of = (i: number, as: string, method: string, body: Body): Promise<string> =>
        outcome(on(i).call(as, `WorkspaceService/${method}`, { workspace_id: id, ...body }));
      await Promise.all(
        users.flatMap((user, i) => [
          of(i + round, 'olga', 'TransferOwnership', { new_owner_user_id: user }),
          of(i + round + 1, 'olga', 'SuspendMember', { user_id: user }),
          of(i + round + 2, user, 'SuspendMember', { user_id: 'olga' }),
          of(i + round + 1, user, 'RemoveMember', { user_id: 'olga' }),
          of(i + round + 2, 'olga', 'RemoveMember', { user_id: user }),
          of(i + round, user, 'UpdateMemberRole', { user_id: 'olga', role: 'ROLE_MEMBER' }),
        ]),
      );
      await expectAgreement(database, services, tenantId, ['olga', ...users]);
    });
  });

  test('seats never pass the cap, which moves, and a seat given back is had by one', async () => {
    const [on, tenantId] = fresh();
    await done(seat(on(0), 'SetSeatLimit', { limit: 10 }));
    const users = names(byLength(20, 30));
    // Every user asks two processes at once.
    const first = await times(2 * users.length, (i) =>
      outcome(assign(on(i + (i >> 5)), users[i >> 1] ?? '')),
    );
    expect(new Set(first)).toEqual(new Set(['ok', 'SEATS_EXHAUSTED']));
    const held = await seatHolders(on(1));
    expect(held).toHaveLength(10);
    for (let i = 0; i < count; i++) {
      const usage = { sku: 'pro', used: 10, limit: 10, limited: true };
      expect((await seat(on(i), 'GetSeatUsage')).body).toEqual(usage);
    }
    await Promise.all([
      ...held.slice(0, 5).map((user, i) => done(seat(on(i), 'RevokeSeat', { user_id: user }))),
      ...users.map((user, i) => outcome(assign(on(i + 1), user))),
      done(seat(on(2), 'SetSeatLimit', { limit: 12 })),
      done(seat(on(1), 'SetSeatLimit', { limit: 12 })),
    ]);
    await expectAgreement(database, services, tenantId, users);
    expect((await seatHolders(on(0))).length).toBeLessThanOrEqual(12);

    // A cap may fall below what is in use: nobody loses a seat, and nobody gets one.
    await Promise.all([
      done(seat(on(1), 'SetSeatLimit', { limit: 3 })),
      ...users.map((user, i) => outcome(assign(on(i), user))),
    ]);
    const kept = await seatHolders(on(2));
    expect(kept.length).toBeGreaterThan(3);
    expect(kept.length).toBeLessThanOrEqual(12);
    const others = users.filter((user) => !kept.includes(user));
    const late = await Promise.all(others.map((user, i) => outcome(assign(on(i), user))));
    expect(new Set(late)).toEqual(new Set(['SEATS_EXHAUSTED']));
    await Promise.all(
      kept.slice(3).map((user, i) => done(seat(on(i), 'RevokeSeat', { user_id: user }))),
    );
    await expectAgreement(database, services, tenantId, users);
  });

  test('states of an enrollment, and additions to a group that is deleted', async () => {
    const [on, tenantId] = fresh();
    const make = async (name: string): Promise<string> => {
      const made = await done(group(on(0), 'ann', 'CreateGroup', { display_name: name }));
      return (made['group'] as { id: string }).id;
    };
    const [kept, doomed] = [await make('Kept'), await make('Doomed')];
    const states = ['WAITLISTED', 'ENROLLED', 'ACTIVE', 'SUSPENDED', 'REMOVED'].map(
      (state) => `ENROLLMENT_STATE_${state}`,
    );
    const set = (i: number, groupId: string, user: string): Promise<string> =>
      outcome(
        group(on(i), 'ann', 'SetEnrollmentState', {
          group_id: groupId,
          member: { user_id: user },
          state: states[i % states.length],
        }),
      );
    const [, , removed] = await Promise.all([
      times(15, (i) => set(i, kept, `u${i % 2}`)),
      times(9, (i) => set(i, doomed, `u${i}`)),
      times(3, (i) => outcome(group(on(i), 'ann', 'DeleteGroup', { group_id: doomed }))),
      times(9, (i) =>
        outcome(
          group(on(i + 1), 'ann', 'AddGroupMember', {
            group_id: i % 2 === 0 ? doomed : kept,
            member: { user_id: `v${i}` },
          }),
        ),
      ),
    ]);
    expect(tally(removed)).toEqual({ ok: 1, GROUP_UNKNOWN: 2 });
    for (let i = 0; i < count; i++) {
      expect(await outcome(group(on(i), 'ann', 'GetGroup', { group_id: doomed }))).toBe(
        'GROUP_UNKNOWN',
      );
    }
    await expectAgreement(database, services, tenantId, [...names(9), ...names(9, 'v')]);
  });

  test('what one process wrote every other one lists and decides by at once', async () => {
    const [on] = fresh();
    const id = await on(0).team('olga');
    const made = await done(group(on(1), 'olga', 'CreateGroup', { display_name: 'g' }));
    const { id: groupId } = made['group'] as { id: string };
    await times(byLength(2, 4), async (lane) => {
      const user = `u${lane}`;
      const sees = async (reader: number, isThere: boolean): Promise<void> => {
        const as = on(reader);
        expect(await members(as, 'olga', id)).toEqual(
          isThere
            ? (expect.arrayContaining([user]) as string[])
            : expect.not.arrayContaining([user]),
        );
        expect((await seatHolders(as)).includes(user)).toBe(isThere);
        const { members: inGroup } = await done(
          group(as, 'olga', 'ListGroupMembers', { group_id: groupId }),
        );
        const ids = (inGroup as { user_id?: string }[]).map((one) => one.user_id);
        expect(ids.includes(user)).toBe(isThere);
        const { workspaces } = await as.do(user, 'ListWorkspaces');
        expect((workspaces as { id: string }[]).some((one) => one.id === id)).toBe(isThere);
        expect(await as.holds(user, id, 'guest')).toBe(isThere);
      };
      for (let round = 0; round < byLength(2, 3); round++) {
        const writer = on(round + lane);
        const member = { workspace_id: id, user_id: user };
        const inGroup = { group_id: groupId, member: { user_id: user } };
        await writer.do('olga', 'AddMember', { ...member, role: 'ROLE_GUEST' });
        await done(assign(writer, user));
        await done(group(writer, 'olga', 'AddGroupMember', inGroup));
        await Promise.all(services.map((_, reader) => sees(reader, true)));
        await writer.do('olga', 'RemoveMember', member);
        await done(seat(writer, 'RevokeSeat', { user_id: user }));
        await done(group(writer, 'olga', 'RemoveGroupMember', inGroup));
        await Promise.all(services.map((_, reader) => sees(reader, false)));
      }
    });
  });

  test('a project that one process suspended is refused to management calls everywhere, and back', async () => {
    const project = { id: `p${count}`, name: 'P' };
    const [first] = services as [Member];
    await done(call(first, 'AdminService/CreateProject', project));
    const on = services.map((service) => new Tenant(service, 't', project.id));
    for (const tenant of on) await done(assign(tenant, 'ann'));
    const id = await (on[0] as Tenant).team('olga');
    for (let round = 0; round < byLength(2, 4); round++) {
      for (const [status, expected] of [
        ['SUSPENDED', 'PROJECT_SUSPENDED'],
        ['ACTIVE', 'ok'],
      ] as const) {
        const by = services[round % count] as Member;
        const update = { id: project.id, status: `PROJECT_STATUS_${status}` };
        await done(call(by, 'AdminService/UpdateProject', update));
        const calls = on.map(async (tenant, i) => {
          const asked = [
            (): ReturnType<Tenant['call']> => assign(tenant, `u${i}`),
            () => seat(tenant, 'GetSeatUsage'),
            () => tenant.call('olga', 'WorkspaceService/GetWorkspace', { workspace_id: id }),
            () => group(tenant, 'olga', 'ListGroups'),
          ];
          // Another one is the first to learn of it.
          for (let n = 0; n < asked.length; n++) {
            const ask = asked[(n + round) % asked.length];
            if (ask !== undefined) expect(await outcome(ask())).toBe(expected);
          }
        });
        await Promise.all(calls);
      }
    }
  });
});
