import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  type QuestionSchema,
  type QueryScopeSchema,
  UsersetMode,
} from '../../../src/gen/gatehouse/v1/query_service_pb.ts';
import type {
  RelationTupleSchema,
  SubjectSchema,
} from '../../../src/gen/workspace/v1/authz_service_pb.ts';
import { checkText, fieldInvalid, refuseUnknown } from './arguments.ts';
import type { Session } from './session.ts';

/** A JSON object, as a condition's context. */
export type JsonObject = { readonly [name: string]: JsonValue };
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;

/**
 * A model's namespaces, each with the names of its relations. `gatehouse model types` writes it of a model, so that
 * a misspelt name does not compile; by default every name is taken.
 */
export type Model = Readonly<Record<string, string>>;

/** An object or a userset of it: `relation` left out means the object itself. */
export type SubjectSet = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation?: string;
};

/** Who: a user's id, or an object or userset. */
export type Subject = string | SubjectSet;

/** Does the subject hold the relation on the object? */
export type Question<M extends Model = Model> = {
  [Namespace in keyof M & string]: {
    readonly namespace: Namespace;
    readonly objectId: string;
    readonly relation: M[Namespace];
    readonly subject: Subject;
  };
}[keyof M & string];

/** Every user, or every object of a namespace. */
export type Wildcard = { readonly everyone: true } | { readonly wildcardOf: string };

/** A grant. */
export type Tuple<M extends Model = Model> = {
  [Namespace in keyof M & string]: {
    readonly namespace: Namespace;
    readonly objectId: string;
    readonly relation: M[Namespace];
    readonly subject: Subject | Wildcard;
    /** The name of a condition, and its parameters. */
    readonly condition?: string;
    readonly conditionParams?: JsonObject;
    /** When it stops to count. */
    readonly expiresAt?: Date;
  };
}[keyof M & string];

/** Where a call goes. What is left out comes from the client, and is the default project or tenant without that. */
export type ShardOptions = { readonly project?: string; readonly tenant?: string };

/** When a call ends. */
export type EndOptions = {
  /** Milliseconds until the call fails with `deadline_exceeded`. */
  readonly timeoutMs?: number;
  /** Ends the call with `cancelled`, and no other call. */
  readonly signal?: AbortSignal;
};

/** What every question takes. */
export type QueryOptions<M extends Model = Model> = ShardOptions &
  EndOptions & {
    /** The answer sees at least the write that this token names. Without it, and outside of a session: all writes. */
    readonly token?: string;
    /** Takes the place of the session that the caller runs in; `null`: none. */
    readonly session?: Session | null;
    /** What conditions may look at. */
    readonly context?: JsonObject;
    /** Tuples that count for this question only. */
    readonly contextualTuples?: readonly Tuple<M>[];
    /** Whether a userset as the subject holds what names it, or a userset that it is in, and nothing by its members. */
    readonly exact?: boolean;
    /** The version of the model that answers, in force or not. */
    readonly modelVersion?: number;
    /** Asks a second time where no answer has come after so many milliseconds, and takes the first answer. */
    readonly hedgeAfterMs?: number;
  };

const TUPLE_MEMBERS = [
  'namespace',
  'objectId',
  'relation',
  'subject',
  'condition',
  'conditionParams',
  'expiresAt',
];

type SubjectInit = MessageInitShape<typeof SubjectSchema>;

/** The message of a subject. Errors: GatehouseError naming the field. */
export function subjectInit(subject: Subject | Wildcard, field = 'subject'): SubjectInit {
  if (typeof subject === 'string') return { kind: { case: 'userId', value: subject } };
  if (typeof subject !== 'object' || subject === null) {
    throw fieldInvalid(field, 'must be a user id, an object, a userset or a wildcard');
  }
  if ('everyone' in subject) {
    refuseUnknown(field, subject, ['everyone']);
    const { everyone }: { readonly everyone: unknown } = subject;
    if (everyone !== true) throw fieldInvalid(`${field}.everyone`, 'must be true');
    return { kind: { case: 'wildcard', value: true } };
  }
  if ('wildcardOf' in subject) {
    refuseUnknown(field, subject, ['wildcardOf']);
    checkText(`${field}.wildcardOf`, subject.wildcardOf);
    return { kind: { case: 'wildcardOf', value: subject.wildcardOf } };
  }
  refuseUnknown(field, subject, ['namespace', 'objectId', 'relation']);
  const { namespace, objectId, relation } = subject;
  checkText(`${field}.namespace`, namespace);
  checkText(`${field}.objectId`, objectId);
  if (relation !== undefined) checkText(`${field}.relation`, relation);
  return { kind: { case: 'set', value: subject } };
}

/** Refuses a question that no message can hold, and which would fail all that travel with it. Errors: GatehouseError. */
export function checkQuestion({ namespace, objectId, relation, subject }: Question): void {
  checkText('namespace', namespace);
  checkText('objectId', objectId);
  checkText('relation', relation);
  if (typeof subject !== 'string') subjectInit(subject);
}

export function questionInit({
  namespace,
  objectId,
  relation,
  subject,
}: Question): MessageInitShape<typeof QuestionSchema> {
  return { namespace, objectId, relation, subject: subjectInit(subject) };
}

/** The message of a tuple. Errors: GatehouseError naming the field below `field`. */
export function tupleInit(
  tuple: Tuple,
  field = 'tuple',
): MessageInitShape<typeof RelationTupleSchema> {
  refuseUnknown(field, tuple, TUPLE_MEMBERS);
  const { namespace, objectId, relation, condition, conditionParams, expiresAt } = tuple;
  checkText(`${field}.namespace`, namespace);
  checkText(`${field}.objectId`, objectId);
  checkText(`${field}.relation`, relation);
  if (condition !== undefined) checkText(`${field}.condition`, condition);
  // The message has no other word for a grant without a condition.
  if (condition === '') throw fieldInvalid(`${field}.condition`, 'is empty');
  if (expiresAt !== undefined && !isValidDate(expiresAt)) {
    throw fieldInvalid(`${field}.expiresAt`, 'must be a valid Date');
  }
  return {
    namespace,
    objectId,
    relation,
    subject: subjectInit(tuple.subject, `${field}.subject`),
    ...(condition === undefined ? {} : { conditionName: condition }),
    ...(conditionParams === undefined ? {} : { conditionParams: mutable(conditionParams) }),
    ...(expiresAt === undefined ? {} : { expiresAt: timestampFromDate(expiresAt) }),
  };
}

/** Of any realm: test runners give their tests a Date of their own. */
function isValidDate(date: Date): boolean {
  return typeof date?.getTime === 'function' && !Number.isNaN(date.getTime());
}

/** The scope of a query; the context of a batch's question stands beside the question instead. */
export function scopeInit(
  options: QueryOptions,
  shard: { readonly project: string; readonly tenant: string },
  token: string,
): MessageInitShape<typeof QueryScopeSchema> {
  return {
    projectId: shard.project,
    tenantId: shard.tenant,
    atLeastConsistencyToken: token,
    ...(options.context === undefined ? {} : { context: mutable(options.context) }),
    contextualTuples: (options.contextualTuples ?? []).map((tuple, index) =>
      tupleInit(tuple, `contextualTuples[${index}]`),
    ),
    usersetMode: options.exact === true ? UsersetMode.EXACT : UsersetMode.UNSPECIFIED,
    modelVersion: BigInt(options.modelVersion ?? 0),
  };
}

type MutableJson = { [name: string]: MutableValue };
type MutableValue = null | boolean | number | string | MutableValue[] | MutableJson;

/** Messages are typed as if they changed what they are given. */
export function mutable(value: JsonObject): MutableJson {
  return value as unknown as MutableJson;
}
