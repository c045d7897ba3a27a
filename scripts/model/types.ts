import { parseArgs } from 'node:util';
import { parseGate } from '../../src/language/gate/parse-gate.ts';
import { parseModel, type NamespaceModel } from '../../src/model/namespace-model.ts';
import { AppError } from '../../src/shared/app-error.ts';
import { isJson, readText, say, writeText } from './files.ts';
import { EXIT_OK, EXIT_PROBLEM, type Subcommand, UsageError } from './subcommand.ts';

const HELP = `usage: npm run model -- types FILE [--name NAME] [--out FILE]

Writes a model, .gate or JSON, as a type of TypeScript for @gatehouse/client: namespaces with their relations, so that
a misspelt name does not compile. - is the standard input.

  --name NAME   the name of the type; Model where it is not given
  --out FILE    where to; the standard output where it is not given

  new GatehouseClient<Model>({ … })

exit codes: 0 written; 1 FILE is no model; 2 the command or a file is wrong
`;

const TYPE_NAME = /^[A-Za-z_$][\w$]*$/;
const BARE_KEY = /^[a-z_$][\w$]*$/;

/** Writes a model as a type of TypeScript. */
export const types: Subcommand = {
  help: HELP,
  run: (args) => {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: {
        name: { type: 'string', default: 'Model' },
        out: { type: 'string', default: '-' },
      },
      allowPositionals: true,
    });
    const [path, ...others] = positionals;
    if (path === undefined || others.length > 0) throw new UsageError('types: one file, please');
    if (!TYPE_NAME.test(values.name)) throw new UsageError('types: --name is no name of a type');
    const text = readText(path);
    try {
      const model = parseModel(isJson(path, text) ? text : parseGate(text).json);
      writeText(values.out, typeOf(model, values.name));
      return EXIT_OK;
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      say(`${path}: ${error.message}`);
      return EXIT_PROBLEM;
    }
  },
};

/** The source of the type; relations of an open namespace may have any name. */
function typeOf({ namespaces, open }: NamespaceModel, name: string): string {
  const rows = [...namespaces].map(([namespace, relations]) => {
    const names = [...relations.keys()].toSorted().map((relation) => `'${relation}'`);
    const type = open.has(namespace) ? 'string' : names.join(' | ') || 'never';
    return `  ${BARE_KEY.test(namespace) ? namespace : `'${namespace}'`}: ${type};\n`;
  });
  return `/** Namespaces with their relations: written by \`npm run model -- types\`. */\nexport type ${name} = {\n${rows.join('')}};\n`;
}
