import { JSON_BYTES } from '../../shared/json-bytes.ts';

/** A subject of a scanned update: the oneof `Subject.kind` as message objects have it. */
export type ScannedSubject =
  | { readonly case: 'userId'; readonly value: string }
  | {
      readonly case: 'set';
      readonly value: {
        readonly namespace: string;
        readonly objectId: string;
        readonly relation: string;
      };
    }
  | { readonly case: 'wildcard'; readonly value: boolean }
  | { readonly case: 'wildcardOf'; readonly value: string };

export type ScannedTuple = {
  readonly projectId: string;
  readonly tenantId: string;
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  readonly subject?: { readonly kind: ScannedSubject } | undefined;
};

/** `op` as the proto enum numbers it. */
export type ScannedUpdate = { readonly op: number; readonly tuple?: ScannedTuple | undefined };

export type ScannedWrite = {
  readonly projectId: string;
  readonly tenantId: string;
  readonly updates: readonly ScannedUpdate[];
};

const {
  QUOTE,
  BACKSLASH,
  COMMA,
  COLON,
  OPENING_BRACE,
  CLOSING_BRACE,
  OPENING_BRACKET,
  CLOSING_BRACKET,
} = JSON_BYTES;

const OPS: ReadonlyMap<string, number> = new Map([
  ['OP_INSERT', 1],
  ['OP_DELETE', 2],
]);

/** Members by both of their spellings in JSON; one that comes twice has its bit set already. */
const REQUEST_MEMBERS = membersOf('project_id', 'tenant_id', 'updates');
const UPDATE_MEMBERS = membersOf('op', 'tuple');
const TUPLE_MEMBERS = membersOf(
  'project_id',
  'tenant_id',
  'namespace',
  'object_id',
  'relation',
  'subject',
);
const SUBJECT_MEMBERS = membersOf('user_id', 'set', 'wildcard', 'wildcard_of');
const SET_MEMBERS = membersOf('namespace', 'object_id', 'relation');

/** Read in one go. */
const UPDATES_MAX = 10_000;

/** What is not plain: the general path reads it, and says what is wrong with it, if anything is. */
class NotPlain extends Error {}
const NOT_PLAIN = new NotPlain('not plain');

/**
 * Reads the JSON of a WriteRelationTuples that is plain: ASCII without escapes, known members, each once, of tuples without
 * expiry and condition. null: whatever else it is. What it reads is what the general path reads from the same bytes.
 * Pure. O(bytes): strings are cut out of one text, and nothing else is allocated but the updates.
 */
export function scanWrite(body: Uint8Array): ScannedWrite | null {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  try {
    return new WriteScan(bytes.toString('latin1')).request();
  } catch (error) {
    if (error === NOT_PLAIN) return null;
    throw error;
  }
}

class WriteScan {
  readonly #text: string;
  #at = 0;
  /** The member that `#member` found, by its position in the table. */
  #found = 0;

  constructor(text: string) {
    this.#text = text;
  }

  request(): ScannedWrite {
    let projectId = '';
    let tenantId = '';
    let updates: readonly ScannedUpdate[] = [];
    this.#expect(OPENING_BRACE);
    for (let seen = 0; ;) {
      seen = this.#member(REQUEST_MEMBERS, seen);
      if (seen < 0) break;
      if (this.#found === 0) projectId = this.#string();
      else if (this.#found === 1) tenantId = this.#string();
      else updates = this.#updates();
    }
    if (!Number.isNaN(this.#peek())) throw NOT_PLAIN;
    return { projectId: ownText(projectId), tenantId: ownText(tenantId), updates };
  }

  #updates(): ScannedUpdate[] {
    const updates: ScannedUpdate[] = [];
    this.#expect(OPENING_BRACKET);
    if (this.#peek() === CLOSING_BRACKET) {
      this.#at += 1;
      return updates;
    }
    for (;;) {
      updates.push(this.#update());
      if (updates.length > UPDATES_MAX) throw NOT_PLAIN;
      const code = this.#next();
      if (code === CLOSING_BRACKET) return updates;
      if (code !== COMMA) throw NOT_PLAIN;
    }
  }

  #update(): ScannedUpdate {
    let op = 0;
    let tuple: ScannedTuple | undefined;
    this.#expect(OPENING_BRACE);
    for (let seen = 0; ;) {
      seen = this.#member(UPDATE_MEMBERS, seen);
      if (seen < 0) return { op, tuple };
      if (this.#found === 0) op = OPS.get(this.#string()) ?? -1;
      else tuple = this.#tuple();
      if (op < 0) throw NOT_PLAIN;
    }
  }

  #tuple(): ScannedTuple {
    let projectId = '';
    let tenantId = '';
    let namespace = '';
    let objectId = '';
    let relation = '';
    let subject: { readonly kind: ScannedSubject } | undefined;
    this.#expect(OPENING_BRACE);
    for (let seen = 0; ;) {
      seen = this.#member(TUPLE_MEMBERS, seen);
      if (seen < 0) return { projectId, tenantId, namespace, objectId, relation, subject };
      switch (this.#found) {
        case 0:
          projectId = this.#string();
          break;
        case 1:
          tenantId = this.#string();
          break;
        case 2:
          namespace = this.#string();
          break;
        case 3:
          objectId = this.#string();
          break;
        case 4:
          relation = this.#string();
          break;
        default:
          subject = this.#subject();
      }
    }
  }

  /** Exactly one member: what several or none mean is reported by the general path. */
  #subject(): { readonly kind: ScannedSubject } {
    this.#expect(OPENING_BRACE);
    if (this.#member(SUBJECT_MEMBERS, 0) < 0) throw NOT_PLAIN;
    const kind = this.#kind();
    this.#expect(CLOSING_BRACE);
    return { kind };
  }

  #kind(): ScannedSubject {
    if (this.#found === 0) return { case: 'userId', value: this.#string() };
    if (this.#found === 1) return { case: 'set', value: this.#set() };
    if (this.#found === 3) return { case: 'wildcardOf', value: this.#string() };
    this.#peek();
    if (!this.#text.startsWith('true', this.#at)) throw NOT_PLAIN;
    this.#at += 4;
    return { case: 'wildcard', value: true };
  }

  #set(): { namespace: string; objectId: string; relation: string } {
    const set = { namespace: '', objectId: '', relation: '' };
    this.#expect(OPENING_BRACE);
    for (let seen = 0; ;) {
      seen = this.#member(SET_MEMBERS, seen);
      if (seen < 0) return set;
      if (this.#found === 0) set.namespace = this.#string();
      else if (this.#found === 1) set.objectId = this.#string();
      else set.relation = this.#string();
    }
  }

  /**
   * The next member of an object, behind its colon: `#found` is its position, and the bits of those seen are returned; -1 at the end
   * of the object.
   */
  #member(members: ReadonlyMap<string, number>, seen: number): number {
    let code = this.#next();
    if (code === CLOSING_BRACE && seen === 0) return -1;
    if (seen !== 0) {
      if (code === CLOSING_BRACE) return -1;
      if (code !== COMMA) throw NOT_PLAIN;
      code = this.#next();
    }
    if (code !== QUOTE) throw NOT_PLAIN;
    const found = members.get(this.#rest());
    if (found === undefined || (seen & (1 << found)) !== 0) throw NOT_PLAIN;
    this.#found = found;
    this.#expect(COLON);
    return seen | (1 << found);
  }

  #string(): string {
    this.#expect(QUOTE);
    return this.#rest();
  }

  /** A string whose opening quote was read. */
  #rest(): string {
    const text = this.#text;
    const start = this.#at;
    let at = start;
    for (; ; at++) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) break;
      // NaN at the end of the text, too.
      if (!(code >= 0x20 && code < 0x7f) || code === BACKSLASH) throw NOT_PLAIN;
    }
    this.#at = at + 1;
    return text.slice(start, at);
  }

  #expect(wanted: number): void {
    if (this.#next() !== wanted) throw NOT_PLAIN;
  }

  /** The next character that is no white space; NaN at the end. */
  #next(): number {
    const code = this.#peek();
    this.#at += 1;
    return code;
  }

  #peek(): number {
    for (; ; this.#at++) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return code;
    }
  }
}

/** A copy: a part of a text keeps the whole of it, and the names of a shard are kept for long. */
function ownText(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}

/** Snake case as protos have it, camel case as JSON of protobuf has it by default. */
function membersOf(...names: readonly string[]): ReadonlyMap<string, number> {
  const members = new Map<string, number>();
  names.forEach((name, position) => {
    members.set(name, position);
    members.set(
      name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      position,
    );
  });
  return members;
}
