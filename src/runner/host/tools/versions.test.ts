import { describe, expect, test } from 'vitest';
import { goSemver, goWish } from './go-tools.ts';
import { nodeWish } from './node-version.ts';
import { pythonWish } from './python-version.ts';
import { pickVersion } from './tool-version.ts';
import { versionsInFile } from './version-files.ts';

const NODES = ['16.20.2', '18.20.1', '20.1.0', '20.19.0', '22.3.0', '24.0.0-rc.1', '23.1.0'];
const PYTHONS = ['3.9.0', '3.9.1', '3.11.7', '3.12.1', '3.13.0-beta.2', '3.13.0-rc.1', '2.7.18'];
const GOS = ['1.19.0', '1.20.3', '1.20.14', '1.22.0', '1.23.0-rc.1'];
/** Node 22 has long-term support, 24 not yet. */
const NOW = Date.parse('2025-09-01');

describe('Node', () => {
  test.each([
    ['18', '18.20.1'],
    ['v20.1.0', '20.1.0'],
    ['20', '20.19.0'],
    ['lts/*', '22.3.0'],
    ['lts/-1', '20.19.0'],
    ['lts/iron', '20.19.0'],
    ['LTS/Hydrogen', '18.20.1'],
    ['>=16 <20', '18.20.1'],
    ['^16 || ^18', '18.20.1'],
    ['24', undefined],
    ['24.0.0-rc.1', '24.0.0-rc.1'],
    ['latest', '23.1.0'],
    ['node', '23.1.0'],
    ['19', undefined],
  ])('%s is %s', (text, expected) => {
    expect(pickVersion(NODES, nodeWish(text, NOW))).toBe(expected);
  });

  test.each(['lts/none', '21-nightly', 'abc', 'lts/-99'])('%s is none', (text) => {
    expect(() => nodeWish(text, NOW)).toThrow(text);
  });

  test('the newest is another wish than anything', () => {
    expect(nodeWish('latest', NOW).isNewest).toBe(true);
    expect(nodeWish('>=1', NOW).isNewest).toBe(false);
  });
});

describe('Python', () => {
  test.each([
    ['3.12', '3.12.1'],
    ['3.x', '3.12.1'],
    ['3.13', undefined],
    ['3.13-dev', '3.13.0-rc.1'],
    ['3.13.0rc1', '3.13.0-rc.1'],
    ['3.13.0-beta.2', '3.13.0-beta.2'],
    ['>=3.9,<3.12', '3.11.7'],
    ['>=3.9 <3.12', '3.11.7'],
    ['~=3.9', '3.12.1'],
    ['~=3.9.0', '3.9.1'],
    ['==3.9.*', '3.9.1'],
    ['==3.9', '3.9.0'],
    ['>=3.9,!=3.9.1,<3.10', '3.9.0'],
    ['^3.9', '3.12.1'],
    ['~3.9', '3.9.1'],
    ['2.7', '2.7.18'],
  ])('%s is %s', (text, expected) => {
    expect(pickVersion(PYTHONS, pythonWish(text))).toBe(expected);
  });

  test('a version to come when it is allowed; other Pythons never', () => {
    expect(pickVersion(PYTHONS, pythonWish('3.13', true))).toBe('3.13.0-rc.1');
    for (const text of ['pypy3.10', 'graalpy-24', '3.13t']) {
      expect(() => pythonWish(text)).toThrow('cannot be had');
    }
  });
});

describe('Go', () => {
  test.each([
    ['1.20', '1.20.14'],
    ['1.20.3', '1.20.3'],
    ['go1.22', '1.22.0'],
    ['1.23rc1', '1.23.0-rc.1'],
    ['>=1.19 <1.22', '1.20.14'],
    ['stable', '1.22.0'],
    ['oldstable', undefined],
    ['1.23', undefined],
  ])('%s is %s', (text, expected) => {
    expect(pickVersion(GOS, goWish(text, ['1.22.0', '1.20.14']))).toBe(expected);
  });

  test('its own names are semver, and oldstable is the line before the newest', () => {
    const names = ['go1.22', 'go1.22.5', 'go1.23rc1', 'devel go1.24', 'go1'];
    expect(names.map(goSemver)).toEqual(['1.22.0', '1.22.5', '1.23.0-rc.1', undefined, undefined]);
    expect(goWish('oldstable', ['1.24.0-rc.1', '1.23.4', '1.22.9']).range).toContain('1.22.0');
  });
});

describe('files', () => {
  test.each([
    ['node', '.nvmrc', '# ours\nlts/iron\n', ['lts/iron']],
    ['node', 'a/.node-version', 'v20.1.0\n\n', ['v20.1.0']],
    ['node', 'package.json', '{"engines":{"node":">=18"},"volta":{"node":"20.1.0"}}', ['20.1.0']],
    [
      'node',
      'package.json',
      '{"devEngines":{"runtime":[{"name":"bun","version":"1"},{"name":"node","version":"^20"}]}}',
      ['^20'],
    ],
    ['node', 'package.json', '{}', []],
    ['node', '.tool-versions', 'python 3.12\nnodejs 20.1.0 # here\n', ['20.1.0']],
    ['node', 'mise.toml', '[tools]\nnode = ["20", "18"]\n', ['20']],
    ['python', '.python-version', '3.12.1\n3.11\n', ['3.12.1', '3.11']],
    [
      'python',
      'pyproject.toml',
      '[project]\nname = "x"\nrequires-python = ">=3.9,<4"\n',
      ['>=3.9,<4'],
    ],
    ['python', 'pyproject.toml', '[tool.poetry.dependencies]\npython = "^3.10"\n', ['^3.10']],
    ['python', 'Pipfile', '[requires]\npython_version = "3.11"\n', ['3.11']],
    ['go', 'go.mod', 'module x\n\ngo 1.22.1\n\ntoolchain go1.23.4\n', ['1.22.1']],
    ['go', 'go.work', 'go 1.21\n', ['1.21']],
    ['go', '.go-version', '1.22\n', ['1.22']],
    ['uv', 'uv.toml', 'required-version = ">=0.5"\n', ['>=0.5']],
    ['uv', 'pyproject.toml', '[tool.uv]\nrequired-version = "==0.5.1"\n', ['==0.5.1']],
  ] as const)('%s of %s: %j', (tool, path, text, expected) => {
    expect(versionsInFile(tool, path, text)).toEqual(expected);
  });

  test('a toolchain of a go.mod goes first where it is to; what is no file of its kind is refused', () => {
    const text = 'module x\ngo 1.22.1\ntoolchain go1.23.4\n';
    expect(versionsInFile('go', 'go.mod', text, { prefersToolchain: true })).toEqual(['1.23.4']);
    expect(() => versionsInFile('node', 'package.json', '{')).toThrow('is no JSON');
    expect(() => versionsInFile('python', 'pyproject.toml', '[')).toThrow('is no TOML');
  });
});
