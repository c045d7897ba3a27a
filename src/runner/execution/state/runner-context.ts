import { arch, platform } from 'node:os';

const OS_NAMES: Readonly<Record<string, string>> = {
  linux: 'Linux',
  darwin: 'macOS',
  win32: 'Windows',
};
const ARCH_NAMES: Readonly<Record<string, string>> = {
  x64: 'X64',
  ia32: 'X86',
  arm: 'ARM',
  arm64: 'ARM64',
};

/** The `runner` context of a job. Folders are absolute. */
export function runnerContext(folders: {
  readonly temp: string;
  readonly toolCache: string;
  readonly workspace: string;
  readonly isDebug: boolean;
}): Readonly<Record<string, string>> {
  return {
    name: 'local',
    os: OS_NAMES[platform()] ?? platform(),
    arch: ARCH_NAMES[arch()] ?? arch().toUpperCase(),
    temp: folders.temp,
    tool_cache: folders.toolCache,
    workspace: folders.workspace,
    environment: 'self-hosted',
    ...(folders.isDebug ? { debug: '1' } : {}),
  };
}

/** The `runner` context as RUNNER_* variables. */
export function runnerVariables(runner: Readonly<Record<string, string>>): Record<string, string> {
  const variables: Record<string, string> = {};
  for (const [name, value] of Object.entries(runner)) {
    variables[`RUNNER_${name.toUpperCase()}`] = value;
  }
  return variables;
}
