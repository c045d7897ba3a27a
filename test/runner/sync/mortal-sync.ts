/**
 * A process for kill.host.test.ts: records deployments and admits deliveries as fast as it can, and prints
 * each once it is acknowledged. Its argument is the state folder.
 */
import { createHmac } from 'node:crypto';
import { createLonelySync } from './lonely-sync.ts';

const stateDir = process.argv[2] ?? '';
const round = process.argv[3] ?? '';
const sync = await createLonelySync(stateDir, (event) => {
  process.stdout.write(`problem ${event}\n`);
});
for (let number = 0; ; number++) {
  const id = `${round}-${number}`;
  sync.deployments.deploymentStarted(
    {
      id,
      workflow: 'w'.repeat(2000),
      fileName: 'w.yml',
      name: 'w',
      runNumber: 1,
      attempt: 1,
      status: 'in_progress',
      jobs: [],
      createdAt: '',
      updatedAt: '',
      trigger: { event: 'push', ref: '', sha: '' },
    },
    'deploy',
    'staging',
    (text) => text,
  );
  await sync.deployments.flush();
  process.stdout.write(`deployment ${id}\n`);
  const rawBody = Buffer.from(JSON.stringify({ id }));
  const signature = createHmac('sha256', 'secret').update(rawBody).digest('hex');
  const headers = new Headers({
    'x-host-event': 'push',
    'x-host-delivery': id,
    'x-host-signature-256': `sha256=${signature}`,
  });
  await sync.verifyDelivery({ headers, rawBody });
  process.stdout.write(`delivery ${id}\n`);
}
