import { execFile, execFileSync } from 'node:child_process';
import { closeSync, constants, existsSync, openSync, unlinkSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nativePipe } from '../../../shared/native-spawn.ts';
import { makeProcessFolder, memoryFolder } from './process-folder.ts';

const MAKER = 'mkfifo';
const FOLDER_PREFIX = 'runner-pipes-';
/** The first ones are waited for. */
const FIRST_PIPES = 4;
/** So many are made at once in the background: one more process start for as many steps. */
const PIPES_MADE_AT_ONCE = 64;
const PIPES_LEFT_MIN = 3;

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
let folder: string | undefined;
let madeCount = 0;
let isMaking = false;
let isAvailable = process.platform !== 'win32';

/** A pipe, undefined where there are none: use what Node offers then. Cost: one system call. */
export function takeOutputPipe(): OutputPipe | undefined {
  const native = nativePipe();
  if (native === undefined) return takeNamedPipe();
  const reader = new Socket({ fd: native.readFd, readable: true, writable: false });
  return { reader, writeFd: native.writeFd };
}

/**
 * A pipe where no anonymous ones can be had (Node cannot make any): a named one in a folder of our own
 * that is unlinked as it is opened. Cost: three system calls; once in 64 times a start of mkfifo.
 */
export function takeNamedPipe(): OutputPipe | undefined {
  if (readyPaths.length <= PIPES_LEFT_MIN && isAvailable) {
    makePipes();
  }
  const path = readyPaths.pop();
  if (path === undefined) {
    return undefined;
  }
  try {
    return openPipe(path);
  } catch {
    // Somebody cleaned the temporary folder: do without this time, in a new folder the next.
    readyPaths.length = 0;
    folder = undefined;
    return undefined;
  }
}

function makePipes(): void {
  try {
    if (readyPaths.length === 0) {
      const paths = newPaths(FIRST_PIPES);
      execFileSync(MAKER, ['-m', '600', ...paths], { stdio: 'ignore' });
      readyPaths.push(...paths);
    }
    if (!isMaking) {
      isMaking = true;
      const paths = newPaths(PIPES_MADE_AT_ONCE);
      const child = execFile(MAKER, ['-m', '600', ...paths], (error) => {
        isMaking = false;
        if (error === null) {
          readyPaths.push(...paths);
        }
      });
      child.unref();
    }
  } catch {
    // No such program, or no such files on this disk: pipes are an improvement only. When the folder
    // was cleaned away, the next call makes another.
    isAvailable = folder !== undefined && !existsSync(folder);
    folder = undefined;
  }
}

function newPaths(count: number): string[] {
  folder ??= makeProcessFolder(memoryFolder() ?? tmpdir(), FOLDER_PREFIX);
  const paths: string[] = [];
  for (let index = 0; index < count; index += 1) {
    madeCount += 1;
    paths.push(join(folder, String(madeCount)));
  }
  return paths;
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
