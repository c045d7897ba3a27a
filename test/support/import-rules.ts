import { posix } from 'node:path';
import type { OxlintOverride } from 'oxlint';

/** One relative import of a source file; both paths are from the root of the project. */
export type Import = {
  readonly from: string;
  readonly to: string;
  /** As it is written. */
  readonly specifier: string;
  readonly isType: boolean;
};

/**
 * Which module may import which, besides itself. A module is a folder of `src/` by its path below it:
 * `gateway/hot` is another module than `gateway`, which has only the files that lie directly in it.
 */
export type ImportTable = Readonly<Record<string, readonly string[]>>;

/** What every module may import, and modules that have no rows of their own for their inner folders. */
export type ImportRules = {
  readonly table: ImportTable;
  /** Imported by all but the isolated. */
  readonly byAll: readonly string[];
  /** Imported by all for its types alone, besides what the table allows. */
  readonly typesByAll: readonly string[];
  /** These import nothing of ours at all. */
  readonly isolated: readonly string[];
  /** Their inner folders belong to them. */
  readonly whole: readonly string[];
};

/** The module of files directly in `src/`. */
export const TOP = '.';

const IMPORT = /^\s*(?:import|export)\s(type\s)?(?:[^'"();]*?\sfrom\s+)?'(\.[^']+)'/gm;
const DYNAMIC_IMPORT = /\bimport\(\s*'(\.[^']+)'/g;

/** The relative imports of the file at `path`, whose content is `text`: static, of types, dynamic, re-exports. */
export function importsOf(path: string, text: string): readonly Import[] {
  const found = (specifier: string, isType: boolean): Import => ({
    from: path,
    to: posix.normalize(posix.join(posix.dirname(path), specifier)),
    specifier,
    isType,
  });
  return [
    ...[...text.matchAll(IMPORT)].map(([, type, target]) =>
      found(target ?? '', type !== undefined),
    ),
    ...[...text.matchAll(DYNAMIC_IMPORT)].map(([, target]) => found(target ?? '', false)),
  ];
}

/** The module of a path below `src/`: the row with the longest path that is a folder above it. */
export function moduleOf(path: string, table: ImportTable): string | undefined {
  const folder = posix.dirname(posix.relative('src', path));
  for (let module = folder; module !== '.'; module = posix.dirname(module)) {
    if (Object.hasOwn(table, module)) return module;
  }
  return folder === '.' && Object.hasOwn(table, TOP) ? TOP : undefined;
}

/** Whether a file of `from` may import one of `to`. */
export function mayImport(rules: ImportRules, from: string, to: string, isType: boolean): boolean {
  if (from === to) return true;
  if (rules.isolated.includes(from)) return false;
  if (rules.byAll.includes(to) || (isType && rules.typesByAll.includes(to))) return true;
  return (rules.table[from] ?? []).includes(to);
}

/** Imports that the rules do not allow, and files that lie in no module of their own, as lines. */
export function importFaults(rules: ImportRules, imports: readonly Import[]): readonly string[] {
  return imports.flatMap(({ from, to, specifier, isType }) => {
    const [fromModule, toModule] = [moduleOf(from, rules.table), moduleOf(to, rules.table)];
    if (fromModule === undefined || toModule === undefined) {
      return [`${from}: '${specifier}' is, or leads, where there is no room`];
    }
    if (mayImport(rules, fromModule, toModule, isType)) return [];
    return [`${from}: ${fromModule} → ${toModule} ('${specifier}')`];
  });
}

/** Folders with files but without a row: their files would count to a module above them. */
export function foldersWithoutModule(
  rules: ImportRules,
  paths: readonly string[],
): readonly string[] {
  const folders = new Set(paths.map((path) => posix.dirname(posix.relative('src', path))));
  return [...folders].filter((folder) => {
    if (Object.hasOwn(rules.table, folder)) return false;
    return !rules.whole.some((module) => folder.startsWith(`${module}/`));
  });
}

/** Rows that allow what no import needs: a table that says more than the code is no drawing of it. */
export function unusedRights(rules: ImportRules, imports: readonly Import[]): readonly string[] {
  const used = new Set(
    imports.map(({ from, to }) => `${moduleOf(from, rules.table)} → ${moduleOf(to, rules.table)}`),
  );
  return Object.entries(rules.table).flatMap(([from, targets]) =>
    targets.map((to) => `${from} → ${to}`).filter((right) => !used.has(right)),
  );
}

/** Modules that may import each other, directly or around, as the members of each circle. */
export function moduleCircles(table: ImportTable): readonly (readonly string[])[] {
  return circlesOf(new Map(Object.entries(table)));
}

/**
 * The linter's form of the rules, an override for each module: what its imports look like that it may not
 * have. A file of a module lies directly in its folder, so that each module is one relative path away;
 * in a `whole` one depths differ, and what has the name of an inner folder is left to the table.
 */
export function lintOverrides(rules: ImportRules, paths: readonly string[]): OxlintOverride[] {
  const modules = Object.keys(rules.table);
  return modules.map((module) => {
    const isWhole = rules.whole.includes(module);
    const innerNames = isWhole ? namesBelow(module, paths) : new Set<string>();
    const forbidden = modules.filter(
      (to) => !mayImport(rules, module, to, true) && !innerNames.has(to.replace(/\/.*/, '')),
    );
    const patterns = forbidden.map((to) => {
      const path = isWhole ? `(?:\\.\\./)+${to}` : escaped(relativePath(module, to));
      return `${path}/${rules.whole.includes(to) ? '.+' : '[^/]+'}`;
    });
    const message = 'The import direction is in test/modules.ts.';
    const regex = `^(?:${patterns.join('|')})$`;
    return {
      files: [isWhole ? `src/${module}/**/*.ts` : posix.join('src', module, '*.ts')],
      rules: { 'no-restricted-imports': ['error', { patterns: [{ regex, message }] }] },
    };
  });
}

/** Names of folders in which files of a `whole` module lie, and TOP, which is any file above them. */
function namesBelow(module: string, paths: readonly string[]): ReadonlySet<string> {
  const inner = paths.filter((path) => path.startsWith(`src/${module}/`));
  const folders = inner.map((path) => posix.dirname(posix.relative(`src/${module}`, path)));
  return new Set([TOP, ...folders.flatMap((folder) => folder.split('/'))]);
}

/** As an import of the one module by the other begins: `../hot`, `./sql`, `..`. */
function relativePath(from: string, to: string): string {
  const path = posix.relative(from, to);
  return path.startsWith('.') ? path : `./${path}`;
}

function escaped(path: string): string {
  return path.replaceAll('.', '\\.');
}

/** The layer of each module: 1 for those that import none, else one above the highest that it imports. No circles. */
export function layersOf(rules: ImportRules): ReadonlyMap<string, number> {
  const layers = new Map<string, number>();
  const layerOf = (module: string): number => {
    const known = layers.get(module);
    if (known !== undefined) return known;
    const below = (rules.table[module] ?? []).map(layerOf);
    const layer = Math.max(0, ...below) + 1;
    layers.set(module, layer);
    return layer;
  };
  for (const module of Object.keys(rules.table)) layerOf(module);
  return layers;
}

/** Files that import each other, directly or around; imports of types count. */
export function fileCircles(imports: readonly Import[]): readonly (readonly string[])[] {
  const targets = new Map<string, string[]>();
  for (const { from, to } of imports) {
    const known = targets.get(from);
    if (known === undefined) targets.set(from, [to]);
    else known.push(to);
  }
  return circlesOf(targets);
}

/**
 * The circles of a graph: its strongly connected components of more than one node, each sorted.
 * Tarjan, Depth-first search and linear graph algorithms (1972); O(nodes + edges).
 */
function circlesOf(graph: ReadonlyMap<string, readonly string[]>): readonly (readonly string[])[] {
  const circles: (readonly string[])[] = [];
  const indexOf = new Map<string, number>();
  const lowOf = new Map<string, number>();
  const stack: string[] = [];
  const isOpen = new Set<string>();
  const visit = (node: string): void => {
    const index = indexOf.size;
    let low = index;
    indexOf.set(node, index);
    stack.push(node);
    isOpen.add(node);
    for (const next of graph.get(node) ?? []) {
      if (!indexOf.has(next)) visit(next);
      if (isOpen.has(next)) low = Math.min(low, lowOf.get(next) ?? indexOf.get(next) ?? low);
    }
    lowOf.set(node, low);
    if (low !== index) return;
    const members = stack.splice(stack.lastIndexOf(node));
    for (const member of members) isOpen.delete(member);
    if (members.length > 1) circles.push(members.sort());
  };
  for (const node of graph.keys()) if (!indexOf.has(node)) visit(node);
  return circles;
}
