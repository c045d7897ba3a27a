import type { Random } from './random-choice.ts';

/** The requests that scanners read. */
export type Method = 'check' | 'batchCheck' | 'listObjects' | 'write';

type MessageName = Method | 'item' | 'update' | 'tuple' | 'subject' | 'set';
type TextKind = 'name' | 'id' | 'scope';

export type Field = {
  readonly name: string;
  readonly camel: string;
  readonly number: number;
  readonly kind: TextKind | MessageName | 'op' | 'flag' | 'time' | 'context';
  readonly isList: boolean;
  /** In how many of eight messages it comes. */
  readonly eighths: number;
};

function field(number: number, name: string, kind: Field['kind'], eighths = 8): Field {
  const camel = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  const isList = kind === 'item' || kind === 'update';
  return { name, camel, number, kind, isList, eighths };
}

/** Those of proto/workspace/v1/authz_service.proto, written down again: a wrong one shows in the shares that are accepted. */
export const MESSAGES: Readonly<Record<MessageName, readonly Field[]>> = {
  check: [
    field(1, 'namespace', 'name'),
    field(2, 'object_id', 'id'),
    field(3, 'relation', 'name'),
    field(4, 'subject_user_id', 'id'),
    field(5, 'subject_set', 'set', 1),
    field(6, 'context', 'context', 5),
    field(7, 'project_id', 'scope', 4),
    field(8, 'tenant_id', 'scope', 5),
    field(9, 'at_least_consistency_token', 'scope', 2),
  ],
  batchCheck: [
    field(1, 'project_id', 'scope', 4),
    field(2, 'tenant_id', 'scope', 5),
    field(3, 'items', 'item'),
    field(4, 'at_least_consistency_token', 'scope', 2),
  ],
  item: [
    field(1, 'namespace', 'name'),
    field(2, 'object_id', 'id'),
    field(3, 'relation', 'name'),
    field(4, 'subject_user_id', 'id'),
  ],
  listObjects: [
    field(1, 'namespace', 'name'),
    field(2, 'relation', 'name'),
    field(3, 'subject_user_id', 'id'),
    field(4, 'project_id', 'scope', 4),
    field(5, 'tenant_id', 'scope', 5),
    field(6, 'at_least_consistency_token', 'scope', 2),
  ],
  write: [
    field(1, 'updates', 'update'),
    field(2, 'project_id', 'scope', 4),
    field(3, 'tenant_id', 'scope', 5),
  ],
  update: [field(1, 'op', 'op', 7), field(2, 'tuple', 'tuple', 7)],
  tuple: [
    field(1, 'project_id', 'scope', 1),
    field(2, 'namespace', 'name'),
    field(3, 'object_id', 'id'),
    field(4, 'relation', 'name'),
    field(5, 'subject', 'subject', 7),
    field(6, 'tenant_id', 'scope', 1),
    field(7, 'expires_at', 'time', 0),
    field(8, 'condition_name', 'id', 0),
    field(9, 'condition_params', 'context', 0),
  ],
  subject: [
    field(1, 'user_id', 'id'),
    field(2, 'set', 'set'),
    field(3, 'wildcard', 'flag'),
    field(4, 'wildcard_of', 'name'),
  ],
  set: [
    field(1, 'namespace', 'name'),
    field(2, 'object_id', 'id'),
    field(3, 'relation', 'name', 6),
  ],
};

/** The fields that a message has, in the order in which it has them. Of a oneof it is one, mostly. */
export function chosenFields(random: Random, message: MessageName): Field[] {
  const all = MESSAGES[message];
  const chosen =
    message === 'subject'
      ? [random.pick(all)]
      : all.filter(({ eighths }) => random.next(8) < eighths);
  if (random.odd()) chosen.splice(random.next(chosen.length), 1);
  // One that is there already, or one that seldom comes.
  if (random.odd() || (message === 'batchCheck' && random.oneIn(8))) chosen.push(random.pick(all));
  if (random.oneIn(3)) random.shuffle(chosen);
  return chosen;
}

/** How many a list has; some are so long that scanners read them in slices. */
export function countOf(random: Random, { kind }: Field): number {
  if (kind === 'item' && random.oneIn(30)) return 250 + random.next(310);
  return random.oneIn(30) ? 20 : random.next(5);
}

const PLAIN: Readonly<Record<TextKind, readonly string[]>> = {
  name: ['doc', 'folder', 'viewer', 'a', 'x-1_y', 'group', 'member', 'n'.repeat(64)],
  id: ['1', 'a b', 'ü', 'user:7', '世界', 'a/b', '😀', "]}',", 'é'.repeat(128), 'd'.repeat(256)],
  scope: ['', 'p1', 't1', 'acme', 'a.b:c', 'A-1_z', 'x'.repeat(128), 'é'],
};
const ODD: readonly string[] = [
  ['', '#', 'a#b', '9', 'D', 'a.b', ' ', '__proto__', 'constructor', 'null', '\u{feff}'],
  [
    '\u0000',
    'a\u0001',
    '\n',
    '\u007f',
    '\u0080',
    'a\u009f',
    '\u00a0',
    '\u2028',
    '\ud800',
    '\udc00a',
  ],
  [
    ']',
    '}',
    ']}',
    '{',
    '[',
    '"',
    '"items"',
    '"items":[',
    ',"project_id":"x"',
    '],"tenant_id":"x"}',
  ],
  ['\\', '\\"', '\\u0041', '/', ':', ','],
  [64, 65, 128, 129, 256, 257, 512, 513].map((length) => 'n'.repeat(length)),
  [64, 65, 128, 129, 256, 257].map((length) => 'é'.repeat(length)),
  ['世'.repeat(85), '世'.repeat(86), '😀'.repeat(64), '😀'.repeat(65), `${'n'.repeat(255)}é`],
].flat();

export function textOf(random: Random, kind: TextKind): string {
  return random.pick(random.oneIn(30) || random.odd() ? ODD : PLAIN[kind]);
}

/** Names of a context's members. */
export function memberName(random: Random): string {
  if (random.oneIn(30) || random.odd()) return random.pick(ODD);
  return random.pick([
    'ip',
    'time',
    'a',
    'b',
    'c',
    'zone',
    '1',
    '0',
    'ä',
    'is_admin',
    'constructor',
    '#',
  ]);
}
