// Reads event streams for bench/runner-events.ts in a process of its own. Arguments: port, count.
// Tells its parent 'ready' when all are open, and what it counted when each has seen run.completed.
import { connect } from 'node:net';

const [port = '', count = '0'] = process.argv.slice(2);
const wanted = Number(count);
const LINE = Buffer.from('event: step.log\n');
const END = Buffer.from('event: run.completed\n');
/** A name may be cut between two chunks. */
const OVERLAP = END.length - 1;
const totals = { lines: 0, bytes: 0, closedEarly: 0 };
let openCount = 0;
let endedCount = 0;

function occurrences(bytes: Buffer, needle: Buffer): number {
  let found = 0;
  for (let at = bytes.indexOf(needle); at >= 0; at = bytes.indexOf(needle, at + needle.length)) {
    found += 1;
  }
  return found;
}

function read(): void {
  let rest = Buffer.alloc(0);
  let isEnded = false;
  const end = (): void => {
    if (isEnded) return;
    isEnded = true;
    endedCount += 1;
    if (endedCount === wanted) process.send?.(totals);
  };
  const socket = connect(Number(port), '127.0.0.1', () => {
    socket.write(`GET /api/events HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`);
  });
  socket.once('data', () => {
    openCount += 1;
    if (openCount === wanted) process.send?.('ready');
  });
  socket.on('data', (chunk) => {
    totals.bytes += chunk.length;
    const bytes = Buffer.concat([rest, chunk]);
    rest = Buffer.from(bytes.subarray(-OVERLAP));
    // What lies wholly in the overlap was counted before.
    totals.lines += occurrences(bytes, LINE) - occurrences(rest, LINE);
    if (bytes.includes(END)) end();
  });
  socket.on('close', () => {
    if (!isEnded) totals.closedEarly += 1;
    end();
  });
}

for (let i = 0; i < wanted; i++) read();
