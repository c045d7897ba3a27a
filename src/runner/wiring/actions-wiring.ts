import { isBuiltIn } from '../execution/built-ins/built-in-names.ts';
import { ActionLibrary } from '../host/actions/action-library.ts';
import type { RunnerSettings } from '../settings/settings.ts';

/** The actions of a project, as its settings say where they come from. */
export function openActions(settings: RunnerSettings, stateDir: string): ActionLibrary {
  const { actionsUrl, hostGitUrl, hostToken, actionsMirror, fetchActions } = settings;
  const url = (actionsUrl ?? hostGitUrl).replace(/\/+$/, '');
  // The token is for the code host, not for wherever else actions come from.
  const isHost = hostToken !== undefined && url === hostGitUrl.replace(/\/+$/, '');
  return new ActionLibrary({
    stateDir,
    mirror: actionsMirror,
    origin: { url, ...(isHost && /^https?:/.test(url) ? { token: hostToken } : {}) },
    fetchesInRuns: fetchActions,
    isBuiltIn,
  });
}
