import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ADMIN_SECRET, type AllServices, TOKEN } from './all-services.ts';

/** Settings of services that do this work: webhooks to the loopback, given up after two attempts. */
export const WORK_SETTINGS: Readonly<Record<string, string>> = {
  NOTIFY_WEBHOOK_ALLOW_PRIVATE: 'true',
  NOTIFY_SEND_ATTEMPTS: '2',
  NOTIFY_RETRY_BASE_MS: '50',
  NOTIFY_RETRY_MAX_MS: '100',
  RUNNER_DISK_FLOOR_BYTES: '0',
};
export const WORK_FILES: Readonly<Record<string, string>> = {
  '.github/workflows/quick.yml':
    'on: workflow_dispatch\njobs: { a: { runs-on: ubuntu-latest, steps: [{ run: echo hi }] } }\n',
  '.github/workflows/bad.yml':
    'on: workflow_dispatch\njobs: { a: { runs-on: ubuntu-latest, steps: [{ run: exit 1 }] } }\n',
};
/** Nesting that exceeds the budget of project `small`. */
const CHAIN = 400;

/** Real calls on all three services, of every kind that a dashboard shows. */
export interface RealWork {
  /** One round of everything; some of it is refused or fails, as it must. */
  round(): Promise<void>;
  stop(): Promise<void>;
}

/** Prepares tuples, endpoints and a live stream. Errors: throws for an answer that is not foreseen. */
export async function startRealWork(all: AllServices): Promise<RealWork> {
  await seedTuples(all);
  const webhooks = await startWebhooks();
  const { port } = webhooks.address() as AddressInfo;
  for (const path of ['fine', 'broken']) {
    const address = `http://127.0.0.1:${port}/${path}`;
    const key = { id: path, tenant_id: 't', user_id: path, channel: 'CHANNEL_WEBHOOK' };
    await notify(all, 'PutEndpoint', {
      endpoint: { ...key, address },
      signing_secret: 'real-work-signing-secret',
    });
  }
  const { token } = await notify(all, 'CreateStreamToken', {
    tenant_id: 't',
    user_id: 'fine',
    device_type: 'web',
  });
  const stop = new AbortController();
  const stream = await fetch(`${all.notifyClient}/v1/stream`, {
    headers: { authorization: `Bearer ${String(token)}` },
    signal: stop.signal,
  });
  requireStatus(stream, 200);
  // Whoever does not read is closed with its response.
  const reading = readAll(stream);
  let roundCount = 0;
  return {
    async round() {
      roundCount += 1;
      await decide(all, `tenant-${roundCount}`);
      await write(all, `r${roundCount}`);
      for (const user of ['fine', 'broken']) {
        await notify(all, 'Notify', {
          tenant_id: 't',
          user_id: user,
          channels: ['CHANNEL_LIVE', 'CHANNEL_WEBHOOK'],
          title: 'hello',
        });
      }
      await notify(all, 'ListNotifications', { tenant_id: 't', user_id: 'fine' });
      // Enough for quantiles over a short while, and no more than two processors bear.
      if (roundCount % 4 === 1) await run(all, roundCount % 8 === 1 ? 'quick' : 'bad');
    },
    async stop() {
      stop.abort();
      await reading;
      webhooks.closeAllConnections();
      webhooks.close();
      await once(webhooks, 'close');
    },
  };
}

async function readAll({ body }: Response): Promise<void> {
  try {
    for await (const _ of body ?? []);
  } catch (error) {
    if (!(error instanceof DOMException && error.name === 'AbortError')) throw error;
  }
}

async function startWebhooks(): Promise<Server> {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(request.url === '/fine' ? 204 : 500).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

async function seedTuples(all: AllServices): Promise<void> {
  await authz(all, 'AdminService/CreateProject', { id: 'small', name: 's', max_check_reads: 100 });
  const group = (from: string, to: string): object => ({
    op: 'OP_INSERT',
    tuple: {
      namespace: 'group',
      object_id: from,
      relation: 'member',
      subject: { set: { namespace: 'group', object_id: to, relation: 'member' } },
    },
  });
  const chain = Array.from({ length: CHAIN }, (_, i) => group(`g${i}`, `g${i + 1}`));
  const method = 'AuthzService/WriteRelationTuples';
  await authz(all, method, { project_id: 'small', updates: chain });
  await authz(all, method, { updates: [group('a', 'b'), group('b', 'a')] });
}

/** `newTenant` was never asked for: the first read of a tenant asks PostgreSQL where it stands. */
async function decide(all: AllServices, newTenant: string): Promise<void> {
  const member = { namespace: 'group', relation: 'member' };
  const alice = { ...member, subject_user_id: 'alice' };
  await authz(all, 'AuthzService/Check', { ...alice, object_id: 'open' });
  await authz(all, 'AuthzService/Check', { tenant_id: newTenant, ...alice, object_id: 'open' });
  await authz(all, 'AuthzService/Check', { ...alice, object_id: 'a' });
  const spent = { project_id: 'small', ...alice, object_id: 'g0' };
  await authz(all, 'AuthzService/Check', spent, 429);
  await authz(all, 'AuthzService/Check', { ...alice, object_id: '#' }, 400);
  await authz(all, 'AuthzService/Check', {
    ...member,
    object_id: 'a',
    subject_set: { ...member, object_id: 'open' },
  });
  const items = ['open', 'a', 'b'].map((object_id) => ({ ...alice, object_id }));
  await authz(all, 'AuthzService/BatchCheck', { items });
  await authz(all, 'AuthzService/Expand', { ...member, object_id: 'a' });
  await authz(all, 'AuthzService/ListObjects', alice);
}

async function write(all: AllServices, userId: string): Promise<void> {
  const tuple = { namespace: 'group', object_id: 'open', relation: 'member' };
  const updates = ['alice', userId].map((user_id) => ({
    op: 'OP_INSERT',
    tuple: { ...tuple, subject: { user_id } },
  }));
  await authz(all, 'AuthzService/WriteRelationTuples', { updates });
}

async function run(all: AllServices, workflow: string): Promise<void> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${TOKEN}` };
  const body = JSON.stringify({ workflow, sandbox: { strategy: 'none' } });
  const response = await fetch(`${all.runner}/api/runs`, { method: 'POST', headers, body });
  await response.text();
  if (!response.ok) throw new Error(`run of ${workflow}: ${response.status}`);
}

async function authz(all: AllServices, method: string, body: object, status = 200): Promise<void> {
  const more = { 'x-admin-secret': ADMIN_SECRET };
  await post(`${all.authz}/workspace.v1.${method}`, body, more, status);
}

function notify(
  all: AllServices,
  method: string,
  body: object,
): Promise<Readonly<Record<string, unknown>>> {
  return post(`${all.notifyInternal}/notify.v1.NotifyService/${method}`, body, {}, 200);
}

async function post(
  url: string,
  body: object,
  more: Readonly<Record<string, string>>,
  status: number,
): Promise<Readonly<Record<string, unknown>>> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${TOKEN}`, ...more };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  const text = await response.text();
  requireStatus(response, status, text);
  return JSON.parse(text) as Record<string, unknown>;
}

function requireStatus({ status, url }: Response, wanted: number, text = ''): void {
  if (status !== wanted) throw new Error(`${url}: ${status} instead of ${wanted}: ${text}`);
}
