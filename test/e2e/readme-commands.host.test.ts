import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { loadNotifySettings } from '../../src/notify/service/settings.ts';
import { loadRunnerSettings } from '../../src/runner/settings/settings.ts';
import { atPorts, shellBlocks } from '../support/readme.ts';
import { Terminal } from '../support/terminal.ts';

/*
 * The first commands of docs/runner.md and docs/notifications.md, typed as they are written but for the project's
 * place and the ports, which are free ones: and what the documents say of them.
 */
const TIMEOUT_MS = 120_000;
const WAIT = { timeout: 120_000, interval: 50 };
const RUNNER = { PORT: '0', RUNNER_DISK_FLOOR_BYTES: '0' };
const NOTIFY = {
  NOTIFY_INTERNAL_PORT: '0',
  NOTIFY_CLIENT_PORT: '0',
  NOTIFY_METRICS_PORT: '0',
  NOTIFY_DRAIN_MS: '0',
};

/** A project whose workflow `ci` has this as its one step. */
async function projectWith(script: string): Promise<string> {
  const project = await mkdtemp(join(tmpdir(), 'gatehouse-readme-'));
  onTestFinished(() => rm(project, { recursive: true, force: true }));
  const workflows = join(project, '.github/workflows');
  await mkdir(workflows, { recursive: true });
  await writeFile(
    join(workflows, 'ci.yml'),
    `name: Greeting
on: { workflow_dispatch: { inputs: { who: { default: nobody } } } }
jobs:
  greet:
    runs-on: ubuntu-latest
    steps:
      - name: Say hello
        run: ${script}
        env: { WHO: '\${{ inputs.who }}' }
`,
  );
  return project;
}

function inProject(commands: string | undefined, project: string): string {
  expect(commands).toContain('../my-project');
  return commands?.replaceAll('../my-project', project) ?? '';
}

/** The first port that matches in what a server logs once it listens. */
async function portIn(server: Terminal, line: RegExp): Promise<number> {
  await expect.poll(() => server.output, WAIT).toMatch(line);
  return Number(line.exec(server.output)?.[1]);
}

test(
  'runner list and run: the workflows, each job and step as it goes, the conclusion as exit code',
  async () => {
    const [commands] = shellBlocks('Run workflows', 'docs/runner.md');
    const terminal = await Terminal.open(RUNNER);
    terminal.type(inProject(commands, await projectWith('echo "hello, $WHO"')));
    expect(await terminal.exit(), terminal.output).toBe(0);
    expect(terminal.output).toMatch(/ci\.yml +Greeting +workflow_dispatch/);
    expect(terminal.output).toMatch(/Say hello\n(.*\n)*.*hello, world\n(.*\n)*.*greet success/);

    const failing = await Terminal.open(RUNNER);
    const run = commands?.trim().split('\n').at(-1);
    failing.type(inProject(run, await projectWith('exit 3')));
    expect(await failing.exit(), failing.output).toBe(1);
    expect(failing.output).toMatch(/greet failure/);
  },
  TIMEOUT_MS,
);

test(
  "the runner's server: its page, a run over the API, and the stream of events",
  async () => {
    const [, block] = shellBlocks('Run workflows', 'docs/runner.md');
    const [start, post, stream] = inProject(block, await projectWith('echo "hello, $WHO"'))
      .trim()
      .split('\n') as [string, string, string];
    const server = await Terminal.open(RUNNER);
    server.type(start);
    const port = await portIn(server, /"port":(\d+).*"msg":"ready"/);
    const ports = new Map([[loadRunnerSettings({}).port, port]]);

    // The page is at the address beside the command.
    const [page] = /http:\S+/.exec(atPorts(start, ports)) ?? [''];
    expect(await (await fetch(page)).text()).toMatch(/^<!doctype html>/i);

    const events = await Terminal.open();
    events.type(atPorts(stream, ports));
    await expect.poll(() => events.output, WAIT).toContain('event: ping');
    const client = await Terminal.open();
    client.type(atPorts(post, ports));
    expect(await client.exit()).toBe(0);
    const { id } = JSON.parse(client.output) as { id: string };
    await expect.poll(() => events.output, WAIT).toContain('event: run.completed');
    expect(events.output).toContain(`"runId":"${id}"`);
    expect(events.output).toContain('"line":"hello, world"');
  },
  TIMEOUT_MS,
);

test(
  'notifications: the open stream shows the notification',
  async () => {
    const [block = ''] = shellBlocks('Send notifications', 'docs/notifications.md');
    const lines = block.trim().split('\n');
    const [start = ''] = lines;
    const dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-readme-'));
    onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
    const server = await Terminal.open({ ...NOTIFY, NOTIFY_DATA_DIR: dataDir });
    server.type(start);
    const defaults = loadNotifySettings({});
    const ports = new Map([
      [defaults.internalPort, await portIn(server, /"listener":"internal".*"port":(\d+)/)],
      [defaults.clientPort, await portIn(server, /"listener":"client".*"port":(\d+)/)],
    ]);

    // Typed one by one: what is sent before the stream is open is not for it.
    const streamAt = lines.findIndex((line) => line.endsWith(' &'));
    const client = await Terminal.open({ SERVICE_TOKEN: '' });
    client.type(atPorts(lines.slice(1, streamAt + 1).join('\n'), ports));
    await expect.poll(() => client.output, WAIT).toContain('event: ');
    client.type(atPorts(lines.slice(streamAt + 1).join('\n'), ports));
    // The answer to the call is printed in between, with no newline at its end.
    await expect
      .poll(() => client.output, WAIT)
      .toMatch(/id: 1\nevent: notification\ndata: .*"Plan shared with you"/);
  },
  TIMEOUT_MS,
);
