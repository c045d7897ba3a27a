import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, rmSync, unlinkSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Pipes made by one call of mkfifo: one more process start for so many steps. */
const PIPES_MADE_AT_ONCE = 64;

/**
 * A real pipe, whose write end a child takes as both stdout and stderr: what it writes to the two then
 * arrives in the order written, and programs may open /dev/stdout (the socket pairs that Node makes by
 * itself allow neither).
 */
export type OutputPipe = {
  readonly reader: Socket;
  /** Blocking; the owner closes it once the child has it. */
  readonly writeFd: number;
};

const readyPaths: string[] = [];
let isAvailable = process.platform !== 'win32';

/**
 * A pipe, made from a named one in a folder of our own that is unlinked as it is opened, because Node
 * cannot make anonymous ones. Undefined where the system has none: use what Node offers then.
 * Cost: three system calls; once in 64 times a start of mkfifo.
 */
export function takeOutputPipe(): OutputPipe | undefined {
  if (readyPaths.length === 0 && isAvailable) {
    makePipes();
  }
  const path = readyPaths.pop();
  if (path === undefined) {
    return undefined;
  }
  try {
    return openPipe(path);
  } catch {
    // Somebody cleaned the temporary folder: start over next time, do without this time.
    readyPaths.length = 0;
    return undefined;
  }
}

function makePipes(): void {
  const folder = mkdtempSync(join(tmpdir(), 'runner-pipes-'));
  const paths = Array.from({ length: PIPES_MADE_AT_ONCE }, (_, index) =>
    join(folder, String(index)),
  );
  try {
    execFileSync('mkfifo', ['-m', '600', ...paths], { stdio: 'ignore' });
    readyPaths.push(...paths);
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  } catch {
    // No such program, or no such files on this disk: pipes are an improvement only.
    isAvailable = false;
    rmSync(folder, { recursive: true, force: true });
  }
}

function openPipe(path: string): OutputPipe {
  // Non-blocking, or opening would wait for a writer.
  const readFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writeFd = openSync(path, constants.O_WRONLY);
  try {
    unlinkSync(path);
    return { reader: new Socket({ fd: readFd, readable: true, writable: false }), writeFd };
  } catch (error) {
    closeSync(readFd);
    closeSync(writeFd);
    throw error;
  }
}
