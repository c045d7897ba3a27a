import { fieldNames, type JsonNames } from '../../../decoding/json-names.ts';
import { ASCII_STOPS, JSON_END, JsonTokens } from '../../../decoding/json-tokens.ts';
import type { RawSubject, RawSubjectSet, RawTuple, RawUpdate } from '../../../model/raw-tuple.ts';
import type { WriteRequest } from '../../../services/tuples/tuple-requests.ts';
import { JSON_BYTES } from '../../../shared/text/json-bytes.ts';

const { COMMA, OPENING_BRACE, CLOSING_BRACE, OPENING_BRACKET, CLOSING_BRACKET } = JSON_BYTES;

const OPS: ReadonlyMap<string, number> = new Map([
  ['OP_INSERT', 1],
  ['OP_DELETE', 2],
]);

/** Members of each object by their positions; the subject of a tuple comes last. */
const REQUEST = membersOf('project_id', 'tenant_id', 'updates');
const UPDATE = membersOf('op', 'tuple');
const TUPLE = membersOf('project_id', 'tenant_id', 'namespace', 'object_id', 'relation', 'subject');
const SUBJECT = membersOf('user_id', 'set', 'wildcard', 'wildcard_of');
const SET = membersOf('namespace', 'object_id', 'relation');

/** Read in one go. */
const UPDATES_MAX = 10_000;

/** Thrown at what is not plain: the general path reads it, and answers what is wrong with it, if anything is. */
class NotPlain extends Error {}
const NOT_PLAIN = new NotPlain('not plain');

/** The part of a write that a scan reads. */
export type ScannedWrite = Omit<WriteRequest, 'meta'>;

/**
 * Reads the JSON of a WriteRelationTuples that is plain: ASCII without escapes, known members, each once, of tuples without
 * expiry and condition. null: whatever else it is. What it reads is what the general path reads from the same bytes.
 * Pure. O(bytes): strings are cut out of one text, and nothing else is allocated but the updates.
 */
export function scanWrite(body: Uint8Array): ScannedWrite | null {
  try {
    return new WriteScan(body).request();
  } catch (error) {
    if (error === NOT_PLAIN) return null;
    throw error;
  }
}

class WriteScan {
  readonly #tokens = new JsonTokens();
  readonly #text: string;

  constructor({ buffer, byteOffset, length }: Uint8Array) {
    const bytes = Buffer.from(buffer, byteOffset, length);
    this.#tokens.open(bytes, 0, length);
    this.#text = bytes.toString('latin1');
  }

  request(): ScannedWrite {
    let projectId = '';
    let tenantId = '';
    let updates: readonly RawUpdate[] = [];
    this.#object(REQUEST, (member) => {
      if (member === 0) projectId = ownText(this.#string());
      else if (member === 1) tenantId = ownText(this.#string());
      else updates = this.#updates();
    });
    if (this.#tokens.peek() !== JSON_END) throw NOT_PLAIN;
    return { projectId, tenantId, updates };
  }

  #updates(): RawUpdate[] {
    const tokens = this.#tokens;
    const updates: RawUpdate[] = [];
    this.#expect(OPENING_BRACKET);
    if (tokens.peek() === CLOSING_BRACKET) {
      tokens.at += 1;
      return updates;
    }
    for (;;) {
      updates.push(this.#update());
      if (updates.length > UPDATES_MAX) throw NOT_PLAIN;
      const next = tokens.next();
      if (next === CLOSING_BRACKET) return updates;
      if (next !== COMMA) throw NOT_PLAIN;
    }
  }

  #update(): RawUpdate {
    let op: number | undefined = 0;
    let tuple: RawTuple | undefined;
    this.#object(UPDATE, (member) => {
      if (member === 0) op = OPS.get(this.#string());
      else tuple = this.#tuple();
    });
    if (op === undefined) throw NOT_PLAIN;
    return { op, tuple };
  }

  #tuple(): RawTuple {
    const texts = ['', '', '', '', ''];
    let subject: { readonly kind: RawSubject } | undefined;
    this.#object(TUPLE, (member) => {
      if (member < texts.length) texts[member] = this.#string();
      else subject = this.#subject();
    });
    const [projectId = '', tenantId = '', namespace = '', objectId = '', relation = ''] = texts;
    return { projectId, tenantId, namespace, objectId, relation, subject };
  }

  /** Reads exactly one member; the general path decides on several or none. */
  #subject(): { readonly kind: RawSubject } {
    const kinds: RawSubject[] = [];
    this.#object(SUBJECT, (member) => kinds.push(this.#kind(member)));
    const [kind] = kinds;
    if (kind === undefined || kinds.length > 1) throw NOT_PLAIN;
    return { kind };
  }

  #kind(member: number): RawSubject {
    if (member === 0) return { case: 'userId', value: this.#string() };
    if (member === 1) return { case: 'set', value: this.#subjectSet() };
    if (member === 3) return { case: 'wildcardOf', value: this.#string() };
    this.#tokens.peek();
    if (!this.#text.startsWith('true', this.#tokens.at)) throw NOT_PLAIN;
    this.#tokens.at += 4;
    return { case: 'wildcard', value: true };
  }

  #subjectSet(): RawSubjectSet {
    const texts = ['', '', ''];
    this.#object(SET, (member) => {
      texts[member] = this.#string();
    });
    const [namespace = '', objectId = '', relation = ''] = texts;
    return { namespace, objectId, relation };
  }

  /** Calls `read` at the value of each member. */
  #object(members: JsonNames<number>, read: (member: number) => void): void {
    const tokens = this.#tokens;
    this.#expect(OPENING_BRACE);
    let seen = 0;
    let next: number = tokens.peek() === CLOSING_BRACE ? tokens.next() : COMMA;
    while (next === COMMA) {
      if (!tokens.plain(ASCII_STOPS)) throw NOT_PLAIN;
      const member = members.lookUp(tokens.bytes, tokens.from, tokens.to);
      if (member === undefined || (seen & (1 << member)) !== 0 || !tokens.colon()) throw NOT_PLAIN;
      seen |= 1 << member;
      read(member);
      next = tokens.next();
    }
    if (next !== CLOSING_BRACE) throw NOT_PLAIN;
  }

  #string(): string {
    const tokens = this.#tokens;
    if (!tokens.plain(ASCII_STOPS)) throw NOT_PLAIN;
    return this.#text.slice(tokens.from, tokens.to);
  }

  #expect(byte: number): void {
    if (this.#tokens.next() !== byte) throw NOT_PLAIN;
  }
}

/** A copy: a part of a text keeps the whole of it, and the names of a shard are kept for long. */
function ownText(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}

/** Members by their positions. */
function membersOf(...names: readonly string[]): JsonNames<number> {
  return fieldNames(names.map((name, position) => [name, position]));
}
