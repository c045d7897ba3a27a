import { listOption, type Option } from './option.ts';

/** Host names that requests may be addressed to, each with or without a port. */
export function allowedHostsOption(env: string, description: string): Option<readonly string[]> {
  return listOption({
    env,
    description,
    fallback: [],
    pattern: /^([A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?$/,
    rule: 'a host name, with or without a port',
  });
}
