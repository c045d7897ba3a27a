import http2 from 'node:http2';
import { type DescMethod, type JsonObject, toBinary, toJson } from '@bufbuild/protobuf';
import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseCallersFile } from '../../src/gateway/callers/callers-file.ts';
import {
  METHOD_CLASSES,
  type MethodRule,
  mustRule,
  RULES,
} from '../../src/gateway/callers/method-rules.ts';
import { BudgetService } from '../../src/gen/gatehouse/v1/budget_service_pb.ts';
import { ModelService } from '../../src/gen/gatehouse/v1/model_service_pb.ts';
import { QueryService } from '../../src/gen/gatehouse/v1/query_service_pb.ts';
import { TupleService } from '../../src/gen/gatehouse/v1/tuple_service_pb.ts';
import { AdminService } from '../../src/gen/workspace/v1/admin_service_pb.ts';
import { AuthzService } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { GroupService } from '../../src/gen/workspace/v1/group_service_pb.ts';
import { SeatService } from '../../src/gen/workspace/v1/seat_service_pb.ts';
import { WorkspaceService } from '../../src/gen/workspace/v1/workspace_service_pb.ts';
import { callHttp2, envelope } from '../support/http2-calls.ts';
import { type Instance, startInstance } from '../support/instance.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { byLength } from '../support/test-length.ts';
import { markOf, messageOf, requestTo, type Target } from './any-request.ts';

/* No scope lets anything of another project or tenant be read, written or counted: by any method, on either path. */

const RUNS = byLength(3, 12) * Number(process.env['FUZZ_RUNS'] ?? 1);
const CALLS = 24;
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const TOKEN = 'scoped-token';
const SERVICES = [
  AuthzService,
  WorkspaceService,
  GroupService,
  SeatService,
  AdminService,
  BudgetService,
  ModelService,
  QueryService,
  TupleService,
];
const METHODS = SERVICES.flatMap(({ methods }): readonly DescMethod[] => methods);
/** The third project does not exist. */
const PROJECTS = ['default', 'borea', 'nowhere'];
const TENANTS = ['', 't1', 't2'];
const TABLES = [
  'relation_tuple',
  'workspace',
  'membership',
  'invitation',
  'user_group',
  'enrollment',
  'seat_limit',
  'seat_assignment',
  'tuple_change',
];

let database: TestDatabase;
let instance: Instance;
let sessions: readonly http2.ClientHttp2Session[];
/** What was made of each shard, by its mark. */
const made = new Map<string, JsonObject>();

beforeAll(async () => {
  database = await createTestDatabase();
  instance = await startInstance(database, {
    GATEWAY_WATCH_STREAMS: '1000',
    GATEWAY_CALLERS: callersText([]),
  });
  sessions = [instance.baseUrl, instance.generalUrl].map((url) => http2.connect(url));
  await asOwner('AdminService/CreateProject', { id: 'borea', name: 'borea' });
  for (const projectId of PROJECTS.slice(0, 2)) {
    for (const tenantId of TENANTS) await seedShard({ projectId, tenantId, allTenants: false });
  }
}, 120_000);
afterAll(async () => {
  for (const session of sessions) session.close();
  await instance.stop();
  expect(instance.failures).toEqual([]);
  await database.drop();
});

type Scope = {
  readonly projects: '*' | readonly string[];
  readonly tenants: '*' | readonly string[];
  readonly services: '*' | readonly string[];
  readonly methods: '*' | readonly string[];
};

function callersText(scopes: readonly Scope[]): string {
  return JSON.stringify({ callers: [{ name: 'scoped', tokens: [TOKEN], scopes }] });
}

async function asOwner(method: string, body: JsonObject): Promise<JsonObject> {
  const response = await fetch(`${instance.baseUrl}/workspace.v1.${method}`, {
    method: 'POST',
    headers: headersOf(instance.token),
    body: JSON.stringify(body),
  });
  const answer = (await response.json()) as JsonObject;
  expect([response.status, answer]).toEqual([200, answer]);
  return answer;
}

function headersOf(token: string, type = 'application/json'): Record<string, string> {
  return {
    authorization: `Bearer ${token}`,
    'x-admin-secret': instance.adminSecret,
    'content-type': type,
  };
}

async function seedShard(target: Target): Promise<void> {
  const mark = markOf(target);
  const place = { project_id: target.projectId, tenant_id: target.tenantId };
  const who = { ...place, acting_user_id: 'alice' };
  const idIn = (answer: JsonObject, name: string): string =>
    (answer[name] as { readonly id: string }).id;
  const workspaceId = idIn(
    await asOwner('WorkspaceService/CreateWorkspace', { ...who, display_name: `${mark}w` }),
    'workspace',
  );
  const groupId = idIn(
    await asOwner('GroupService/CreateGroup', { ...who, display_name: `${mark}g` }),
    'group',
  );
  const workspace = { ...who, workspace_id: workspaceId };
  await asOwner('WorkspaceService/AddMember', {
    ...workspace,
    user_id: `${mark}u`,
    role: 'ROLE_MEMBER',
  });
  const invited = { ...workspace, email: `${mark}i@example.com`, role: 'ROLE_GUEST' };
  const invitationId = idIn(
    await asOwner('WorkspaceService/CreateInvitation', invited),
    'invitation',
  );
  await asOwner('SeatService/AssignSeat', { ...place, sku: 'pro', user_id: `${mark}u` });
  const tuple = { namespace: 'resource', object_id: `${mark}doc`, relation: 'viewer' };
  const updates = [{ op: 'OP_INSERT', tuple: { ...tuple, subject: { user_id: 'alice' } } }];
  await asOwner('AuthzService/WriteRelationTuples', { ...place, updates });
  made.set(mark, { workspace_id: workspaceId, group_id: groupId, invitation_id: invitationId });
}

/** The rule, read word for word: an own reading of what each method reaches. */
function isAdmitted(scopes: readonly Scope[], method: DescMethod, target: Target): boolean {
  const rule = ruleOf(method);
  const allOf = reachOf(method, target);
  const grants = (one: '*' | readonly string[], name: string): boolean =>
    one === '*' || one.includes(name);
  return rule.needs.every((need) =>
    scopes.some(
      ({ projects, tenants, services, methods }) =>
        grants(services, rule.service) &&
        grants(methods, need) &&
        (allOf === 'nothing' ||
          projects === '*' ||
          (allOf !== 'everything' && projects.includes(target.projectId))) &&
        (allOf === 'nothing' ||
          allOf === 'project' ||
          tenants === '*' ||
          (allOf === 'tenant' && tenants.includes(target.tenantId))),
    ),
  );
}

function ruleOf(method: DescMethod): MethodRule {
  return mustRule(`/${method.parent.typeName}/${method.name}`);
}

/** By the fields of the request: who names a tenant reaches that one, who names a project alone reaches all of its tenants. */
function reachOf(
  method: DescMethod,
  target: Target,
): 'everything' | 'tenant' | 'all' | 'project' | 'nothing' {
  const { name, input } = method;
  const settings = ['GetProject', 'GetModel', 'ListModelVersions', 'TestModel'];
  if (settings.includes(name)) return 'project';
  if (name === 'ValidateModel' || name === 'ListProjects') return 'nothing';
  if (name === 'ListReadUsage') return 'everything';
  if (name === 'DeprovisionUser') return 'all';
  const fields = new Set(input.fields.map((field) => field.name));
  if (fields.has('all_tenants') && target.allTenants) return 'all';
  return fields.has('tenant_id') || fields.has('scope') || fields.has('options') ? 'tenant' : 'all';
}

type Outcome = { readonly isRefused: boolean; readonly text: string };
const WIRES = ['json', 'grpc', 'grpc-web'] as const;
type Call = {
  readonly method: DescMethod;
  readonly target: Target;
  readonly wire: (typeof WIRES)[number];
  /** 0: with the hot path. */
  readonly path: 0 | 1;
};

async function send({ method, target, wire, path }: Call): Promise<Outcome> {
  const json = requestTo(method, target, made.get(markOf(target)) ?? {});
  const message = messageOf(method, json);
  const url = `/${method.parent.typeName}/${method.name}`;
  const base = path === 0 ? instance.baseUrl : instance.generalUrl;
  if (wire === 'json' && method.methodKind === 'unary') {
    const body = JSON.stringify(toJson(method.input, message, { useProtoFieldName: true }));
    const headers = headersOf(TOKEN);
    const response = await fetch(base + url, { method: 'POST', headers, body });
    const text = await response.text();
    return { isRefused: response.status === 403 && text.includes('SCOPE_REFUSED'), text };
  }
  const frame = envelope(0, toBinary(method.input, message));
  const isWatch = method.name === 'Watch';
  const timeout = isWatch ? { 'grpc-timeout': '200m' } : {};
  if (wire !== 'grpc') {
    const headers = { ...headersOf(TOKEN, 'application/grpc-web+proto'), ...timeout };
    const response = await fetch(base + url, { method: 'POST', headers, body: frame });
    const text = Buffer.from(await response.arrayBuffer()).toString('latin1');
    return { isRefused: isRefusal(text), text };
  }
  const session = sessions[path];
  if (session === undefined) throw new Error('there are two paths');
  const headers = { ...headersOf(TOKEN, 'application/grpc+proto'), te: 'trailers', ...timeout };
  const { fields, body } = await callHttp2(session, url, headers, [frame]);
  const text = body.toString('latin1');
  return { isRefused: isRefusal(JSON.stringify(fields)), text: text + JSON.stringify(fields) };
}

/** In trailers, where spaces of the text may be encoded. */
function isRefusal(text: string): boolean {
  return /grpc-status"?: ?"?7\b/.test(text) && /no(%20| )scope(%20| )of/.test(text);
}

/** Rows of each shard, as one text. */
async function contents(): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const table of TABLES) {
    const { rows } = await database.pool.query<{ shard: string; rows: string }>(
      `select project_id || '/' || tenant_id as shard,
         md5(string_agg(t::text, '|' order by t::text)) as rows
       from ${table} t group by 1`,
    );
    for (const { shard, rows: text } of rows)
      found.set(shard, `${found.get(shard) ?? ''}${table}:${text};`);
  }
  const projects = await database.pool.query<{ id: string; row: string }>(
    'select id, t::text as row from project t',
  );
  for (const { id, row } of projects.rows) found.set(id, row);
  return found;
}

const names = (all: readonly string[]): fc.Arbitrary<'*' | readonly string[]> =>
  fc.oneof(
    { weight: 1, arbitrary: fc.constant('*' as const) },
    { weight: 3, arbitrary: fc.subarray([...all], { minLength: 1 }) },
  );
const scope: fc.Arbitrary<Scope> = fc.record({
  projects: names(PROJECTS),
  tenants: names(TENANTS),
  services: names(SERVICES.map(({ typeName }) => typeName)),
  methods: names(METHOD_CLASSES),
});
const call: fc.Arbitrary<Call> = fc.record({
  method: fc.constantFrom(...METHODS),
  target: fc.record({
    projectId: fc.constantFrom(...PROJECTS),
    tenantId: fc.constantFrom(...TENANTS),
    allTenants: fc.boolean(),
  }),
  wire: fc.constantFrom(...WIRES),
  path: fc.constantFrom(0 as const, 1 as const),
});

function use(scopes: readonly Scope[]): void {
  instance.callers.replaceFile(parseCallersFile(callersText(scopes)));
}

test('every method has a rule, and is tried here', () => {
  const open = [
    'grpc.health.v1.Health',
    'grpc.reflection.v1.ServerReflection',
    'grpc.reflection.v1alpha.ServerReflection',
  ];
  const tried = METHODS.map((method) => `/${method.parent.typeName}/${method.name}`);
  const scoped = [...RULES].filter(([, { service }]) => !open.includes(service));
  expect(scoped.map(([path]) => path).toSorted()).toEqual(tried.toSorted());
});

test('without a scope every method is refused on every path, whether the project exists or not', async () => {
  use([]);
  const before = await contents();
  const wrong: string[] = [];
  for (const method of METHODS) {
    for (const [i, wire] of WIRES.entries()) {
      for (const path of [0, 1] as const) {
        const target = { projectId: PROJECTS[i] ?? '', tenantId: 't1', allTenants: false };
        const { isRefused, text } = await send({ method, target, wire, path });
        if (!isRefused) wrong.push(`${wire} ${path} ${method.name}: ${text}`);
      }
    }
  }
  expect(wrong).toEqual([]);
  expect(await contents()).toEqual(before);
}, 120_000);

test('scopes are what decides, and no others are read, written or counted', async () => {
  let told = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(scope, { minLength: 1, maxLength: 3, size: 'max' }),
      fc.array(call, { minLength: CALLS, maxLength: CALLS, size: 'max' }),
      async (scopes, calls) => {
        use(scopes);
        const before = await contents();
        const admitted = calls.filter(({ method, target }) => isAdmitted(scopes, method, target));
        const refused = calls.filter((one) => !admitted.includes(one));
        for (const one of refused) {
          expect([describe(one), await send(one)]).toMatchObject([{}, { isRefused: true }]);
        }
        expect(await contents()).toEqual(before);
        for (const one of admitted) {
          const { isRefused, text } = await send(one);
          expect([describe(one), isRefused, text]).toEqual([describe(one), false, text]);
          told += marksIn(text).length;
          expect([
            describe(one),
            marksIn(text).filter((mark) => !mayShow(scopes, one.method, mark)),
          ]).toEqual([describe(one), []]);
        }
        const after = await contents();
        for (const [place, rows] of before) {
          if (!mayWrite(scopes, place)) expect([place, after.get(place)]).toEqual([place, rows]);
        }
      },
    ),
    // Each try asks dozens of calls: the first that fails is told as it is.
    { numRuns: RUNS, seed, endOnFailure: true },
  );
  // What is let in is answered with what is there.
  expect(told).toBeGreaterThan(0);
}, 600_000);

function describe({ method, target, wire, path }: Call): JsonObject {
  return { method: `${method.parent.typeName}/${method.name}`, ...target, wire, path };
}

function marksIn(text: string): readonly string[] {
  return [...new Set(text.match(/mark-(default|borea|nowhere)-(none|t1|t2)-/g))];
}

function targetOf(mark: string): Target {
  const [, projectId = '', tenant = ''] = mark.split('-');
  return { projectId, tenantId: tenant === 'none' ? '' : tenant, allTenants: false };
}

/** Whether something of a shard may be in the answer of a method: then the shard itself is granted for what it needs. */
function mayShow(scopes: readonly Scope[], method: DescMethod, mark: string): boolean {
  const target = targetOf(mark);
  return ruleOf(method).needs.every((need) =>
    scopes.some(
      (one) =>
        (one.services === '*' || one.services.includes(method.parent.typeName)) &&
        (one.methods === '*' || one.methods.includes(need)) &&
        (one.projects === '*' || one.projects.includes(target.projectId)) &&
        (one.tenants === '*' || one.tenants.includes(target.tenantId)),
    ),
  );
}

/** Whether any scope reaches a shard, `project/tenant`, or the settings of a project. */
function mayWrite(scopes: readonly Scope[], place: string): boolean {
  const [projectId = '', tenantId] = place.split('/');
  return scopes.some(
    ({ projects, tenants, methods }) =>
      (methods === '*' || methods.includes('write') || methods.includes('manage')) &&
      (projects === '*' || projects.includes(projectId)) &&
      (tenants === '*' || (tenantId !== undefined && tenants.includes(tenantId))),
  );
}
