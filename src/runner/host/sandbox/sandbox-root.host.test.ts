import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { makeSandboxRoot, sandboxRootOf } from './sandbox-root.ts';

let base = '';
let project = '';

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'sandbox-root-')));
  project = join(base, 'project');
  mkdirSync(project);
});
afterEach(() => {
  rmSync(base, { recursive: true, force: true });
});

const SHARED = `/var/tmp/gatehouse-runner-${process.getuid?.() ?? 0}`;

describe('where runs have their folders unless somebody says', () => {
  test.each([
    ['in the home folder', { HOME: '/h' }, '/h/gatehouse-runner'],
    [
      'not in a cache folder that is hidden',
      { HOME: '/h', XDG_CACHE_HOME: '/h/.cache' },
      '/h/gatehouse-runner',
    ],
    [
      'in a cache folder that is not',
      { HOME: '/h', XDG_CACHE_HOME: '/var/cache/me' },
      '/var/cache/me/gatehouse-runner',
    ],
    [
      'in the home folder, when no whole path is named',
      { HOME: '/h', XDG_CACHE_HOME: 'cache' },
      '/h/gatehouse-runner',
    ],
    ['in neither, when both are hidden', { HOME: '/.h', XDG_CACHE_HOME: '/h/.cache' }, SHARED],
  ])('%s', (_, environment, expected) => {
    const root = sandboxRootOf(project, undefined, environment);
    expect(root.base).toBe(expected);
    expect(dirname(root.dir)).toBe(expected);
    expect(root.isBaseRemoved).toBe(expected !== SHARED);
  });

  test('not in the project, nor behind a link to a hidden folder', () => {
    expect(sandboxRootOf(project, undefined, { HOME: project }).base).toBe(SHARED);
    mkdirSync(join(base, '.hidden'));
    symlinkSync('.hidden', join(base, 'home'));
    expect(sandboxRootOf(project, undefined, { HOME: join(base, 'home') }).base).toBe(SHARED);
  });

  test('as it is said, dots and all, which nobody removes', () => {
    const root = sandboxRootOf(project, join(base, '.given'), { HOME: base });
    expect(root.base).toBe(join(base, '.given'));
    expect(root.isBaseRemoved ?? false).toBe(false);
    expect(() => sandboxRootOf(project, join(project, 'x'), {})).toThrow('lies in the project');
  });
});

describe('the folder that is made', () => {
  const rootIn = (): ReturnType<typeof sandboxRootOf> =>
    sandboxRootOf(project, undefined, { HOME: base });
  const modeOf = (path: string): number => statSync(path).mode & 0o777;

  test('is for nobody else, also when it was open before', () => {
    const root = rootIn();
    makeSandboxRoot(root);
    expect([modeOf(root.base), modeOf(root.dir)]).toEqual([0o700, 0o700]);
    chmodSync(root.dir, 0o755);
    makeSandboxRoot(root);
    expect(modeOf(root.dir)).toBe(0o700);
  });

  test.each(['base', 'dir'] as const)('is refused where others could change its %s', (which) => {
    const root = rootIn();
    makeSandboxRoot(root);
    chmodSync(root[which], 0o720);
    expect(() => makeSandboxRoot(root)).toThrow('others may change it');
    rmSync(root[which], { recursive: true });
    mkdirSync(join(base, 'elsewhere'));
    symlinkSync(join(base, 'elsewhere'), root[which]);
    expect(() => makeSandboxRoot(root)).toThrow('is a link');
  });
});
