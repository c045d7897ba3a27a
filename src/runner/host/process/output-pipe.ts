import { execFile, execFileSync } from 'node:child_process';
import { closeSync, constants, existsSync, openSync, unlinkSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nativePipe, makeNamedPipe } from '../../../shared/process/native-spawn.ts';
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

/** A named pipe: the reader's end is open, and one for writing, so that it does not end before it began. */
export type PathPipe = OutputPipe & { readonly path: string };

/**
 * A pipe that another process opens by its path, once; the owner unlinks it then. Undefined where it
 * cannot be had. Cost: three system calls.
 */
export function takePathPipe(): PathPipe | undefined {
  const path = makePath();
  return path === undefined ? undefined : { ...openBoth(path), path };
}

/** A named pipe that this process writes to, however late another one opens `path` to read. */
export function takeInputPath(): { readonly writer: Socket; readonly path: string } | undefined {
  const path = makePath();
  if (path === undefined) return undefined;
  // For both ways, as opening for one waits for the other end. It is not read here.
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  return { writer: new Socket({ fd, readable: false, writable: true }), path };
}

function makePath(): string | undefined {
  for (let attempt = 0; attempt < 2; attempt += 1) {
    const [path = ''] = newPaths(1);
    if (makeNamedPipe(path)) return path;
    // Somebody cleaned the temporary folder: once more, in a new one.
    folder = undefined;
  }
  return undefined;
}

function makePipes(): void {
  try {
    if (readyPaths.length === 0) {
      const paths = newPaths(FIRST_PIPES);
      execFileSync(MAKER, ['-m', '600', ...paths], { stdio: 'ignore', env: makerEnvironment() });
      readyPaths.push(...paths);
    }
    if (!isMaking) {
      isMaking = true;
      const paths = newPaths(PIPES_MADE_AT_ONCE);
      const child = execFile(
        MAKER,
        ['-m', '600', ...paths],
        { env: makerEnvironment() },
        (error) => {
          isMaking = false;
          if (error === null) {
            readyPaths.push(...paths);
          }
        },
      );
      child.unref();
    }
  } catch {
    // No such program, or no such files on this disk: pipes are an improvement only. When the folder
    // was cleaned away, the next call makes another.
    isAvailable = folder !== undefined && !existsSync(folder);
    folder = undefined;
  }
}

/** Nothing of this process's own environment is the business of another program. */
function makerEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'] ?? '' };
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
  const pipe = openBoth(path);
  try {
    unlinkSync(path);
    return pipe;
  } catch (error) {
    pipe.reader.destroy();
    closeSync(pipe.writeFd);
    throw error;
  }
}

function openBoth(path: string): OutputPipe {
  // Non-blocking, or opening would wait for a writer.
  const readFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writeFd = openSync(path, constants.O_WRONLY);
  return { reader: new Socket({ fd: readFd, readable: true, writable: false }), writeFd };
}
