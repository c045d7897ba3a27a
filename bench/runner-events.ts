// Yields how long a step of the workflow runner that prints many lines takes while so many event
// streams are read, how many lines the readers got, and how many they were told of as a gap.
// Run: npm run bench -- runner-events [-- LINES [READERS…]]; default 100,000 lines, 0 1 16 256 readers.
import { fork } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '../src/observability/logger.ts';
import { createRunner } from '../src/runner/runner.ts';
import { loadRunnerSettings } from '../src/runner/settings/settings.ts';
import { systemClock } from '../src/shared/clock.ts';

type Totals = { readonly lines: number; readonly bytes: number; readonly closedEarly: number };

const [lines = '100000', ...readerArguments] = process.argv.slice(2);
const readerCounts = readerArguments.length > 0 ? readerArguments : ['0', '1', '16', '256'];
const workspace = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
process.once('exit', () => rmSync(workspace, { recursive: true, force: true }));
mkdirSync(join(workspace, '.github', 'workflows'), { recursive: true });
writeFileSync(
  join(workspace, '.github', 'workflows', 'chatty.yml'),
  `on: workflow_dispatch\njobs: { a: { runs-on: ubuntu-latest, steps: [{ run: "seq -f 'line %.0f of a chatty step' 1 ${lines}" }] } }\n`,
);

const runner = await createRunner(
  loadRunnerSettings({
    PORT: '0',
    HOST: '127.0.0.1',
    RUNNER_WORKSPACE: workspace,
    RUNNER_DISK_FLOOR_BYTES: '0',
    RUNNER_MAX_SUBSCRIBERS: '10000',
  }),
  {
    logger: createLogger('error'),
    version: 'bench',
    clock: systemClock,
    environment: { PATH: process.env['PATH'], HOME: workspace },
  },
);
const { runs, hub } = runner.parts;

async function measure(readers: number): Promise<void> {
  const droppedBefore = hub.stats.dropped;
  const child = fork(new URL('runner-events-reader.ts', import.meta.url), [
    String(runner.port),
    String(readers),
  ]);
  const told = (): Promise<unknown> => new Promise((resolve) => child.once('message', resolve));
  if (readers > 0) await told();
  const totals = readers > 0 ? told() : Promise.resolve({ lines: 0, bytes: 0, closedEarly: 0 });
  const start = performance.now();
  const { run } = await runs.start({ workflow: 'chatty', sandbox: { strategy: 'none' } });
  while (runs.get(run.id)?.completedAt === undefined) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const runMs = performance.now() - start;
  const { lines: received, bytes, closedEarly } = (await totals) as Totals;
  const readMs = performance.now() - start;
  child.kill();
  const gaps = hub.stats.dropped - droppedBefore;
  console.log(
    JSON.stringify({
      readers,
      lines: Number(lines),
      runMs: Math.round(runMs),
      untilAllSawTheEndMs: Math.round(readMs),
      received,
      gaps,
      isComplete: received + gaps === readers * Number(lines),
      closedEarly,
      megabytes: Math.round(bytes / 1e6),
      rssMegabytes: Math.round(process.memoryUsage().rss / 1e6),
    }),
  );
}

for (const readers of readerCounts) await measure(Number(readers));
await runner.stop();
process.exit(0);
