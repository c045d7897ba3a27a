import { lstatSync, mkdirSync, realpathSync, rmSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Entry, ZipFile } from 'yauzl';
import { AppError } from '../../../shared/app-error.ts';
import { createWithin, isWithin } from '../../storage/contained-file.ts';
import { mustEntryName } from './artifact-names.ts';

export type ExtractLimits = {
  readonly entriesMax: number;
  readonly bytesMax: number;
  /** How many times larger than its packed form a file may be. */
  readonly ratioMax: number;
};

export const EXTRACT_LIMITS: ExtractLimits = {
  entriesMax: 50_000,
  bytesMax: 4 * 1024 * 1024 * 1024,
  ratioMax: 100,
};

const FILE_MODE = 0o644;
const FILE_TYPE_MASK = 0o170000;
const REGULAR_TYPE = 0o100000;
const DIRECTORY_TYPE = 0o040000;

/**
 * Unpacks a zip into `targetDir`. Nothing is written outside of it, neither by the names in the archive
 * nor through links that lie in the folder already; a link in place of a file is replaced.
 * Errors: INVALID_NAME for absolute, `..` and other impossible names; INVALID_VALUE for links, devices,
 * encrypted or damaged entries; RESULT_TOO_LARGE for too many or too large ones.
 */
export async function extractZip(
  path: string,
  targetDir: string,
  limits: ExtractLimits = EXTRACT_LIMITS,
): Promise<void> {
  mkdirSync(targetDir, { recursive: true });
  const root = realpathSync(targetDir);
  const zip = await openZip(path);
  try {
    if (zip.entryCount > limits.entriesMax)
      throw tooLarge(`more than ${limits.entriesMax} entries`);
    const budget = { bytesLeft: limits.bytesMax };
    const folders = new Set<string>();
    for await (const entry of zip.eachEntry()) {
      await extractEntry(zip, entry, root, folders, budget, limits);
    }
  } catch (error) {
    throw asAppError(error);
  } finally {
    zip.close();
  }
}

async function openZip(path: string): Promise<ZipFile> {
  try {
    const { openPromise } = await import('yauzl');
    return await openPromise(path, { autoClose: false });
  } catch (error) {
    throw new AppError('INVALID_VALUE', 'The archive is damaged', {}, error);
  }
}

async function extractEntry(
  zip: ZipFile,
  entry: Entry,
  root: string,
  folders: Set<string>,
  budget: { bytesLeft: number },
  limits: ExtractLimits,
): Promise<void> {
  const isFolder = entry.fileName.endsWith('/');
  const name = isFolder ? entry.fileName.slice(0, -1) : entry.fileName;
  mustEntryName(name);
  refuseSpecial(entry, isFolder);
  const path = join(root, name);
  makeFolder(isFolder ? path : dirname(path), root, folders);
  if (isFolder) return;
  const { uncompressedSize, compressedSize } = entry;
  // The sizes are what the archive says; reading stops where they turn out to be wrong.
  if (uncompressedSize > limits.ratioMax * Math.max(compressedSize, 1)) {
    throw tooLarge(`a file that is over ${limits.ratioMax} times its packed size`);
  }
  budget.bytesLeft -= uncompressedSize;
  if (budget.bytesLeft < 0) throw tooLarge(`more than ${limits.bytesMax} bytes`);
  clearPlace(path, name);
  const target = (await createWithin(path, root, FILE_MODE)).createWriteStream();
  try {
    // Nothing is awaited in between: an error of a stream that nobody listens to yet ends the process.
    const stream: Readable = await zip.openReadStreamPromise(entry);
    await pipeline(stream, boundedBy(uncompressedSize), target);
  } finally {
    target.destroy();
  }
}

/**
 * The new file `name` below `targetDir`, open to write, with its folders made and nothing in its place.
 * Errors: as extractZip.
 */
export async function createFile(targetDir: string, name: string): Promise<FileHandle> {
  mustEntryName(name);
  mkdirSync(targetDir, { recursive: true });
  const root = realpathSync(targetDir);
  const path = join(root, name);
  makeFolder(dirname(path), root, new Set());
  clearPlace(path, name);
  return await createWithin(path, root, FILE_MODE);
}

/** Whatever lies there is replaced, not written through. */
function clearPlace(path: string, name: string): void {
  const there = lstatSync(path, { throwIfNoEntry: false });
  if (there === undefined) return;
  if (there.isDirectory()) {
    throw new AppError('INVALID_VALUE', `'${name}' is a folder already`, { entry: name });
  }
  rmSync(path);
}

function refuseSpecial(entry: Entry, isFolder: boolean): void {
  const type = (entry.externalFileAttributes >>> 16) & FILE_TYPE_MASK;
  const isPlain = type === 0 || type === (isFolder ? DIRECTORY_TYPE : REGULAR_TYPE);
  if (isPlain && !entry.isEncrypted()) return;
  const text = `The archive holds '${entry.fileName}', which is a link, a device or encrypted`;
  throw new AppError('INVALID_VALUE', text, { entry: entry.fileName });
}

/** Makes the folder and makes sure that links in its path do not lead out of `root`. */
function makeFolder(folder: string, root: string, known: Set<string>): void {
  if (folder === root || known.has(folder)) return;
  makeFolder(dirname(folder), root, known);
  const there = lstatSync(folder, { throwIfNoEntry: false });
  if (there === undefined) mkdirSync(folder);
  const real = realpathSync(folder);
  if (!isWithin(root, real)) {
    throw new AppError('INVALID_VALUE', 'A link in the folder leads out of it', { field: 'path' });
  }
  known.add(folder);
}

/** Passes on at most `bytesMax` bytes: more than an entry has by its own words is an attack. */
function boundedBy(bytesMax: number): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, callback) {
      bytes += chunk.length;
      if (bytes > bytesMax) callback(tooLarge('a file larger than it says'));
      else callback(null, chunk);
    },
  });
}

function tooLarge(what: string): AppError {
  return new AppError('RESULT_TOO_LARGE', `The archive holds ${what}`);
}

/** What yauzl refuses (absolute names, `..`, backslashes, false sizes) is an archive that cannot be unpacked. */
function asAppError(error: unknown): unknown {
  if (error instanceof AppError) return error;
  if (error instanceof Error && !('code' in error)) {
    return new AppError('INVALID_VALUE', `The archive cannot be unpacked: ${error.message}`);
  }
  return error;
}
