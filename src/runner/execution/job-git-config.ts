import { join } from 'node:path';

/**
 * The global configuration of git that a job begins with: the user's own, included, so that what a step
 * sets by `git config --global` is the job's alone. Files that are not there do no harm.
 * Places: git-config(1), FILES.
 */
export function jobGitConfig(environment: Readonly<Record<string, string | undefined>>): string {
  const { HOME: home, XDG_CONFIG_HOME: configHome, GIT_CONFIG_GLOBAL: given } = environment;
  const folder = isGiven(configHome) ? configHome : isGiven(home) ? join(home, '.config') : '';
  const usual = [
    ...(folder === '' ? [] : [join(folder, 'git', 'config')]),
    ...(isGiven(home) ? [join(home, '.gitconfig')] : []),
  ];
  const paths = given === undefined ? usual : [given];
  return paths
    .filter((path) => !path.includes('\n'))
    .map((path) => `[include]\n\tpath = "${path.replaceAll(/["\\]/g, '\\$&')}"\n`)
    .join('');
}

function isGiven(text: string | undefined): text is string {
  return text !== undefined && text !== '';
}
