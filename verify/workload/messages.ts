import { type Query, type ShortTree, tuplesText, usersetText } from '../checker/evaluate.ts';
import type { Position, Update } from '../checker/history.ts';
import type { TupleSubject, Universe, UniverseTuple } from '../checker/universe.ts';
import { QUERIES } from './rpc-client.ts';

type Body = Readonly<Record<string, unknown>>;

/** Where a shard is, as requests name it. */
export type Scope = { readonly project_id: string; readonly tenant_id: string };

/** Objects whose tuples name the writes that left them. */
export const TRACE_NAMESPACE = 'trace';
const TRACE_RELATION = 'w';
const TRACE_USER = /^op-(\d+)$/;

const MODE_NAMES = {
  absent: 'UPDATE_MODE_ABSENT',
  identical: 'UPDATE_MODE_ABSENT_OR_IDENTICAL',
  present: 'UPDATE_MODE_PRESENT',
  plain: 'UPDATE_MODE_UNSPECIFIED',
} as const;

/** The version as which a round writes a model of the universe before it begins: each once, in their order. */
export function versionOfModel(model: number): number {
  return model + 1;
}

/**
 * Method and body of a write, which leaves a tuple on `traceObject` that no other one writes: WriteTuples where an update
 * asks something.
 */
export function writeMessage(
  universe: Universe,
  scope: Scope,
  updates: readonly Update[],
  trace: { readonly object: string; readonly id: number },
): [method: string, body: Body] {
  const written = updates.map(({ op, tuple, expiresMs }) => ({
    op: op === 'insert' ? 'OP_INSERT' : 'OP_DELETE',
    tuple: {
      ...tupleBody(universe.tuples[tuple] as UniverseTuple),
      ...(expiresMs === undefined ? {} : { expires_at: new Date(expiresMs).toISOString() }),
    },
  }));
  const traced = {
    op: 'OP_INSERT',
    tuple: {
      namespace: TRACE_NAMESPACE,
      object_id: trace.object,
      relation: TRACE_RELATION,
      subject: { user_id: `op-${trace.id}` },
    },
  };
  const body = { ...scope, updates: [...written, traced] };
  if (updates.every(({ mode }) => mode === undefined)) {
    return ['AuthzService/WriteRelationTuples', body];
  }
  const modes = [...updates.map(({ mode }) => MODE_NAMES[mode ?? 'plain']), MODE_NAMES.plain];
  return ['TupleService/WriteTuples', { ...body, modes }];
}

/** Method and body of a read; `token` '' is none. */
export function readMessage(
  scope: Scope,
  query: Query,
  token: string,
): [method: string, body: Body] {
  const common = token === '' ? scope : { ...scope, at_least_consistency_token: token };
  switch (query.kind) {
    case 'check': {
      const { namespace, object, relation, user } = query;
      const asked = { namespace, object_id: object, relation, subject_user_id: user };
      return ['AuthzService/Check', { ...asked, ...common }];
    }
    case 'set': {
      const { namespace, object, relation, set, isExact } = query;
      const subject = subjectBody({ set });
      const userset_mode = isExact ? 'USERSET_MODE_EXACT' : 'USERSET_MODE_MEMBERS_TOO';
      const question = { namespace, object_id: object, relation, subject };
      return [`${QUERIES}Check`, { scope: { ...common, userset_mode }, question }];
    }
    case 'named': {
      const { model, namespace, object, relation, user } = query;
      const model_version = String(versionOfModel(model));
      const question = { namespace, object_id: object, relation, subject: { user_id: user } };
      return [`${QUERIES}Check`, { scope: { ...common, model_version }, question }];
    }
    case 'batch': {
      const items = query.items.map(([namespace, object_id, relation, subject_user_id]) => ({
        namespace,
        object_id,
        relation,
        subject_user_id,
      }));
      return ['AuthzService/BatchCheck', { ...common, items }];
    }
    case 'list': {
      const { namespace, relation, user } = query;
      return [
        'AuthzService/ListObjects',
        { namespace, relation, subject_user_id: user, ...common },
      ];
    }
    case 'expand': {
      const { namespace, object, relation } = query;
      return ['AuthzService/Expand', { namespace, object_id: object, relation, ...common }];
    }
    case 'tuples': {
      const { namespace, object, relation, user } = query;
      const filter = { namespace, object_id: object, relation, subject_user_id: user };
      return ['AuthzService/ReadRelationTuples', { ...filter, ...common }];
    }
    case 'modes':
      throw new Error('only a write asks that');
  }
}

/** The answer of a read as `Evaluator.answer` has it. Errors: throws where it has another shape. */
export function answerText(universe: Universe, query: Query, body: Body): string {
  switch (query.kind) {
    case 'check':
    case 'named':
    case 'set':
      return body['allowed'] === true ? '1' : '0';
    case 'batch': {
      const results = body['results'] as readonly { allowed: boolean; error: string }[];
      // An item that was not decided is no answer that any state gives.
      return results
        .map(({ allowed, error }) => (error !== '' ? '?' : allowed ? '1' : '0'))
        .join('');
    }
    case 'list':
      return (body['object_ids'] as readonly string[]).join(',');
    case 'expand':
      return JSON.stringify(shortTree(body['tree'] as TreeBody));
    case 'modes':
      throw new Error('a refusal has no such body');
    case 'tuples': {
      const tuples = body['tuples'] as readonly TupleBody[];
      const known = indexOfTuples(universe);
      const ours = tuples.filter(({ namespace }) => namespace !== TRACE_NAMESPACE);
      return tuplesText(
        ours.map((tuple) => {
          const index = known.get(textOf(tuple)) ?? -1;
          return [
            index,
            tuple.expires_at === undefined ? 1 : Date.parse(tuple.expires_at),
          ] as const;
        }),
      );
    }
  }
}

/** Ids of the writes that left the traces in an answer of ReadRelationTuples. */
export function tracedIds(body: Body): readonly number[] {
  const tuples = body['tuples'] as readonly TupleBody[];
  return tuples.flatMap(({ subject }) => {
    const [, id] = TRACE_USER.exec(subject.user_id ?? '') ?? [];
    return id === undefined ? [] : [Number(id)];
  });
}

const EPOCH_AT = 9;
const REVISION_AT = 13;

/** What a token says; its layout is in src/model/consistency-token.ts. */
export function positionOf(token: string): Position {
  const bytes = Buffer.from(token, 'base64url');
  return { epoch: bytes.readUInt32BE(EPOCH_AT), revision: bytes.readUIntBE(REVISION_AT, 6) };
}

type SetBody = {
  readonly namespace: string;
  readonly object_id: string;
  readonly relation?: string;
};
type TupleBody = {
  readonly namespace: string;
  readonly object_id: string;
  readonly relation: string;
  readonly subject: {
    readonly user_id?: string;
    readonly wildcard?: boolean;
    readonly set?: SetBody;
  };
  readonly expires_at?: string;
};
type TreeBody = {
  readonly type: string;
  readonly user_ids: readonly string[];
  readonly sets: readonly SetBody[];
  readonly children: readonly TreeBody[];
  readonly expanded?: SetBody | null;
  readonly wildcard: boolean;
  readonly include?: TreeBody | null;
  readonly exclude?: TreeBody | null;
};

function tupleBody({ namespace, object, relation, subject }: UniverseTuple): TupleBody {
  return { namespace, object_id: object, relation, subject: subjectBody(subject) };
}

function subjectBody(subject: TupleSubject): TupleBody['subject'] {
  if ('user' in subject) return { user_id: subject.user };
  if ('wildcard' in subject) return { wildcard: true };
  const [namespace, object_id, relation] = subject.set;
  return { set: { namespace, object_id, relation } };
}

function setText({ namespace, object_id, relation = '' }: SetBody): string {
  return usersetText(namespace, object_id, relation);
}

function shortTree(tree: TreeBody): ShortTree {
  const of =
    tree.expanded === undefined || tree.expanded === null ? {} : { of: setText(tree.expanded) };
  const op = tree.type.replace('NODE_TYPE_', '').toLowerCase();
  if (op === 'leaf') {
    const everybody = tree.wildcard ? ({ everybody: true } as const) : {};
    return { ...of, users: tree.user_ids, sets: tree.sets.map(setText), ...everybody };
  }
  const { include, exclude } = tree;
  const children = op === 'exclusion' ? [include as TreeBody, exclude as TreeBody] : tree.children;
  return { ...of, op: op as 'union', children: children.map(shortTree) };
}

const indexes = new WeakMap<Universe, ReadonlyMap<string, number>>();

function indexOfTuples(universe: Universe): ReadonlyMap<string, number> {
  let known = indexes.get(universe);
  if (known === undefined) {
    known = new Map(universe.tuples.map((tuple, index) => [textOf(tupleBody(tuple)), index]));
    indexes.set(universe, known);
  }
  return known;
}

function textOf({ namespace, object_id, relation, subject }: TupleBody): string {
  const { set, user_id, wildcard } = subject;
  const who =
    set !== undefined ? `set ${setText(set)}` : wildcard === true ? '*' : `user ${user_id}`;
  return `${usersetText(namespace, object_id, relation)} ${who}`;
}
