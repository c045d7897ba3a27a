import { mkdtempSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inflateRawSync } from 'node:zlib';
import { expect, test } from 'vitest';
import type { WorkflowRun } from '../../../src/runner/model/run.ts';
import { EventClient } from '../../support/event-client.ts';
import { startProcess } from '../../support/runner-process.ts';
import { makeWorkspace, runEnded, startRun } from '../../support/runner.ts';

/** One secret a backend and shape. None is named by the job `unnamed`, all by the others. */
const SECRETS = {
  LOCAL: 'pl4nted-local-Value&1',
  VAULT: 'pl4nted-vault+value/2==',
  FROM_ENV: 'pl4nted env "value" 3',
  LINES: 'pl4nted-first-line\npl4nted-second-line\n',
  DOCUMENT: '{"password":"pl4nted-inner","n":1}',
} as const;
const NAMES = Object.keys(SECRETS);
/** What no file, answer or event may hold: values, single lines of them, and usual spellings. */
const TRACES = Object.values(SECRETS).flatMap((value) => [
  ...value.split('\n').filter((line) => line !== ''),
  JSON.stringify(value).slice(1, -1),
  encodeURIComponent(value),
  Buffer.from(value).toString('base64').replace(/=+$/, ''),
  Buffer.from(value).toString('base64url'),
  Buffer.from(value).toString('hex'),
]);

const ENV = NAMES.map((name) => `${name}: '\${{ secrets.${name} }}'`).join(', ');
const LEAKS = `name: leaks
run-name: run of \${{ github.actor }}
on: workflow_dispatch
env: { ${ENV} }
jobs:
  named:
    runs-on: x
    environment: production
    outputs: { whole: '\${{ steps.out.outputs.whole }}', half: '\${{ steps.out.outputs.half }}' }
    steps:
      - run: |
          for name in ${NAMES.join(' ')}; do
            value="\${!name}"
            echo "$value"
            printf '%s' "$value" | base64 -w0; echo
            printf '%s' "x$value" | base64 -w0; echo
            printf '%s' "$value" | od -An -tx1 | tr -d ' \\n'; echo
            printf '%s' "\${value:0:5}"; sleep 0.05; printf '%s\\n' "\${value:5}"
            echo "::warning title=$value::$value"
            echo "::error file=$value::$value"
            echo "::notice::a%0A$value"
            echo "::group::$value"
            echo "::endgroup::"
            echo "- $value" >> "$GITHUB_STEP_SUMMARY"
          done
          env
      - run: node -e 'for (const name of process.argv.slice(1)) { const value = process.env[name]; console.log(encodeURIComponent(value), JSON.stringify({ value })) }' ${NAMES.join(' ')}
      - { id: out, run: 'echo "whole=$LOCAL" >> $GITHUB_OUTPUT; echo "half=\${LOCAL:0:9}" >> $GITHUB_OUTPUT' }
      - run: mkdir up; echo x > "up/$LOCAL.txt"; echo y > up/y.txt
      - { uses: actions/upload-artifact@v4, with: { name: 'art-\${{ secrets.LOCAL }}', path: up }, continue-on-error: true }
      - { name: 'step \${{ secrets.LOCAL }}', run: exit 1, continue-on-error: true }
      - { run: 'true', working-directory: '/no/\${{ secrets.LOCAL }}', continue-on-error: true }
      - { run: 'echo \${{ fromJSON(secrets.LOCAL) }}', continue-on-error: true }
  unnamed:
    runs-on: x
    environment: production
    env: { A: '1' }
    steps: [{ run: 'cat "$GITHUB_WORKSPACE/.env-of-a-developer"' }]
`;
const FILES = {
  '.github/workflows/leaks.yml': LEAKS,
  // The scan does not look at it: the secrets are the developer's own.
  '.env-of-a-developer': `${Object.values(SECRETS).join('\n')}\n`,
};

function filesBelow(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? [path, ...filesBelow(path)] : [path];
  });
}

/** What a file holds, also packed (single entries of zips are found by their local headers). */
function contentOf(path: string): string {
  const bytes = readFileSync(path);
  let text = bytes.toString('latin1');
  for (
    let at = bytes.indexOf('PK\u0003\u0004');
    at >= 0;
    at = bytes.indexOf('PK\u0003\u0004', at + 4)
  ) {
    const start = at + 30 + bytes.readUInt16LE(at + 26) + bytes.readUInt16LE(at + 28);
    try {
      text += inflateRawSync(bytes.subarray(start)).toString('latin1');
    } catch {
      // Stored without compression: it is in the bytes already.
    }
  }
  return text;
}

function tracesIn(text: string): readonly string[] {
  return TRACES.filter((trace) => text.includes(trace));
}

test('planted secrets are in nothing that the runner wrote or answered', async () => {
  const workspace = makeWorkspace(FILES);
  const started = await startProcess(workspace, {
    XDG_CONFIG_HOME: mkdtempSync(join(tmpdir(), 'gatehouse-config-')),
    RUNNER_LOG_LEVEL: 'debug',
    RUNNER_SECRET_FROM_ENV: SECRETS.FROM_ENV,
    RUNNER_METRICS_PORT: '0',
  });
  const { url } = started;
  const seen: string[] = [];
  const call = async (method: string, path: string, body?: unknown): Promise<string> => {
    const response = await fetch(url + path, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    seen.push(`${path} ${JSON.stringify([...response.headers])} ${text}`);
    return text;
  };
  for (const name of NAMES) {
    if (name === 'FROM_ENV') continue;
    const value = SECRETS[name as keyof typeof SECRETS];
    const backend = name === 'VAULT' ? 'vault' : 'local';
    await call('PUT', `/api/secrets/${name}`, { value, backend, environment: 'production' });
    // Refused, and not echoed.
    await call('PUT', `/api/secrets/${name}`, { value, backend, extra: 1 });
    await call('PUT', `/api/secrets/${name}`, { value: [value] });
    await call('PUT', `/api/secrets/not-a-name`, { value });
  }
  const client = await EventClient.open(`${url}/api/events`);
  const id = await startRun(url, 'leaks');
  const run = (await runEnded(url, id)) as unknown as WorkflowRun;
  expect(run.conclusion).toBe('success');
  await client.untilType('run.completed');

  for (const path of ['', '/logs', '/annotations', '/summary', '/artifacts']) {
    await call('GET', `/api/runs/${id}${path}`);
  }
  const lists = [
    'runs',
    'workflows',
    'secrets?detail=1',
    'secrets/status',
    'audit/secrets',
    'deployments',
    'sync/audit',
    'variables',
  ];
  for (const path of lists) await call('GET', `/api/${path}`);
  for (const answer of seen) expect(tracesIn(answer), answer.slice(0, 60)).toEqual([]);
  expect(tracesIn(client.text)).toEqual([]);
  expect(tracesIn(started.log())).toEqual([]);
  // The outputs of the whole secret are dropped; halves are the author's own affair.
  expect(run.jobs[0]?.outputs).not.toHaveProperty('whole');
  // The job that names no secret is masked as well.
  expect(run.jobs[1]?.steps[0]?.log).toContain('***');

  started.child.kill('SIGTERM');
  await started.ended;
  const files = filesBelow(join(workspace, '.runner'));
  expect(files.length).toBeGreaterThan(5);
  for (const path of files) {
    const content = statSync(path).isDirectory() ? '' : contentOf(path);
    expect(tracesIn(path + content), path).toEqual([]);
  }
}, 120_000);
