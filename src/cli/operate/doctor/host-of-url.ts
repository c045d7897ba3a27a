/** What a URL has for the address that the service listens on: this machine for all of its addresses, brackets for IPv6. */
export function hostOfUrl(listened: string): string {
  const host = ['0.0.0.0', '::'].includes(listened) ? '127.0.0.1' : listened;
  return host.includes(':') ? `[${host}]` : host;
}
