import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { failureOf, LoadClient } from '../../bench/harness/client.ts';
import { cpuSeconds } from '../../bench/harness/service.ts';
import { createProject, WRITE_PATH, writeBody } from '../../bench/harness/target.ts';
import { DATASET_MODEL_JSON } from '../../test/support/dataset/model.ts';
import { runAtRate } from '../harness/arrivals.ts';
import type { Scenario } from '../harness/scenario.ts';

const TENANTS = 64;
const RATE = 5_000;
const SETTLE_MS = 20_000;

/** One stream of server-sent events: calls back with the object of each change. */
async function follow(
  url: string,
  token: string,
  signal: AbortSignal,
  onChange: (objectId: string) => void,
): Promise<void> {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(url, { headers, signal });
  if (response.status !== 200 || response.body === null) throw new Error(`HTTP ${response.status}`);
  void (async () => {
    const decoder = new TextDecoder();
    let rest = '';
    for await (const chunk of response.body as ReadableStream<Uint8Array>) {
      const text = rest + decoder.decode(chunk, { stream: true });
      const end = text.lastIndexOf('"object_id":"');
      const whole = end < 0 ? 0 : text.indexOf('"', end + 13) + 1;
      for (const [, id = ''] of text.slice(0, whole).matchAll(/"object_id":"([^"]*)"/g))
        onChange(id);
      rest = text.slice(whole);
    }
  })().catch(() => undefined); // ended by us
}

const newHistogram = (): RecordableHistogram =>
  createHistogram({ lowest: 1, highest: 600_000_000_000, figures: 3 });

function milliseconds(histogram: RecordableHistogram): Record<string, number> {
  const at = (percentile: number): number => histogram.percentile(percentile) / 1e6;
  return { count: histogram.count, p50Ms: at(50), p99Ms: at(99), maxMs: histogram.max / 1e6 };
}

export const watchLag: Scenario = {
  name: 'watch-lag',
  purpose:
    'writes of one tuple to 64 tenants, followed by a stream of the project and one of a tenant',
  question: 'How long after a write was acknowledged is it told, and is each told once?',
  async run(options, start) {
    const service = await start({ GATEWAY_WATCH_STREAMS: '10' });
    const { baseUrl, token, adminSecret } = service;
    const client = new LoadClient({ baseUrl, connections: options.connections * 2, token });
    await createProject(client, adminSecret, 'load', DATASET_MODEL_JSON);
    const ackedMs = new Map<string, number>();
    const toldMs = new Map<string, number>();
    const ofTenant = new Map<string, number>();
    let repeated = 0;
    const stop = new AbortController();
    const noting = (told: Map<string, number>) => (id: string) => {
      if (told.has(id)) repeated++;
      told.set(id, performance.now());
    };
    const base = `${baseUrl}/v1/watch?project_id=load`;
    await follow(`${base}&all_tenants=true`, token, stop.signal, noting(toldMs));
    await follow(`${base}&tenant_id=t0`, token, stop.signal, noting(ofTenant));
    const cpuBefore = await cpuSeconds(service.pid);
    const writes = await runAtRate({
      perSecond: options.rate ?? RATE,
      seconds: options.seconds,
      issue: (index, done) => {
        const id = `n${index}`;
        const scope = { project_id: 'load', tenant_id: `t${index % TENANTS}` };
        const tuple = {
          namespace: 'doc',
          object_id: id,
          relation: 'viewer',
          subject: 'user:writer',
        };
        client.post(WRITE_PATH, writeBody([tuple], scope), (reply, error) => {
          const failure = failureOf(reply, error);
          if (failure === undefined) ackedMs.set(id, performance.now());
          done(failure);
        });
      },
    });
    const deadlineMs = performance.now() + SETTLE_MS;
    while (toldMs.size < ackedMs.size && performance.now() < deadlineMs) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const cpu = (await cpuSeconds(service.pid)) - cpuBefore;
    stop.abort();
    await client.close();
    const lagOf = (told: ReadonlyMap<string, number>): Record<string, number> => {
      const histogram = newHistogram();
      for (const [id, at] of told) {
        const acked = ackedMs.get(id);
        if (acked !== undefined) histogram.record(Math.max(1, Math.round((at - acked) * 1e6)));
      }
      return milliseconds(histogram);
    };
    const missing = [...ackedMs.keys()].filter((id) => !toldMs.has(id)).length;
    return { writes, cpu, project: lagOf(toldMs), tenant: lagOf(ofTenant), missing, repeated };
  },
};
