/**
 * A runner of the project in the first argument, to be killed at any instant. It starts runs of all its
 * workflows and writes each event, once it is announced, to its output before it goes on.
 */
import { writeSync } from 'node:fs';
import { createBench } from '../support/scheduler-bench.ts';

const [dir = ''] = process.argv.slice(2);

function tell(message: unknown): void {
  writeSync(1, `${JSON.stringify(message)}\n`);
}

const bench = await createBench({
  project: {
    dir,
    write: () => Promise.reject(new Error('read only')),
    workflow: () => Promise.reject(new Error('read only')),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  },
  limits: { runsInProgressMax: 3, jobsInProgressMax: 3 },
});
bench.events.onEvent = tell;
tell({ type: 'ready' });
for (;;) {
  for (const workflow of ['graph', 'matrix', 'chatty', 'grouped']) {
    try {
      const { run } = await bench.service.start({ workflow });
      tell({ type: 'accepted', runId: run.id });
      if (workflow === 'matrix' && run.runNumber % 3 === 0) {
        await bench.service.cancel(run.id);
        tell({ type: 'cancelled', runId: run.id });
      }
    } catch (error) {
      tell({ type: 'refused', message: String(error) });
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
