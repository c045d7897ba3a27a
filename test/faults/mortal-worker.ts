// Entry of a decision worker whose thread ends when any other thread of the process says so.
import { BroadcastChannel, type MessagePort } from 'node:worker_threads';
import type { HelloMessage, HelloReply } from '../../src/protocol/messages.ts';
import decisionWorker from '../../src/workers/host/decision-worker.ts';
import type { WorkerSettings } from '../../src/workers/host/worker-settings.ts';

export default function mortalWorker(hello: HelloMessage<MessagePort, WorkerSettings>): HelloReply {
  const channel = new BroadcastChannel('end-worker');
  channel.addEventListener('message', (message) => {
    if ((message as unknown as { data: unknown }).data === hello.settings.slot) process.exit(3);
  });
  return decisionWorker(hello);
}
