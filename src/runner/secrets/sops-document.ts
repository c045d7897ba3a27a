import { createHash, timingSafeEqual } from 'node:crypto';
import {
  entryOf,
  orderedJsonText,
  parseOrderedJson,
  removeEntry,
  setEntry,
  stringOf,
  type JsonNode,
  type JsonObjectNode,
} from '../text/ordered-json.ts';
import { JSON_DEPTH_MAX } from './secret-limits.ts';
import { macBytesOf, openLeaf, plainNumberText, sealLeaf } from './sops-leaf.ts';
import { cryptRuleOf, type CryptRule } from './sops-rule.ts';

export const METADATA_KEY = 'sops';
/** The format's version, not ours: what `sops` that understands all we write calls itself. */
const FORMAT_VERSION = '3.9.0';
/** SHA-256 of `sops`: begins a MAC that covers encrypted values only (getsops/sops sops.go). */
const MAC_ONLY_ENCRYPTED_START = createHash('sha256').update('sops').digest();
const DATE = /^(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:\d{2})(?:\.\d+)?(?:[Zz]|([+-]\d{2}:\d{2}))$/;

export type WrappedKey = { readonly recipient: string; readonly enc: string };
export type SopsLeaf = {
  /** Keys from the outside in. */
  readonly path: readonly string[];
  readonly isEncrypted: boolean;
  /** It stands in an array, whose path it shares with the others. */
  readonly isItem: boolean;
  readonly text: string;
};
type LeafNode = {
  readonly path: readonly string[];
  readonly node: JsonNode;
  readonly isEncrypted: boolean;
  readonly isItem: boolean;
};

const ENCRYPTED_START = 'ENC[';
const NO_RULE: CryptRule = { encrypts: () => false };

/** Unwraps the data key of a file, one of the age stanzas of its metadata. */
export type UnwrapKey = (wrapped: readonly WrappedKey[]) => Promise<Buffer>;

/**
 * A file that SOPS encrypted as JSON (getsops/sops sops.go, aes/cipher.go, stores/json): values are
 * encrypted one by one under a data key, bound to their path; a MAC over all plain values in order is encrypted with
 * `lastmodified`. What is not changed keeps its ciphertext, order and metadata, so that a diff shows one
 * value, and other key services of the file go on working.
 */
export class SopsDocument {
  readonly #root: JsonObjectNode;
  readonly #metadata: JsonObjectNode;
  readonly #rule: CryptRule;
  readonly #dataKey: Buffer;
  /** Plain bytes of the encrypted leaves. */
  readonly #plain = new Map<JsonNode, Buffer>();

  private constructor(
    root: JsonObjectNode,
    metadata: JsonObjectNode,
    rule: CryptRule,
    dataKey: Buffer,
  ) {
    this.#root = root;
    this.#metadata = metadata;
    this.#rule = rule;
    this.#dataKey = dataKey;
  }

  /** Reads, decrypts and verifies all of it. Errors: SyntaxError or TypeError that say what is wrong, never a value. */
  static async open(text: string, unwrapKey: UnwrapKey): Promise<SopsDocument> {
    const { root, metadata } = partsOf(text);
    const dataKey = await unwrapKey(wrappedKeysOf(metadata));
    const document = new SopsDocument(root, metadata, cryptRuleOf(metadata), dataKey);
    document.#decrypt();
    document.#verifyMac();
    return document;
  }

  /**
   * What a file shows without a key: the leaves, each with `?` for its text, and when it was changed. Nothing is
   * verified, so the form says what is encrypted: the expressions of a rule are anybody's. Errors: as of `open`.
   */
  static outline(text: string): { leaves: readonly SopsLeaf[]; lastModifiedMs: number } {
    const { root, metadata } = partsOf(text);
    const document = new SopsDocument(root, metadata, NO_RULE, Buffer.alloc(0));
    const leaves = [...document.#leaves()].map(({ path, node, isItem }) => {
      const value = node.kind === 'string' ? node.value : undefined;
      const isEncrypted = value === '' || value?.startsWith(ENCRYPTED_START) === true;
      return { path, isEncrypted, isItem, text: value === '' ? '' : '?' };
    });
    return { leaves, lastModifiedMs: Date.parse(normalizedDate(dateIn(metadata))) };
  }

  /** An empty document for these recipients' wrapped keys. `sealed()` gives its text. */
  static create(dataKey: Buffer, wrapped: readonly WrappedKey[]): SopsDocument {
    const text = (value: string): JsonNode => ({ kind: 'string', value });
    const age: JsonNode = {
      kind: 'array',
      items: wrapped.map(({ recipient, enc }) => ({
        kind: 'object',
        entries: [
          { key: 'recipient', value: text(recipient) },
          { key: 'enc', value: text(enc) },
        ],
      })),
    };
    const metadata: JsonObjectNode = {
      kind: 'object',
      entries: [
        { key: 'age', value: age },
        { key: 'lastmodified', value: text('') },
        { key: 'mac', value: text('') },
        { key: 'unencrypted_suffix', value: text('_unencrypted') },
        { key: 'version', value: text(FORMAT_VERSION) },
      ],
    };
    const root: JsonObjectNode = {
      kind: 'object',
      entries: [{ key: METADATA_KEY, value: metadata }],
    };
    return new SopsDocument(root, metadata, cryptRuleOf(metadata), dataKey);
  }

  /** Milliseconds since the epoch. */
  get lastModifiedMs(): number {
    return Date.parse(dateIn(this.#metadata));
  }

  /** All values but nulls, in the order of the file. */
  leaves(): readonly SopsLeaf[] {
    return [...this.#leaves()].map(({ path, node, isEncrypted, isItem }) => ({
      path,
      isEncrypted,
      isItem,
      text: shownText(node, this.#bytesOf(node)),
    }));
  }

  /** Whether the file's rule says that a value at `path` is encrypted. */
  encrypts(path: readonly string[]): boolean {
    return this.#rule.encrypts(path);
  }

  /** Sets a string; objects on the way are made, a value of another kind in the way is replaced. */
  set(path: readonly string[], value: string): void {
    let node = this.#root;
    for (const key of path.slice(0, -1)) {
      let next = entryOf(node, key);
      if (next?.kind !== 'object') {
        next = { kind: 'object', entries: [] };
        this.#setBeforeMetadata(node, key, next);
      }
      node = next;
    }
    const leaf: JsonNode = {
      kind: 'string',
      value: sealLeaf(this.#dataKey, contextOf(path), value),
    };
    this.#plain.set(leaf, Buffer.from(value));
    this.#setBeforeMetadata(node, path.at(-1) ?? '', leaf);
  }

  /** Removes a value, and objects that it leaves empty. False when it is not there. */
  remove(path: readonly string[]): boolean {
    const parents: JsonObjectNode[] = [this.#root];
    for (const key of path.slice(0, -1)) {
      const next = entryOf(parents.at(-1), key);
      if (next?.kind !== 'object') return false;
      parents.push(next);
    }
    if (!removeEntry(parents.at(-1) ?? this.#root, path.at(-1) ?? '')) return false;
    for (let depth = parents.length - 1; depth > 0; depth--) {
      const [node, parent, key] = [parents[depth], parents[depth - 1], path[depth - 1]];
      if (node === undefined || parent === undefined || key === undefined) break;
      if (node.entries.length > 0) break;
      removeEntry(parent, key);
    }
    return true;
  }

  /** The text of the file with a new `lastmodified` and MAC. */
  sealed(nowMs: number): string {
    const lastModified = `${new Date(nowMs).toISOString().slice(0, 19)}Z`;
    const mac = sealLeaf(this.#dataKey, lastModified, this.#mac());
    setEntry(this.#metadata, 'lastmodified', { kind: 'string', value: lastModified });
    setEntry(this.#metadata, 'mac', { kind: 'string', value: mac });
    return orderedJsonText(this.#root);
  }

  #setBeforeMetadata(node: JsonObjectNode, key: string, value: JsonNode): void {
    setEntry(node, key, value);
    if (node !== this.#root) return;
    removeEntry(node, METADATA_KEY);
    node.entries.push({ key: METADATA_KEY, value: this.#metadata });
  }

  #decrypt(): void {
    for (const { path, node, isEncrypted } of this.#leaves()) {
      if (!isEncrypted) continue;
      if (node.kind !== 'string') throw new TypeError('a value is not encrypted as SOPS does');
      this.#plain.set(node, openLeaf(this.#dataKey, contextOf(path), node.value));
    }
  }

  #verifyMac(): void {
    const lastModified = stringOf(this.#metadata, 'lastmodified') ?? '';
    const stored = stringOf(this.#metadata, 'mac') ?? '';
    if (stored === '') throw new TypeError('the MAC is missing: the file is not protected');
    const context = normalizedDate(lastModified);
    const mac = openLeaf(this.#dataKey, context, stored);
    // Of the values as SOPS writes them; other writers hash the texts that they encrypted.
    const fits = [this.#mac(), this.#mac(true)].some((text) => {
      const expected = Buffer.from(text);
      return mac.length === expected.length && timingSafeEqual(mac, expected);
    });
    if (!fits) throw new TypeError('the MAC does not fit: values were added, dropped or changed');
  }

  #mac(isOfTexts = false): string {
    const hash = createHash('sha512');
    const isOnlyEncrypted = isTrue(entryOf(this.#metadata, 'mac_only_encrypted'));
    if (isOnlyEncrypted) hash.update(MAC_ONLY_ENCRYPTED_START);
    for (const { node, isEncrypted } of this.#leaves()) {
      if (!isEncrypted && isOnlyEncrypted) continue;
      const bytes = this.#bytesOf(node);
      const isValue = isEncrypted && !isOfTexts && node.kind === 'string';
      hash.update(isValue ? macBytesOf(node.value, bytes) : bytes);
    }
    return hash.digest('hex').toUpperCase();
  }

  #bytesOf(node: JsonNode): Buffer {
    return this.#plain.get(node) ?? Buffer.from(plainTextOf(node));
  }

  *#leaves(): Generator<LeafNode> {
    for (const { key, value } of this.#root.entries) {
      if (key !== METADATA_KEY) yield* this.#walk(value, [key], false);
    }
  }

  *#walk(node: JsonNode, path: readonly string[], isItem: boolean): Generator<LeafNode> {
    switch (node.kind) {
      case 'object':
        for (const { key, value } of node.entries) {
          yield* this.#walk(value, [...path, key], isItem);
        }
        return;
      case 'array':
        for (const item of node.items) yield* this.#walk(item, path, true);
        return;
      case 'null':
        return;
      case 'string':
      case 'number':
      case 'boolean':
        yield { path, node, isEncrypted: this.#rule.encrypts(path), isItem };
        return;
    }
  }
}

function partsOf(text: string): {
  readonly root: JsonObjectNode;
  readonly metadata: JsonObjectNode;
} {
  const root = parseOrderedJson(text, { depthMax: JSON_DEPTH_MAX });
  if (root.kind !== 'object') throw new TypeError('the document is no object');
  const metadata = entryOf(root, METADATA_KEY);
  if (metadata?.kind === 'object') return { root, metadata };
  throw new TypeError('there is no sops metadata: not encrypted');
}

function dateIn(metadata: JsonObjectNode): string {
  return stringOf(metadata, 'lastmodified') ?? '';
}

/** SOPS keeps `true` as `True`. */
function shownText(node: JsonNode, bytes: Buffer): string {
  const text = bytes.toString('utf8');
  return node.kind === 'string' && node.value.endsWith(',type:bool]') ? text.toLowerCase() : text;
}

/** What binds a value to its place: the keys, each followed by a colon. */
function contextOf(path: readonly string[]): string {
  return `${path.join(':')}:`;
}

function wrappedKeysOf(metadata: JsonObjectNode): readonly WrappedKey[] {
  const groups = entryOf(metadata, 'key_groups');
  if (groups?.kind === 'array' && groups.items.length > 1) {
    throw new TypeError('the data key is shared among several key groups, which is not supported');
  }
  const list =
    groups?.kind === 'array' && groups.items.length === 1
      ? entryOf(groups.items[0], 'age')
      : entryOf(metadata, 'age');
  if (list?.kind !== 'array') return [];
  return list.items.flatMap((item) => {
    const [recipient, enc] = [stringOf(item, 'recipient'), stringOf(item, 'enc')];
    return recipient === undefined || enc === undefined ? [] : [{ recipient, enc }];
  });
}

/** As Go prints a time of RFC 3339: no fraction, `Z` for no offset. */
function normalizedDate(text: string): string {
  const parts = DATE.exec(text);
  if (parts === null || Number.isNaN(Date.parse(text))) {
    throw new TypeError('lastmodified is no date');
  }
  const offset = parts[3];
  const isUtc = offset === undefined || offset === '+00:00' || offset === '-00:00';
  return `${parts[1]}T${parts[2]}${isUtc ? 'Z' : offset}`;
}

/** The bytes that SOPS feeds its MAC for a value that stands there unencrypted. */
function plainTextOf(node: JsonNode): string {
  switch (node.kind) {
    case 'string':
      return node.value;
    case 'boolean':
      return node.value ? 'True' : 'False';
    case 'number':
      return plainNumberText(node.text);
    case 'object':
    case 'array':
    case 'null':
      return '';
  }
}

function isTrue(node: JsonNode | undefined): boolean {
  return node?.kind === 'boolean' && node.value;
}
