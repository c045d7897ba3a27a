import type { Question } from '../../test/support/dataset/questions.ts';
import type { NeutralTuple } from '../../test/support/dataset/world.ts';
import type { LoadClient } from './client.ts';

const AUTHZ = '/workspace.v1.AuthzService';
const ADMIN = '/workspace.v1.AdminService';
export const CHECK_PATH = `${AUTHZ}/Check`;
export const BATCH_CHECK_PATH = `${AUTHZ}/BatchCheck`;
export const LIST_OBJECTS_PATH = `${AUTHZ}/ListObjects`;
export const WRITE_PATH = `${AUTHZ}/WriteRelationTuples`;
export const WRITE_TUPLES_PATH = '/gatehouse.v1.TupleService/WriteTuples';

const subjectOf = (text: string): Record<string, unknown> => {
  const [namespace, rest] = [text.slice(0, text.indexOf(':')), text.slice(text.indexOf(':') + 1)];
  if (namespace === 'user') return { user_id: rest };
  const [objectId, relation = ''] = rest.split('#');
  return { set: { namespace, object_id: objectId, relation } };
};

/** The body of a call that inserts `tuples`: of WriteRelationTuples, or with a mode for all of them of WriteTuples. */
export function writeBody(
  tuples: readonly NeutralTuple[],
  scope: Record<string, string>,
  mode?: string,
): string {
  const updates = tuples.map(({ subject, ...tuple }) => ({
    op: 'OP_INSERT',
    tuple: { ...tuple, subject: subjectOf(subject) },
  }));
  const modes = mode === undefined ? {} : { modes: updates.map(() => mode) };
  return JSON.stringify({ ...scope, updates, ...modes });
}

/** Makes a project with the model of the data set; an existing one of that id is an error. */
export async function createProject(
  client: LoadClient,
  adminSecret: string,
  id: string,
  modelJson: string,
): Promise<void> {
  const message = { id, name: id, model_json: modelJson };
  await client.call(`${ADMIN}/CreateProject`, message, { 'x-admin-secret': adminSecret });
}

/** Inserts tuples, 1,000 a request, 8 requests at a time. Returns the token of the last answer. */
export async function fill(
  client: LoadClient,
  tuples: readonly NeutralTuple[],
  scope: Record<string, string>,
): Promise<string> {
  let next = 0;
  let token = '';
  const filler = async (): Promise<void> => {
    while (next < tuples.length) {
      const chunk = tuples.slice(next, next + 1000);
      next += 1000;
      const reply = await client.call(WRITE_PATH, JSON.parse(writeBody(chunk, scope)));
      token = String(reply['consistency_token']);
    }
  };
  await Promise.all(Array.from({ length: 8 }, filler));
  return token;
}

/** Bodies of Check requests for the questions. */
export function checkBodies(
  questions: readonly Question[],
  scope: Record<string, string>,
): Buffer[] {
  return questions.map((q) =>
    Buffer.from(
      JSON.stringify({
        ...scope,
        namespace: 'doc',
        object_id: q.objectId,
        relation: 'viewer',
        subject_user_id: q.userId,
      }),
    ),
  );
}

/** Bodies of BatchCheck requests, `size` questions each (a rest is left out). */
export function batchBodies(
  questions: readonly Question[],
  size: number,
  scope: Record<string, string>,
): Buffer[] {
  return Array.from({ length: Math.floor(questions.length / size) }, (_, b) =>
    Buffer.from(
      JSON.stringify({
        ...scope,
        items: questions.slice(b * size, (b + 1) * size).map((q) => ({
          namespace: 'doc',
          object_id: q.objectId,
          relation: 'viewer',
          subject_user_id: q.userId,
        })),
      }),
    ),
  );
}

export const ALLOWED = Buffer.from('{"allowed":true}');

/** What a right answer to a batch looks like, byte for byte. */
export function batchAnswer(questions: readonly Question[]): Buffer {
  const results = questions.map((q) => ({ allowed: q.allow, error: '' }));
  return Buffer.from(JSON.stringify({ results }));
}
