import { allowedHostsOption, behindProxyOption, hostOption } from './common-options.ts';
import {
  listOption,
  secretJsonOption,
  secretLinesOption,
  secretListOption,
  type OptionTable,
} from './option.ts';

/** Settings of callers: credentials, bind address and allowed host names. */
export const CALLER_OPTIONS = {
  serviceAuthTokens: secretListOption({
    env: 'GATEWAY_SERVICE_AUTH_TOKENS',
    description:
      'Service tokens that callers present as `Authorization: Bearer`. Each reaches everything. Without these and without GATEWAY_CALLERS every caller is trusted, and the start logs a warning. A change of their file takes effect at once.',
  }),
  callers: secretJsonOption({
    env: 'GATEWAY_CALLERS',
    description:
      'Callers by name, as a JSON document: tokens, scopes and a rate for each. See docs/operations.md, "Callers". A change of their file takes effect at once.',
  }),
  openServices: listOption({
    env: 'GATEWAY_OPEN_SERVICES',
    description:
      'gRPC services that answer without a credential: `health`, `reflection`, both, or `none`. /healthz and /readyz always answer.',
    fallback: ['health'],
    pattern: /^(health|reflection|none)$/,
    rule: '`health`, `reflection` or `none`',
  }),
  adminApiSecrets: secretLinesOption({
    env: 'GATEWAY_ADMIN_API_SECRET',
    description:
      'Operator secret that AdminService expects in `X-Admin-Secret`. Give several while you rotate it. Without one AdminService is disabled. A change of its file takes effect at once.',
  }),
  host: hostOption('GATEWAY_HOST', 'both listeners'),
  isBehindProxy: behindProxyOption('GATEWAY_BEHIND_PROXY', 'GATEWAY_HOST'),
  allowedHosts: allowedHostsOption(
    'GATEWAY_ALLOWED_HOSTS',
    'Names that a request may be addressed to (Host, :authority) on both ports while no service token is set. Loopback names and addresses are always allowed. Every IP address is allowed once GATEWAY_HOST is no loopback address. Other names get permission_denied. With service tokens any name is allowed.',
  ),
} as const satisfies OptionTable;
