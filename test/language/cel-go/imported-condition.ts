import { readOpenFgaJson } from '../../../src/language/openfga/read-openfga-model.ts';
import {
  type ImportedModel,
  importPeerModel,
} from '../../../src/language/peers/import-peer-model.ts';
import { readSpiceDbSchema } from '../../../src/language/spicedb/read-spicedb-schema.ts';
import { CONDITION_FALSE, CONDITION_TRUE } from '../../../src/model/conditions/conditions.ts';
import { prepareDeclaredCondition } from '../../../src/model/conditions/declared-condition.ts';
import { parseModel } from '../../../src/model/namespace/namespace-model.ts';
import type { CelQuestion } from './draft.ts';

/** What a question comes to here, once its condition is imported: as a peer would say it, or why it is not taken. */
export type SaidHere =
  | { readonly said: 'true' | 'false' | 'error' }
  | { readonly said: 'refused'; readonly why: string };

/** Imports the condition of a question from a model of OpenFGA, and evaluates it. */
export function askAsOpenFga(question: CelQuestion): SaidHere {
  return evaluate(importPeerModel(readOpenFgaJson(openFgaModel(question)), OPTIONS), question);
}

/** The same from a schema of SpiceDB. */
export function askAsSpiceDb(question: CelQuestion): SaidHere {
  return evaluate(importPeerModel(readSpiceDbSchema(spiceDbSchema(question)), OPTIONS), question);
}

const OPTIONS = { userType: 'user' };

function openFgaModel({ parameters, expression }: CelQuestion): string {
  const admitted = [{ type: 'user', condition: 'asked' }];
  return JSON.stringify({
    schema_version: '1.1',
    type_definitions: [
      { type: 'user' },
      {
        type: 'doc',
        relations: { viewer: { this: {} } },
        metadata: { relations: { viewer: { directly_related_user_types: admitted } } },
      },
    ],
    conditions: {
      asked: {
        name: 'asked',
        expression,
        parameters: Object.fromEntries(
          Object.entries(parameters).map(([name, type]) => [name, openFgaType(type)]),
        ),
      },
    },
  });
}

function openFgaType(type: string): object {
  const [, outer, inner] = /^(list|map)<(.*)>$/.exec(type) ?? [];
  if (outer === undefined || inner === undefined) return { type_name: typeName(type) };
  return { type_name: typeName(outer), generic_types: [openFgaType(inner)] };
}

function typeName(type: string): string {
  return `TYPE_NAME_${type.toUpperCase()}`;
}

function spiceDbSchema({ parameters, expression }: CelQuestion): string {
  const listed = Object.entries(parameters).map(([name, type]) => `${name} ${type}`);
  return [
    `caveat asked(${listed.join(', ')}) {`,
    expression,
    '}',
    'definition user {}',
    'definition doc {\n  relation viewer: user with asked\n}',
  ].join('\n');
}

function evaluate({ document, problems }: ImportedModel, { context }: CelQuestion): SaidHere {
  if (document === undefined) {
    return { said: 'refused', why: problems.map(({ text }) => text).join('; ') };
  }
  const [declaration] = parseModel(JSON.stringify(document)).conditions.values();
  if (declaration === undefined) return { said: 'refused', why: 'the condition is gone' };
  const outcome = prepareDeclaredCondition(declaration, '')(context);
  if (outcome === CONDITION_TRUE) return { said: 'true' };
  return { said: outcome === CONDITION_FALSE ? 'false' : 'error' };
}
