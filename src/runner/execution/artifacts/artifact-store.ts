import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import type { ArtifactStore } from '../../model/ports.ts';
import type { Artifact } from '../../model/run.ts';
import { syncDirectory, writeFileAtomic } from '../../storage/atomic-file.ts';
import { ifPresent, storageError } from '../../storage/file-errors.ts';
import { mustArtifactName, mustEntryName } from './artifact-names.ts';
import { readIndex, type StoredArtifact, unpackStored } from './stored-artifact.ts';
import { openRegular, streamOf, writeZip, type ZipSource } from './write-zip.ts';

/** Of one artifact as it is stored. */
const ARTIFACT_BYTES_MAX = 1024 * 1024 * 1024;
const ARTIFACTS_PER_RUN_MAX = 500;
const RUN_ID = /^[A-Za-z0-9_-]{1,64}$/;
const EXTENSION = /^\.[A-Za-z0-9]{1,16}$/;
const FOLDER = 'artifacts';

export type ArtifactStoreOptions = {
  /** Default 1 GiB. */
  readonly bytesMax?: number | undefined;
};

/**
 * The artifacts below `runsDir`: `<run>/artifacts/<id>.<extension>` and `<id>.json`, written in this
 * order, so that a crash leaves no index without its file. Reads the indexes that are there.
 */
export async function createArtifactStore(
  runsDir: string,
  options: ArtifactStoreOptions = {},
): Promise<ArtifactStore> {
  const store = new FileArtifactStore(runsDir, options.bytesMax ?? ARTIFACT_BYTES_MAX);
  await store.load();
  return store;
}

class FileArtifactStore implements ArtifactStore {
  readonly #runsDir: string;
  readonly #bytesMax: number;
  /** By run, then by name. */
  readonly #runs = new Map<string, Map<string, StoredArtifact>>();
  /** Names that are being written now. */
  readonly #reserved = new Set<string>();

  constructor(runsDir: string, bytesMax: number) {
    this.#runsDir = runsDir;
    this.#bytesMax = bytesMax;
  }

  async load(): Promise<void> {
    const runs = (await ifPresent(readdir(this.#runsDir))) ?? [];
    for (const runId of runs.filter((name) => RUN_ID.test(name))) {
      const folder = this.#folder(runId);
      const names = (await ifPresent(readdir(folder))) ?? [];
      for (const name of names) {
        if (name.endsWith('.json')) await this.#loadOne(runId, join(folder, name));
        else if (name.endsWith('.tmp')) await rm(join(folder, name), { force: true });
      }
    }
  }

  async add(request: Parameters<ArtifactStore['add']>[0]): Promise<Artifact> {
    const { runId, name, files, attempt = 1, isUnarchived = false } = request;
    mustArtifactName(name);
    for (const file of files) mustEntryName(file.entry);
    if (files.length === 0)
      throw new AppError('INVALID_VALUE', 'An artifact holds at least one file');
    if (isUnarchived && (files.length > 1 || files[0]?.entry !== name)) {
      throw new AppError('INVALID_VALUE', 'A file that is no archive is alone, by its own name');
    }
    const present = this.#runs.get(runId)?.get(name);
    const isOverwriting =
      request.isOverwriting || (present !== undefined && present.attempt < attempt);
    const key = `${runId}/${name}`;
    if (this.#reserved.has(key) || (present !== undefined && !isOverwriting)) {
      throw new AppError('DUPLICATE_ARTIFACT', `The run has an artifact '${name}' already`);
    }
    if (present === undefined && (this.#runs.get(runId)?.size ?? 0) >= ARTIFACTS_PER_RUN_MAX) {
      throw new AppError(
        'RESULT_TOO_LARGE',
        `A run has at most ${ARTIFACTS_PER_RUN_MAX} artifacts`,
      );
    }
    this.#reserved.add(key);
    try {
      const stored = await this.#write(runId, name, files, { attempt, isUnarchived });
      const byName = this.#runs.get(runId) ?? new Map<string, StoredArtifact>();
      this.#runs.set(runId, byName.set(name, stored));
      if (present !== undefined) await this.#remove(present);
      return stored.artifact;
    } catch (error) {
      throw storageError('storing the artifact', error);
    } finally {
      this.#reserved.delete(key);
    }
  }

  list(runId: string): readonly Artifact[] {
    const stored = [...(this.#runs.get(runId)?.values() ?? [])];
    return stored
      .map(({ artifact }) => artifact)
      .sort((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));
  }

  find(runId: string, name: string): Artifact | undefined {
    return this.#runs.get(runId)?.get(name)?.artifact;
  }

  async extract(
    artifact: Artifact,
    targetDir: string,
    how: Parameters<ArtifactStore['extract']>[2] = {},
  ): Promise<boolean> {
    const stored = this.#runs.get(artifact.runId)?.get(artifact.name);
    if (stored === undefined || stored.artifact.id !== artifact.id) {
      throw new AppError('ARTIFACT_NOT_FOUND', `There is no artifact '${artifact.name}'`);
    }
    return await unpackStored(stored, targetDir, how);
  }

  async removeRun(runId: string): Promise<void> {
    this.#runs.delete(runId);
    await rm(this.#folder(runId), { recursive: true, force: true });
  }

  #folder(runId: string): string {
    if (!RUN_ID.test(runId)) throw new AppError('INVALID_VALUE', 'not the id of a run');
    return join(this.#runsDir, runId, FOLDER);
  }

  async #loadOne(runId: string, indexPath: string): Promise<void> {
    const stored = readIndex(await readFile(indexPath, 'utf8'));
    if (stored === undefined || stored.artifact.runId !== runId) return;
    // The folder may have been moved as a whole; the file stands beside its index.
    const path = join(this.#folder(runId), basename(stored.artifact.path));
    const byName = this.#runs.get(runId) ?? new Map<string, StoredArtifact>();
    const other = byName.get(stored.artifact.name);
    // A crash between the two steps of an overwrite: the newer one counts.
    if (other !== undefined && other.artifact.createdAt > stored.artifact.createdAt) return;
    byName.set(stored.artifact.name, { ...stored, artifact: { ...stored.artifact, path } });
    this.#runs.set(runId, byName);
  }

  async #write(
    runId: string,
    name: string,
    files: readonly ZipSource[],
    more: Pick<StoredArtifact, 'attempt' | 'isUnarchived'>,
  ): Promise<StoredArtifact> {
    const folder = this.#folder(runId);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const id = randomUUID();
    const [only] = files.length === 1 ? files : [];
    const extension = only === undefined ? '.zip' : safeExtension(only.entry);
    const path = join(folder, `${id}${extension}`);
    const temporary = `${path}.tmp`;
    try {
      const written = await this.#writeFile(temporary, files);
      await rename(temporary, path);
      await syncDirectory(folder);
      const mimeType = only === undefined ? 'application/zip' : await mimeTypeOf(only.entry);
      const { size, sha256 } = written;
      const createdAt = new Date().toISOString();
      const artifact = { id, name, path, size, mimeType, runId, sha256, createdAt };
      const { unpackedBytes } = written;
      const stored = { artifact, entry: only?.entry, unpackedBytes, ...more };
      await writeFileAtomic(join(folder, `${id}.json`), JSON.stringify(stored));
      return stored;
    } catch (error) {
      await rm(temporary, { force: true });
      await rm(path, { force: true });
      throw error;
    }
  }

  async #writeFile(
    path: string,
    files: readonly ZipSource[],
  ): Promise<{ size: number; sha256: string; unpackedBytes: number }> {
    const hash = createHash('sha256');
    const target = await open(path, 'wx', 0o600);
    let size = 0;
    const sink = async (chunk: Uint8Array): Promise<void> => {
      size += chunk.length;
      if (size > this.#bytesMax) {
        const text = `An artifact has at most ${this.#bytesMax} bytes`;
        throw new AppError('RESULT_TOO_LARGE', text);
      }
      hash.update(chunk);
      await target.writeFile(chunk);
    };
    try {
      const [first] = files;
      const isOne = files.length === 1 && first !== undefined;
      const unpacked = isOne ? await copyInto(first, sink) : await writeZip(files, sink);
      await target.sync();
      return { size, sha256: hash.digest('hex'), unpackedBytes: unpacked };
    } finally {
      await target.close();
    }
  }

  async #remove(stored: StoredArtifact): Promise<void> {
    const folder = this.#folder(stored.artifact.runId);
    await rm(join(folder, `${stored.artifact.id}.json`), { force: true });
    await rm(stored.artifact.path, { force: true });
  }
}

async function copyInto(
  source: ZipSource,
  sink: (chunk: Uint8Array) => Promise<void>,
): Promise<number> {
  const handle = await openRegular(source);
  let bytes = 0;
  for await (const chunk of await streamOf(handle)) {
    bytes += (chunk as Buffer).length;
    await sink(chunk as Buffer);
  }
  return bytes;
}

function safeExtension(entry: string): string {
  const extension = extname(entry);
  // `.json` and `.tmp` beside an id are the store's own names.
  const isOwn = extension === '.json' || extension === '.tmp';
  return EXTENSION.test(extension) && !isOwn ? extension : '.bin';
}

/** The table of types is large, and only wanted when something is stored. */
async function mimeTypeOf(entry: string): Promise<string> {
  const { default: mimeTypes } = await import('mime-types');
  const type = mimeTypes.lookup(entry);
  return type === false ? 'application/octet-stream' : type;
}
