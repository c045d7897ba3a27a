import { randomFillSync } from 'node:crypto';
import type { Pool } from 'pg';
import type { Clock } from '../../shared/time/clock.ts';
import { isFenced, storeError } from '../../store/postgres/pg-errors.ts';
import {
  deleteOpenFgaStore,
  insertOpenFgaModel,
  insertOpenFgaStore,
  OPENFGA_COMMENT,
  type OpenFgaModelRow,
  type OpenFgaStoreRow,
  type OpenFgaTupleFilter,
  type OpenFgaTupleRow,
  selectOpenFgaModels,
  selectOpenFgaStore,
  selectOpenFgaStores,
  selectOpenFgaTuples,
} from '../../store/sql/projects/openfga-stores.ts';
import type { WriteAdmission } from '../ports.ts';
import type { ProjectService } from '../projects/project-service.ts';
import type { SettingsSource } from '../projects/settings-source.ts';
import { SignedCursors } from '../reads/signed-cursor.ts';
import { PROJECT_SUSPENDED } from '../rules/project.ts';

const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const TIME_DIGITS = 10;
const RANDOM_DIGITS = 16;

/** A ULID (github.com/ulid/spec) in upper case: 48 bits of milliseconds, 80 random ones. */
export function ulidOf(
  nowMs: number,
  fill: (bytes: Uint8Array) => void = (bytes) => void randomFillSync(bytes),
): string {
  let time = '';
  for (let rest = Math.floor(nowMs), i = 0; i < TIME_DIGITS; i++) {
    time = (DIGITS[rest % 32] as string) + time;
    rest = Math.floor(rest / 32);
  }
  const bytes = new Uint8Array(RANDOM_DIGITS);
  fill(bytes);
  return time + Array.from(bytes, (byte) => DIGITS[byte % 32]).join('');
}

export type OpenFgaStoresOptions = {
  readonly pool: Pool;
  readonly admission: WriteAdmission;
  readonly clock: Clock;
  readonly projects: Pick<ProjectService, 'create' | 'update'>;
  readonly settingsSource: Pick<SettingsSource, 'settings' | 'guard'>;
  /** `deployment.token_key`. */
  readonly tokenKey: Uint8Array;
};

/** A store of OpenFGA's API: a project with an id of theirs. */
export type OpenFgaStore = {
  readonly id: string;
  readonly projectId: string;
  readonly name: string;
  readonly createdBy: string;
  readonly createdAtUs: number;
  readonly updatedAtUs: number;
  /** The model in force; '' if it did not come through OpenFGA's API. */
  readonly modelId: string;
};

/** A model of theirs that has come into force. */
export type OpenFgaModel = {
  readonly id: string;
  /** Numbers the project's model. */
  readonly version: number;
  /** The JSON as it came. */
  readonly document: string;
};

/** The caller that changes a store, and the id of its request. */
export type OpenFgaAuthor = { readonly caller: string; readonly requestId: string };

export type { OpenFgaTupleFilter, OpenFgaTupleRow };

const CURSOR_CHARACTERS_MAX = 4_096;
const UNCHANGED = {
  name: '',
  modelJson: '',
  dataRegion: '',
  clearDataRegion: false,
  maxCheckReads: 0,
  clearMaxCheckReads: false,
} as const;

/**
 * Stores of OpenFGA's API over projects, and the documents of their models. All methods also fail with STORE_UNAVAILABLE.
 *
 * O1 A model is seen from the moment at which the version that it became is in force, and by no other fact: the version's
 *    comment names it. [test/openfga/openfga.pg.test.ts]
 * O2 A store that was deleted is not found, and its project is suspended. [test/openfga/openfga.pg.test.ts]
 */
export class OpenFgaStores {
  readonly #options: OpenFgaStoresOptions;
  /** Pages of lists. */
  readonly cursors: SignedCursors;

  constructor(options: OpenFgaStoresOptions) {
    this.#options = options;
    this.cursors = new SignedCursors(options.tokenKey, {
      domain: 'openfga_page',
      charactersMax: CURSOR_CHARACTERS_MAX,
    });
  }

  /** Makes a project and its store. Errors: those of ProjectService.create. */
  async create(name: string, { caller, requestId }: OpenFgaAuthor): Promise<OpenFgaStore> {
    const { projects, clock } = this.#options;
    const id = ulidOf(clock.nowMs());
    const projectId = `fga-${id.toLowerCase()}`;
    const settings = { modelJson: '', dataRegion: '', maxCheckReads: 0 };
    await projects.create({ id: projectId, name, ...settings }, requestId, caller, caller);
    const store = { id, projectId, name, createdBy: caller };
    await this.#write((instanceId) => insertOpenFgaStore(this.#options.pool, instanceId, store));
    const made = await this.store(id);
    if (made === undefined) throw new Error('a store that was made is there');
    return made;
  }

  /** The store, or undefined. */
  async store(id: string): Promise<OpenFgaStore | undefined> {
    const row = await this.#run(selectOpenFgaStore(this.#options.pool, id));
    return row === undefined ? undefined : storeFromRow(row);
  }

  /** Stores that a caller made, behind the id `after`. */
  async list(
    caller: string,
    name: string,
    after: string,
    countMax: number,
  ): Promise<readonly OpenFgaStore[]> {
    const rows = selectOpenFgaStores(this.#options.pool, caller, name, after, countMax);
    return (await this.#run(rows)).map(storeFromRow);
  }

  /** Suspends the store's project, and has it not be found any more. Idempotent. */
  async delete(store: OpenFgaStore, { caller, requestId }: OpenFgaAuthor): Promise<void> {
    const suspended = { ...UNCHANGED, id: store.projectId, status: PROJECT_SUSPENDED };
    await this.#options.projects.update(suspended, requestId, caller, caller);
    const { pool } = this.#options;
    await this.#write((instanceId) => deleteOpenFgaStore(pool, instanceId, store.id));
  }

  /**
   * Keeps the document of a model, and gives the model's id with the comment that the version must have that the
   * model becomes (O1).
   */
  async recordModel(
    store: OpenFgaStore,
    document: string,
  ): Promise<{ id: string; comment: string }> {
    const { pool, clock } = this.#options;
    const id = ulidOf(clock.nowMs());
    const model = { storeId: store.id, id, document };
    await this.#write((instanceId) => insertOpenFgaModel(pool, instanceId, model));
    return { id, comment: OPENFGA_COMMENT + id };
  }

  /** The models of a store, the newest first, below a version; 0 is the beginning. */
  async models(
    store: OpenFgaStore,
    below: number,
    countMax: number,
  ): Promise<readonly OpenFgaModel[]> {
    const rows = selectOpenFgaModels(this.#options.pool, store, '', below, countMax);
    return (await this.#run(rows)).map(modelFromRow);
  }

  /** One model of a store, or undefined. */
  async model(store: OpenFgaStore, id: string): Promise<OpenFgaModel | undefined> {
    const rows = await this.#run(selectOpenFgaModels(this.#options.pool, store, id, 0, 1));
    return rows.map(modelFromRow)[0];
  }

  /** Tuples of a store's project. Errors: PROJECT_SUSPENDED, REGION_REFUSED. */
  async tuples(
    filter: OpenFgaTupleFilter,
    after: readonly string[] | null,
    countMax: number,
  ): Promise<readonly OpenFgaTupleRow[]> {
    const { settingsSource, pool } = this.#options;
    settingsSource.guard(await settingsSource.settings(filter.projectId), 'data');
    return await this.#run(selectOpenFgaTuples(pool, filter, after, countMax));
  }

  /** Sends a statement once this instance may write. */
  async #write(statement: (instanceId: string | null) => Promise<void>): Promise<void> {
    const { admission } = this.#options;
    for (;;) {
      const { writeId } = admission;
      if (writeId === undefined) {
        await admission.whenAdmitted();
        continue;
      }
      try {
        await statement(writeId);
        return;
      } catch (error) {
        if (!isFenced(error)) throw storeError(error);
        admission.refused(writeId);
      }
    }
  }

  async #run<T>(query: Promise<T>): Promise<T> {
    return await query.catch((error: unknown) => {
      throw storeError(error);
    });
  }
}

function storeFromRow(row: OpenFgaStoreRow): OpenFgaStore {
  const { comment } = row;
  const isTheirs = comment !== null && comment.startsWith(OPENFGA_COMMENT);
  return {
    id: row.id,
    projectId: row.project_id,
    name: row.name,
    createdBy: row.created_by,
    createdAtUs: Number(row.created_at_us),
    updatedAtUs: Number(row.updated_at_us),
    modelId: isTheirs ? comment.slice(OPENFGA_COMMENT.length) : '',
  };
}

function modelFromRow({ id, version, document }: OpenFgaModelRow): OpenFgaModel {
  return { id, version: Number(version), document };
}
