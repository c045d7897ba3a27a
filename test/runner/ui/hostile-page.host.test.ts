/*
 * Pages of other sites in a real browser, against a runner with its default settings: whatever way of sending a
 * request a page has, nothing runs and nothing changes.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { makeWorkspace, startRunner, type TestRunner } from '../../support/runner.ts';
import { byLength, inLong, inShort } from '../../support/test-length.ts';
import { chromiumPath, openPage } from './browser.ts';

const WORKFLOW = `on: workflow_dispatch
jobs: { a: { runs-on: ubuntu-latest, steps: [{ run: echo hello }] } }
`;
const FILES = { '.github/workflows/touch.yml': WORKFLOW };
const EVIL = ['evil.example', 'localhost.evil.test', '127.0.0.1.evil.test', 'rebound.example'];

/**
 * Runs in the page: every way there is to send something to `runner`, each with what became of it. Text: its
 * names are those of a browser.
 */
const ATTACKS = (runner: string, token: string): string => `(async () => {
  const runner = ${JSON.stringify(runner)};
  const start = JSON.stringify({ workflow: 'touch' });
  const json = { 'content-type': 'application/json' };
  const told = {};
  const tell = async (name, send) => {
    try {
      const response = await send();
      told[name] = response === undefined ? 'sent' : response.type + ' ' + response.status;
      if (response?.type === 'cors' && !response.ok) {
        told[name] += ' ' + (await response.json()).error.code;
      }
    } catch (error) {
      told[name] = error.name;
    }
  };
  const post = (more) => fetch(runner + '/api/runs', { method: 'POST', body: start, ...more });
  await tell('fetch', () => post({ headers: json }));
  await tell('fetch, a wrong token', () => post({ headers: { ...json, authorization: 'Bearer x' } }));
  await tell('fetch, no referrer', () => post({ headers: json, referrerPolicy: 'no-referrer' }));
  await tell('fetch, credentials', () => post({ headers: json, credentials: 'include' }));
  await tell('fetch, plain text', () => post({}));
  await tell('no-cors POST', () => post({ mode: 'no-cors' }));
  await tell('no-cors POST of a type', () =>
    post({ mode: 'no-cors', body: new Blob([start], { type: 'application/json' }) }));
  await tell('keepalive', () => post({ headers: json, keepalive: true }));
  const secret = { method: 'PUT', headers: json, body: JSON.stringify({ value: 'planted' }) };
  await tell('PUT of a secret', () => fetch(runner + '/api/secrets/X', secret));
  await tell('no-cors PUT', () => fetch(runner + '/api/secrets/X', { ...secret, mode: 'no-cors' }));
  await tell('DELETE', () => fetch(runner + '/api/secrets/X', { method: 'DELETE' }));
  await tell('POST without a body', () => fetch(runner + '/api/secrets/sync', { method: 'POST' }));
  await tell('beacon', async () => {
    navigator.sendBeacon(runner + '/api/runs', new Blob([start], { type: 'text/plain' }));
    navigator.sendBeacon(runner + '/api/runs', new Blob([start], { type: 'application/json' }));
  });
  await tell('XMLHttpRequest', () => new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('POST', runner + '/api/runs');
    request.setRequestHeader('content-type', 'application/json');
    request.onload = () => resolve({ type: 'xhr', status: request.status });
    request.onerror = () => reject(new TypeError());
    request.send(start);
  }));
  const submitted = (enctype, name, value, sandbox) => new Promise((resolve) => {
    const frame = document.createElement('iframe');
    frame.name = 'frame' + Math.random();
    if (sandbox) frame.sandbox = 'allow-forms allow-scripts';
    document.body.append(frame);
    if (sandbox) {
      frame.srcdoc = '<form method=post action="' + runner + '/api/runs" enctype="' + enctype +
        '"><input name=a value=b></form><script>document.forms[0].submit()</' + 'script>';
    } else {
      const form = document.createElement('form');
      Object.assign(form, { method: 'POST', action: runner + '/api/runs', enctype, target: frame.name });
      const field = document.createElement('input');
      Object.assign(field, { name, value });
      form.append(field);
      document.body.append(form);
      form.submit();
    }
    frame.addEventListener('load', () => setTimeout(resolve, 200));
  });
  await tell('form as text', () => submitted('text/plain', '{"workflow":"touch","inputs":{"a":"', '"}}'));
  await tell('form', () => submitted('application/x-www-form-urlencoded', 'workflow', 'touch'));
  await tell('form of files', () => submitted('multipart/form-data', 'workflow', 'touch'));
  await tell('form without an origin', () => submitted('text/plain', '', '', true));
  await tell('read', () => fetch(runner + '/api/runs'));
  const token = ${JSON.stringify(token)};
  if (token !== '') {
    await tell('fetch, the token', () => post({ headers: { ...json, authorization: 'Bearer ' + token } }));
  }
  return told;
})()`;

/** A site of its own on every loopback port that the system gives, under whatever name it is called. */
async function startSite(): Promise<number> {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end('<!doctype html><title>site</title><body>hello');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

type Told = Readonly<Record<string, string>>;

async function attack(from: string, { url }: TestRunner, token = ''): Promise<Told> {
  const { page } = await openPage({ names: EVIL });
  await page.goto(from);
  return page.evaluate<Told>(ATTACKS(url, token));
}

async function nothingHappened({ url, runner }: TestRunner): Promise<void> {
  expect(runner.parts.runs.list({ limit: 1 })).toEqual([]);
  expect(await (await fetch(`${url}/api/secrets`)).json()).toEqual([]);
}

describe.skipIf(chromiumPath === undefined)('a page in Chromium (CHROMIUM_PATH)', () => {
  test.each(byLength(['127.0.0.1.evil.test'], ['evil.example', 'localhost.evil.test']))(
    'of %s can run nothing and change nothing, and may read',
    async (name) => {
      const started = await startRunner(makeWorkspace(FILES));
      const told = await attack(`http://${name}:${await startSite()}/`, started);
      await nothingHappened(started);
      expect(told).toMatchObject({
        fetch: 'cors 403 origin_needs_token',
        'fetch, a wrong token': 'cors 403 origin_needs_token',
        'fetch, no referrer': 'cors 403 origin_needs_token',
        // An answer for everybody is not for requests with credentials.
        'fetch, credentials': 'TypeError',
        'fetch, plain text': 'cors 403 origin_needs_token',
        'no-cors PUT': 'TypeError',
        'PUT of a secret': 'cors 403 origin_needs_token',
        DELETE: 'cors 403 origin_needs_token',
        'POST without a body': 'cors 403 origin_needs_token',
        XMLHttpRequest: 'xhr 403',
        read: 'cors 200',
      });
      // They were sent, and it is the runner that refused them.
      const refused = started.logLines().filter(({ code }) => code === 'origin_needs_token');
      expect(refused.length).toBeGreaterThan(10);
    },
    60_000,
  );

  inShort(test)(
    'that was given the token may do everything',
    async () => {
      const started = await startRunner(makeWorkspace(FILES));
      const token = readFileSync(join(started.workspace, '.runner/api-token'), 'utf8').trim();
      const told = await attack(`http://evil.example:${await startSite()}/`, started, token);
      expect(told['fetch']).toBe('cors 403 origin_needs_token');
      expect(told['fetch, the token']).toBe('cors 201');
      expect(started.runner.parts.runs.list({ limit: 9 })).toHaveLength(1);
    },
    120_000,
  );

  inLong(test)(
    'of another program on loopback may do everything, as before',
    async () => {
      const started = await startRunner(makeWorkspace(FILES));
      const told = await attack(`http://localhost:${await startSite()}/`, started);
      expect(told).toMatchObject({ fetch: 'cors 201', 'PUT of a secret': 'cors 201' });
    },
    120_000,
  );

  inShort(test)(
    'that has rebound its name to the runner reads nothing either',
    async () => {
      const started = await startRunner(makeWorkspace(FILES));
      const { page } = await openPage({ names: EVIL });
      const answer = await page.goto(`http://rebound.example:${started.runner.port}/api/runs`);
      expect(answer?.status()).toBe(403);
      const told = await page.evaluate<Told>(
        ATTACKS(`http://rebound.example:${started.runner.port}`, ''),
      );
      await nothingHappened(started);
      expect(told['read']).toBe('basic 403');
      expect(told['fetch']).toBe('basic 403');
    },
    120_000,
  );
});
