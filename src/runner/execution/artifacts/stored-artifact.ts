import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { AppError } from '../../../shared/app-error.ts';
import type { ArtifactStore } from '../../model/ports.ts';
import type { Artifact } from '../../model/run.ts';
import { fileNameOf, ZIP_TYPE } from '../../text/artifact-file.ts';
import { createFile, EXTRACT_LIMITS, extractZip } from './extract-zip.ts';
import { writeZip } from './write-zip.ts';

/** What the index file of an artifact holds beside it. */
export type StoredArtifact = {
  readonly artifact: Artifact;
  /** Name of the only file, for artifacts that are no zip of the store's making. */
  readonly entry: string | undefined;
  readonly unpackedBytes: number;
  readonly attempt: number;
  /** The file itself is the artifact, of its own name. Earlier stores have no such artifacts, and do not say so. */
  readonly isUnarchived?: boolean | undefined;
};

/** Undefined for a file that is not the index of an artifact. */
export function readIndex(text: string): StoredArtifact | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isStored(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isStored(value: unknown): value is StoredArtifact {
  if (typeof value !== 'object' || value === null || !('artifact' in value)) return false;
  const { artifact } = value;
  if (typeof artifact !== 'object' || artifact === null) return false;
  const texts = ['id', 'name', 'path', 'mimeType', 'runId', 'sha256', 'createdAt'];
  return texts.every((key) => typeof (artifact as Record<string, unknown>)[key] === 'string');
}

/** ArtifactStore.extract, for an artifact that is there. */
export async function unpackStored(
  stored: StoredArtifact,
  targetDir: string,
  how: NonNullable<Parameters<ArtifactStore['extract']>[2]>,
): Promise<boolean> {
  const { artifact, entry, unpackedBytes, isUnarchived = false } = stored;
  const isWhole = (await hashOf(artifact.path)) === artifact.sha256;
  if (!isWhole && how.isDamageAccepted !== true) {
    throw new AppError('INVALID_VALUE', `The artifact '${artifact.name}' is damaged`);
  }
  if (how.isPacked === true) {
    await putPacked(stored, targetDir);
  } else if (entry === undefined) {
    // Its own making: it is as large as it was, however well it was packed.
    const limits = { ...EXTRACT_LIMITS, bytesMax: unpackedBytes, ratioMax: Infinity };
    await extractZip(artifact.path, targetDir, limits);
  } else if (isUnarchived && artifact.mimeType === ZIP_TYPE) {
    // An archive of the job's making. Its bytes are bounded, so that its ratio need not be.
    await extractZip(artifact.path, targetDir, { ...EXTRACT_LIMITS, ratioMax: Infinity });
  } else {
    await copyTo(artifact, targetDir, entry);
  }
  return isWhole;
}

/** The archive as it is downloaded: one file that is stored without one gets its archive here. */
async function putPacked(
  { artifact, entry, isUnarchived = false }: StoredArtifact,
  targetDir: string,
): Promise<void> {
  if (isUnarchived || entry === undefined) {
    await copyTo(artifact, targetDir, fileNameOf(artifact));
    return;
  }
  const name = fileNameOf({ name: artifact.name, mimeType: ZIP_TYPE });
  const target = await createFile(targetDir, name);
  try {
    await writeZip([{ source: artifact.path, entry }], (chunk) => target.writeFile(chunk));
  } finally {
    await target.close();
  }
}

async function copyTo({ path }: Artifact, targetDir: string, name: string): Promise<void> {
  const target = await createFile(targetDir, name);
  await pipeline(createReadStream(path), target.createWriteStream());
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}
