import { constants, type Stats } from 'node:fs';
import { open, realpath, type FileHandle } from 'node:fs/promises';
import { sep } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import type { RunService } from '../model/ports.ts';
import type { Artifact } from '../model/run.ts';
import { fileNameOf } from '../text/artifact-file.ts';
import { isMatched, jsonAnswer, type Answer } from './answer.ts';
import { rangeOf } from './byte-range.ts';
import { headerOf, parameterOf, type ApiCall } from './call.ts';
import type { ApiRoute } from './router.ts';
import { mustFind } from './run-routes.ts';

/** Characters that an extended value holds as they are (RFC 8187 §3.2.1). */
const PLAIN = /[A-Za-z0-9!#$&+.^_`|~-]/;

/**
 * `attachment` with the name twice (RFC 6266): plain ASCII for old clients, and UTF-8. A name with
 * quotes, line breaks or separators cannot leave its place.
 */
export function attachmentHeader(name: string): string {
  const ascii = name.replaceAll(/[^\x20-\x7e]/gu, '_').replaceAll(/["\\%/]/g, '_');
  return `attachment; filename="${ascii}"; filename*=UTF-8''${extended(name)}`;
}

function extended(name: string): string {
  let text = '';
  for (const byte of Buffer.from(name)) {
    const character = String.fromCharCode(byte);
    const isPlain = byte < 0x80 && PLAIN.test(character);
    text += isPlain ? character : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return text;
}

const READ_BYTES = 262_144;
const DEFAULT_TYPE = 'application/octet-stream';
/** A job's HTML or SVG that is shown all the same is of no origin and runs nothing (Content Security Policy Level 3). */
const POLICY = "default-src 'none'; sandbox; frame-ancestors 'none'";
const MEDIA_TYPE = /^[\w.+-]+\/[\w.+-]+(; ?[\w.+-]+=[\w.+-]+)*$/;

/** Artifacts of runs. `storeDir` is the folder below which all of their files lie. */
export function artifactRoutes(runs: RunService, storeDir: string): readonly ApiRoute[] {
  return [
    {
      method: 'GET',
      pattern: '/api/runs/:id/artifacts',
      handle: (call) => {
        const artifacts = runs.artifacts(mustFind(runs, call).id);
        return jsonAnswer(200, artifacts.toSorted(byName), [], true);
      },
    },
    {
      method: 'GET',
      pattern: '/api/runs/:id/artifacts/:name',
      handle: (call) => download(runs, storeDir, call),
    },
  ];
}

/** The name is looked up among the artifacts and never becomes part of a path. */
async function download(runs: RunService, storeDir: string, call: ApiCall): Promise<Answer> {
  const name = parameterOf(call, 'name');
  const artifact = runs.artifacts(mustFind(runs, call).id).find((one) => one.name === name);
  if (artifact === undefined) {
    throw new AppError('ARTIFACT_NOT_FOUND', 'the run has no artifact of this name');
  }
  const { handle, stats } = await openInside(storeDir, artifact.path);
  try {
    return answerOf(artifact, handle, stats.size, call);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

function answerOf(artifact: Artifact, handle: FileHandle, size: number, call: ApiCall): Answer {
  const etag = `"${artifact.sha256}"`;
  const ifRange = headerOf(call.headers, 'if-range');
  const isRangeWanted = ifRange === '' || ifRange === etag;
  const range = isRangeWanted ? rangeOf(headerOf(call.headers, 'range'), size) : undefined;
  const { start, end } = range ?? { start: 0, end: size - 1 };
  const isRefetch = isMatched(headerOf(call.headers, 'if-none-match'), etag);
  // Nobody will read it: HEAD, an empty file, or a copy that the client has already.
  const isUnread = call.isHead || end < start || isRefetch;
  if (isUnread) void handle.close();
  const contentType = MEDIA_TYPE.test(artifact.mimeType) ? artifact.mimeType : DEFAULT_TYPE;
  const headers = [
    'content-disposition',
    attachmentHeader(fileNameOf(artifact)),
    'accept-ranges',
    'bytes',
    'cache-control',
    'private, no-cache',
    'content-security-policy',
    POLICY,
  ];
  if (range !== undefined) headers.push('content-range', `bytes ${start}-${end}/${size}`);
  return {
    kind: 'sized',
    status: range === undefined ? 200 : 206,
    contentType,
    totalBytes: end - start + 1,
    open: () => readRange(handle, start, end),
    headers,
    etag,
  };
}

/**
 * Opens a regular file that really lies below `storeDir`, links resolved.
 * Errors: ARTIFACT_NOT_FOUND when it does not, or is gone.
 */
async function openInside(
  storeDir: string,
  path: string,
): Promise<{ readonly handle: FileHandle; readonly stats: Stats }> {
  let handle: FileHandle | undefined;
  try {
    const root = await realpath(storeDir);
    const real = await realpath(path);
    if (!real.startsWith(`${root}${sep}`)) throw gone();
    handle = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW);
    const stats = await handle.stat();
    if (!stats.isFile()) throw gone();
    return { handle, stats };
  } catch (error) {
    await handle?.close();
    if (error instanceof AppError) throw error;
    throw gone(error);
  }
}

function gone(cause?: unknown): AppError {
  return new AppError('ARTIFACT_NOT_FOUND', 'the file of the artifact is gone', {}, cause);
}

async function* readRange(
  handle: FileHandle,
  start: number,
  end: number,
): AsyncGenerator<Uint8Array> {
  try {
    for (let at = start; at <= end;) {
      // Of its own for each part: the last one may still wait to be sent.
      const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, end - at + 1));
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}

function byName(a: Artifact, b: Artifact): number {
  if (a.name === b.name) return 0;
  return a.name < b.name ? -1 : 1;
}
