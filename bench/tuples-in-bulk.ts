/**
 * Yields figures of tuples in bulk, each run beside plain COPY of the same rows into the same table: tuples a second of an
 * import into an empty tenant, of one into a tenant that holds tuples, and of exports; how long the lock of a tenant is held; and the p99 of
 * Checks meanwhile.
 * Run: npm run bench -- tuples-in-bulk; ROWS sets another number than 500,000, RUNS another than 3. Prints one JSON line.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { TupleService } from '../src/gen/gatehouse/v1/tuple_service_pb.ts';
import { copyIn } from '../src/store/copy-in.ts';
import { startEmbeddedPostgres } from '../src/store/embedded-postgres.ts';
import { createPool } from '../src/store/pool.ts';

const ROWS = Number(process.env['ROWS'] ?? 500_000);
const RUNS = Number(process.env['RUNS'] ?? 3);
const LINES_PER_WRITE = 2_000;
const dataDirectory = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));

/** The i-th tuple; neighbours lie far apart in the order of keys. */
const keyOf = (i: number): { object: string; user: string } => ({
  object: `document-${(i * 7_919) % 50_021}`,
  user: `user-${(i * 104_729) % 1_000_003}`,
});

const server = await startEmbeddedPostgres({ dataDirectory });
const { user, password, database, host } = server.target;
const child = spawn(process.execPath, ['src/main.ts'], {
  env: {
    PATH: process.env['PATH'] ?? '',
    DATABASE_URL: `postgres://${user}:${password}@/${database}?host=${host}`,
    GATEWAY_HOST: '127.0.0.1',
    GATEWAY_CONNECT_PORT: '0',
    GATEWAY_METRICS_PORT: '0',
    GATEWAY_DRAIN_MS: '0',
  },
  stdio: ['ignore', 'ignore', 'pipe'],
});

type Ports = { readonly port: number; readonly metricsPort: number };

async function portsOf(): Promise<Ports> {
  for await (const line of createInterface({ input: child.stderr })) {
    if (!line.startsWith('{')) continue;
    const entry = JSON.parse(line) as { msg: string; port: number; metrics_port: number };
    if (entry.msg === 'ready') return { port: entry.port, metricsPort: entry.metrics_port };
  }
  throw new Error('the service ended before it was ready');
}

async function plainCopy(pool: ReturnType<typeof createPool>, tenant: string): Promise<number> {
  const parts: Buffer[] = [];
  for (let at = 0; at < ROWS; at += 8_192) {
    let text = '';
    for (let i = at; i < Math.min(ROWS, at + 8_192); i++) {
      const key = keyOf(i);
      text += `default\t${tenant}\tdoc\t${key.object}\tviewer\t\t${key.user}\t\t\\N\t\\N\t\\N\t1\n`;
    }
    parts.push(Buffer.from(text));
  }
  const data = Buffer.concat(parts);
  const client = await pool.connect();
  const startMs = performance.now();
  await copyIn(
    client,
    `copy relation_tuple (project_id, tenant_id, namespace, object_id, relation, subject_namespace,
      subject_id, subject_relation, expires_at_us, condition_name, condition_params, seq) from stdin`,
    data,
  );
  const seconds = (performance.now() - startMs) / 1_000;
  client.release();
  return ROWS / seconds;
}

async function importLines(port: number, tenant: string): Promise<number> {
  const startMs = performance.now();
  const answer = await new Promise<string>((resolve, reject) => {
    const request = http.request(
      {
        port,
        method: 'POST',
        path: `/v1/tuples:import?tenant_id=${tenant}`,
        headers: { 'content-type': 'application/x-ndjson' },
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('end', () => resolve(text));
      },
    );
    request.on('error', reject);
    const send = async (): Promise<void> => {
      for (let at = 0; at < ROWS; at += LINES_PER_WRITE) {
        let text = '';
        for (let i = at; i < Math.min(ROWS, at + LINES_PER_WRITE); i++) {
          const key = keyOf(i);
          text += `{"namespace":"doc","object_id":"${key.object}","relation":"viewer","subject":{"user_id":"${key.user}"}}\n`;
        }
        if (!request.write(text)) await new Promise<void>((go) => request.once('drain', go));
      }
      request.end();
    };
    send().catch(reject);
  });
  const seconds = (performance.now() - startMs) / 1_000;
  if (!answer.includes(`"received":"${ROWS}"`)) throw new Error(answer);
  return ROWS / seconds;
}

async function exportLines(port: number, tenant: string): Promise<number> {
  const startMs = performance.now();
  let bytes = 0;
  let last = '';
  await new Promise<void>((resolve, reject) => {
    http
      .get({ port, path: `/v1/tuples?tenant_id=${tenant}` }, (response) => {
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          last = chunk.toString('latin1').slice(-300);
        });
        response.on('end', () => resolve());
      })
      .on('error', reject);
  });
  if (!last.includes('"end":true') || bytes < ROWS * 50) throw new Error(last);
  return ROWS / ((performance.now() - startMs) / 1_000);
}

/** The time until the last message was there; reading its tuples is left to the caller. */
async function exportGrpc(port: number, tenantId: string): Promise<number> {
  const client = createClient(
    TupleService,
    createGrpcTransport({ baseUrl: `http://127.0.0.1:${port}` }),
  );
  const startMs = performance.now();
  let count = 0;
  for await (const part of client.streamTuples({ tenantId })) count += part.tuples.length;
  if (count < ROWS) throw new Error(`${count} tuples`);
  return count / ((performance.now() - startMs) / 1_000);
}

/** Checks of another tenant, one every 5 ms, until stopped: the 99th percentile in ms. */
function checks(port: number): () => Promise<number> {
  const agent = new http.Agent({ keepAlive: true });
  const times: number[] = [];
  let isStopped = false;
  const body = JSON.stringify({
    tenant_id: 'calm',
    namespace: 'doc',
    object_id: 'document-1',
    relation: 'viewer',
    subject_user_id: 'user-1',
  });
  const once = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const startMs = performance.now();
      const request = http.request(
        {
          port,
          agent,
          method: 'POST',
          path: '/workspace.v1.AuthzService/Check',
          headers: { 'content-type': 'application/json' },
        },
        (response) => {
          response.resume().on('end', () => {
            times.push(performance.now() - startMs);
            resolve();
          });
        },
      );
      request.on('error', reject);
      request.end(body);
    });
  const run = (async (): Promise<void> => {
    while (!isStopped) {
      await once();
      await new Promise((next) => setTimeout(next, 5));
    }
  })();
  return async () => {
    isStopped = true;
    await run;
    agent.destroy();
    times.sort((a, b) => a - b);
    return times[Math.floor(times.length * 0.99)] ?? 0;
  };
}

async function heldOver(metricsPort: number): Promise<Record<string, number>> {
  const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  const value = (name: string): number =>
    Number(
      text
        .split('\n')
        .find((line) => line.startsWith(name))
        ?.split(' ')
        .at(-1),
    );
  return {
    chunks: value('gatehouse_bulk_hold_seconds_count'),
    over50ms:
      value('gatehouse_bulk_hold_seconds_count') -
      value('gatehouse_bulk_hold_seconds_bucket{le="0.05"}'),
  };
}

function median(values: readonly number[]): number {
  return Math.round([...values].toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0);
}

try {
  const { port, metricsPort } = await portsOf();
  child.stderr.resume();
  const pool = createPool(server.target, {
    max: 1,
    applicationName: 'bench',
    statementTimeoutMs: 0,
  });
  const figures: Record<string, number[]> = {};
  const add = (name: string, value: number): void => void (figures[name] ??= []).push(value);
  const stopCalm = checks(port);
  await new Promise((done) => setTimeout(done, 3_000));
  add('checkP99CalmUs', (await stopCalm()) * 1_000);
  for (let run = 0; run < RUNS; run++) {
    const copied = await plainCopy(pool, `copy${run}`);
    add('copy', copied);
    const stop = checks(port);
    const whole = await importLines(port, `whole${run}`);
    add('checkP99ImportUs', (await stop()) * 1_000);
    add('importWhole', whole);
    add('importWholeOfCopyPercent', (whole / copied) * 100);
    const stopExport = checks(port);
    add('exportLines', await exportLines(port, `whole${run}`));
    add('checkP99ExportUs', (await stopExport()) * 1_000);
    add('exportGrpc', await exportGrpc(port, `whole${run}`));
    await pool.query(
      `insert into relation_tuple select 'default', $1, 'doc', 'one', 'owner', '', 'x', '', null, null, null, 1`,
      [`held${run}`],
    );
    const chunks = await importLines(port, `held${run}`);
    add('importChunks', chunks);
    add('importChunksOfCopyPercent', (chunks / copied) * 100);
  }
  const medians = Object.fromEntries(
    Object.entries(figures).map(([name, values]) => [name, median(values)]),
  );
  const held = await heldOver(metricsPort);
  process.stdout.write(
    `${JSON.stringify({ bench: 'tuples-in-bulk', rows: ROWS, runs: RUNS, medians, held, figures })}\n`,
  );
  await pool.end();
} finally {
  child.kill('SIGTERM');
  await new Promise((done) => child.once('exit', done));
  await server.stop();
  rmSync(dataDirectory, { recursive: true, force: true });
}
