import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runSuite } from '../../src/cli/models/files/run-suite.ts';
import { parseGate } from '../../src/language/gate/parse-gate.ts';
import { printGate } from '../../src/language/gate/print-gate-tree.ts';
import type { RelationDocument, RewriteDocument } from '../../src/language/model-document.ts';
import { readOpenFgaDsl } from '../../src/language/openfga/read-openfga-model.ts';
import { readStoreFile } from '../../src/language/openfga/read-store-file.ts';
import { importPeerModel } from '../../src/language/peers/import-peer-model.ts';
import { importSuite } from '../../src/language/peers/import-suite.ts';
import type {
  PeerCheck,
  PeerModel,
  PeerReference,
  PeerRule,
  PeerSubjectType,
  PeerSuite,
  PeerTuple,
} from '../../src/language/peers/peer-model.ts';
import { readSpiceDbSchema } from '../../src/language/spicedb/read-spicedb-schema.ts';
import { readValidationFile } from '../../src/language/spicedb/read-validation-file.ts';
import { openFgaText, spiceDbText, storeFileText, validationFileText } from './peer-text.ts';

/*
 * The cases of SpiceDB's suite (test/conformance), written down again as files of SpiceDB and of OpenFGA, and
 * imported from these: every question of an imported model has the answer that the case asks for.
 */
type WireSet = {
  readonly namespace: string;
  readonly object_id: string;
  readonly relation?: string;
};
type WireSubject = {
  readonly user_id?: string;
  readonly wildcard?: boolean;
  readonly set?: WireSet;
};
type Case = {
  readonly name: string;
  readonly model_json: {
    readonly namespaces: Readonly<
      Record<string, { readonly relations: Readonly<Record<string, RelationDocument>> }>
    >;
  };
  readonly tuples: readonly {
    readonly namespace: string;
    readonly object_id: string;
    readonly relation: string;
    readonly subject: WireSubject;
    readonly expires_at?: string;
  }[];
  readonly checks: readonly {
    readonly namespace: string;
    readonly object_id: string;
    readonly relation: string;
    readonly subject_user_id?: string;
    readonly subject_set?: WireSet;
    readonly want: boolean;
  }[];
};

const USERS = 'user';
const CASES = JSON.parse(
  readFileSync(new URL('../conformance/spicedb.json', import.meta.url), 'utf8'),
) as readonly Case[];

function referenceOf({ user_id, set }: WireSubject): PeerReference {
  if (user_id !== undefined) return { type: USERS, id: idOf(user_id), relation: '' };
  if (set === undefined) return { type: USERS, id: '*', relation: '' };
  return { type: set.namespace, id: set.object_id, relation: set.relation ?? '' };
}

/** Ids of SpiceDB hold no colon; those of the cases do where a type was written into them. */
function idOf(id: string): string {
  return id.replaceAll(':', '|');
}

function tuplesOf(one: Case): readonly PeerTuple[] {
  return one.tuples.map(({ namespace, object_id: id, relation, subject, expires_at }) => ({
    object: { type: namespace, id, relation: '' },
    relation,
    subject: referenceOf(subject),
    condition: undefined,
    context: undefined,
    expiresAt: expires_at,
    place: '',
  }));
}

function checksOf(one: Case): readonly PeerCheck[] {
  return one.checks.map(({ namespace, object_id: id, relation, ...asked }) => ({
    object: { type: namespace, id, relation: '' },
    relation,
    subject:
      asked.subject_set === undefined
        ? { type: USERS, id: idOf(asked.subject_user_id ?? ''), relation: '' }
        : referenceOf({ set: asked.subject_set }),
    context: undefined,
    isAllowed: asked.want,
    place: '',
  }));
}

function ruleOf(rewrite: RewriteDocument): PeerRule {
  if (rewrite.computed !== undefined) return { op: 'computed', relation: rewrite.computed };
  if (rewrite.tuple_to_userset !== undefined) return { op: 'walk', ...rewrite.tuple_to_userset };
  if (rewrite.union !== undefined) return { op: 'union', children: rewrite.union.map(ruleOf) };
  if (rewrite.intersection !== undefined) {
    return { op: 'intersection', children: rewrite.intersection.map(ruleOf) };
  }
  if (rewrite.exclusion === undefined) return { op: 'this' };
  const { include, exclude } = rewrite.exclusion;
  return { op: 'exclusion', include: ruleOf(include), exclude: ruleOf(exclude) };
}

/** The case's model with the subjects that its tuples have: the case itself says none. */
function modelOf(one: Case, tuples: readonly PeerTuple[]): PeerModel {
  const namespaces = Object.entries(one.model_json.namespaces);
  const walks = JSON.stringify(one.model_json);
  const types = namespaces.map(([name, { relations }]) => ({
    name,
    place: '',
    relations: Object.entries(relations).map(([relation, document]) => {
      const rule = ruleOf(document);
      const found = tuples
        .filter((tuple) => tuple.object.type === name && tuple.relation === relation)
        .map(({ subject, expiresAt }): PeerSubjectType => ({
          type: subject.type,
          relation: subject.id === '*' ? '*' : subject.relation,
          condition: undefined,
          expires: expiresAt !== undefined,
        }));
      const isWalked = walks.includes(`"tupleset":"${relation}"`);
      const unseen = isWalked ? namespaces.map(([type]) => type) : [USERS];
      const subjects = found.length > 0 ? found : unseen.map(plain);
      const once = new Map(subjects.map((subject) => [JSON.stringify(subject), subject]));
      return {
        name: relation,
        place: '',
        rule,
        subjects: rule.op === 'this' ? [...once.values()] : [],
      };
    }),
  }));
  const users = { name: USERS, place: '', relations: [] };
  const declared = types.some(({ name }) => name === USERS) ? types : [users, ...types];
  return { types: declared, conditions: [], problems: [], notes: [] };
}

function plain(type: string): PeerSubjectType {
  return { type, relation: '', condition: undefined, expires: false };
}

type Counts = { imported: number; assertions: number };

function replay(model: PeerModel, suite: PeerSuite, counts: Counts): void {
  const imported = importPeerModel(model, { userType: undefined });
  if (imported.document === undefined) return;
  const asked = importSuite(imported, suite);
  expect(asked.problems).toEqual([]);
  const { assertions, differences } = runSuite(parseGate(printGate(imported.document)).json, asked);
  expect(differences).toEqual([]);
  counts.imported += 1;
  counts.assertions += assertions;
}

test('as schemas and validation files of SpiceDB', () => {
  const counts = { imported: 0, assertions: 0 };
  for (const one of CASES) {
    const tuples = tuplesOf(one);
    const text = validationFileText(spiceDbText(modelOf(one, tuples)), tuples, checksOf(one));
    const { schema, suite } = readValidationFile(text, String);
    replay(readSpiceDbSchema(schema.kind === 'text' ? schema.text : ''), suite, counts);
  }
  expect(counts).toEqual({ imported: 72, assertions: 4736 });
}, 120_000);

test('as models and store files of OpenFGA', () => {
  const counts = { imported: 0, assertions: 0 };
  for (const one of CASES.filter(({ tuples }) => tuples.every((tuple) => !tuple.expires_at))) {
    const tuples = tuplesOf(one);
    const text = storeFileText(openFgaText(modelOf(one, tuples)), tuples, checksOf(one));
    const { model, suite } = readStoreFile(text, () => '');
    replay(readOpenFgaDsl(model.kind === 'text' ? model.text : ''), suite, counts);
  }
  expect(counts).toEqual({ imported: 65, assertions: 4208 });
}, 120_000);
