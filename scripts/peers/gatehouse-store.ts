import { setTimeout as pause } from 'node:timers/promises';
import { readOpenFgaJson } from '../../src/language/openfga/read-openfga-model.ts';
import { importPeerModel, type ImportedModel } from '../../src/language/peers/import-peer-model.ts';
import type { PeerModel, PeerReference, PeerTuple } from '../../src/language/peers/peer-model.ts';
import type { PeerAnswer } from './openfga-server.ts';
import { openFgaJson } from './random-model.ts';
import type { PeerQuestion, QuestionBatch } from './random-store.ts';

/** A running instance, with its credentials. */
export type GatehouseTarget = {
  readonly baseUrl: string;
  readonly token: string;
  readonly adminSecret: string;
};

const ACTIVE = 'MODEL_ACTIVATION_STATE_ACTIVE';
const ACTIVE_TIMEOUT_MS = 30_000;

/** A model of OpenFGA as the importer has it; every subject is an object of its type, users included. */
export function importedModel(model: PeerModel): ImportedModel {
  return importPeerModel(readOpenFgaJson(JSON.stringify(openFgaJson(model))), { userType: 'none' });
}

/** A project that stands for a store of OpenFGA. */
export class GatehouseStore {
  readonly #target: GatehouseTarget;
  readonly #projectId: string;
  readonly #versions: { readonly version: string; readonly imported: ImportedModel }[] = [];

  private constructor(target: GatehouseTarget, projectId: string) {
    this.#target = target;
    this.#projectId = projectId;
  }

  /** Makes a project of this name. */
  static async create(target: GatehouseTarget, projectId: string): Promise<GatehouseStore> {
    const store = new GatehouseStore(target, projectId);
    await store.#must('workspace.v1.AdminService/CreateProject', {
      id: projectId,
      name: projectId,
    });
    return store;
  }

  /** Brings a version into force, whatever is stored. Errors: throws where it is refused. */
  async writeModel(imported: ImportedModel): Promise<void> {
    const written = await this.#must('gatehouse.v1.ModelService/WriteModel', {
      project_id: this.#projectId,
      model: { json: JSON.stringify(imported.document) },
      force: true,
    });
    const { version } = written as { version: string };
    this.#versions.push({ version, imported });
    const endMs = performance.now() + ACTIVE_TIMEOUT_MS;
    let state = (written as { activation?: { state?: string } }).activation?.state;
    while (state !== ACTIVE) {
      if (performance.now() > endMs) throw new Error(`version ${version} stays ${state}`);
      await pause(10);
      const answer = await this.#must('gatehouse.v1.ModelService/GetModelActivation', {
        project_id: this.#projectId,
      });
      ({ state } = (answer as { activation: { state: string } }).activation);
    }
  }

  /** Writes tuples by the latest version; each must be new. Errors: throws where one is refused. */
  async write(tuples: readonly PeerTuple[]): Promise<void> {
    const imported = this.#importedAt(this.#versions.length - 1);
    const updates = tuples.map((tuple) => ({ op: 'OP_INSERT', tuple: tupleJson(imported, tuple) }));
    await this.#must('gatehouse.v1.TupleService/WriteTuples', {
      project_id: this.#projectId,
      updates,
      modes: updates.map(() => 'UPDATE_MODE_ABSENT'),
    });
  }

  /** Asks what a batch asks, in its order; one question alone is a Check, several are a BatchCheck. */
  async ask(batch: QuestionBatch): Promise<readonly PeerAnswer[]> {
    const { questions } = batch;
    const imported = this.#importedAt(batch.version);
    const version = this.#versions[batch.version]?.version;
    const scope = {
      project_id: this.#projectId,
      // The only one is in force.
      ...(this.#versions.length === 1 ? {} : { model_version: version }),
      userset_mode: 'USERSET_MODE_EXACT',
      context: batch.context,
      contextual_tuples: batch.contextual.map((tuple) => tupleJson(imported, tuple)),
    };
    const asked = questions.map((question) => questionJson(imported, question));
    const isAlone = asked.length === 1;
    const method = isAlone ? 'Check' : 'BatchCheck';
    const { status, body } = await this.#call(`gatehouse.v1.QueryService/${method}`, {
      scope,
      ...(isAlone ? { question: asked[0] } : { items: asked.map((question) => ({ question })) }),
    });
    if (status !== 200) {
      const error = JSON.stringify(body);
      return questions.map(() => ({ allowed: false, error }));
    }
    const results = (isAlone ? [body] : (body as { results: unknown[] }).results) as Answer[];
    return results.map(({ allowed, error = '', undecided, unknown_relation: isUnknown }) => {
      // What is not decided, and a slip, is an error there.
      const reason = undecided ? 'undecided' : isUnknown ? 'unknown relation' : '';
      return { allowed, error: error || reason };
    });
  }

  #importedAt(position: number): ImportedModel {
    const found = this.#versions[position];
    if (found === undefined) throw new Error('no such version was written');
    return found.imported;
  }

  async #must(method: string, body: object): Promise<unknown> {
    const answer = await this.#call(method, body);
    if (answer.status === 200) return answer.body;
    throw new Error(`${method}: ${answer.status} ${JSON.stringify(answer.body)}`);
  }

  async #call(method: string, body: object): Promise<{ status: number; body: unknown }> {
    const { baseUrl, token, adminSecret } = this.#target;
    const response = await fetch(`${baseUrl}/${method}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${token}`,
        'x-admin-secret': adminSecret,
      },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: await response.json() };
  }
}

type Answer = {
  readonly allowed: boolean;
  readonly error?: string;
  readonly undecided: boolean;
  readonly unknown_relation: boolean;
};

function tupleJson(imported: ImportedModel, tuple: PeerTuple): object {
  const { object, relation, subject, condition, context } = tuple;
  return {
    ...objectJson(imported, object, relation),
    subject: subjectJson(imported, subject),
    ...(condition === undefined
      ? {}
      : {
          condition_name: imported.names.conditions.get(condition) ?? condition,
          condition_params: context,
        }),
  };
}

function questionJson(
  imported: ImportedModel,
  { object, relation, subject }: PeerQuestion,
): object {
  return { ...objectJson(imported, object, relation), subject: subjectJson(imported, subject) };
}

function objectJson(imported: ImportedModel, object: PeerReference, relation: string): object {
  return {
    namespace: namespaceOf(imported, object.type),
    object_id: object.id,
    relation: relationOf(imported, relation),
  };
}

function subjectJson(imported: ImportedModel, { type, id, relation }: PeerReference): object {
  const namespace = namespaceOf(imported, type);
  if (id === '*') return { wildcard_of: namespace };
  const own = relation === '' ? '' : relationOf(imported, relation);
  return { set: { namespace, object_id: id, relation: own } };
}

/** What the version does not know keeps its name: all names of random models may stand here. */
function namespaceOf({ names }: ImportedModel, type: string): string {
  return names.namespaces.get(type) ?? (type === 'user' ? 'user_' : type);
}

function relationOf({ names }: ImportedModel, relation: string): string {
  return names.relations.get(relation) ?? relation;
}
