import { request } from 'node:http';
import type { Outcome, SteadyLoad } from './steady-load.ts';
import { quantileMs, startLoad, tenantName } from './steady-load.ts';

const AUTHZ = '/workspace.v1.AuthzService';
const TENANTS = 30;
/** As much as a machine of two cores answers at ease, and as little as shows a refusal. */
export const BUSY = { callers: 12, pauseMs: 2 };
export const QUIET = { callers: 3, pauseMs: 60 };
/** How long a process that is killed may take to be gone on a busy machine; less than it takes to start another one. */
export const DYING_MS = 1_000;

/** Nine of ten ask whether a tuple of the tenant is there, which it is; one writes another. */
export function startMixedLoad(port: number, token: string, rate = BUSY): SteadyLoad {
  return startLoad({
    port,
    ...rate,
    tenants: TENANTS,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    call: (tenant, n) => (n >= TENANTS && n % 10 !== 0 ? check(tenant) : write(tenant, n)),
  });
}

/** A Check over a connection of its own, since kept ones may all lead to one process. Settles with any answer. */
export function checkOnce(port: number, token: string): Promise<void> {
  const { path, body } = check(0);
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  return new Promise((resolve, reject) => {
    const call = request({ port, host: '127.0.0.1', path, method: 'POST', headers, agent: false });
    call.once('response', (response) => response.resume().once('end', resolve));
    call.once('error', reject);
    call.end(body);
  });
}

const tuple = (object: string) => ({
  namespace: 'document',
  object_id: object,
  relation: 'viewer',
});

function check(tenant: number): { readonly path: string; readonly body: string } {
  const body = { tenant_id: tenantName(tenant), ...tuple('first'), subject_user_id: 'u' };
  return { path: `${AUTHZ}/Check`, body: JSON.stringify(body) };
}

function write(tenant: number, n: number): { readonly path: string; readonly body: string } {
  const object = n < TENANTS ? 'first' : `d${n}`;
  const update = { op: 'OP_INSERT', tuple: { ...tuple(object), subject: { user_id: 'u' } } };
  const body = { tenant_id: tenantName(tenant), updates: [update] };
  return { path: `${AUTHZ}/WriteRelationTuples`, body: JSON.stringify(body) };
}

export function failed(outcomes: readonly Outcome[]): readonly Outcome[] {
  return outcomes.filter(({ status }) => status !== 200);
}

/** For the output of a run: how many, and how late. */
export function summary(outcomes: readonly Outcome[]): string {
  const [p50, p99, max] = [0.5, 0.99, 1].map((share) => quantileMs(outcomes, share).toFixed(1));
  return `${outcomes.length} requests, p50 ${p50} ms, p99 ${p99} ms, latest ${max} ms`;
}
