import { readFileSync } from 'node:fs';
import path from 'node:path';
import {
  readOpenFgaDsl,
  readOpenFgaJson,
  readOpenFgaMod,
  readOpenFgaModules,
} from '../../../language/openfga/read-openfga-model.ts';
import { readStoreFile } from '../../../language/openfga/read-store-file.ts';
import { membersOf, optionalString, stringOf } from '../../../language/peers/json-shape.ts';
import type { PeerModel, PeerSuite } from '../../../language/peers/peer-model.ts';
import { readYaml } from '../../../language/peers/read-yaml.ts';
import { readSpiceDbSchema } from '../../../language/spicedb/read-spicedb-schema.ts';
import { readValidationFile } from '../../../language/spicedb/read-validation-file.ts';
import { fileError, messageOf, pathBeside, readText } from '../../core/files.ts';

const NO_TESTS: PeerSuite = { tuples: [], tests: [], unsupported: [] };

export type PeerFile = { readonly peer: PeerModel; readonly suite: PeerSuite };

/**
 * Reads a file of OpenFGA (`.fga`, `.mod`, `.json`, `.fga.yaml`) or SpiceDB (`.zed`, `.yaml`).
 * Files that it names must be in its folder or below. `kind` selects the system; without it the
 * name and the content do.
 * Errors: FILE_INVALID for files; FIELD_INVALID for their content.
 */
export function readPeerFile(file: string, kind: string | undefined): PeerFile {
  const text = readText(file);
  if (!/\.ya?ml$/.test(file)) {
    const isSpiceDb = kind === 'spicedb' || (kind === undefined && file.endsWith('.zed'));
    return {
      peer: isSpiceDb ? readSpiceDbSchema(text) : openFgaModel(file, text),
      suite: NO_TESTS,
    };
  }
  const isStore = kind === 'openfga' || (kind === undefined && isStoreFile(file, text));
  if (isStore) {
    const { model, suite } = readStoreFile(text, (other) => readBeside(file, other));
    const peer =
      model.kind === 'text'
        ? readOpenFgaDsl(model.text)
        : openFgaModel(path.join(path.dirname(file), model.path), readBeside(file, model.path));
    return { peer, suite };
  }
  const { schema, suite } = readValidationFile(text, (other) => readBeside(file, other));
  const schemaText = schema.kind === 'text' ? schema.text : readBeside(file, schema.path);
  return { peer: readSpiceDbSchema(schemaText), suite };
}

/**
 * The model of such a file alone, without its tuples, tests and their files. Errors: those of
 * `readPeerFile`.
 */
export function readPeerModel(file: string, kind: string | undefined): PeerModel {
  if (!/\.(?:ya?ml|zaml)$/.test(file)) return readPeerFile(file, kind).peer;
  const root = membersOf(readYaml(readText(file), file), file);
  const textOf = (inline: string, named: string): readonly [name: string, text: string] => {
    const text = optionalString(root[inline], inline);
    if (text !== undefined) return ['', text];
    const other = stringOf(root[named], `${file}: ${named}`);
    return [other, readBeside(file, other)];
  };
  const isStore = root['model'] !== undefined || root['model_file'] !== undefined;
  if (!isStore) return readSpiceDbSchema(textOf('schema', 'schemaFile')[1]);
  const [name, text] = textOf('model', 'model_file');
  return openFgaModel(path.join(path.dirname(file), name), text);
}

function openFgaModel(file: string, text: string): PeerModel {
  if (file.endsWith('.json')) return readOpenFgaJson(text);
  if (!file.endsWith('.mod')) return readOpenFgaDsl(text);
  const { files, problems } = readOpenFgaMod(text);
  if (problems.length > 0) return { types: [], conditions: [], problems, notes: [] };
  return readOpenFgaModules(files.map((name) => ({ name, text: readBeside(file, name) })));
}

function isStoreFile(file: string, text: string): boolean {
  const members = membersOf(readYaml(text, file), file);
  return members['model'] !== undefined || members['model_file'] !== undefined;
}

/** Reads a file that another one names, in the same folder or below. */
function readBeside(file: string, other: string): string {
  const found = pathBeside(file, other);
  try {
    return readFileSync(found, 'utf8');
  } catch (error) {
    throw fileError(file, messageOf(error));
  }
}
