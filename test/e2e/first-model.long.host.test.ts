import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Service, startService } from '../support/service.ts';

/* docs/first-model.md is typed as it is written, but for the service's address and the folder beside this one. */
const FOLDER = '../my-model';
const SECRET = 'first-secret';
let service: Service;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gatehouse-first-model-'));
  service = await startService({
    env: { GATEWAY_SERVICE_AUTH_TOKENS: '', GATEWAY_ADMIN_API_SECRET: SECRET },
  });
}, 120_000);
afterAll(async () => {
  await service.stop();
  await rm(folder, { recursive: true, force: true });
});

type Step = { readonly commands: string; readonly prints: string };

/** Blocks of commands, each with what the block of text behind it says is printed. */
function stepsOf(page: string): readonly Step[] {
  const blocks = page.matchAll(/^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?/gms);
  return [...blocks].map(([, commands = '', prints = '']) => ({ commands, prints }));
}

test('the transcript of a first model prints what it says', async () => {
  const page = await readFile('docs/first-model.md', 'utf8');
  expect(page).toContain(`GATEWAY_ADMIN_API_SECRET=${SECRET} npm start`);
  const steps = stepsOf(page);
  expect(steps.length).toBeGreaterThanOrEqual(10);
  const script = steps.map(({ commands }, index) => `${commands}echo "step ${index} done"\n`);
  const { stdout } = await promisify(execFile)(
    'bash',
    [
      '--norc',
      '-uc',
      `exec 2>&1\n${script.join('')}`
        .replaceAll(FOLDER, folder)
        .replaceAll('localhost:8080', service.address),
    ],
    { timeout: 80_000, env: { ...process.env, XDG_CONFIG_HOME: folder } },
  );
  const printed = stdout
    .replaceAll(folder, FOLDER)
    .replaceAll(service.address, 'localhost:8080')
    .replaceAll(/token \S+/g, 'token …')
    .split(/^step \d+ done\n/m);
  expect(printed).toEqual([...steps.map(({ prints }) => prints), '']);
}, 120_000);
