import { isLoopback } from './host-allow-list.ts';

export type ListeningAddress = {
  /** An IP address or a host name. */
  readonly host: string;
  readonly isBehindProxy: boolean;
  /** The settings that these came from. */
  readonly hostSetting: string;
  readonly proxySetting: string;
};

/**
 * The fields of the event `listens_without_tls`: other machines can reach the address, and nothing says that what they send
 * is encrypted on the way. Undefined where there is nothing to warn of.
 */
export function plainTextWarning(
  address: ListeningAddress,
): { readonly host: string; readonly detail: string } | undefined {
  const { host, isBehindProxy, hostSetting, proxySetting } = address;
  if (isBehindProxy || isLoopback(host)) return undefined;
  const detail =
    'other machines can reach this address in plain text: whoever is on the way reads requests and tokens, and metrics ask ' +
    `for no token. Unset ${hostSetting} to serve this machine alone; or put a proxy that ends TLS in front, let the network ` +
    `keep all others out, and set ${proxySetting}=true`;
  return { host, detail };
}
