import { usage } from '../../command-line/parse-words.ts';
import { parseGate } from '../../language/gate/parse-gate.ts';
import { type NamespaceModel, parseModel } from '../../model/namespace/namespace-model.ts';
import type { CliLine } from '../core/command.ts';
import { EXIT_NO, EXIT_OK } from '../core/exit-codes.ts';
import { readText, writeText } from '../core/files.ts';
import { fileOf, isJson, isOfContent, say } from './files/model-files.ts';

const TYPE_NAME = /^[A-Za-z_$][\w$]*$/;
const BARE_KEY = /^[a-z_$][\w$]*$/;

/** `model types`: writes a model as a type of TypeScript. */
export function writeTypes(line: CliLine): Promise<number> {
  const path = fileOf(line);
  const name = line.text('name') ?? 'Model';
  if (!TYPE_NAME.test(name)) throw usage('--name is no name of a type');
  const text = readText(path);
  try {
    const model = parseModel(isJson(path, text) ? text : parseGate(text).json);
    writeText(line.text('out') ?? '-', typeOf(model, name));
    return Promise.resolve(EXIT_OK);
  } catch (error) {
    if (!isOfContent(error)) throw error;
    say(line, `${path}: ${error.message}`);
    return Promise.resolve(EXIT_NO);
  }
}

/** The source of the type; relations of an open namespace may have any name. */
function typeOf({ namespaces, open }: NamespaceModel, name: string): string {
  const rows = [...namespaces].map(([namespace, relations]) => {
    const names = [...relations.keys()].toSorted().map((relation) => `'${relation}'`);
    const type = open.has(namespace) ? 'string' : names.join(' | ') || 'never';
    return `  ${BARE_KEY.test(namespace) ? namespace : `'${namespace}'`}: ${type};\n`;
  });
  return `/** Namespaces with their relations: written by \`gatehouse model types\`. */\nexport type ${name} = {\n${rows.join('')}};\n`;
}
