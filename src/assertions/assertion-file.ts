import { isScalar, isSeq, type Node } from 'yaml';
import { canonicalJson } from '../model/canonical-json.ts';
import { checkConditionName, checkJson, checkNamespace, checkRelation } from '../model/names.ts';
import type { RelationTuple, Subject, TupleKey } from '../model/relation-tuple.ts';
import { AppError } from '../shared/app-error.ts';
import type { JsonObject, JsonValue } from '../shared/json.ts';
import { compareUtf8 } from '../shared/text/utf8-order.ts';
import { utf8Length } from '../shared/text/utf8.ts';
import { microsecondsOf, parseTimestamp } from '../shared/time/instant.ts';
import { objectFromText, subjectFromText, textOfTuple, tupleFromText } from './tuple-text.ts';
import { type Field, type Fields, type YamlProblem, isEmpty, YamlReader } from './yaml-reader.ts';

/** A tuple of a file, and its line. */
export type PlacedTuple = { readonly tuple: RelationTuple; readonly line: number };

/** Expected result of one query. */
export type Assertion =
  | {
      readonly kind: 'check';
      readonly line: number;
      readonly query: TupleKey;
      /** JSON text; '' means no context. */
      readonly contextJson: string;
      readonly expected: boolean;
    }
  | {
      readonly kind: 'listObjects';
      readonly line: number;
      readonly namespace: string;
      readonly relation: string;
      readonly userId: string;
      /** Ids, sorted by their UTF-8 bytes, each once. */
      readonly expected: readonly string[];
    };

/** One test: its own tuples, added to those of the file, and the assertions that must hold over both. */
export type AssertionTest = {
  readonly name: string;
  readonly line: number;
  readonly tuples: readonly PlacedTuple[];
  /** Time by which expiry is decided, ms since the epoch; undefined is the present. */
  readonly nowMs: number | undefined;
  readonly assertions: readonly Assertion[];
};

/** Content of a file of assertions. */
export type AssertionDocument = {
  /** Model that the file provides: its text (JSON or `.gate`), or the path of its file. */
  readonly model:
    | { readonly kind: 'text' | 'file'; readonly value: string; readonly line: number }
    | undefined;
  readonly tuples: readonly PlacedTuple[];
  readonly tests: readonly AssertionTest[];
};

/** A document, or its problems. */
export type AssertionFileReading =
  | { readonly document: AssertionDocument; readonly problems?: undefined }
  | { readonly document?: undefined; readonly problems: readonly YamlProblem[] };

const TEXT_BYTES_MAX = 1024 * 1024;
const TUPLES_MAX = 10_000;
const ASSERTIONS_MAX = 10_000;

/**
 * Reads a file of assertions; docs/models.md describes the form. Reports the first 20 problems of a faulty file. Cost:
 * O(text).
 */
export function readAssertionFile(text: string): AssertionFileReading {
  const tooLarge = sizeProblem(text);
  if (tooLarge !== undefined) return { problems: [{ line: 1, column: 1, message: tooLarge }] };
  const yaml = new YamlReader(text);
  if (yaml.problems.length > 0) return { problems: yaml.problems };
  const document = new FileReader(yaml).read();
  return yaml.problems.length > 0 ? { problems: yaml.problems } : { document };
}

function sizeProblem(text: string): string | undefined {
  if (text.length > TEXT_BYTES_MAX || utf8Length(text) > TEXT_BYTES_MAX) {
    return `a file has at most ${TEXT_BYTES_MAX} bytes`;
  }
  return text.isWellFormed() && !text.includes('\u0000') ? undefined : 'is not well-formed Unicode';
}

type Defaults = { readonly context: JsonObject | undefined; readonly nowMs: number | undefined };

const FILE_KEYS = ['name', 'model', 'model_file', 'tuples', 'context', 'now', 'tests'];
const TUPLE_KEYS = ['tuple', 'condition', 'params', 'expires_at'];
const TEST_KEYS = ['name', 'tuples', 'context', 'now', 'allow', 'deny', 'check', 'list_objects'];
const CHECK_KEYS = ['user', 'object', 'context', 'assertions'];
const LIST_KEYS = ['user', 'type', 'assertions'];
const ENTRY_KEYS = ['check', 'context'];

class FileReader {
  readonly #yaml: YamlReader;
  #tuples = 0;
  #assertions = 0;

  constructor(yaml: YamlReader) {
    this.#yaml = yaml;
  }

  read(): AssertionDocument {
    const yaml = this.#yaml;
    const fields = yaml.fields(yaml.root, 'a file of assertions', FILE_KEYS);
    const defaults = this.#defaults(fields, { context: undefined, nowMs: undefined });
    const tuples = this.#tuplesOf(fields.get('tuples'));
    const entries = yaml.list(fields.get('tests'), 'tests');
    if (entries.length === 0) yaml.problem(yaml.root, 'tests: a file has one at least');
    const tests = entries.map((node, index) => this.#test(node, index, tuples, defaults));
    return { model: this.#model(fields), tuples, tests };
  }

  #model(fields: Fields): AssertionDocument['model'] {
    const yaml = this.#yaml;
    const inline = fields.get('model');
    const file = fields.get('model_file');
    if (inline !== undefined && file !== undefined) {
      yaml.problem(file.keyNode, 'a file has model or model_file, not both');
    }
    if (file !== undefined) {
      const value = yaml.text(file.value, 'model_file', file.keyNode);
      return { kind: 'file', value, line: yaml.lineOf(file.keyNode) };
    }
    if (inline === undefined) return undefined;
    const line = yaml.lineOf(inline.value ?? inline.keyNode);
    const isText = isScalar(inline.value) && typeof inline.value.value === 'string';
    const value = isText
      ? yaml.text(inline.value, 'model', inline.keyNode)
      : JSON.stringify(yaml.json(inline.value));
    return { kind: 'text', value, line };
  }

  #defaults(fields: Fields, outer: Defaults): Defaults {
    const context = fields.get('context');
    const now = fields.get('now');
    return {
      context: this.#context(context, outer),
      nowMs: now === undefined ? outer.nowMs : this.#instantMs(now, 'now'),
    };
  }

  #test(
    node: Node | null,
    index: number,
    shared: readonly PlacedTuple[],
    outer: Defaults,
  ): AssertionTest {
    const yaml = this.#yaml;
    const before = yaml.problems.length;
    const fields = yaml.fields(node, 'a test', TEST_KEYS);
    const name = fields.get('name');
    const defaults = this.#defaults(fields, outer);
    const tuples = this.#tuplesOf(fields.get('tuples'));
    this.#refuseTwice([...shared, ...tuples]);
    const assertions = [
      ...this.#entries(fields.get('allow'), true, defaults),
      ...this.#entries(fields.get('deny'), false, defaults),
      ...yaml.list(fields.get('check'), 'check').flatMap((one) => this.#checks(one, defaults)),
      ...yaml.list(fields.get('list_objects'), 'list_objects').flatMap((one) => this.#lists(one)),
    ];
    if (assertions.length === 0 && yaml.problems.length === before) {
      yaml.problem(node, 'a test asserts something: allow, deny, check or list_objects');
    }
    this.#assertions += assertions.length;
    if (this.#assertions > ASSERTIONS_MAX) {
      yaml.problem(node, `a file has at most ${ASSERTIONS_MAX} assertions`);
    }
    return {
      name: name === undefined ? `test ${index + 1}` : yaml.text(name.value, 'name', name.keyNode),
      line: yaml.lineOf(node),
      tuples,
      nowMs: defaults.nowMs,
      assertions,
    };
  }

  #tuplesOf(field: Field | undefined): readonly PlacedTuple[] {
    const nodes = this.#yaml.list(field, 'tuples');
    this.#tuples += nodes.length;
    if (this.#tuples > TUPLES_MAX && field !== undefined) {
      this.#yaml.problem(field.keyNode, `a file has at most ${TUPLES_MAX} tuples`);
      return [];
    }
    return nodes.flatMap((node) => {
      const tuple = this.#tuple(node);
      return tuple === undefined ? [] : [{ tuple, line: this.#yaml.lineOf(node) }];
    });
  }

  #tuple(node: Node | null): RelationTuple | undefined {
    const yaml = this.#yaml;
    if (isScalar(node)) return this.#tupleText(node, 'a tuple');
    const fields = yaml.fields(node, 'a tuple', TUPLE_KEYS);
    const text = fields.get('tuple');
    const key = this.#tupleText(text?.value ?? null, 'tuple', text?.keyNode ?? node);
    const condition = fields.get('condition');
    const params = fields.get('params');
    const expiry = fields.get('expires_at');
    if (params !== undefined && condition === undefined) {
      yaml.problem(params.keyNode, 'params need a condition');
    }
    const conditionName = condition && yaml.text(condition.value, 'condition', condition.keyNode);
    if (conditionName !== undefined) {
      this.#guarded(condition?.value, () => checkConditionName('condition', conditionName));
    }
    const conditionParams = params && canonicalJson(this.#object(params, 'params'));
    const expiresAtUs = expiry && this.#instantUs(expiry, 'expires_at');
    return key && { ...key, conditionName, conditionParams, expiresAtUs };
  }

  #tupleText(node: Node | null, what: string, at?: Node | null): TupleKey | undefined {
    const yaml = this.#yaml;
    const before = yaml.problems.length;
    const text = yaml.text(node, what, at ?? undefined);
    if (yaml.problems.length > before) return undefined;
    const key = tupleFromText(text);
    if (!('problem' in key)) return key;
    yaml.problem(node, `${what}: ${key.problem}`);
    return undefined;
  }

  /** Rejects repeated tuples, as one write would: the last of two would hide the first. */
  #refuseTwice(tuples: readonly PlacedTuple[]): void {
    const lines = new Map<string, number>();
    for (const { tuple, line } of tuples) {
      const text = textOfTuple(tuple);
      const first = lines.get(text);
      if (first !== undefined)
        this.#yaml.problemAt(line, `${text} stands on line ${first} already`);
      lines.set(text, line);
    }
  }

  /** Entries of `allow` and `deny`: queries as texts. */
  #entries(field: Field | undefined, expected: boolean, defaults: Defaults): readonly Assertion[] {
    const yaml = this.#yaml;
    return yaml.list(field, field?.key ?? '').flatMap((node): readonly Assertion[] => {
      const isPlain = isScalar(node);
      const fields = isPlain ? undefined : yaml.fields(node, 'an assertion', ENTRY_KEYS);
      const text = isPlain ? node : (fields?.get('check')?.value ?? null);
      const query = this.#tupleText(text, 'check', node);
      if (query === undefined || !this.#mayAsk(query.subject, text)) return [];
      const context = fields?.get('context');
      const own = this.#context(context, defaults);
      const line = yaml.lineOf(node);
      return [{ kind: 'check', line, query, contextJson: contextText(own), expected }];
    });
  }

  /** An entry of `check`: one subject and object, and the expected answer for each relation. */
  #checks(node: Node | null, defaults: Defaults): readonly Assertion[] {
    const yaml = this.#yaml;
    const fields = yaml.fields(node, 'a check', CHECK_KEYS);
    const subject = this.#subject(fields.get('user'), node);
    const object = this.#objectName(fields.get('object'), node);
    const context = fields.get('context');
    const own = this.#context(context, defaults);
    return this.#relations(fields.get('assertions'), node).flatMap(
      ({ key: relation, keyNode, value }): readonly Assertion[] => {
        const expected = yaml.truth(value, relation, keyNode);
        if (subject === undefined || object === undefined) return [];
        const query = { ...object, relation, subject };
        const line = yaml.lineOf(keyNode);
        return [{ kind: 'check', line, query, contextJson: contextText(own), expected }];
      },
    );
  }

  /** An entry of `list_objects`: one user and namespace, and the expected objects for each relation. */
  #lists(node: Node | null): readonly Assertion[] {
    const yaml = this.#yaml;
    const fields = yaml.fields(node, 'an entry of list_objects', LIST_KEYS);
    const user = fields.get('user');
    const subject = this.#subject(user, node);
    if (subject !== undefined && subject.kind !== 'user') {
      yaml.problem(user?.value, 'user: objects are listed for a user, as user:alice');
    }
    const type = fields.get('type');
    const namespace = yaml.text(type?.value, 'type', type?.keyNode ?? node ?? undefined);
    this.#guarded(type?.value, () => checkNamespace('type', namespace));
    return this.#relations(fields.get('assertions'), node).flatMap(
      (field): readonly Assertion[] => {
        if (!isSeq(field.value) && !isEmpty(field.value)) {
          yaml.problem(field.value, `${field.key} must be a list of objects`);
          return [];
        }
        const expected = yaml
          .list(field, field.key)
          .map((one) => this.#listed(one, namespace, field));
        if (subject?.kind !== 'user') return [];
        const { userId } = subject;
        const relation = field.key;
        const line = yaml.lineOf(field.keyNode);
        return [
          { kind: 'listObjects', line, namespace, relation, userId, expected: sorted(expected) },
        ];
      },
    );
  }

  #listed(node: Node | null, namespace: string, field: Field): string {
    const text = this.#yaml.text(node, 'an object', field.keyNode);
    const object = objectFromText(text);
    if (!('problem' in object) && object.namespace === namespace) return object.objectId;
    this.#yaml.problem(
      node ?? field.keyNode,
      `an object must read ${namespace}:…, as the list is of this type`,
    );
    return '';
  }

  #relations(field: Field | undefined, node: Node | null): readonly Field[] {
    const yaml = this.#yaml;
    const fields = yaml.anyFields(
      field?.value ?? null,
      'assertions',
      field?.keyNode ?? node ?? undefined,
    );
    if (fields.size === 0 && yaml.problems.length === 0) {
      yaml.problem(field?.keyNode ?? node, 'assertions: names one relation at least');
    }
    for (const { key, keyNode } of fields.values()) {
      this.#guarded(keyNode, () => checkRelation('the relation', key));
    }
    return [...fields.values()];
  }

  #subject(field: Field | undefined, at: Node | null): Subject | undefined {
    const yaml = this.#yaml;
    const before = yaml.problems.length;
    const text = yaml.text(field?.value, 'user', field?.keyNode ?? at ?? undefined);
    if (yaml.problems.length > before) return undefined;
    const subject = subjectFromText(text);
    if ('problem' in subject) {
      yaml.problem(field?.value, `user: ${subject.problem}`);
      return undefined;
    }
    return this.#mayAsk(subject, field?.value) ? subject : undefined;
  }

  #mayAsk(subject: Subject, at: Node | null | undefined): boolean {
    if (subject.kind !== 'wildcard') return true;
    this.#yaml.problem(at, 'a question is about one user or set: user:* stands in tuples alone');
    return false;
  }

  #objectName(
    field: Field | undefined,
    at: Node | null,
  ): { readonly namespace: string; readonly objectId: string } | undefined {
    const yaml = this.#yaml;
    const before = yaml.problems.length;
    const text = yaml.text(field?.value, 'object', field?.keyNode ?? at ?? undefined);
    if (yaml.problems.length > before) return undefined;
    const object = objectFromText(text);
    if (!('problem' in object)) return object;
    yaml.problem(field?.value, `object: ${object.problem}`);
    return undefined;
  }

  /** Context of an entry, by default that of `outer`. A key without a value means no context, whatever `outer` has. */
  #context(field: Field | undefined, outer: Defaults): JsonObject | undefined {
    if (field === undefined) return outer.context;
    return isEmpty(field.value) ? undefined : this.#object(field, 'context');
  }

  #object({ value, keyNode }: Field, what: string): JsonObject {
    const json: JsonValue = this.#yaml.json(value);
    if (typeof json === 'object' && json !== null && !Array.isArray(json)) {
      this.#guarded(value, () => checkJson(what, json));
      return json as JsonObject;
    }
    this.#yaml.problem(value ?? keyNode, `${what} must be a mapping`);
    return {};
  }

  #instantUs(field: Field, what: string): bigint {
    const text = this.#yaml.text(field.value, what, field.keyNode);
    const instant = parseTimestamp(text);
    if (instant === undefined) {
      this.#yaml.problem(
        field.value ?? field.keyNode,
        `${what} must be a time as 2030-01-31T12:00:00Z`,
      );
      return 0n;
    }
    return microsecondsOf(instant);
  }

  #instantMs(field: Field, what: string): number {
    return Number(this.#instantUs(field, what)) / 1_000;
  }

  #guarded(node: Node | null | undefined, check: () => void): void {
    try {
      check();
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      this.#yaml.problem(node, error.message);
    }
  }
}

/** JSON text of a context. An empty context counts as one: without any context, no condition is decided. */
function contextText(context: JsonObject | undefined): string {
  return context === undefined ? '' : canonicalJson(context);
}

function sorted(ids: readonly string[]): readonly string[] {
  return [...new Set(ids)].toSorted(compareUtf8);
}
